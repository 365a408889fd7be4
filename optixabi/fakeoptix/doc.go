// Package fakeoptix is a stand-in for the OptiX library, in pure Go, at its C
// interface: it answers the query for a function table with real C function
// pointers, reads structs at the offsets of the ABI asked for, and hands out
// handles. With it, negotiation, error paths, lifetimes and concurrency are
// tested on machines without a GPU.
//
// It traces no rays. Config.OnLaunch sees every launch and may answer it, for
// example with kernels of the emulator.
//
// It is strict where the library is lenient or silent: objects used after
// their destruction, parents destroyed before their children, launches of one
// pipeline that overlap, unaligned buffers and the like are remembered as
// violations besides the code that the call returns.
package fakeoptix
