package vm

import (
	"fmt"
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"
)

// barrierState is one of a block's 16 barriers.
type barrierState struct {
	arrived int
	expect  int // 0: all live threads
	count   int // bar.red: threads whose predicate is true
}

// block is a block of threads while it runs; a worker reuses it.
type block struct {
	id       [3]uint32
	linear   uint64
	warps    []*warp
	live     int
	bars     [16]barrierState
	epoch    uint32 // counts barriers, for the race check
	shared   []byte
	sharedOK []byte
	shadow   []shadowByte
}

// worker runs blocks one after the other on one goroutine.
type worker struct {
	l        *Launch
	blk      block
	slots    []site // last allocation per memory instruction
	id       int
	patience int // see firstPatience
}

// faultPanic carries a fault from an instruction to the worker.
type faultPanic struct{ f *Fault }

func run(l *Launch) (Stats, *Fault) {
	k := l.Kernel
	bad := func(format string, args ...any) (Stats, *Fault) {
		return Stats{}, &Fault{Kind: BadLaunch, Kernel: k.Name, Detail: fmt.Sprintf(format, args...)}
	}
	threads, blocks := uint64(1), uint64(1)
	for i := range 3 {
		threads *= min(uint64(l.Block[i]), 1<<11)
		if l.Grid[i] != 0 && blocks > (1<<62)/uint64(l.Grid[i]) {
			return bad("grid %v is too large", l.Grid)
		}
		blocks *= uint64(l.Grid[i])
	}
	switch {
	case threads == 0 || threads > 1024:
		return bad("block %v has %d threads, allowed are 1 to 1024", l.Block, threads)
	case k.MaxThreads != 0 && threads > uint64(k.MaxThreads):
		return bad("block %v has %d threads, the kernel allows %d", l.Block, threads, k.MaxThreads)
	case blocks == 0:
		return bad("grid %v is empty", l.Grid)
	case uint32(len(l.Params)) != k.ParamSize:
		return bad("%d bytes of parameters, the kernel takes %d", len(l.Params), k.ParamSize)
	case uint64(k.SharedBytes)+uint64(l.DynShared) > maxSharedBytes:
		return bad("%d bytes of shared memory, allowed are %d", uint64(k.SharedBytes)+uint64(l.DynShared), maxSharedBytes)
	}
	for _, g := range k.program.globals {
		if _, ok := l.Globals[g.Name]; !ok {
			return bad("variable %s has no address", g.Name)
		}
	}
	n := l.Workers
	if n <= 0 {
		n = runtime.GOMAXPROCS(0)
	}
	n = int(min(uint64(n), blocks))
	var (
		next  atomic.Uint64
		stop  atomic.Bool
		wg    sync.WaitGroup
		mu    sync.Mutex
		stats Stats
		first *Fault
		at    uint64
	)
	body := func(id int) {
		wk := newWorker(l, id)
		for !stop.Load() {
			b := next.Add(1) - 1
			if b >= blocks {
				break
			}
			if f := wk.runBlock(b); f != nil {
				stop.Store(true)
				mu.Lock()
				if first == nil || b < at { // the lowest block's, so that the report is stable
					first, at = f, b
				}
				mu.Unlock()
			}
		}
		mu.Lock()
		for _, w := range wk.blk.warps {
			stats.WarpInstructions += w.warps
			stats.LaneInstructions += w.lanes
		}
		mu.Unlock()
	}
	for i := 1; i < n; i++ {
		wg.Go(func() { body(i) })
	}
	body(0)
	wg.Wait()
	return stats, first
}

func newWorker(l *Launch, id int) *worker {
	k := l.Kernel
	wk := &worker{l: l, id: id, patience: firstPatience, slots: make([]site, k.program.sites)}
	threads := int(l.Block[0] * l.Block[1] * l.Block[2])
	b := &wk.blk
	b.shared = alignedBytes(int(k.SharedBytes + l.DynShared))
	b.sharedOK = make([]byte, len(b.shared))
	if l.RaceCheck {
		b.shadow = make([]shadowByte, len(b.shared))
	}
	stride := uint32(alignUp(uint64(k.code.localBytes), 16))
	if k.calls {
		stride += stackBytes
	}
	for i := range (threads + 31) / 32 {
		b.warps = append(b.warps, &warp{blk: b, wk: wk, index: i, stride: stride,
			local: alignedBytes(int(32 * stride)), localOK: make([]byte, 32*stride)})
	}
	return wk
}

// stackBytes is the local memory that calls share in each thread, beyond the kernel's own.
const stackBytes = 16 << 10

// runBlock runs one block to its end or to its first fault.
func (wk *worker) runBlock(linear uint64) (f *Fault) {
	defer func() {
		if r := recover(); r != nil {
			fp, ok := r.(faultPanic)
			if !ok {
				panic(r)
			}
			f = fp.f
		}
	}()
	l, b := wk.l, &wk.blk
	gx, gy := uint64(l.Grid[0]), uint64(l.Grid[1])
	b.id = [3]uint32{uint32(linear % gx), uint32(linear / gx % gy), uint32(linear / gx / gy)}
	b.linear = linear
	wk.patience = min(firstPatience, 2*wk.patience) // what ran it out may be over
	threads := int(l.Block[0] * l.Block[1] * l.Block[2])
	b.live = threads
	b.bars = [16]barrierState{}
	b.epoch++
	clear(b.sharedOK)
	for i, w := range b.warps {
		live := fullMask
		if rest := threads - 32*i; rest < 32 {
			live = 1<<rest - 1
		}
		for _, fs := range w.frames {
			for _, fr := range fs {
				for _, s := range fr.fn.special {
					if s.id.perBlock() {
						w.fillSpecial(s.id, &fr.r[s.col])
					}
				}
			}
		}
		w.start(live)
	}
	for b.live > 0 {
		if l.Cancel != nil && l.Cancel.Load() {
			return &Fault{Kind: Cancelled, Kernel: l.Kernel.Name}
		}
		progress := false
		for _, w := range b.warps {
			if w.live != 0 && w.run() {
				progress = true
			}
		}
		if !progress {
			return b.deadlock()
		}
	}
	return nil
}

// deadlock describes the first group that waits for ever.
func (b *block) deadlock() *Fault {
	for _, w := range b.warps {
		for i := range w.groups {
			g := &w.groups[i]
			if g.wait == ready {
				continue
			}
			w.mask = g.mask
			detail := fmt.Sprintf("lanes %#08x wait at a warp-wide operation for lanes that never come", g.mask)
			if g.wait == waitBarrier {
				s := &b.bars[g.bar]
				expect := s.expect
				if expect == 0 {
					expect = b.live
				}
				detail = fmt.Sprintf("barrier %d waits for %d threads, %d have arrived, %d are alive", g.bar, expect, s.arrived, b.live)
			}
			return w.newFault(g.in, bits.TrailingZeros32(g.mask)&31, Fault{Kind: Deadlock, Detail: detail})
		}
	}
	return &Fault{Kind: Deadlock, Kernel: b.warps[0].wk.l.Kernel.Name}
}

// newFault completes a fault with where it happened.
func (w *warp) newFault(in *inst, lane int, f Fault) *Fault {
	l := w.wk.l
	f.Kernel, f.Line, f.Text, f.Lane, f.Block = l.Kernel.Name, int(in.line), l.Kernel.program.Line(int(in.line)), lane, w.blk.id
	t := uint32(32*w.index + lane)
	f.Thread = [3]uint32{t % l.Block[0], t / l.Block[0] % l.Block[1], t / l.Block[0] / l.Block[1]}
	return &f
}

// fault ends the block.
func (w *warp) fault(in *inst, lane int, f Fault) { panic(faultPanic{w.newFault(in, lane, f)}) }

// exited takes threads out of the barriers that wait for all.
func (b *block) exited(n int) {
	b.live -= n
	for id := range b.bars {
		b.tryRelease(id)
	}
}

// arrive counts threads at a barrier and releases it when it is complete.
func (b *block) arrive(id, threads, expect, truths int) {
	s := &b.bars[id]
	s.arrived += threads
	s.count += truths
	if expect != 0 {
		s.expect = expect
	}
	b.tryRelease(id)
}

func (b *block) tryRelease(id int) {
	s := &b.bars[id]
	expect := s.expect
	if expect == 0 {
		expect = b.live
	}
	if s.arrived == 0 || s.arrived < expect {
		return
	}
	total, count := s.arrived, s.count
	*s = barrierState{}
	b.epoch++
	for _, w := range b.warps {
		for i := range w.groups {
			g := &w.groups[i]
			if g.wait != waitBarrier || int(g.bar) != id {
				continue
			}
			g.wait = ready
			if red := g.in.bar.red; red != 0 {
				w.barrierResult(g, red, total, count)
			}
		}
	}
}

// barrierResult writes what bar.red yields to the lanes of a group.
func (w *warp) barrierResult(g *group, red uint8, total, count int) {
	if red == '+' {
		d := &g.fr.r[g.in.d]
		for n := g.mask; n != 0; n &= n - 1 {
			d[bits.TrailingZeros32(n)&31] = uint64(count)
		}
		return
	}
	v := count > 0
	if red == '&' {
		v = count == total
	}
	p := &g.fr.p[g.in.p]
	if *p &^= g.mask; v {
		*p |= g.mask
	}
}
