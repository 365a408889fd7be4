package cuda

import (
	"context"

	"github.com/raymux/raymux/cuda/cuapi"
)

// Upload allocates device memory for s and copies src there. It returns when
// src may be changed again; the copy is complete for everything enqueued on s
// afterwards. Cost: as PoolAlloc and CopyIn.
func Upload[T Scalar](ctx context.Context, s *Stream, src []T) (Slice[T], error) {
	if s == nil {
		return Slice[T]{}, badArg("Upload", "s", "is a nil stream")
	}
	dst, err := alloc[T]("Upload", s.c, s, len(src))
	if err != nil {
		return Slice[T]{}, err
	}
	if err := CopyIn(ctx, s, dst, src); err != nil {
		return Slice[T]{}, firstError(err, PoolFree(s.c.pool, s, dst))
	}
	return dst, nil
}

// Download copies src to new Go memory. It waits until the work enqueued on s
// so far and the copy have run. Cost: as CopyOut.
func Download[T Scalar](ctx context.Context, s *Stream, src Slice[T]) ([]T, error) {
	dst := make([]T, src.n)
	if err := CopyOut(ctx, s, dst, src); err != nil {
		return nil, err
	}
	return dst, nil
}

// CopyIn enqueues a copy of src to dst on s, which must be of dst's device and
// of the same length. It returns when src may be changed again, which is before
// the copy is complete. The data goes through page-locked buffers of the
// context in parts of 4 MiB, one being filled while the other is copied. When
// ctx ends first, it stops and returns the error of ctx, and dst holds a part of
// src. Cost: two driver calls per part, and a wait for the part two before it;
// the first copies of a context allocate the buffers.
func CopyIn[T Scalar](ctx context.Context, s *Stream, dst Slice[T], src []T) error {
	const op = "CopyIn"
	l, err := beginTransfer(ctx, op, s, "dst", dst, "src", len(src))
	if l == nil {
		return err
	}
	err = copyIn(ctx, l, s, dst.addr, bytesOf(src))
	return l.endTransfer(err)
}

// CopyOut copies src to dst, which must have the same length, once the work
// enqueued on s so far has run, and waits for it. s must be of src's device.
// When ctx ends first, it stops waiting and returns the error of ctx; dst then
// holds a part of src and is not touched any more. Cost: two driver calls and a
// wait per part of 4 MiB, copying one part while waiting for the next.
func CopyOut[T Scalar](ctx context.Context, s *Stream, dst []T, src Slice[T]) error {
	const op = "CopyOut"
	l, err := beginTransfer(ctx, op, s, "src", src, "dst", len(dst))
	if l == nil {
		return err
	}
	err = copyOut(ctx, l, s, bytesOf(dst), src.addr)
	return l.endTransfer(err)
}

// beginTransfer checks the arguments of a copy between a slice and n values of
// Go memory, and takes a lane of the stream's context. Without values it returns
// no lane.
func beginTransfer[T Scalar](ctx context.Context, op string, s *Stream, arg string, slice Slice[T], other string, n int) (*lane, error) {
	if s == nil {
		return nil, badArg(op, "s", "is a nil stream")
	}
	if err := slice.check(op, arg, s.c.dev); err != nil {
		return nil, err
	}
	if n != slice.n {
		return nil, badArg(op, other, "has length %d, %s has %d; both must be equal", n, arg, slice.n)
	}
	if s.gate.closed() {
		return nil, errClosed("stream")
	}
	if err := s.c.dev.lostError(); err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, ctx.Err()
	}
	if err := s.c.ref(); err != nil {
		return nil, err
	}
	l, err := s.c.staging.acquire(ctx)
	if err != nil {
		return nil, firstError(err, s.c.unref())
	}
	return l, nil
}

func (l *lane) endTransfer(err error) error {
	l.c.staging.give(l)
	if e := l.c.unref(); err == nil {
		err = e
	}
	return err
}

func copyIn(ctx context.Context, l *lane, s *Stream, dst uint64, src []byte) error {
	for len(src) > 0 {
		b, err := l.buffer(ctx)
		if err != nil {
			return err
		}
		part := b.mem[:copy(b.mem, src)]
		err = l.submit("cuMemcpyHtoDAsync_v2", s, b, func(api cuapi.API) cuapi.Result {
			return api.MemcpyHtoDAsync(cuapi.DevicePtr(dst), part, s.h)
		})
		if err != nil {
			return err
		}
		dst += uint64(len(part))
		src = src[len(part):]
	}
	return nil
}

func copyOut(ctx context.Context, l *lane, s *Stream, dst []byte, src uint64) error {
	var prev *stagingBuffer // its contents belong at the start of dst
	var prevLen int
	drain := func() error {
		if prev == nil {
			return nil
		}
		if err := l.wait(ctx, prev); err != nil {
			return err
		}
		copy(dst, prev.mem[:prevLen])
		dst = dst[prevLen:]
		return nil
	}
	for rest := len(dst); rest > 0; {
		b, err := l.buffer(ctx)
		if err != nil {
			return err
		}
		n := min(rest, len(b.mem))
		err = l.submit("cuMemcpyDtoHAsync_v2", s, b, func(api cuapi.API) cuapi.Result {
			return api.MemcpyDtoHAsync(b.mem[:n], cuapi.DevicePtr(src), s.h)
		})
		if err != nil {
			return err
		}
		if err := drain(); err != nil {
			return err
		}
		prev, prevLen = b, n
		src += uint64(n)
		rest -= n
	}
	return drain()
}
