package fakeoptix

import (
	"errors"
	"reflect"
	"sync"

	"github.com/raymux/raymux/cuda/dl"
	"github.com/raymux/raymux/optixabi"
)

// query is the function that the library exports.
const query = "optixQueryFunctionTable"

// maxSlots limits the fakes in use at once: function pointers are never freed
// and a process has room for 2000, a slot takes 30 of them.
const maxSlots = 16

// slot is a set of function pointers and the fake that they serve now.
type slot struct {
	pointers map[string]uintptr
	mu       sync.Mutex
	owner    *Fake
}

var slots struct {
	mu   sync.Mutex
	free []*slot
	made int
}

// errNoSlot says that fakes were not closed.
var errNoSlot = errors.New("fakeoptix: too many fakes in use, close the ones that are done")

func takeSlot(f *Fake) (*slot, error) {
	if !supported {
		return nil, dl.ErrUnsupportedPlatform
	}
	slots.mu.Lock()
	defer slots.mu.Unlock()
	var s *slot
	if n := len(slots.free); n > 0 {
		s = slots.free[n-1]
		slots.free = slots.free[:n-1]
	} else {
		if slots.made == maxSlots {
			return nil, errNoSlot
		}
		slots.made++
		s = newSlot()
	}
	s.set(f)
	return s, nil
}

func (s *slot) release() {
	if s.fake() == nil {
		return
	}
	s.set(nil)
	slots.mu.Lock()
	defer slots.mu.Unlock()
	slots.free = append(slots.free, s)
}

func (s *slot) set(f *Fake) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.owner = f
}

func (s *slot) fake() *Fake {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.owner
}

// newSlot makes one C function pointer per function, with as many words as the
// facts give it parameters.
func newSlot() *slot {
	s := &slot{pointers: map[string]uintptr{}}
	s.pointers[query] = pointer(6, func(args []uintptr) uintptr {
		f := s.fake()
		if f == nil {
			return uintptr(optixabi.ErrorLibraryUnloadFailure)
		}
		return f.query(args)
	})
	for name, params := range optixabi.Functions() {
		s.pointers[name] = pointer(params, func(args []uintptr) uintptr {
			f := s.fake()
			if f == nil {
				return uintptr(optixabi.ErrorLibraryUnloadFailure)
			}
			if text, ok := texts[name]; ok {
				return text(optixabi.Result(int32(args[0])))
			}
			return f.serve(name, args)
		})
	}
	// What stands in the places of functions that Raymux never calls.
	s.pointers[""] = pointer(0, func([]uintptr) uintptr {
		if f := s.fake(); f != nil {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.violate("a function was called that Raymux does not use: a table was read with the order of another ABI")
		}
		return uintptr(optixabi.ErrorInternalError)
	})
	return s
}

// pointer makes a C function of n words.
func pointer(n int, body func([]uintptr) uintptr) uintptr {
	word := reflect.TypeFor[uintptr]()
	params := make([]reflect.Type, n)
	for i := range params {
		params[i] = word
	}
	fn := reflect.MakeFunc(reflect.FuncOf(params, []reflect.Type{word}, false), func(in []reflect.Value) []reflect.Value {
		args := make([]uintptr, len(in))
		for i, v := range in {
			args[i] = uintptr(v.Uint())
		}
		return []reflect.Value{reflect.ValueOf(body(args))}
	})
	return dl.NewCallback(fn.Interface())
}

// query answers optixQueryFunctionTable.
func (f *Fake) query(args []uintptr) uintptr {
	abi, options, table, size := optixabi.ABI(int32(args[0])), uint32(args[1]), args[4], uint64(args[5])
	answer, known := f.cfg.ABIs[abi]
	var r optixabi.Result
	switch {
	case !known:
		r = optixabi.ErrorUnsupportedABIVersion
	case answer.Result != optixabi.Success:
		r = answer.Result
	case options != 0 || args[2] != 0 || args[3] != 0:
		r = optixabi.ErrorInvalidEntryFunctionOptions
	case size != uint64(abi.TableSize()) || table == 0:
		r = optixabi.ErrorFunctionTableSizeMismatch
	}
	f.mu.Lock()
	f.calls[query]++
	f.mu.Unlock()
	if r != optixabi.Success {
		return uintptr(r)
	}
	entries := sliceAt[uintptr](table, int(size/8))
	for i := range entries {
		entries[i] = f.slot.pointers[""]
	}
	for name := range optixabi.Functions() {
		i, _ := abi.Slot(name)
		entries[i] = f.slot.pointers[name]
		if name == answer.Null {
			entries[i] = 0
		}
	}
	f.mu.Lock()
	f.abi = abi
	f.mu.Unlock()
	return 0
}
