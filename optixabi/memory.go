package optixabi

import (
	"runtime"
	"sync"
	"unsafe"
)

const (
	maxArgs     = 12      // words of optixAccelBuild, the longest call
	maxTextRead = 4 << 10 // limit on texts that the library owns
)

// block is the memory of one call in flight: its argument words, the words
// that the library writes results to, and what keeps host memory in place.
// Blocks are heap objects, which the collector never moves, and stay reachable
// for the whole call, so their addresses may be handed to C as plain numbers.
type block struct {
	next *block
	args [maxArgs]uintptr
	out  [4]uint64
	sbt  ShaderBindingTable // of a launch
	pins runtime.Pinner
}

var (
	freeLock   sync.Mutex
	freeBlocks *block
)

// getBlock borrows a block whose results are zero.
func getBlock() *block {
	freeLock.Lock()
	b := freeBlocks
	if b != nil {
		freeBlocks = b.next
	}
	freeLock.Unlock()
	if b == nil {
		return new(block)
	}
	b.next = nil
	b.out = [4]uint64{}
	return b
}

// put gives the block back.
func (b *block) put() {
	b.pins.Unpin()
	freeLock.Lock()
	b.next = freeBlocks
	freeBlocks = b
	freeLock.Unlock()
}

// ref is the address of result word i.
func (b *block) ref(i int) uintptr { return uintptr(unsafe.Pointer(&b.out[i])) }

// host is the address of host memory, pinned until the block is put back; 0
// for none.
func (b *block) host(p []byte) uintptr {
	if len(p) == 0 {
		return 0
	}
	return pin(b, &p[0])
}

// text is the address of a C string with the bytes of s.
func (b *block) text(s string) uintptr { return b.host(append([]byte(s), 0)) }

// record is the address of a struct.
func (b *block) record(r record) uintptr { return b.host(r.mem) }

// pin keeps an object in place and gives its address.
func pin[T any](b *block, p *T) uintptr {
	b.pins.Pin(p)
	return uintptr(unsafe.Pointer(p))
}

// foreign is memory outside the Go heap as a slice. The address goes through
// memory because it comes from C and not from a Go pointer; it is not inlined,
// because the compiler may fail on that inside a larger function.
//
//go:noinline
func foreign(addr uintptr, n int) []byte {
	p := *(*unsafe.Pointer)(unsafe.Pointer(&addr))
	return unsafe.Slice((*byte)(p), n)
}

// foreignText copies a C string that the library owns, of at most maxTextRead
// bytes. It reads byte by byte: what follows the zero may not be mapped.
func foreignText(addr uintptr) string {
	if addr == 0 {
		return ""
	}
	n := 0
	for n < maxTextRead && foreign(addr+uintptr(n), 1)[0] != 0 {
		n++
	}
	return string(foreign(addr, n))
}
