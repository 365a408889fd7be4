package cuda

import (
	"runtime"
	"unsafe"

	"github.com/raymux/raymux/cuda/cuapi"
)

// Pinned is page-locked host memory that every device of the driver can copy
// from and to while the program goes on.
type Pinned[T Scalar] struct {
	c       *Context
	mem     []byte
	vals    []T
	gate    gate
	child   child
	cleanup runtime.Cleanup
}

// AllocPinned allocates n values of page-locked host memory; n is at least 1.
// The contents are undefined. Cost: one driver call, about a millisecond per 4
// MiB; keep such memory.
func AllocPinned[T Scalar](c *Context, n int) (*Pinned[T], error) {
	bytes, err := byteCount[T]("AllocPinned", c, n)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, badArg("AllocPinned", "n", "is 0, at least 1 needed")
	}
	p := &Pinned[T]{c: c}
	p.gate.init()
	err = c.create(func() error {
		var r cuapi.Result
		p.mem, r = c.api().MemHostAlloc(bytes, cuapi.MemHostAllocPortable)
		return c.check("cuMemHostAlloc", r)
	}, p.destroy)
	if err != nil {
		return nil, err
	}
	p.vals = unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(p.mem))), n)
	p.child = c.adopt(kindPinned, bytes)
	p.cleanup = runtime.AddCleanup(p, abandoned.report, abandoned{c.dev.drv, "pinned buffer", c.dev.ordinal})
	return p, nil
}

func (p *Pinned[T]) destroy() error {
	return p.c.dev.checkDestroy("cuMemFreeHost", p.c.api().MemFreeHost(p.mem), "")
}

// Slice is the memory. It must not be used after Close, nor read or written
// while a copy uses it.
func (p *Pinned[T]) Slice() []T { return p.vals }

// Len is the number of values.
func (p *Pinned[T]) Len() int { return len(p.vals) }

// Close frees the memory. Copies that use it must have ended: wait for their
// streams first. Later calls return what the first returned. Cost: one driver
// call.
func (p *Pinned[T]) Close() error {
	if p == nil {
		return nil
	}
	return p.gate.close(func() error {
		p.cleanup.Stop()
		return firstError(p.c.destroy(p.destroy), p.c.release(p.child))
	})
}

// CopyInPinned enqueues a copy of dst.Len() values, from index offset of src on,
// to dst on s, which must be of dst's device. The values must not change before
// the copy has run. Cost: one driver call.
func CopyInPinned[T Scalar](s *Stream, dst Slice[T], src *Pinned[T], offset int) error {
	return copyPinned("CopyInPinned", s, "dst", dst, "src", src, offset, func(api cuapi.API, host []byte) (string, cuapi.Result) {
		return "cuMemcpyHtoDAsync_v2", api.MemcpyHtoDAsync(cuapi.DevicePtr(dst.addr), host, s.h)
	})
}

// CopyOutPinned enqueues a copy of src to dst, from index offset on, on s, which
// must be of src's device. The values are there when s has passed the copy.
// Cost: as CopyInPinned.
func CopyOutPinned[T Scalar](s *Stream, dst *Pinned[T], offset int, src Slice[T]) error {
	return copyPinned("CopyOutPinned", s, "src", src, "dst", dst, offset, func(api cuapi.API, host []byte) (string, cuapi.Result) {
		return "cuMemcpyDtoHAsync_v2", api.MemcpyDtoHAsync(host, cuapi.DevicePtr(src.addr), s.h)
	})
}

func copyPinned[T Scalar](op string, s *Stream, arg string, dev Slice[T], other string, p *Pinned[T], offset int,
	enqueue func(api cuapi.API, host []byte) (string, cuapi.Result)) error {
	switch {
	case s == nil:
		return badArg(op, "s", "is a nil stream")
	case p == nil:
		return badArg(op, other, "is nil")
	case p.c.dev.drv != s.c.dev.drv:
		return badArg(op, other, "belongs to another driver")
	}
	if err := dev.check(op, arg, s.c.dev); err != nil {
		return err
	}
	if offset < 0 || offset > len(p.vals)-dev.n {
		return badArg(op, "offset", "%d given for %d values, %s has length %d", offset, dev.n, other, len(p.vals))
	}
	if dev.n == 0 {
		return nil
	}
	if !p.gate.enter() {
		return errClosed("pinned buffer")
	}
	defer p.gate.exit()
	sc, err := s.begin(op)
	if err != nil {
		return err
	}
	size := int(sizeOf[T]())
	name, r := enqueue(s.c.api(), p.mem[offset*size:(offset+dev.n)*size])
	return s.end(sc, s.c.check(name, r))
}
