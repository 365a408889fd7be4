package cuapi

// Handles of the CUDA driver. Zero is never a valid handle, except for the
// zero Stream, which is the legacy default stream that Raymux does not use.
type (
	// Device is a CUdevice: an ordinal-like handle.
	Device int32
	// DevicePtr is an address in the unified virtual address space.
	DevicePtr uint64
	// Context is a CUcontext.
	Context uintptr
	// Module is a CUmodule.
	Module uintptr
	// Function is a CUfunction.
	Function uintptr
	// Stream is a CUstream.
	Stream uintptr
	// Event is a CUevent.
	Event uintptr
	// MemPool is a CUmemoryPool.
	MemPool uintptr
)

// JITOptions are the options of a module load, and receive what the JIT
// compiler reported. Buffers are provided by the caller; on return InfoLog
// and ErrorLog are cut to what was written.
type JITOptions struct {
	MaxRegisters int // 0: the compiler's choice
	OptLevel     int // 0..4; negative: the driver's default
	LineInfo     bool
	Verbose      bool
	InfoLog      []byte
	ErrorLog     []byte
	WallTimeMs   float32 // written back
}

// PointerInfo is what the driver knows about an address.
type PointerInfo struct {
	MemoryType MemoryType // zero when the address is unknown to the driver
	Context    Context
	Ordinal    int
	RangeStart DevicePtr
	RangeSize  uint64
}

// API is the CUDA driver as Raymux uses it: one method per driver entry
// point, with Go slices for host memory and plain integers for everything
// else. The native library, the emulator, and the wrappers that count,
// trace or inject faults all implement it, and nothing above package cuda can
// tell them apart.
//
// As in the driver, the current context is a property of the calling OS
// thread: callers pin the goroutine (runtime.LockOSThread) around a sequence
// of calls that depends on it. No method panics and no method retains a slice
// after it returns, except where it says so.
type API interface {
	// Name identifies the implementation: "native" or "emulator".
	Name() string

	Init(flags uint32) Result
	DriverGetVersion() (int, Result)
	// GetErrorText is the driver's own sentence for a code.
	GetErrorText(r Result) (string, Result)

	DeviceGetCount() (int, Result)
	DeviceGet(ordinal int) (Device, Result)
	DeviceGetName(d Device) (string, Result)
	DeviceGetUUID(d Device) ([16]byte, Result)
	DeviceTotalMem(d Device) (uint64, Result)
	DeviceGetAttribute(a DeviceAttribute, d Device) (int, Result)
	DeviceGetPCIBusID(d Device) (string, Result)
	DeviceCanAccessPeer(d, peer Device) (bool, Result)
	DeviceGetP2PAttribute(a P2PAttribute, src, dst Device) (int, Result)

	DevicePrimaryCtxRetain(d Device) (Context, Result)
	DevicePrimaryCtxRelease(d Device) Result
	DevicePrimaryCtxGetState(d Device) (flags uint32, active bool, r Result)
	CtxGetCurrent() (Context, Result)
	CtxSetCurrent(c Context) Result
	CtxGetDevice() (Device, Result)
	CtxSynchronize() Result
	CtxGetStreamPriorityRange() (least, greatest int, r Result)
	CtxGetLimit(l Limit) (uint64, Result)
	CtxSetLimit(l Limit, v uint64) Result
	CtxEnablePeerAccess(peer Context, flags uint32) Result
	CtxDisablePeerAccess(peer Context) Result

	// ModuleLoadDataEx loads PTX text or a cubin. The image need not end in a
	// zero byte. opts may be nil.
	ModuleLoadDataEx(image []byte, opts *JITOptions) (Module, Result)
	ModuleUnload(m Module) Result
	ModuleGetFunction(m Module, name string) (Function, Result)
	ModuleGetGlobal(m Module, name string) (DevicePtr, uint64, Result)
	FuncGetAttribute(a FunctionAttribute, f Function) (int, Result)
	FuncSetAttribute(f Function, a FunctionAttribute, v int) Result
	OccupancyMaxActiveBlocks(f Function, blockSize int, dynamicShared uint64) (int, Result)
	OccupancyMaxPotentialBlockSize(f Function, dynamicShared uint64, limit int) (minGrid, block int, r Result)

	// LaunchKernel launches f with its parameter block params, laid out as
	// PTX does (each parameter at its natural alignment, in order). params is
	// copied before the call returns. It allocates nothing on the Go heap.
	LaunchKernel(f Function, grid, block Dim3, sharedBytes uint32, s Stream, params []byte) Result

	StreamCreateWithPriority(flags StreamFlags, priority int) (Stream, Result)
	StreamDestroy(s Stream) Result
	StreamSynchronize(s Stream) Result
	StreamQuery(s Stream) Result
	StreamWaitEvent(s Stream, e Event, flags uint32) Result
	StreamGetPriority(s Stream) (int, Result)

	EventCreate(flags EventFlags) (Event, Result)
	EventDestroy(e Event) Result
	EventRecord(e Event, s Stream) Result
	EventQuery(e Event) Result
	EventSynchronize(e Event) Result
	// EventElapsedTime is in milliseconds.
	EventElapsedTime(start, end Event) (float32, Result)

	MemAlloc(n uint64) (DevicePtr, Result)
	MemFree(p DevicePtr) Result
	MemAllocAsync(n uint64, s Stream) (DevicePtr, Result)
	MemFreeAsync(p DevicePtr, s Stream) Result
	MemGetInfo() (free, total uint64, r Result)
	MemGetAddressRange(p DevicePtr) (base DevicePtr, size uint64, r Result)
	// MemHostAlloc returns page-locked memory that the Go collector does not
	// move; it stays valid until MemFreeHost.
	MemHostAlloc(n uint64, flags MemHostAllocFlags) ([]byte, Result)
	MemFreeHost(b []byte) Result
	// MemHostRegister page-locks memory that the caller keeps pinned.
	MemHostRegister(b []byte, flags uint32) Result
	MemHostUnregister(b []byte) Result
	PointerGetInfo(p DevicePtr) (PointerInfo, Result)

	DeviceGetDefaultMemPool(d Device) (MemPool, Result)
	MemPoolTrimTo(p MemPool, keep uint64) Result
	MemPoolGetAttribute(p MemPool, a MemPoolAttribute) (uint64, Result)
	MemPoolSetAttribute(p MemPool, a MemPoolAttribute, v uint64) Result
	// MemPoolSetAccess grants device d read and write access to the pool.
	MemPoolSetAccess(p MemPool, d Device, access MemAccessFlags) Result

	// The Async forms need page-locked host memory (MemHostAlloc or
	// MemHostRegister) that stays valid until the stream has passed the copy.
	MemcpyHtoD(dst DevicePtr, src []byte) Result
	MemcpyDtoH(dst []byte, src DevicePtr) Result
	MemcpyDtoD(dst, src DevicePtr, n uint64) Result
	MemcpyHtoDAsync(dst DevicePtr, src []byte, s Stream) Result
	MemcpyDtoHAsync(dst []byte, src DevicePtr, s Stream) Result
	MemcpyDtoDAsync(dst, src DevicePtr, n uint64, s Stream) Result
	MemcpyPeer(dst DevicePtr, dstCtx Context, src DevicePtr, srcCtx Context, n uint64) Result
	MemcpyPeerAsync(dst DevicePtr, dstCtx Context, src DevicePtr, srcCtx Context, n uint64, s Stream) Result
	MemsetD8(p DevicePtr, v uint8, n uint64) Result
	MemsetD8Async(p DevicePtr, v uint8, n uint64, s Stream) Result
	MemsetD32(p DevicePtr, v uint32, n uint64) Result
	MemsetD32Async(p DevicePtr, v uint32, n uint64, s Stream) Result
}

// Dim3 is the size of a grid or of a block.
type Dim3 struct{ X, Y, Z uint32 }

// D1 is the one-dimensional size n x 1 x 1.
func D1(n uint32) Dim3 { return Dim3{n, 1, 1} }
