package cuda

import (
	"fmt"

	"github.com/raymux/raymux/cuda/cuapi"
)

// CopyAsync enqueues a copy of src to dst, of equal length, on s. On one device
// s must be of that device, and the two must not overlap. Between devices it is
// a peer copy, direct over the link if peer access is enabled and through host
// memory if not, and s must be of either. Cost: one driver call.
func CopyAsync[T Scalar](s *Stream, dst, src Slice[T]) error {
	if s == nil {
		return badArg("CopyAsync", "s", "is a nil stream")
	}
	if err := checkCopy("CopyAsync", s, dst, src); err != nil || dst.n == 0 {
		return err
	}
	sc, err := s.begin("CopyAsync")
	if err != nil {
		return err
	}
	return s.end(sc, enqueueCopy(s, dst, src))
}

// CopyAsyncIn is CopyAsync inside a scope of the stream's device. Cost: one
// driver call.
func CopyAsyncIn[T Scalar](sc Scope, s *Stream, dst, src Slice[T]) error {
	if err := sc.checkStream("CopyAsyncIn", s); err != nil {
		return err
	}
	if err := checkCopy("CopyAsyncIn", s, dst, src); err != nil || dst.n == 0 {
		return err
	}
	if !s.gate.enter() {
		return errClosed("stream")
	}
	defer s.gate.exit()
	return enqueueCopy(s, dst, src)
}

func checkCopy[T Scalar](op string, s *Stream, dst, src Slice[T]) error {
	at := s.c.dev
	if dst.c != nil && src.c != nil && dst.c.dev != src.c.dev {
		// A peer copy may be enqueued at either end.
		if dst.c.dev.drv != src.c.dev.drv {
			return badArg(op, "src", "belongs to another driver than dst")
		}
		if dst.c.dev != at && src.c.dev != at {
			return wrongDevice(op, "s", dst.c.dev, at)
		}
		if err := dst.check(op, "dst", dst.c.dev); err != nil {
			return err
		}
		if err := src.check(op, "src", src.c.dev); err != nil {
			return err
		}
		if err := firstError(dst.c.dev.lostError(), src.c.dev.lostError()); err != nil {
			return err
		}
	} else {
		if err := dst.check(op, "dst", at); err != nil {
			return err
		}
		if err := src.check(op, "src", at); err != nil {
			return err
		}
	}
	if dst.n != src.n {
		return badArg(op, "src", "has length %d, dst has %d; both must be equal", src.n, dst.n)
	}
	if dst.c.dev == src.c.dev && dst.addr < src.addr+src.Bytes() && src.addr < dst.addr+dst.Bytes() {
		return badArg(op, "dst", "%d bytes at %#x overlap src at %#x", dst.Bytes(), dst.addr, src.addr)
	}
	return nil
}

func enqueueCopy[T Scalar](s *Stream, dst, src Slice[T]) error {
	api, d, from, n := s.c.api(), cuapi.DevicePtr(dst.addr), cuapi.DevicePtr(src.addr), dst.Bytes()
	if dst.c.dev == src.c.dev {
		return s.c.check("cuMemcpyDtoDAsync_v2", api.MemcpyDtoDAsync(d, from, n, s.h))
	}
	r := api.MemcpyPeerAsync(d, dst.c.h, from, src.c.h, n, s.h)
	if r == cuapi.Success {
		return nil
	}
	return s.c.dev.failure("cuMemcpyPeerAsync", r, fmt.Sprintf("%d bytes from device %d to device %d", n, src.c.dev.ordinal, dst.c.dev.ordinal))
}

// Fill8 enqueues filling every byte of dst with v. Cost: one driver call.
func Fill8[T Scalar](s *Stream, dst Slice[T], v uint8) error {
	return fill("Fill8", s, dst, 1, func(api cuapi.API) cuapi.Result {
		return api.MemsetD8Async(cuapi.DevicePtr(dst.addr), v, dst.Bytes(), s.h)
	})
}

// Fill32 enqueues filling dst, taken as 32-bit words, with v; its size and
// address must be multiples of 4 bytes. Cost: as Fill8.
func Fill32[T Scalar](s *Stream, dst Slice[T], v uint32) error {
	return fill("Fill32", s, dst, 4, func(api cuapi.API) cuapi.Result {
		return api.MemsetD32Async(cuapi.DevicePtr(dst.addr), v, dst.Bytes()/4, s.h)
	})
}

func fill[T Scalar](op string, s *Stream, dst Slice[T], unit uint64, set func(cuapi.API) cuapi.Result) error {
	if s == nil {
		return badArg(op, "s", "is a nil stream")
	}
	if err := dst.check(op, "dst", s.c.dev); err != nil {
		return err
	}
	if dst.addr%unit != 0 || dst.Bytes()%unit != 0 {
		return badArg(op, "dst", "%d bytes at %#x are not made of aligned %d-byte words", dst.Bytes(), dst.addr, unit)
	}
	if dst.n == 0 {
		return nil
	}
	sc, err := s.begin(op)
	if err != nil {
		return err
	}
	return s.end(sc, s.c.check("cuMemset"+op[len("Fill"):]+"Async", set(s.c.api())))
}
