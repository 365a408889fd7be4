package cuda

import (
	"sync/atomic"
	"unsafe"

	"github.com/raymux/raymux/cuda/cuapi"
)

// Scalar is what device memory can hold.
type Scalar interface {
	~int8 | ~uint8 | ~int16 | ~uint16 | ~int32 | ~uint32 | ~int64 | ~uint64 | ~float32 | ~float64
}

// Slice is n values of type T in the memory of one device. It is a value:
// copies refer to the same memory, and like a pointer it must not be used after
// the memory was freed, which calls detect and refuse. The zero Slice stands
// for an absent array.
type Slice[T Scalar] struct {
	addr uint64
	n    int
	c    *Context
	mem  *memory // nil when n is 0
	gen  uint64  // generation of mem when it was handed out
}

// memory is what slices refer to: an allocation of a pool, or memory of
// another library.
type memory struct {
	c     *Context
	addr  uint64
	bytes uint64 // what was asked for
	size  uint64 // what the driver gave; 0 for foreign memory
	// gen changes when the memory is freed, so that stale slices are noticed
	// although a pool hands the block out again.
	gen     atomic.Uint64
	child   child
	release func() // foreign memory only

	// State while the block is cached by its pool, guarded by Pool.mu.
	event  cuapi.Event // made at the first stream-ordered free, kept for life
	stream uint64      // id of the stream that freed it; 0: nothing pending
	home   uint64      // id of the stream that it was allocated for; 0: any
}

// Addr is the device address of the first value, 0 when there is none.
func (s Slice[T]) Addr() uint64 { return s.addr }

// Len is the number of values.
func (s Slice[T]) Len() int { return s.n }

// Bytes is the size in bytes.
func (s Slice[T]) Bytes() uint64 { return uint64(s.n) * sizeOf[T]() }

// IsNil reports whether s is the zero Slice. An empty slice of a device is not.
func (s Slice[T]) IsNil() bool { return s.c == nil }

// Context is the context that the memory belongs to, nil for the zero Slice.
func (s Slice[T]) Context() *Context { return s.c }

// Device is the device that the memory belongs to, nil for the zero Slice.
func (s Slice[T]) Device() *Device {
	if s.c == nil {
		return nil
	}
	return s.c.dev
}

// Freed reports whether the memory was freed since s was made. Kernels get bare
// addresses, so whoever launches them asks this first. No driver call.
func (s Slice[T]) Freed() bool { return s.mem != nil && s.mem.gen.Load() != s.gen }

// Sub is the part from index i up to, not including, j. It shares the memory
// and cannot be freed by itself. No driver call.
func (s Slice[T]) Sub(i, j int) (Slice[T], error) {
	if i < 0 || j < i || j > s.n {
		return Slice[T]{}, badArg("Slice.Sub", "i, j", "%d to %d given, the slice has length %d and 0 <= i <= j <= %d is needed", i, j, s.n, s.n)
	}
	out := s
	out.n = j - i
	if out.n == 0 {
		out.addr = 0
	} else {
		out.addr += uint64(i) * sizeOf[T]()
	}
	return out, nil
}

// Reinterpret is the memory of s as values of another type. The size in bytes
// must be a multiple of the new type's size, and the address too. No driver call.
func Reinterpret[U, T Scalar](s Slice[T]) (Slice[U], error) {
	size := sizeOf[U]()
	if s.Bytes()%size != 0 || s.addr%size != 0 {
		return Slice[U]{}, badArg("Reinterpret", "s", "%d bytes at address %#x are no whole number of aligned %d-byte values", s.Bytes(), s.addr, size)
	}
	return Slice[U]{addr: s.addr, n: int(s.Bytes() / size), c: s.c, mem: s.mem, gen: s.gen}, nil
}

// Wrap makes a Slice of n values at addr that another library owns, in the
// memory of c's device. Free then calls release, once, instead of freeing;
// release may be nil. Cost: one driver call, which checks that the range belongs
// to the device; none when n is 0.
func Wrap[T Scalar](c *Context, addr uint64, n int, release func()) (Slice[T], error) {
	const op = "Wrap"
	bytes, err := byteCount[T](op, c, n)
	if err != nil {
		return Slice[T]{}, err
	}
	if addr == 0 && n != 0 {
		return Slice[T]{}, badArg(op, "addr", "is 0 although n is %d", n)
	}
	if addr%sizeOf[T]() != 0 {
		return Slice[T]{}, badArg(op, "addr", "%#x is not a multiple of the value size %d", addr, sizeOf[T]())
	}
	if err := c.ref(); err != nil {
		return Slice[T]{}, err
	}
	if n != 0 {
		if err := c.owns(op, addr, bytes); err != nil {
			return Slice[T]{}, firstError(err, c.unref())
		}
	}
	b := &memory{c: c, addr: addr, bytes: bytes, release: release}
	b.child = c.adopt(kindForeign, bytes)
	return Slice[T]{addr: addr, n: n, c: c, mem: b}, nil
}

// owns checks with the driver that a range lies in one allocation of c's device.
func (c *Context) owns(op string, addr, bytes uint64) error {
	var info cuapi.PointerInfo
	err := c.with(func() error {
		var r cuapi.Result
		info, r = c.api().PointerGetInfo(cuapi.DevicePtr(addr))
		return c.check("cuPointerGetAttributes", r)
	})
	switch {
	case err != nil:
		return err
	case info.MemoryType != cuapi.MemoryTypeDevice && info.MemoryType != cuapi.MemoryTypeUnified:
		return badArg(op, "addr", "the driver knows no device memory at %#x", addr)
	case info.Ordinal != c.dev.ordinal:
		return &WrongDeviceError{Arg: "addr", Want: c.dev.ordinal, Have: info.Ordinal}
	case addr-uint64(info.RangeStart)+bytes > info.RangeSize:
		return badArg(op, "n", "%d bytes at %#x end outside their allocation of %d bytes at %#x", bytes, addr, info.RangeSize, uint64(info.RangeStart))
	}
	return nil
}

// check refuses a slice that is absent, was freed, or is of another device than
// dev.
func (s Slice[T]) check(op, arg string, dev *Device) error {
	switch {
	case s.c == nil:
		return badArg(op, arg, "is absent (the zero Slice)")
	case s.Freed():
		return errFreed(arg)
	case s.c.dev != dev:
		return wrongDevice(op, arg, dev, s.c.dev)
	}
	return nil
}

// maxBytes bounds an array so that sizes and rounding cannot overflow. It is
// far beyond any device.
const maxBytes = 1 << 48

// byteCount checks a length and returns the size in bytes.
func byteCount[T Scalar](op string, c *Context, n int) (uint64, error) {
	if c == nil {
		return 0, badArg(op, "c", "is nil")
	}
	if n < 0 || uint64(n) > maxBytes/sizeOf[T]() {
		return 0, badArg(op, "n", "%d values of %d bytes given, 0 to %d accepted", n, sizeOf[T](), maxBytes/sizeOf[T]())
	}
	return uint64(n) * sizeOf[T](), nil
}

func sizeOf[T Scalar]() uint64 {
	var v T
	return uint64(unsafe.Sizeof(v))
}

// bytesOf is the memory of s as bytes.
func bytesOf[T Scalar](s []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), uint64(len(s))*sizeOf[T]())
}
