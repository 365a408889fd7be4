//go:build !nocuda && (linux || windows)

package cuda

import (
	_ "embed"
	"encoding/json"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/cuda/dl"
)

// fakeDriver stands for the driver library at its C interface: every entry
// point is a real C function pointer whose body is Go. So the native table is
// tested with its argument order, widths and results, without a GPU.
type fakeDriver struct {
	absent  map[string]bool            // entry points that it lacks
	results map[string]cuapi.Result    // codes to answer; Success otherwise
	on      map[string]func([]uintptr) // what else an entry point does
	mu      sync.Mutex                 // guards calls
	calls   map[string]int             // number of calls per entry point
	lookups map[string]int             // number of look-ups per name
}

// currentFake is the fake that the function pointers serve. There is one set of
// pointers per process, because they are never freed.
var currentFake atomic.Pointer[fakeDriver]

// fakePointers makes one C function pointer per entry point, with as many
// words as the facts give it parameters.
var fakePointers = sync.OnceValue(func() map[string]uintptr {
	word := reflect.TypeFor[uintptr]()
	pointers := map[string]uintptr{}
	for _, e := range entries {
		params := make([]reflect.Type, cuapi.SymbolParams[e.name])
		for i := range params {
			params[i] = word
		}
		sig := reflect.FuncOf(params, []reflect.Type{word}, false)
		body := reflect.MakeFunc(sig, func(in []reflect.Value) []reflect.Value {
			args := make([]uintptr, len(in))
			for i, v := range in {
				args[i] = uintptr(v.Uint())
			}
			return []reflect.Value{reflect.ValueOf(currentFake.Load().serve(e.name, args))}
		})
		pointers[e.name] = dl.NewCallback(body.Interface())
	}
	return pointers
})

// newFake installs a fake that answers a supported version and success.
func newFake(t *testing.T) *fakeDriver {
	t.Helper()
	f := &fakeDriver{
		absent:  map[string]bool{},
		results: map[string]cuapi.Result{},
		on:      map[string]func([]uintptr){},
		calls:   map[string]int{},
		lookups: map[string]int{},
	}
	f.version(MinDriverVersion)
	fakePointers()
	currentFake.Store(f)
	t.Cleanup(func() { currentFake.Store(nil) })
	return f
}

func (f *fakeDriver) version(v int) {
	f.on["cuDriverGetVersion"] = func(a []uintptr) { writeAt(a[0], int32(v)) }
}

func (f *fakeDriver) library() *dl.Library {
	return dl.New("/fake/libcuda.so.1", func(name string) uintptr {
		f.mu.Lock()
		f.lookups[name]++
		f.mu.Unlock()
		if f.absent[name] {
			return 0
		}
		return fakePointers()[name]
	})
}

// serve answers one call. Like C code, it leaves rubbish in the upper half of
// the result word.
func (f *fakeDriver) serve(name string, args []uintptr) uintptr {
	f.mu.Lock()
	f.calls[name]++
	f.mu.Unlock()
	if do := f.on[name]; do != nil {
		do(args)
	}
	return 0xdead<<32 | uintptr(uint32(f.results[name]))
}

// ptrAt turns an address that a call was given into a pointer. It is not
// inlined, because the compiler cannot yet reason about the round trip through
// memory inside a larger function.
//
//go:noinline
func ptrAt[T any](addr uintptr) *T {
	return (*T)(*(*unsafe.Pointer)(unsafe.Pointer(&addr)))
}

// writeAt stores a result where the call wants it.
func writeAt[T any](addr uintptr, v T) { *ptrAt[T](addr) = v }

// apiFacts is the part of the committed facts that the tests compare with.
type apiFacts struct {
	Functions []struct {
		Symbol string
		Params [][2]string // C type, name
	}
}

// factsJSON is embedded so that the test binary runs away from its sources.
//
//go:embed cuapi/abi/cuda.json
var factsJSON []byte

var readFacts = sync.OnceValues(func() (map[string][][2]string, error) {
	var f apiFacts
	if err := json.Unmarshal(factsJSON, &f); err != nil {
		return nil, err
	}
	params := map[string][][2]string{}
	for _, fn := range f.Functions {
		params[fn.Symbol] = fn.Params
	}
	return params, nil
})

// symbolFacts maps an entry point to its parameters.
func symbolFacts(t *testing.T) map[string][][2]string {
	t.Helper()
	m, err := readFacts()
	require.NoError(t, err)
	return m
}

// cWidth is the size in bytes of a parameter of a C type, by the conventions
// of the driver's header.
func cWidth(ctype string) int {
	switch {
	case strings.HasSuffix(ctype, "*"):
		return 8
	case ctype == "unsigned char":
		return 1
	case ctype == "unsigned short":
		return 2
	}
	switch ctype {
	case "size_t", "CUdeviceptr", "CUcontext", "CUmodule", "CUfunction", "CUstream", "CUevent", "CUmemoryPool", "CUoccupancyB2DSize":
		return 8
	}
	return 4 // int, unsigned int, CUdevice and every enumeration
}
