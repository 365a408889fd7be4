package cuda_test

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/cuapi"
)

// fake is a driver with n devices that does the least: memory is Go memory,
// streams run at once unless they are held, kernels do nothing. Unlike the
// emulator it can hold a stream back, run out of memory on demand, fail any
// call, and it counts everything.
type fake struct {
	cuapi.API // the methods that package cuda does not use

	mu      sync.Mutex
	n       int
	next    uint64
	current map[int]cuapi.Context
	retains []int
	mem     map[uint64]fakeMem
	hosts   map[*byte]bool
	streams map[cuapi.Stream]*fakeStream
	events  map[cuapi.Event]*fakeEvent
	modules map[cuapi.Module]bool
	calls   []string
	quiet   bool // note no calls and order nothing, so that nothing allocates
	count   atomic.Int64

	failAt   int64 // 1: the next call
	failName string
	failCode cuapi.Result
	failed   string // name of the call that was failed

	limit  uint64 // bytes per device, 0: none
	sticky cuapi.Result
	params []byte // of the last launch
	peers  [][2]cuapi.Context
}

type fakeMem struct {
	dev  int
	data []byte
}

type fakeStream struct {
	dev  int
	held bool
	work []func() bool // false: not yet
}

type fakeEvent struct {
	dev  int
	last *bool // whether the last recording was reached; nil without one
}

func newFake(n int) *fake {
	return &fake{
		n: n, next: 1 << 20, current: map[int]cuapi.Context{}, retains: make([]int, n),
		mem: map[uint64]fakeMem{}, hosts: map[*byte]bool{},
		streams: map[cuapi.Stream]*fakeStream{}, events: map[cuapi.Event]*fakeEvent{}, modules: map[cuapi.Module]bool{},
	}
}

const fakeContext = 0x1000 // handle of the primary context of device 0

// enter notes a call and says whether to fail it. The caller holds mu after.
func (f *fake) enter(name string) cuapi.Result {
	f.mu.Lock()
	f.count.Add(1)
	if !f.quiet {
		f.calls = append(f.calls, name)
	}
	if f.failAt > 0 && (f.failName == "" || f.failName == name) {
		f.failAt--
		if f.failAt == 0 {
			f.failed = name
			if f.failCode.Sticky() {
				f.sticky = f.failCode
			}
			return f.failCode
		}
	}
	return f.sticky
}

// enterIn is enter for calls that need a current context.
func (f *fake) enterIn(name string) (dev int, r cuapi.Result) {
	r = f.enter(name)
	c := f.current[threadID()]
	if r == cuapi.Success && c == 0 {
		r = cuapi.ErrorInvalidContext
	}
	return int(c) - fakeContext, r
}

func (f *fake) failNth(k int64, name string, code cuapi.Result) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failAt, f.failName, f.failCode, f.failed = k, name, code, ""
}

func (f *fake) takeCalls() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.calls
	f.calls = nil
	return c
}

// live counts everything that is not destroyed, by kind.
func (f *fake) live() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	held := 0
	for _, n := range f.retains {
		held += n
	}
	out := map[string]int{}
	for k, n := range map[string]int{"memory": len(f.mem), "host": len(f.hosts), "stream": len(f.streams),
		"event": len(f.events), "module": len(f.modules), "context": held} {
		if n != 0 {
			out[k] = n
		}
	}
	return out
}

func (f *fake) hold(s *cuda.Stream) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.streams[s.Handle()].held = true
}

func (f *fake) letGo(s *cuda.Stream) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.streams[s.Handle()].held = false
	f.pump()
}

// pump runs what can run. The caller holds mu.
func (f *fake) pump() {
	for progress := true; progress; {
		progress = false
		for _, s := range f.streams {
			for !s.held && len(s.work) > 0 && s.work[0]() {
				s.work = s.work[1:]
				progress = true
			}
		}
	}
}

// enqueue puts work on a stream. The caller holds mu.
func (f *fake) enqueue(h cuapi.Stream, work func() bool) cuapi.Result {
	s := f.streams[h]
	if s == nil {
		return cuapi.ErrorInvalidHandle
	}
	s.work = append(s.work, work)
	f.pump()
	return cuapi.Success
}

// at is the memory from an address on. The caller holds mu.
func (f *fake) at(p cuapi.DevicePtr, n uint64) []byte {
	for base, m := range f.mem {
		if uint64(p) >= base && uint64(p)+n <= base+uint64(len(m.data)) {
			return m.data[uint64(p)-base:][:n]
		}
	}
	return nil
}

func (f *fake) Name() string { return "fake" }

func (f *fake) Init(uint32) cuapi.Result { defer f.mu.Unlock(); return f.enter("Init") }

func (f *fake) DriverGetVersion() (int, cuapi.Result) {
	defer f.mu.Unlock()
	return 12080, f.enter("DriverGetVersion")
}

func (f *fake) DeviceGetCount() (int, cuapi.Result) {
	defer f.mu.Unlock()
	return f.n, f.enter("DeviceGetCount")
}

func (f *fake) DeviceGet(i int) (cuapi.Device, cuapi.Result) {
	defer f.mu.Unlock()
	return cuapi.Device(i), f.enter("DeviceGet")
}

func (f *fake) DeviceGetName(cuapi.Device) (string, cuapi.Result) {
	defer f.mu.Unlock()
	return "Fake", f.enter("DeviceGetName")
}

func (f *fake) DeviceGetUUID(d cuapi.Device) ([16]byte, cuapi.Result) {
	defer f.mu.Unlock()
	return [16]byte{15: byte(d)}, f.enter("DeviceGetUUID")
}

func (f *fake) DeviceTotalMem(cuapi.Device) (uint64, cuapi.Result) {
	defer f.mu.Unlock()
	return 1 << 30, f.enter("DeviceTotalMem")
}

func (f *fake) DeviceGetPCIBusID(cuapi.Device) (string, cuapi.Result) {
	defer f.mu.Unlock()
	return "0000:01:00.0", f.enter("DeviceGetPCIBusID")
}

func (f *fake) DeviceGetAttribute(a cuapi.DeviceAttribute, _ cuapi.Device) (int, cuapi.Result) {
	defer f.mu.Unlock()
	r := f.enter("DeviceGetAttribute")
	switch a {
	case cuapi.AttrMaxThreadsPerBlock:
		return 1024, r
	case cuapi.AttrComputeCapabilityMajor:
		return 9, r
	case cuapi.AttrMultiprocessorCount:
		return 4, r
	}
	return 0, r
}

func (f *fake) DeviceCanAccessPeer(a, b cuapi.Device) (bool, cuapi.Result) {
	defer f.mu.Unlock()
	return true, f.enter("DeviceCanAccessPeer")
}

func (f *fake) DevicePrimaryCtxRetain(d cuapi.Device) (cuapi.Context, cuapi.Result) {
	defer f.mu.Unlock()
	r := f.enter("DevicePrimaryCtxRetain")
	if r == cuapi.Success {
		f.retains[d]++
	}
	return fakeContext + cuapi.Context(d), r
}

func (f *fake) DevicePrimaryCtxRelease(d cuapi.Device) cuapi.Result {
	defer f.mu.Unlock()
	r := f.enter("DevicePrimaryCtxRelease")
	if r == cuapi.Success {
		f.retains[d]--
	}
	return r
}

func (f *fake) CtxGetCurrent() (cuapi.Context, cuapi.Result) {
	defer f.mu.Unlock()
	r := f.enter("CtxGetCurrent")
	return f.current[threadID()], r
}

func (f *fake) CtxSetCurrent(c cuapi.Context) cuapi.Result {
	defer f.mu.Unlock()
	r := f.enter("CtxSetCurrent")
	if f.sticky != cuapi.Success && f.failed != "CtxSetCurrent" {
		r = cuapi.Success // works on a lost context
	}
	if r == cuapi.Success {
		f.current[threadID()] = c
	}
	return r
}

func (f *fake) CtxSynchronize() cuapi.Result {
	defer f.mu.Unlock()
	_, r := f.enterIn("CtxSynchronize")
	return r
}

func (f *fake) CtxEnablePeerAccess(peer cuapi.Context, _ uint32) cuapi.Result {
	defer f.mu.Unlock()
	dev, r := f.enterIn("CtxEnablePeerAccess")
	if r != cuapi.Success {
		return r
	}
	pair := [2]cuapi.Context{cuapi.Context(dev) + fakeContext, peer}
	for _, p := range f.peers {
		if p == pair {
			return cuapi.ErrorPeerAccessAlreadyEnabled
		}
	}
	f.peers = append(f.peers, pair)
	return r
}

func (f *fake) ModuleLoadDataEx(image []byte, o *cuapi.JITOptions) (cuapi.Module, cuapi.Result) {
	defer f.mu.Unlock()
	_, r := f.enterIn("ModuleLoadDataEx")
	if r == cuapi.Success && string(image) == "bad" {
		o.ErrorLog = o.ErrorLog[:copy(o.ErrorLog, "line 7: no such instruction")]
		return 0, cuapi.ErrorInvalidPTX
	}
	if r != cuapi.Success {
		return 0, r
	}
	o.InfoLog = o.InfoLog[:0]
	o.WallTimeMs = 2.5
	f.next++
	f.modules[cuapi.Module(f.next)] = true
	return cuapi.Module(f.next), r
}

func (f *fake) ModuleUnload(m cuapi.Module) cuapi.Result {
	defer f.mu.Unlock()
	_, r := f.enterIn("ModuleUnload")
	if r == cuapi.Success {
		delete(f.modules, m)
	}
	return r
}

func (f *fake) ModuleGetFunction(m cuapi.Module, name string) (cuapi.Function, cuapi.Result) {
	defer f.mu.Unlock()
	_, r := f.enterIn("ModuleGetFunction")
	if r == cuapi.Success && name != "k" {
		r = cuapi.ErrorNotFound
	}
	return cuapi.Function(m), r
}

func (f *fake) ModuleGetGlobal(cuapi.Module, string) (cuapi.DevicePtr, uint64, cuapi.Result) {
	defer f.mu.Unlock()
	_, r := f.enterIn("ModuleGetGlobal")
	return 256, 16, r
}

func (f *fake) FuncGetAttribute(cuapi.FunctionAttribute, cuapi.Function) (int, cuapi.Result) {
	defer f.mu.Unlock()
	_, r := f.enterIn("FuncGetAttribute")
	return 512, r
}

func (f *fake) OccupancyMaxActiveBlocks(_ cuapi.Function, block int, _ uint64) (int, cuapi.Result) {
	defer f.mu.Unlock()
	_, r := f.enterIn("OccupancyMaxActiveBlocks")
	return 2048 / block, r
}

func (f *fake) LaunchKernel(m cuapi.Function, _, _ cuapi.Dim3, _ uint32, s cuapi.Stream, params []byte) cuapi.Result {
	defer f.mu.Unlock()
	_, r := f.enterIn("LaunchKernel")
	if f.streams[s] == nil || !f.modules[cuapi.Module(m)] {
		panic("fake: launch with a destroyed handle")
	}
	f.params = append(f.params[:0], params...)
	return r
}

func (f *fake) StreamCreateWithPriority(cuapi.StreamFlags, int) (cuapi.Stream, cuapi.Result) {
	defer f.mu.Unlock()
	dev, r := f.enterIn("StreamCreate")
	if r != cuapi.Success {
		return 0, r
	}
	f.next++
	f.streams[cuapi.Stream(f.next)] = &fakeStream{dev: dev}
	return cuapi.Stream(f.next), r
}

func (f *fake) StreamDestroy(s cuapi.Stream) cuapi.Result {
	defer f.mu.Unlock()
	_, r := f.enterIn("StreamDestroy")
	if r == cuapi.Success {
		delete(f.streams, s)
	}
	return r
}

func (f *fake) StreamSynchronize(s cuapi.Stream) cuapi.Result {
	_, r := f.enterIn("StreamSynchronize")
	for r == cuapi.Success && len(f.streams[s].work) > 0 {
		f.mu.Unlock()
		runtime.Gosched()
		f.mu.Lock()
	}
	f.mu.Unlock()
	return r
}

func (f *fake) StreamQuery(s cuapi.Stream) cuapi.Result {
	defer f.mu.Unlock()
	_, r := f.enterIn("StreamQuery")
	if r == cuapi.Success && (len(f.streams[s].work) > 0 || f.streams[s].held) {
		r = cuapi.ErrorNotReady
	}
	return r
}

func (f *fake) StreamWaitEvent(s cuapi.Stream, e cuapi.Event, _ uint32) cuapi.Result {
	defer f.mu.Unlock()
	_, r := f.enterIn("StreamWaitEvent")
	if r != cuapi.Success || f.quiet {
		return r
	}
	last := f.events[e].last
	return f.enqueue(s, func() bool { return last == nil || *last })
}

func (f *fake) EventCreate(cuapi.EventFlags) (cuapi.Event, cuapi.Result) {
	defer f.mu.Unlock()
	dev, r := f.enterIn("EventCreate")
	if r != cuapi.Success {
		return 0, r
	}
	f.next++
	f.events[cuapi.Event(f.next)] = &fakeEvent{dev: dev}
	return cuapi.Event(f.next), r
}

func (f *fake) EventDestroy(e cuapi.Event) cuapi.Result {
	defer f.mu.Unlock()
	_, r := f.enterIn("EventDestroy")
	if r == cuapi.Success {
		delete(f.events, e)
	}
	return r
}

func (f *fake) EventRecord(e cuapi.Event, s cuapi.Stream) cuapi.Result {
	defer f.mu.Unlock()
	_, r := f.enterIn("EventRecord")
	if r != cuapi.Success || f.quiet {
		return r
	}
	ev := f.events[e]
	if ev.dev != f.streams[s].dev {
		return cuapi.ErrorInvalidHandle
	}
	reached := new(bool)
	ev.last = reached
	return f.enqueue(s, func() bool { *reached = true; return true })
}

func (f *fake) EventQuery(e cuapi.Event) cuapi.Result {
	defer f.mu.Unlock()
	_, r := f.enterIn("EventQuery")
	if r == cuapi.Success && f.events[e].last != nil && !*f.events[e].last {
		r = cuapi.ErrorNotReady
	}
	return r
}

func (f *fake) EventElapsedTime(a, b cuapi.Event) (float32, cuapi.Result) {
	defer f.mu.Unlock()
	_, r := f.enterIn("EventElapsedTime")
	return 1.5, r
}

func (f *fake) MemAlloc(n uint64) (cuapi.DevicePtr, cuapi.Result) {
	defer f.mu.Unlock()
	dev, r := f.enterIn("MemAlloc")
	if r != cuapi.Success {
		return 0, r
	}
	used := n
	for _, m := range f.mem {
		if m.dev == dev {
			used += uint64(len(m.data))
		}
	}
	if f.limit != 0 && used > f.limit {
		return 0, cuapi.ErrorOutOfMemory
	}
	f.next = (f.next + 511) &^ 511
	p := f.next
	f.next += n
	f.mem[p] = fakeMem{dev, make([]byte, n)}
	return cuapi.DevicePtr(p), r
}

func (f *fake) MemFree(p cuapi.DevicePtr) cuapi.Result {
	defer f.mu.Unlock()
	_, r := f.enterIn("MemFree")
	if _, ok := f.mem[uint64(p)]; r == cuapi.Success && !ok {
		return cuapi.ErrorInvalidValue
	}
	if r == cuapi.Success {
		delete(f.mem, uint64(p))
	}
	return r
}

func (f *fake) MemGetInfo() (free, total uint64, r cuapi.Result) {
	defer f.mu.Unlock()
	_, r = f.enterIn("MemGetInfo")
	return 1 << 20, 1 << 30, r
}

func (f *fake) MemHostAlloc(n uint64, _ cuapi.MemHostAllocFlags) ([]byte, cuapi.Result) {
	defer f.mu.Unlock()
	_, r := f.enterIn("MemHostAlloc")
	if r != cuapi.Success {
		return nil, r
	}
	b := make([]byte, n)
	f.hosts[&b[0]] = true
	return b, r
}

func (f *fake) MemFreeHost(b []byte) cuapi.Result {
	defer f.mu.Unlock()
	_, r := f.enterIn("MemFreeHost")
	if r == cuapi.Success {
		delete(f.hosts, &b[0])
	}
	return r
}

func (f *fake) PointerGetInfo(p cuapi.DevicePtr) (cuapi.PointerInfo, cuapi.Result) {
	defer f.mu.Unlock()
	_, r := f.enterIn("PointerGetInfo")
	for base, m := range f.mem {
		if uint64(p) >= base && uint64(p) < base+uint64(len(m.data)) {
			return cuapi.PointerInfo{MemoryType: cuapi.MemoryTypeDevice, Ordinal: m.dev,
				RangeStart: cuapi.DevicePtr(base), RangeSize: uint64(len(m.data))}, r
		}
	}
	return cuapi.PointerInfo{}, r
}

// move enqueues a copy whose ends are looked up when it runs.
func (f *fake) move(name string, s cuapi.Stream, ends func() (dst, src []byte)) cuapi.Result {
	defer f.mu.Unlock()
	if _, r := f.enterIn(name); r != cuapi.Success {
		return r
	}
	return f.enqueue(s, func() bool {
		dst, src := ends()
		if len(dst) != len(src) {
			panic("fake: copy outside an allocation")
		}
		copy(dst, src)
		return true
	})
}

func (f *fake) MemcpyHtoDAsync(dst cuapi.DevicePtr, src []byte, s cuapi.Stream) cuapi.Result {
	return f.move("MemcpyHtoDAsync", s, func() ([]byte, []byte) { return f.at(dst, uint64(len(src))), src })
}

func (f *fake) MemcpyDtoHAsync(dst []byte, src cuapi.DevicePtr, s cuapi.Stream) cuapi.Result {
	return f.move("MemcpyDtoHAsync", s, func() ([]byte, []byte) { return dst, f.at(src, uint64(len(dst))) })
}

func (f *fake) MemcpyDtoDAsync(dst, src cuapi.DevicePtr, n uint64, s cuapi.Stream) cuapi.Result {
	return f.move("MemcpyDtoDAsync", s, func() ([]byte, []byte) { return f.at(dst, n), f.at(src, n) })
}

func (f *fake) MemcpyPeerAsync(dst cuapi.DevicePtr, _ cuapi.Context, src cuapi.DevicePtr, _ cuapi.Context, n uint64, s cuapi.Stream) cuapi.Result {
	return f.move("MemcpyPeerAsync", s, func() ([]byte, []byte) { return f.at(dst, n), f.at(src, n) })
}

func (f *fake) MemsetD8Async(p cuapi.DevicePtr, v uint8, n uint64, s cuapi.Stream) cuapi.Result {
	defer f.mu.Unlock()
	if _, r := f.enterIn("MemsetD8Async"); r != cuapi.Success {
		return r
	}
	return f.enqueue(s, func() bool {
		for i, m := 0, f.at(p, n); i < len(m); i++ {
			m[i] = v
		}
		return true
	})
}

func (f *fake) MemsetD32Async(p cuapi.DevicePtr, v uint32, n uint64, s cuapi.Stream) cuapi.Result {
	defer f.mu.Unlock()
	if _, r := f.enterIn("MemsetD32Async"); r != cuapi.Success {
		return r
	}
	return f.enqueue(s, func() bool {
		for i, m := 0, f.at(p, 4*n); i < len(m); i++ {
			m[i] = byte(v >> (8 * (i % 4)))
		}
		return true
	})
}
