package cuda

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/cuda/dl"
)

// native is the driver library as a cuapi.API.
//
// Every call borrows a block from a free list: its argument words, the memory
// that the driver writes results to, and the parameters of a launch. Blocks
// are heap objects, which the collector never moves, and stay reachable for
// the whole call; so their addresses may be handed to C as plain numbers and a
// call allocates nothing once a block exists.
type native struct {
	table
	// spare is the block of a goroutine that calls alone, which needs no lock.
	spare atomic.Pointer[block]
	mu    sync.Mutex
	free  *block
}

var _ cuapi.API = (*native)(nil)

// newNative makes the API of a library without looking anything up.
func newNative(lib *dl.Library) *native { return &native{table: table{lib: lib}} }

// Name is "native".
func (n *native) Name() string { return "native" }

const (
	maxArgs     = 11   // words of cuLaunchKernel, the longest call
	maxOut      = 5    // results of one call
	paramBytes  = 4096 // parameters of a kernel before CUDA 12.1; longer ones grow the block
	textBytes   = 256  // names of devices
	maxTextRead = 4096 // limit on texts that the driver owns
)

// block is the memory of one call in flight.
type block struct {
	next   *block
	args   [maxArgs]uintptr
	out    [maxOut]uint64
	extra  [5]uintptr // launch options that name the parameter buffer
	size   uint64     // length of params, which extra points to
	params []byte
	text   [textBytes]byte
	hold   unsafe.Pointer // host memory of the call, kept on the heap and alive
}

// get borrows a block whose results are zero.
func (n *native) get() *block {
	if b := n.spare.Swap(nil); b != nil {
		b.out = [maxOut]uint64{}
		return b
	}
	n.mu.Lock()
	b := n.free
	if b == nil {
		n.mu.Unlock()
		return &block{params: make([]byte, paramBytes)}
	}
	n.free = b.next
	n.mu.Unlock()
	b.out = [maxOut]uint64{}
	return b
}

// put gives a block back.
func (n *native) put(b *block) {
	b.hold = nil
	if n.spare.CompareAndSwap(nil, b) {
		return
	}
	n.mu.Lock()
	b.next = n.free
	n.free = b
	n.mu.Unlock()
}

// call passes args to an entry point. An absent one answers
// ErrorCallRequiresNewerDriver without a call.
func (n *native) call(s symbol, b *block, args ...uintptr) cuapi.Result {
	fn := n.address(s)
	if fn == 0 {
		return cuapi.ErrorCallRequiresNewerDriver
	}
	k := copy(b.args[:], args)
	return cuapi.Result(int32(dl.Call(fn, b.args[:k]...)))
}

// do is call for entry points whose only result is the code.
func (n *native) do(s symbol, args ...uintptr) cuapi.Result {
	b := n.get()
	r := n.call(s, b, args...)
	n.put(b)
	return r
}

// ref is the address of result word i.
func (b *block) ref(i int) uintptr { return uintptr(unsafe.Pointer(&b.out[i])) }

// i32 is result word i as a C int. Results are written from the low end on
// every platform that has a driver.
func (b *block) i32(i int) int { return int(int32(b.out[i])) }

// handle is result word i as an opaque pointer.
func (b *block) handle(i int) uintptr { return uintptr(b.out[i]) }

// host is the address of a slice for the time of the call. Storing the pointer
// in the block moves the slice to the heap if it was on a stack, and keeps it.
func (b *block) host(p []byte) uintptr {
	b.hold = unsafe.Pointer(unsafe.SliceData(p))
	return uintptr(b.hold)
}

// name writes a C string into text and returns its address; a longer name gets
// memory of its own.
func (b *block) name(s string) uintptr {
	buf := b.text[:]
	if len(s) >= len(buf) {
		buf = make([]byte, len(s)+1)
	}
	buf[copy(buf, s)] = 0
	return b.host(buf)
}

// int32Word widens a C int to an argument word.
func int32Word(v int) uintptr { return uintptr(uint32(int32(v))) }

// cText reads the C string at the start of a buffer.
func cText(buf []byte) string {
	for i, c := range buf {
		if c == 0 {
			return string(buf[:i])
		}
	}
	return string(buf)
}

// foreign is memory outside the Go heap as a slice. The address goes through
// memory because it comes from C and not from a Go pointer; it is not inlined,
// because the compiler may fail on that inside a larger function.
//
//go:noinline
func foreign(addr uintptr, n uint64) []byte {
	p := *(*unsafe.Pointer)(unsafe.Pointer(&addr))
	return unsafe.Slice((*byte)(p), n)
}

// foreignText copies a C string that the driver owns, of at most maxTextRead
// bytes. It reads byte by byte: what follows the zero may not be mapped.
func foreignText(addr uintptr) string {
	if addr == 0 {
		return ""
	}
	n := uint64(0)
	for n < maxTextRead && foreign(addr+uintptr(n), 1)[0] != 0 {
		n++
	}
	return string(foreign(addr, n))
}
