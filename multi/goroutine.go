//go:build amd64 || arm64

package multi

// goroutine tells the calling goroutine from all others that exist: by the address of what the
// runtime keeps of it, which a register holds or the thread's storage. The runtime itself tells
// a number only at the head of a stack trace, and to walk the stack of a consumer takes longer
// than all driver calls for a chunk.
func goroutine() uintptr
