//go:build !amd64 && !arm64

package multi

import (
	"bytes"
	"runtime"
	"strconv"
)

// goroutine tells the calling goroutine from all others that exist, by its number at the head of
// a stack trace. It walks the stack; there are no GPUs on these machines that would wait.
func goroutine() uintptr {
	var b [64]byte
	text := bytes.TrimPrefix(b[:runtime.Stack(b[:], false)], []byte("goroutine "))
	number, _, _ := bytes.Cut(text, []byte(" "))
	n, _ := strconv.ParseUint(string(number), 10, 64)
	return uintptr(n)
}
