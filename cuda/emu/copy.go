package emu

import (
	"bytes"
	"slices"

	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/cuda/emu/vm"
)

// location is an address with the memory it belongs to.
type location struct {
	addr uint64
	mem  *vm.Memory
	dev  *device // nil: host
	pool bool    // stream-ordered memory
}

// locate finds the allocation that holds all of [addr, addr+n).
func (e *Emulator) locate(addr, n uint64) (location, bool) {
	if d := e.owner(addr); d != nil {
		a, in := d.mem.find(addr)
		if a == nil || n > a.size-(addr-a.addr) {
			return location{}, false
		}
		return location{addr, in.mem, d, in == d.mem.pool.arena}, true
	}
	mem := e.host.mem
	a := mem.Find(addr)
	if a == nil || n > a.Size()-(addr-a.Addr()) {
		return location{}, false
	}
	return location{addr, mem, nil, false}, true
}

// reaches reports whether work of the context may access the location.
func (c *context) reaches(l location) bool {
	switch {
	case l.dev == nil || l.dev == c.dev:
		return true
	case l.pool:
		return l.dev.mem.pool.grants(c.dev)
	}
	return c.enabledPeers()[l.dev]
}

// upload copies host bytes to a device.
type upload struct {
	dst location
	src []byte
}

func (u *upload) run(c *context) {
	if err := u.dst.mem.Write(u.dst.addr, u.src); err != nil {
		c.copyFault("upload", vm.UseAfterFree, u.dst.addr, err.Error())
	}
}

// download copies device bytes to the host.
type download struct {
	dst []byte
	src location
}

func (d *download) run(c *context) {
	if err := d.src.mem.Read(d.src.addr, d.dst); err != nil {
		c.copyFault("download", vm.UseAfterFree, d.src.addr, err.Error())
	}
}

// transfer copies between devices or within one. The state "never written"
// travels with the bytes.
type transfer struct {
	dst, src location
	n        uint64
	staged   bool // the driver may go through the host: needs no peer access
}

func (t *transfer) run(c *context) {
	if !t.staged {
		for _, l := range []location{t.dst, t.src} {
			if !c.reaches(l) {
				c.copyFault("copy", vm.NoPeerAccess, l.addr, "peer access from the stream's device is not enabled")
				return
			}
		}
	}
	if err := vm.Copy(t.dst.mem, t.dst.addr, t.src.mem, t.src.addr, t.n); err != nil {
		c.copyFault("copy", vm.UseAfterFree, t.dst.addr, err.Error())
		return
	}
	t.corrupt(c.e.cfg.corrupt)
}

// corrupt passes what arrived through the hook of WithPeerCorruption.
func (t *transfer) corrupt(hook func(src, dst int, data []byte)) {
	if hook == nil || t.src.dev == nil || t.dst.dev == nil || t.src.dev == t.dst.dev {
		return
	}
	data := make([]byte, t.n)
	// The copy has just succeeded, so the range is mapped, unless it was freed
	// under way; then there is nothing to corrupt.
	if t.dst.mem.Read(t.dst.addr, data) != nil {
		return
	}
	sent := slices.Clone(data)
	hook(t.src.dev.ordinal, t.dst.dev.ordinal, data)
	if !bytes.Equal(sent, data) {
		_ = t.dst.mem.Write(t.dst.addr, data)
	}
}

// fill is a memset of count elements of width bytes.
type fill struct {
	dst   location
	value uint32
	width int
	count uint64
}

func (f *fill) run(c *context) {
	if !c.reaches(f.dst) {
		c.copyFault("memset", vm.NoPeerAccess, f.dst.addr, "peer access from the stream's device is not enabled")
		return
	}
	if err := f.dst.mem.Fill(f.dst.addr, f.value, f.width, f.count); err != nil {
		c.copyFault("memset", vm.UseAfterFree, f.dst.addr, err.Error())
	}
}

// MemcpyHtoD runs on the legacy stream and returns when the bytes have arrived.
func (e *Emulator) MemcpyHtoD(dst cuapi.DevicePtr, src []byte) cuapi.Result {
	return e.upload(dst, src, 0, true)
}

// MemcpyHtoDAsync reads page-locked memory when the stream gets there, and
// copies other memory before it returns.
func (e *Emulator) MemcpyHtoDAsync(dst cuapi.DevicePtr, src []byte, s cuapi.Stream) cuapi.Result {
	return e.upload(dst, src, s, false)
}

func (e *Emulator) upload(dst cuapi.DevicePtr, src []byte, sh cuapi.Stream, wait bool) cuapi.Result {
	_, s, r := e.enterStream(sh)
	if r != cuapi.Success || len(src) == 0 {
		return r
	}
	to, ok := e.locate(uint64(dst), uint64(len(src)))
	if !ok {
		return cuapi.ErrorInvalidValue
	}
	if !wait && !e.host.holds(src) {
		src = slices.Clone(src)
	}
	end := s.ctx.enqueue(s, &upload{to, src})
	return s.finish(end, wait)
}

// finish waits for the point if asked to and reports the stream's state.
func (s *stream) finish(end ticket, wait bool) cuapi.Result {
	if !wait {
		return cuapi.Success
	}
	end.wait()
	return s.ctx.status()
}

// MemcpyDtoH runs on the legacy stream and returns when the bytes have arrived.
// Bytes that were never written arrive as zeros.
func (e *Emulator) MemcpyDtoH(dst []byte, src cuapi.DevicePtr) cuapi.Result {
	return e.download(dst, src, 0, true)
}

// MemcpyDtoHAsync writes page-locked memory when the stream gets there; with
// other memory it waits for that.
func (e *Emulator) MemcpyDtoHAsync(dst []byte, src cuapi.DevicePtr, s cuapi.Stream) cuapi.Result {
	return e.download(dst, src, s, !e.host.holds(dst))
}

func (e *Emulator) download(dst []byte, src cuapi.DevicePtr, sh cuapi.Stream, wait bool) cuapi.Result {
	_, s, r := e.enterStream(sh)
	if r != cuapi.Success || len(dst) == 0 {
		return r
	}
	from, ok := e.locate(uint64(src), uint64(len(dst)))
	if !ok {
		return cuapi.ErrorInvalidValue
	}
	return s.finish(s.ctx.enqueue(s, &download{dst, from}), wait)
}

// MemcpyDtoD is enqueued on the legacy stream; like the native call it does
// not wait.
func (e *Emulator) MemcpyDtoD(dst, src cuapi.DevicePtr, n uint64) cuapi.Result {
	return e.MemcpyDtoDAsync(dst, src, n, 0)
}

// MemcpyDtoDAsync copies between addresses that the stream's context reaches;
// others are a fault (700) when the stream gets there.
func (e *Emulator) MemcpyDtoDAsync(dst, src cuapi.DevicePtr, n uint64, sh cuapi.Stream) cuapi.Result {
	_, s, r := e.enterStream(sh)
	if r != cuapi.Success || n == 0 {
		return r
	}
	t, ok := e.transfer(dst, src, n)
	if !ok {
		return cuapi.ErrorInvalidValue
	}
	s.ctx.enqueue(s, t)
	return cuapi.Success
}

func (e *Emulator) transfer(dst, src cuapi.DevicePtr, n uint64) (*transfer, bool) {
	to, ok := e.locate(uint64(dst), n)
	if !ok {
		return nil, false
	}
	from, ok := e.locate(uint64(src), n)
	return &transfer{dst: to, src: from, n: n}, ok
}

// peerTransfer checks what both peer copies share: the contexts must be live
// (201) and own the addresses (1). It is nil when there is nothing to copy.
func (e *Emulator) peerTransfer(dst cuapi.DevicePtr, dstCtx cuapi.Context, src cuapi.DevicePtr, srcCtx cuapi.Context, n uint64) (t *transfer, d, s *context, r cuapi.Result) {
	d, s = e.contexts.get(dstCtx), e.contexts.get(srcCtx)
	if d == nil || s == nil {
		return nil, nil, nil, cuapi.ErrorInvalidContext
	}
	for _, c := range []*context{d, s} {
		if r := c.status(); r != cuapi.Success {
			return nil, nil, nil, r
		}
	}
	if n == 0 {
		return nil, d, s, cuapi.Success
	}
	t, ok := e.transfer(dst, src, n)
	if !ok || t.dst.dev != d.dev || t.src.dev != s.dev {
		return nil, nil, nil, cuapi.ErrorInvalidValue
	}
	t.staged = true
	return t, d, s, cuapi.Success
}

// MemcpyPeer runs after everything enqueued in the current and both named
// contexts, and returns when the bytes have arrived. It needs no peer access.
func (e *Emulator) MemcpyPeer(dst cuapi.DevicePtr, dstCtx cuapi.Context, src cuapi.DevicePtr, srcCtx cuapi.Context, n uint64) cuapi.Result {
	c, r := e.enter()
	if r != cuapi.Success {
		return r
	}
	t, d, s, r := e.peerTransfer(dst, dstCtx, src, srcCtx, n)
	if r != cuapi.Success || t == nil {
		return r
	}
	for _, ctx := range []*context{c, d, s} {
		if r := ctx.synchronize(); r != cuapi.Success {
			return r
		}
	}
	return c.legacy.finish(c.enqueue(c.legacy, t), true)
}

// MemcpyPeerAsync is MemcpyPeer in stream order. It needs no peer access.
func (e *Emulator) MemcpyPeerAsync(dst cuapi.DevicePtr, dstCtx cuapi.Context, src cuapi.DevicePtr, srcCtx cuapi.Context, n uint64, sh cuapi.Stream) cuapi.Result {
	_, s, r := e.enterStream(sh)
	if r != cuapi.Success {
		return r
	}
	t, _, _, r := e.peerTransfer(dst, dstCtx, src, srcCtx, n)
	if r != cuapi.Success || t == nil {
		return r
	}
	s.ctx.enqueue(s, t)
	return cuapi.Success
}

// MemsetD8 is enqueued on the legacy stream; it does not wait.
func (e *Emulator) MemsetD8(p cuapi.DevicePtr, v uint8, n uint64) cuapi.Result {
	return e.fill(p, uint32(v), 1, n, 0)
}

// MemsetD8Async fills n bytes in stream order.
func (e *Emulator) MemsetD8Async(p cuapi.DevicePtr, v uint8, n uint64, s cuapi.Stream) cuapi.Result {
	return e.fill(p, uint32(v), 1, n, s)
}

// MemsetD32 is enqueued on the legacy stream; it does not wait.
func (e *Emulator) MemsetD32(p cuapi.DevicePtr, v uint32, n uint64) cuapi.Result {
	return e.fill(p, v, 4, n, 0)
}

// MemsetD32Async fills n words in stream order; p must be a multiple of 4.
func (e *Emulator) MemsetD32Async(p cuapi.DevicePtr, v uint32, n uint64, s cuapi.Stream) cuapi.Result {
	return e.fill(p, v, 4, n, s)
}

func (e *Emulator) fill(p cuapi.DevicePtr, v uint32, width, count uint64, sh cuapi.Stream) cuapi.Result {
	_, s, r := e.enterStream(sh)
	if r != cuapi.Success || count == 0 {
		return r
	}
	if uint64(p)%width != 0 || count > deviceSpan {
		return cuapi.ErrorInvalidValue
	}
	to, ok := e.locate(uint64(p), count*width)
	if !ok {
		return cuapi.ErrorInvalidValue
	}
	s.ctx.enqueue(s, &fill{to, v, int(width), count})
	return cuapi.Success
}
