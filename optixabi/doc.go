// Package optixabi speaks the binary interface of the OptiX library, which is
// part of the NVIDIA driver, without cgo and without its headers.
//
// The library exports one function. Asked with the number of an ABI, it fills
// a table of function pointers, and from then on three things depend on that
// number: the order of the table, the layout of structs, and the functions
// that device programs may call. Nothing of this is written by hand: tables,
// layouts, enumerations and result codes are generated from the facts in
// abi/optix.json, and the tests compare every offset, size and slot with them.
//
// [Open] finds the library, [Library.Negotiate] agrees on the newest ABI that
// both sides know, and the methods of [Table] are the calls. The package holds
// data and calls and no policy: it never chooses a backend, retries, caches or
// falls back. Every way in which OptiX can be unavailable is an error of its
// own with a hint; [Unavailable] tells them from failures.
//
// # Conventions
//
// Handles and device addresses are numbers. The caller makes the CUDA context
// of a device current on the calling thread for every call. Calls may come
// from several goroutines, except that launches of one pipeline must not
// overlap and nothing may be destroyed while another goroutine uses it. Host
// memory that a call reads is kept alive and pinned for the time of the call;
// device memory belongs to the caller.
//
// The only C function pointer that a process makes is the one that receives
// log messages; see [DeviceContextOptions].
package optixabi
