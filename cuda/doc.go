// Package cuda is the CUDA driver for Go programs, without cgo: devices,
// contexts, streams, events, modules, launches, memory and copies.
//
// Open loads the installed NVIDIA driver at run time; OpenEmulator gives the
// same API over virtual devices in pure Go, so everything runs, and can be
// tested, without a GPU:
//
//	drv, err := cuda.Open()              // or cuda.OpenEmulator(2)
//	defer drv.Close()
//	dev, err := drv.Device(0)
//	c, err := dev.Retain()               // the device's primary context
//	defer c.Close()
//	s, err := c.NewStream(cuda.StreamOptions{})
//	defer s.Close()
//	m, err := c.LoadModule(ptx, cuda.JITOptions{})
//	defer m.Close()
//	f, err := m.Function("scale")
//	x, err := cuda.Upload(ctx, s, []float32{1, 2, 3})
//	defer cuda.Free(x)
//	p := scaleParams{X: x.Addr(), N: int32(x.Len()), By: 2}
//	err = f.Launch(s, cuapi.D1(1), cuapi.D1(32), 0, cuda.ParamBytes(&p))
//	y, err := cuda.Download(ctx, s, x)
//
// In a loop the memory goes back in the order of the stream, without a wait:
//
//	for _, batch := range batches {
//		x, err := cuda.Upload(ctx, s, batch)
//		p := scaleParams{X: x.Addr(), N: int32(x.Len()), By: 2}
//		err = f.Launch(s, cuapi.D1(1), cuapi.D1(32), 0, cuda.ParamBytes(&p))
//		err = cuda.CopyOut(ctx, s, batch, x)
//		err = cuda.PoolFree(c.Pool(), s, x)
//	}
//
// # Threads
//
// The driver keeps a current context per OS thread, and goroutines move between
// threads. Each call here pins its goroutine, makes its own context current if
// another one is, and leaves the thread as it found it, also when it fails or
// panics. Context.Enter does that once for a sequence of calls, of which
// Scope.Launch, Scope.Record, Scope.Wait and CopyAsyncIn then go straight to the
// driver. All types are safe for use by several goroutines; a Scope stays on
// the goroutine that entered it. No lock is held during a driver call.
//
// # Cost
//
// Comments state the driver calls of each operation and whether it waits for
// the device. Outside a Scope every operation also asks for the thread's current
// context, and switches there and back if another one is current; each of these
// takes about a tenth of a microsecond.
//
// # Errors
//
// A failed driver call is an *Error with the driver's code, which errors.Is
// finds. Misuse (closed handles, arrays of another device, lengths that do not
// fit) is refused before any driver call with ErrClosed, *WrongDeviceError or
// *ArgumentError. Some codes mean that the device is lost to the process: the
// call that gets one, and every later call on that device, returns a *LostError,
// which matches ErrDeviceLost and names the first cause; later ones make no
// driver call, and Close does nothing there and returns nil.
//
// # Lifetimes
//
// Close is idempotent, refuses new calls, waits for calls in progress and
// returns the outcome of the first Close. Close of a nil handle, which is what a
// failed constructor returns, does nothing and returns nil. A child keeps its parent alive:
// closing a context that has open children returns a *LeakError that names
// them, and the last child closed releases the context. A handle that is
// garbage collected without Close is counted and logged, and its resource is
// leaked, because the collector must not call the driver.
//
// Device memory is a Slice, a value with address, length and device. Alloc and
// Free are the simple pair. In loops use PoolAlloc and PoolFree with a stream:
// they reuse memory in the order of streams and neither wait nor call the
// driver's allocator.
package cuda
