package wrap

import (
	"sync"

	"github.com/raymux/raymux/cuda/cuapi"
)

// fakeAPI is a driver that hands out handles. Methods that it does not define
// panic, so a call that goes astray is seen.
type fakeAPI struct {
	cuapi.API
	mu      sync.Mutex
	next    uint64
	current cuapi.Device // device of the current context; NoDevice: none
	code    cuapi.Result // answered by destroys
	reached int          // calls other than CtxGetDevice
}

func (f *fakeAPI) handle() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.next += 0x100
	f.reached++
	return f.next
}

func (f *fakeAPI) answer() cuapi.Result { f.handle(); return f.code }

func (f *fakeAPI) Name() string { return "fake" }
func (f *fakeAPI) CtxGetDevice() (cuapi.Device, cuapi.Result) {
	if f.current == NoDevice {
		return 0, cuapi.ErrorInvalidContext
	}
	return f.current, cuapi.Success
}
func (f *fakeAPI) DeviceGetCount() (int, cuapi.Result) { return 2, f.answer() }
func (f *fakeAPI) DevicePrimaryCtxRetain(cuapi.Device) (cuapi.Context, cuapi.Result) {
	return cuapi.Context(f.handle()), f.code
}
func (f *fakeAPI) DevicePrimaryCtxRelease(cuapi.Device) cuapi.Result { return f.answer() }
func (f *fakeAPI) CtxSynchronize() cuapi.Result                      { return f.answer() }
func (f *fakeAPI) ModuleLoadDataEx([]byte, *cuapi.JITOptions) (cuapi.Module, cuapi.Result) {
	return cuapi.Module(f.handle()), f.code
}
func (f *fakeAPI) ModuleUnload(cuapi.Module) cuapi.Result { return f.answer() }
func (f *fakeAPI) StreamCreateWithPriority(cuapi.StreamFlags, int) (cuapi.Stream, cuapi.Result) {
	return cuapi.Stream(f.handle()), f.code
}
func (f *fakeAPI) StreamDestroy(cuapi.Stream) cuapi.Result { return f.answer() }
func (f *fakeAPI) EventCreate(cuapi.EventFlags) (cuapi.Event, cuapi.Result) {
	return cuapi.Event(f.handle()), f.code
}
func (f *fakeAPI) EventDestroy(cuapi.Event) cuapi.Result { return f.answer() }
func (f *fakeAPI) EventRecord(cuapi.Event, cuapi.Stream) cuapi.Result {
	return f.answer()
}
func (f *fakeAPI) MemAlloc(uint64) (cuapi.DevicePtr, cuapi.Result) {
	return cuapi.DevicePtr(f.handle()), f.code
}
func (f *fakeAPI) MemFree(cuapi.DevicePtr) cuapi.Result { return f.answer() }
func (f *fakeAPI) MemAllocAsync(uint64, cuapi.Stream) (cuapi.DevicePtr, cuapi.Result) {
	return cuapi.DevicePtr(f.handle()), f.code
}
func (f *fakeAPI) MemFreeAsync(cuapi.DevicePtr, cuapi.Stream) cuapi.Result { return f.answer() }
func (f *fakeAPI) MemHostAlloc(n uint64, _ cuapi.MemHostAllocFlags) ([]byte, cuapi.Result) {
	f.handle()
	return make([]byte, n), f.code
}
func (f *fakeAPI) MemFreeHost([]byte) cuapi.Result             { return f.answer() }
func (f *fakeAPI) MemHostRegister([]byte, uint32) cuapi.Result { return f.answer() }
func (f *fakeAPI) MemHostUnregister([]byte) cuapi.Result       { return f.answer() }
func (f *fakeAPI) LaunchKernel(cuapi.Function, cuapi.Dim3, cuapi.Dim3, uint32, cuapi.Stream, []byte) cuapi.Result {
	f.reached++
	return f.code
}
