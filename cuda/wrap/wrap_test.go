package wrap

import (
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda/cuapi"
)

// TestForwarding reads the generated methods: each must call the method of its
// own name with its own parameters in their order, and tell its own call.
// Swapped arguments of one type would pass the compiler.
func TestForwarding(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "zz_hooked.go", nil, 0)
	require.NoError(t, err)
	seen := map[string]bool{"Name": true}
	for _, d := range file.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		name := fn.Name.Name
		seen[name] = true
		var params, passed, ids []string
		for _, f := range fn.Type.Params.List {
			for _, n := range f.Names {
				params = append(params, n.Name)
			}
		}
		ast.Inspect(fn.Body, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if sel, ok := n.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == name {
					for _, a := range n.Args {
						passed = append(passed, a.(*ast.Ident).Name)
					}
				}
			case *ast.KeyValueExpr:
				if n.Key.(*ast.Ident).Name == "ID" {
					ids = append(ids, n.Value.(*ast.Ident).Name)
				}
			}
			return true
		})
		assert.Equal(t, params, passed, name)
		assert.Equal(t, []string{"Call" + name}, ids)
	}
	api := reflect.TypeFor[cuapi.API]()
	for i := range api.NumMethod() {
		assert.True(t, seen[api.Method(i).Name], api.Method(i).Name)
	}
	assert.Equal(t, api.NumMethod()-1, int(NumCalls))
}

func TestCallNames(t *testing.T) {
	for id := range CallID(NumCalls) {
		got, ok := callByName(id.String())
		assert.True(t, ok)
		assert.Equal(t, id, got)
	}
	assert.Equal(t, "Call(255)", CallID(255).String())
	_, ok := callByName("Name")
	assert.False(t, ok)
}

// spy is a hook that keeps what it is told.
type spy struct {
	before, after []Call
	codes         []cuapi.Result
	stop          cuapi.Result
}

func (s *spy) Before(c Call) (cuapi.Result, bool) {
	s.before = append(s.before, c)
	return s.stop, s.stop != cuapi.Success
}

func (s *spy) After(c Call, r cuapi.Result) {
	s.after = append(s.after, c)
	s.codes = append(s.codes, r)
}

func TestHooked(t *testing.T) {
	s, inner := &spy{}, &fakeAPI{}
	h := NewHooked(inner, s)
	assert.Equal(t, "fake", h.Name())
	p, r := h.MemAlloc(64)
	assert.Equal(t, cuapi.Success, r)
	assert.Equal(t, cuapi.DevicePtr(0x100), p)
	assert.Equal(t, []Call{{ID: CallMemAlloc, Device: NoDevice, Size: 64}}, s.before)
	assert.Equal(t, []Call{{ID: CallMemAlloc, Device: NoDevice, Size: 64, Handle: 0x100}}, s.after)

	inner.code = cuapi.ErrorInvalidHandle
	assert.Equal(t, cuapi.ErrorInvalidHandle, h.EventRecord(7, 8))
	assert.Equal(t, Call{ID: CallEventRecord, Device: NoDevice, Handle: 7}, s.after[1])
	assert.Equal(t, []cuapi.Result{0, cuapi.ErrorInvalidHandle}, s.codes)

	// A stopped call reaches nobody and gives zeros.
	s.stop = cuapi.ErrorOutOfMemory
	reached := inner.reached
	p, r = h.MemAlloc(64)
	assert.Zero(t, p)
	assert.Equal(t, cuapi.ErrorOutOfMemory, r)
	assert.Equal(t, reached, inner.reached)
	assert.Len(t, s.after, 2)
}

func TestTrace(t *testing.T) {
	tr := NewTrace(&fakeAPI{})
	tr.Record(3)
	tr.EventRecord(1, 2)
	tr.CtxSynchronize()
	tr.EventRecord(1, 2)
	tr.CtxSynchronize()
	assert.Equal(t, int64(2), tr.Count("EventRecord"))
	assert.Zero(t, tr.Count("NoSuchMethod"))
	assert.Equal(t, map[string]int64{"EventRecord": 2, "CtxSynchronize": 2}, tr.Counts())
	assert.Equal(t, int64(4), tr.Total())
	assert.Equal(t, []CallID{CallEventRecord, CallCtxSynchronize, CallEventRecord}, tr.Sequence(), "cut at the limit")
	tr.Reset()
	assert.Empty(t, tr.Counts())
	assert.Nil(t, tr.Sequence())
}

func TestTraceAllocatesNothing(t *testing.T) {
	var api cuapi.API = NewTrace(&fakeAPI{})
	params := make([]byte, 64)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		api.LaunchKernel(1, cuapi.D1(1), cuapi.D1(32), 0, 2, params)
	}))
}

func TestFaultRules(t *testing.T) {
	inner := &fakeAPI{}
	f := NewFault(inner)
	f.FailAt(3, cuapi.ErrorOutOfMemory)
	require.NoError(t, f.FailCall("MemFree", 2, cuapi.ErrorInvalidValue))
	assert.ErrorContains(t, f.FailCall("memFree", 1, 1), `no method "memFree"`)

	_, r := f.MemAlloc(1)
	assert.Equal(t, cuapi.Success, r)
	assert.Equal(t, cuapi.Success, f.MemFree(1))
	p, r := f.MemAlloc(1)
	assert.Equal(t, cuapi.ErrorOutOfMemory, r, "the third call")
	assert.Zero(t, p)
	assert.Equal(t, cuapi.ErrorInvalidValue, f.MemFree(1), "the second MemFree")
	assert.Equal(t, cuapi.Success, f.MemFree(1))
	assert.Equal(t, 5, f.Calls())
	assert.Equal(t, 2, f.Fired())
	assert.Equal(t, 3, inner.reached)

	f.FailAt(1, cuapi.ErrorUnknown)
	f.Reset()
	assert.Equal(t, cuapi.Success, f.MemFree(1))
	assert.Equal(t, 1, f.Calls())
	assert.Zero(t, f.Fired())
}

// TestFaultDevice checks failures of one device among two, with a code after
// which the device stays lost.
func TestFaultDevice(t *testing.T) {
	inner := &fakeAPI{current: 0}
	f := NewFault(inner)
	f.FailDevice(1, 2, cuapi.ErrorIllegalAddress)
	for range 4 {
		assert.Equal(t, cuapi.Success, f.CtxSynchronize(), "device 0")
	}
	inner.current = 1
	assert.Equal(t, cuapi.Success, f.CtxSynchronize())
	assert.Equal(t, cuapi.ErrorIllegalAddress, f.CtxSynchronize())
	assert.Equal(t, cuapi.ErrorIllegalAddress, f.MemFree(5))
	_, r := f.DevicePrimaryCtxRetain(1)
	assert.Equal(t, cuapi.ErrorIllegalAddress, r, "the call names the device")
	assert.Equal(t, cuapi.Success, f.DevicePrimaryCtxRelease(1))
	_, r = f.DeviceGetCount()
	assert.Equal(t, cuapi.Success, r)
	inner.current = 0
	assert.Equal(t, cuapi.Success, f.CtxSynchronize(), "device 0 is not concerned")
	assert.Equal(t, 1, f.Fired())

	inner.current = NoDevice
	assert.Equal(t, cuapi.Success, f.CtxSynchronize(), "no context, no device")
}

// mortal is a driver that can lose a device.
type mortal struct {
	*fakeAPI
	killed []int
}

func (m *mortal) KillDevice(ordinal int) { m.killed = append(m.killed, ordinal) }

// TestFaultTellsTheDriver checks that a driver below other wrappers loses the device too, once,
// and with sticky codes only.
func TestFaultTellsTheDriver(t *testing.T) {
	m := &mortal{fakeAPI: &fakeAPI{current: 1}}
	f := NewFault(NewLedger(m))
	f.FailAt(1, cuapi.ErrorOutOfMemory)
	f.FailAt(3, cuapi.ErrorIllegalAddress)
	for range 2 {
		f.CtxSynchronize()
		assert.Empty(t, m.killed)
	}
	for range 3 {
		assert.Equal(t, cuapi.ErrorIllegalAddress, f.CtxSynchronize())
		assert.Equal(t, []int{1}, m.killed)
	}
}

// TestLedger makes two of everything on two devices and gives them back.
func TestLedger(t *testing.T) {
	inner := &fakeAPI{}
	l := NewLedger(inner)
	require.NoError(t, l.Check())
	registered := make([]byte, 5)
	var undo []func() cuapi.Result
	for d := range cuapi.Device(2) {
		inner.current = d
		must := func(r cuapi.Result) { require.Equal(t, cuapi.Success, r) }
		_, r := l.DevicePrimaryCtxRetain(d)
		must(r)
		m, r := l.ModuleLoadDataEx([]byte("x"), nil)
		must(r)
		s, r := l.StreamCreateWithPriority(0, 0)
		must(r)
		e, r := l.EventCreate(0)
		must(r)
		a, r := l.MemAlloc(100)
		must(r)
		b, r := l.MemAllocAsync(30, s)
		must(r)
		h, r := l.MemHostAlloc(7, 0)
		must(r)
		undo = append(undo,
			func() cuapi.Result { return l.ModuleUnload(m) },
			func() cuapi.Result { return l.MemFreeAsync(a, s) }, // each frees the other's kind
			func() cuapi.Result { return l.MemFree(b) },
			func() cuapi.Result { return l.MemFreeHost(h) },
			func() cuapi.Result { return l.StreamDestroy(s) },
			func() cuapi.Result { return l.EventDestroy(e) },
			func() cuapi.Result { return l.DevicePrimaryCtxRelease(d) },
		)
	}
	require.Equal(t, cuapi.Success, l.MemHostRegister(registered, 0))
	one := Counts{Contexts: 1, Modules: 1, Streams: 1, Events: 1, DeviceBytes: 100, PoolBytes: 30, PinnedBytes: 7}
	two := one
	two.PinnedBytes = 12
	assert.Equal(t, map[cuapi.Device]Counts{0: one, 1: two}, l.Report())
	assert.Equal(t, Counts{2, 2, 2, 2, 200, 60, 19}, l.Total())
	assert.EqualError(t, l.Check(), "wrap: not given back on "+
		"device 0: 1 contexts, 1 modules, 1 streams, 1 events, 100 device bytes, 30 pool bytes, 7 pinned bytes; "+
		"device 1: 1 contexts, 1 modules, 1 streams, 1 events, 100 device bytes, 30 pool bytes, 12 pinned bytes")

	// A refused destruction leaves the books as they are.
	inner.code = cuapi.ErrorInvalidContext
	for _, u := range undo {
		u()
	}
	assert.Equal(t, Counts{2, 2, 2, 2, 200, 60, 19}, l.Total())

	// One after the driver's end counts as done.
	inner.code = cuapi.ErrorDeinitialized
	undo[0]()
	assert.Equal(t, 1, l.Total().Modules)
	inner.code = cuapi.Success
	for _, u := range undo[1:] {
		u()
	}
	assert.Error(t, l.Check(), "the registration is still there")
	l.MemHostUnregister(registered)
	assert.NoError(t, l.Check())
	assert.Equal(t, "nothing", l.Total().String())
}

// TestLedgerFailedCreation checks that a creation that failed is not booked.
func TestLedgerFailedCreation(t *testing.T) {
	l := NewLedger(&fakeAPI{code: cuapi.ErrorOutOfMemory})
	_, _ = l.MemAlloc(10)
	_, _ = l.MemHostAlloc(10, 0)
	_, _ = l.DevicePrimaryCtxRetain(0)
	assert.NoError(t, l.Check())
}

// reuseAPI hands the same address out again as soon as it is freed, as real
// allocators do.
type reuseAPI struct {
	fakeAPI
	free chan cuapi.DevicePtr
}

func (r *reuseAPI) MemAlloc(uint64) (cuapi.DevicePtr, cuapi.Result) { return <-r.free, cuapi.Success }
func (r *reuseAPI) MemFree(p cuapi.DevicePtr) cuapi.Result          { r.free <- p; return cuapi.Success }

// TestLedgerReuse frees and allocates the same few addresses from many
// goroutines.
func TestLedgerReuse(t *testing.T) {
	inner := &reuseAPI{free: make(chan cuapi.DevicePtr, 4)}
	for p := range cuapi.DevicePtr(4) {
		inner.free <- p + 1
	}
	l := NewLedger(inner)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for range 500 {
				p, _ := l.MemAlloc(uint64(g + 1))
				l.MemFree(p)
			}
		})
	}
	wg.Wait()
	assert.NoError(t, l.Check())
	assert.Empty(t, l.live)
	assert.Empty(t, l.dying)
}
