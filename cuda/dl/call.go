//go:build ((linux && (amd64 || arm64)) || (windows && amd64)) && !nocuda

package dl

import "github.com/ebitengine/purego"

// Call calls the C function at fn with up to 32 words and returns its result
// word; a C int is its lower half, the rest is undefined. Spread a reused
// slice (Call(fn, buf[:n]...)) and nothing is allocated. Addresses inside args
// are plain numbers to the collector: the caller keeps what they point to on
// the heap and reachable.
func Call(fn uintptr, args ...uintptr) uintptr {
	r, _, _ := purego.SyscallN(fn, args...)
	return r
}

// NewCallback turns a Go function of integer and pointer parameters with one
// word as result into a C function pointer. It is never freed and a process
// has room for 2000, so make one and share it.
func NewCallback(f any) uintptr { return purego.NewCallback(f) }
