// Package emu is a CUDA driver in pure Go: it implements cuapi.API for 1 to 64
// virtual devices and runs the PTX text given to it on the host's cores
// (package cuda/emu/vm). Nothing above the driver interface can tell it from
// hardware, so everything that needs a GPU can be tested without one.
//
// # Fidelity
//
// Calls answer with the driver's own codes: 3 before Init, 201 without a
// current context, 1 for bad values, 400 for handles that are destroyed, of
// another kind or of another driver, 2 when the configured memory is used up.
// The current context belongs to the OS thread, primary contexts are counted
// references, streams run asynchronously in order, each on a goroutine that
// exists only while the stream has work, and events are snapshots of a
// stream's tail. Host memory that is not page-locked is staged: it is consumed
// before an asynchronous upload returns, and an asynchronous download into it
// waits. MemFree waits for the context.
//
// Devices share one address space with disjoint ranges: device i owns 2^40
// addresses from 2^47 + i*2^40, the upper half for stream-ordered memory. The
// address of page-locked host memory is its Go address.
//
// # Stricter than hardware
//
// Every access of a kernel is checked. What hardware would silently accept is
// a fault here: reading memory that was never written, freed memory that
// happens to be mapped still, addresses between two allocations. A copy within
// one address space (MemcpyDtoD) that touches a device to which the current
// context has no access faults with 700, where hardware stages it; MemcpyPeer
// needs no access on both. Waiting forms wait for the whole copy.
//
// A fault is sticky: the code (700, 716, 719 ...) is the answer of every later
// call on that device, on every stream, until the Emulator is dropped, as only
// a new process gets hardware back. Other devices live on. LastFault says
// what happened: kernel, PTX line, address, thread and nearest allocation.
//
// # Model
//
// A device has compute capability 7.5 unless told otherwise, and the limits of
// such a device: 1024 threads, 16 blocks, 65536 registers and 64 KiB of shared
// memory per multiprocessor. The driver reports CUDA 12.8 and accepts PTX ISA
// up to 8.7. Emulators share no state: any number of them may exist at once.
package emu
