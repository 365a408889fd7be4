package cuda

import (
	"context"
	"fmt"
	"math/bits"
	"slices"
	"sync"

	"github.com/raymux/raymux/cuda/cuapi"
)

// Pool is the caching allocator of a context. Freed memory is kept and handed
// out again, so that a steady loop makes no driver allocation, which would wait
// for the device.
//
// Reuse is ordered by streams. Memory freed on a stream is available to later
// work of that stream at once, and to another stream behind a wait for the
// event that was recorded when it was freed. Each block has at most one event.
//
// The memory comes from cuMemAlloc and not from the driver's stream-ordered
// allocator, because peer access (Context.EnablePeer) covers plain memory only:
// the driver's pools have access lists of their own.
//
// Sizes are in classes, eight per power of two. A new block is less than one
// percent larger than the request, or a multiple of 512 bytes; a cached block of
// its class serves if it is large enough. On an emulator sizes are exact, so that
// an access past the end is found.
type Pool struct {
	c     *Context
	exact bool

	mu     sync.Mutex
	closed bool
	cached map[uint64][]*memory // by size, oldest first
	stats  Stats
}

// Stats are the counters of a Pool. Sizes are in bytes of driver memory.
type Stats struct {
	DriverAllocs uint64 // cuMemAlloc calls that succeeded, since the start
	DriverFrees  uint64 // cuMemFree calls that succeeded, since the start
	BytesInUse   uint64 // handed out now
	BytesCached  uint64 // kept for reuse now
	HighWater    uint64 // largest BytesInUse since the start or ResetHighWater
}

func newPool(c *Context) *Pool {
	return &Pool{c: c, exact: c.dev.drv.emulated, cached: make(map[uint64][]*memory)}
}

// Context is the context of the pool.
func (p *Pool) Context() *Context { return p.c }

// Stats returns the counters. No driver call.
func (p *Pool) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stats
}

// ResetHighWater starts a new measurement of the largest use. No driver call.
func (p *Pool) ResetHighWater() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stats.HighWater = p.stats.BytesInUse
}

// Alloc allocates n values of device memory from the pool of c, ready for any
// stream. The contents are undefined. An empty array needs no memory. Cost: none
// when a block whose work has ended is cached (one query per block that may
// have), else one driver allocation.
func Alloc[T Scalar](c *Context, n int) (Slice[T], error) {
	return alloc[T]("Alloc", c, nil, n)
}

// PoolAlloc allocates n values of device memory for work that is enqueued on s
// from now on; s may be nil as in Alloc. The contents are undefined. Cost: none
// when a block that s freed is cached, one driver call when another stream
// freed it, else one driver allocation. When memory runs out, the cache is
// emptied and the allocation tried once more.
func PoolAlloc[T Scalar](p *Pool, s *Stream, n int) (Slice[T], error) {
	if p == nil {
		return Slice[T]{}, badArg("PoolAlloc", "p", "is nil")
	}
	return alloc[T]("PoolAlloc", p.c, s, n)
}

func alloc[T Scalar](op string, c *Context, s *Stream, n int) (Slice[T], error) {
	bytes, err := byteCount[T](op, c, n)
	if err != nil {
		return Slice[T]{}, err
	}
	if s != nil && s.c.dev != c.dev {
		return Slice[T]{}, wrongDevice(op, "s", c.dev, s.c.dev)
	}
	if err := c.ref(); err != nil {
		return Slice[T]{}, err
	}
	if bytes == 0 {
		return Slice[T]{c: c}, c.unref()
	}
	b, err := c.pool.get(s, bytes)
	if err != nil {
		return Slice[T]{}, firstError(err, c.unref())
	}
	return Slice[T]{addr: b.addr, n: n, c: c, mem: b, gen: b.gen.Load()}, nil
}

// Free gives back memory of Alloc, PoolAlloc, Upload or Wrap. It waits for all
// work of the context, so that no kernel can still use the memory; in a loop use
// PoolFree. s must be the whole array, not a part of it. Freeing an absent or
// empty slice does nothing. Cost: one driver call that blocks.
func Free[T Scalar](s Slice[T]) error { return free("Free", nil, s) }

// PoolFree gives memory of the pool back once the work that is enqueued on st so
// far has run. Work of other streams on it must be joined to st before. With a
// nil stream it is Free. Cost: one driver call, two for a new block.
func PoolFree[T Scalar](p *Pool, st *Stream, s Slice[T]) error {
	const op = "PoolFree"
	switch {
	case s.mem == nil:
		return nil
	case p == nil:
		return badArg(op, "p", "is nil")
	case s.c != p.c || s.mem.size == 0:
		return badArg(op, "s", "is not memory of this pool")
	case st != nil && st.c.dev != p.c.dev:
		return wrongDevice(op, "st", p.c.dev, st.c.dev)
	}
	return free(op, st, s)
}

func free[T Scalar](op string, st *Stream, s Slice[T]) error {
	b := s.mem
	if b == nil {
		return nil
	}
	if s.Freed() {
		return errFreed("s") // and b may serve somebody else by now
	}
	if s.addr != b.addr || s.Bytes() != b.bytes {
		return badArg(op, "s", "is %d bytes at %#x, a part of an array of %d bytes at %#x; only the whole array can be freed", s.Bytes(), s.addr, b.bytes, b.addr)
	}
	if st != nil && st.gate.closed() {
		return errClosed("stream")
	}
	if !b.gen.CompareAndSwap(s.gen, s.gen+1) {
		return errFreed("s")
	}
	// Once put has returned, b may serve somebody else, with a child of its own.
	c, child := b.c, b.child
	var err error
	if b.size == 0 {
		if b.release != nil {
			b.release()
		}
	} else {
		err = c.pool.put(st, b)
	}
	return firstError(err, c.release(child))
}

// get takes a block for s from the cache or from the driver. The caller holds
// the reference of the context that the block needs.
func (p *Pool) get(s *Stream, bytes uint64) (*memory, error) {
	if err := p.c.dev.lostError(); err != nil {
		return nil, err
	}
	if s != nil && s.gate.closed() {
		return nil, errClosed("stream")
	}
	f := fit{size: bytes, least: bytes, most: bytes, step: 1}
	if !p.exact {
		f = fitting(bytes)
	}
	b, err := p.reuse(s, f)
	if err != nil {
		return nil, err
	}
	if b == nil {
		if err := p.shed(f); err != nil {
			return nil, err
		}
		if b, err = p.grow(bytes, f.size); err != nil {
			return nil, err
		}
	}
	b.bytes, b.home = bytes, 0
	if s != nil {
		b.home = s.id
	}
	b.child = p.c.adopt(kindMemory, b.size)
	p.mu.Lock()
	p.stats.BytesInUse += b.size
	p.stats.HighWater = max(p.stats.HighWater, p.stats.BytesInUse)
	p.mu.Unlock()
	return b, nil
}

// reuse returns a cached block that s may use, or nil when there is none.
func (p *Pool) reuse(s *Stream, f fit) (*memory, error) {
	var b *memory
	for size := f.size; b == nil && size <= f.most; size += f.step {
		b = p.take(s, size)
	}
	if b == nil || b.stream == 0 || (s != nil && b.stream == s.id) {
		return b, nil
	}
	if s == nil {
		ready, err := p.passed(b)
		if ready {
			return b, nil
		}
		p.keep(b)
		return nil, err
	}
	sc, err := s.begin("PoolAlloc")
	if err == nil {
		err = s.end(sc, p.c.check("cuStreamWaitEvent", p.c.api().StreamWaitEvent(s.h, b.event, 0)))
	}
	if err != nil {
		p.keep(b)
		return nil, err
	}
	return b, nil
}

// take removes the best cached block of a size: one that s itself freed last or
// that nothing is pending on, else the one whose free is longest ago. A small one
// that another stream allocated and freed is left to it as long as there are few:
// a wait for what that stream does costs more than the memory.
func (p *Pool) take(s *Stream, size uint64) *memory {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.cached[size]
	if len(list) == 0 {
		return nil
	}
	best := len(list) - 1
	for best >= 0 && list[best].stream != 0 && (s == nil || list[best].stream != s.id) {
		best--
	}
	if best < 0 {
		best = 0
		if s != nil && size <= smallBlock && len(list) < smallBlocks {
			best = slices.IndexFunc(list, func(b *memory) bool { return b.home != b.stream })
		}
		if best < 0 {
			return nil
		}
	}
	b := list[best]
	copy(list[best:], list[best+1:])
	list[len(list)-1] = nil
	p.cached[size] = list[:len(list)-1]
	p.stats.BytesCached -= size
	return b
}

// shed gives back the idle blocks of the class that are too small for a request,
// so that a batch that grows from call to call leaves no trail of them. Cost: only
// before a driver allocation; one query, and one driver call that may block, per
// block.
func (p *Pool) shed(f fit) error {
	var small []*memory
	p.mu.Lock()
	for size := f.least; size < f.size; size += f.step {
		small = append(small, p.cached[size]...)
		p.stats.BytesCached -= size * uint64(len(p.cached[size]))
		delete(p.cached, size)
	}
	p.mu.Unlock()
	var errs []error
	for _, b := range small {
		idle, err := p.passed(b)
		if !idle || err != nil {
			p.keep(b)
		} else {
			err = p.drop(b, true)
		}
		errs = append(errs, err)
	}
	return firstError(errs...)
}

// keep puts a block into the cache.
func (p *Pool) keep(b *memory) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cached[b.size] = append(p.cached[b.size], b)
	p.stats.BytesCached += b.size
}

// grow allocates a block of the given size from the driver for a request.
func (p *Pool) grow(bytes, size uint64) (*memory, error) {
	b := &memory{c: p.c, size: size}
	made := false
	err := p.c.with(func() error {
		r := p.c.retryTrimmed(func() cuapi.Result {
			addr, r := p.c.api().MemAlloc(size)
			b.addr = uint64(addr)
			return r
		})
		made = r == cuapi.Success
		if r == cuapi.ErrorOutOfMemory {
			return p.c.dev.failure("cuMemAlloc_v2", r, p.shortage(bytes))
		}
		return p.c.check("cuMemAlloc_v2", r)
	})
	if made {
		p.mu.Lock()
		p.stats.DriverAllocs++
		p.mu.Unlock()
	}
	if err == nil {
		return b, nil
	}
	if made { // the thread's previous context was not restored
		return nil, firstError(err, p.drop(b, true))
	}
	return nil, err
}

// shortage says what was wanted and what there was.
func (p *Pool) shortage(bytes uint64) string {
	st := p.Stats()
	text := fmt.Sprintf("%d bytes wanted, the pool has %d in use and %d cached", bytes, st.BytesInUse, st.BytesCached)
	if free, total, r := p.c.api().MemGetInfo(); r == cuapi.Success {
		text += fmt.Sprintf(", the device has %d of %d free", free, total)
	}
	return text
}

// put takes back a block that nobody refers to any more.
func (p *Pool) put(s *Stream, b *memory) error {
	p.mu.Lock()
	p.stats.BytesInUse -= b.size
	p.mu.Unlock()
	if p.c.dev.lostError() != nil {
		return nil
	}
	var err error
	if s == nil {
		b.stream = 0
		err = p.c.with(func() error { return p.c.check("cuCtxSynchronize", p.c.api().CtxSynchronize()) })
	} else {
		b.stream = s.id
		err = p.mark(s, b)
	}
	if err != nil {
		// When the block may be reused is unknown, so it leaves the pool.
		return firstError(err, p.drop(b, b.stream == 0))
	}
	p.mu.Lock()
	closed := p.closed
	if !closed {
		p.cached[b.size] = append(p.cached[b.size], b)
		p.stats.BytesCached += b.size
	}
	p.mu.Unlock()
	if closed {
		return p.discard(b)
	}
	return nil
}

// mark records the event of b on s.
func (p *Pool) mark(s *Stream, b *memory) error {
	sc, err := s.begin("PoolFree")
	if err != nil {
		return err
	}
	api := p.c.api()
	r := cuapi.Success
	if b.event == 0 {
		b.event, r = api.EventCreate(cuapi.EventDisableTiming)
		err = p.c.check("cuEventCreate", r)
	}
	if err == nil {
		r = api.EventRecord(b.event, s.h)
		err = p.c.check("cuEventRecord", r)
	}
	if r != cuapi.Success && !r.Sticky() {
		// Without the mark only a wait tells that the stream is past b.
		if e := p.c.check("cuStreamSynchronize", api.StreamSynchronize(s.h)); e == nil {
			b.stream = 0
		}
	}
	return s.end(sc, err)
}

// passed reports whether the work that was pending on b has run.
func (p *Pool) passed(b *memory) (ready bool, err error) {
	if b.stream == 0 {
		return true, nil
	}
	err = p.c.with(func() error {
		var e error
		ready, e = p.c.ready("cuEventQuery", p.c.api().EventQuery(b.event))
		return e
	})
	return ready, err
}

// discard waits for the work pending on b and gives it back to the driver.
func (p *Pool) discard(b *memory) error {
	if p.c.dev.lostError() != nil {
		return nil
	}
	err := poll(context.Background(), func() (bool, error) { return p.passed(b) })
	return firstError(err, p.drop(b, err == nil))
}

// drop gives a block back to the driver. If the driver does not take it and
// retry is set, it stays cached, so that a later Trim can try again.
func (p *Pool) drop(b *memory, retry bool) error {
	return p.c.destroy(func() error {
		api := p.c.api()
		err := p.c.dev.checkDestroy("cuMemFree_v2", api.MemFree(cuapi.DevicePtr(b.addr)), "")
		if err != nil {
			if retry && p.c.dev.lostError() == nil {
				p.keep(b)
			}
			return err
		}
		p.mu.Lock()
		p.stats.DriverFrees++
		p.mu.Unlock()
		if b.event == 0 {
			return nil
		}
		return p.c.dev.checkDestroy("cuEventDestroy_v2", api.EventDestroy(b.event), "")
	})
}

// Trim gives all cached memory back to the driver. Cost: a wait for the work
// that was enqueued before the memory was freed, and up to three driver calls
// per block.
func (p *Pool) Trim() error {
	p.mu.Lock()
	var all []*memory
	for size, list := range p.cached {
		all = append(all, list...)
		delete(p.cached, size)
	}
	p.stats.BytesCached = 0
	p.mu.Unlock()
	var errs []error
	for _, b := range all {
		errs = append(errs, p.discard(b))
	}
	return firstError(errs...)
}

// close empties the cache and lets later frees bypass it.
func (p *Pool) close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	return p.Trim()
}

// retryTrimmed makes a call that needs device memory, and makes it once more
// with the cache emptied when there is not enough.
func (c *Context) retryTrimmed(call func() cuapi.Result) cuapi.Result {
	r := call()
	if r != cuapi.ErrorOutOfMemory {
		return r
	}
	if err := c.pool.Trim(); err != nil {
		c.dev.drv.log.Warn("trimming the memory pool failed", "device", c.dev.ordinal, "error", err)
		if c.dev.lostError() != nil {
			return r
		}
	}
	return call()
}

// A small block is at most so large, and so many of a size are kept for the
// streams that freed them.
const (
	smallBlock  = 4 << 10
	smallBlocks = 16
)

// fit says which blocks serve a request: a new one of size bytes, or a cached one of
// size to most bytes. Smaller blocks of its class have least bytes or more. All of
// these differ by multiples of step.
type fit struct{ size, least, most, step uint64 }

// fitting is the fit of a request. There are 16 sizes per class, and eight classes per
// power of two, with steps no smaller than the driver's alignment and no larger than 2
// MiB.
func fitting(n uint64) fit {
	const smallest, largest, parts = 512, 32 << 20, 16
	class := uint64(1) << max(bits.Len64(n-1)-4, 0)
	class = min(max(class, smallest), largest)
	step := max(class/parts, smallest)
	most := (n + class - 1) / class * class
	return fit{size: (n + step - 1) / step * step, least: most - class + step, most: most, step: step}
}
