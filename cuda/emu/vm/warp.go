package vm

import "math/bits"

// maxDepth bounds nested calls; deeper recursion is a stack overflow.
const maxDepth = 96

// Lanes that are ahead wait for the others, which serves convergence but would be for ever if these
// spin on something that only the waiting lanes can do. So patience ends after a number of backward
// jumps, large at first, since long loops are more frequent than spinning, and halved each time it was needed.
const (
	firstPatience = 1 << 14
	minPatience   = 32
	warpTurn      = 1 << 14 // backward jumps until other warps of the block get a turn
)

// frame is one activation level of a function: lanes that call the same function at the same depth
// share it, each lane using its own elements.
type frame struct {
	fn     *function
	depth  int
	r      []col
	p      []uint32
	retFr  [32]*frame
	retPC  [32]int32
	local  [32]uint32 // base of the lane's local memory
	params []byte     // paramArea bytes per lane
}

type waitState uint8

const (
	ready waitState = iota
	waitBarrier
	waitSync    // at a warp-wide operation
	waitWarpBar // at bar.warp.sync, position is after it
)

// group is a set of lanes at one position.
type group struct {
	fr      *frame
	mask    uint32
	pc      int32
	wait    waitState
	yielded bool
	bar     uint32 // waitBarrier: which
	need    uint32 // waitWarpBar: member mask
	in      *inst  // waitBarrier: the instruction, for its result; else where it waits
}

// warp is 32 threads of a block.
type warp struct {
	r              []col    // columns of the current frame
	p              []uint32 // predicates of the current frame
	fr             *frame
	mask           uint32 // lanes of the current group
	cc             uint32 // carry flags
	blk            *block
	wk             *worker
	live           uint32
	index          int
	groups         []group // all but the current one
	frames         [][]*frame
	turn, patience int
	warps          uint64 // instructions
	lanes          uint64
	epoch          uint32 // counts warp-wide synchronisations, for the race check

	local   []byte // local memory, a lane's bytes together
	localOK []byte // 1 for bytes that were written
	stride  uint32 // bytes of local memory of a lane
}

// start puts all live lanes at the beginning of the kernel.
func (w *warp) start(live uint32) {
	w.live = live
	w.groups = w.groups[:0]
	w.patience = w.wk.patience
	w.epoch++
	fr := w.frame(0, w.wk.l.Kernel.code)
	for i := range fr.local {
		fr.local[i] = 0
	}
	clear(w.localOK)
	w.groups = append(w.groups, group{fr: fr, mask: live})
}

// frame returns the activation of fn at a depth, made on first use.
func (w *warp) frame(depth int, fn *function) *frame {
	for len(w.frames) <= depth {
		w.frames = append(w.frames, nil)
	}
	for _, f := range w.frames[depth] {
		if f.fn == fn {
			return f
		}
	}
	f := &frame{fn: fn, depth: depth, r: make([]col, fn.cols), p: make([]uint32, fn.preds),
		params: make([]byte, 32*int(fn.paramArea))}
	f.p[0] = fullMask
	for _, c := range fn.consts {
		v := c.value
		if c.symbol != "" {
			v += w.wk.l.Globals[c.symbol]
		}
		for i := range f.r[c.col] {
			f.r[c.col][i] = v
		}
	}
	for _, s := range fn.special {
		w.fillSpecial(s.id, &f.r[s.col])
	}
	for k, c := range fn.locals { // calls overwrite them lane by lane
		for i := range f.r[c] {
			f.r[c][i] = uint64(fn.localOf[k])
		}
	}
	w.frames[depth] = append(w.frames[depth], f)
	return f
}

// before orders groups: deeper calls first, so that callers wait for them, then by position.
func (g *group) before(h *group) bool {
	if g.fr.depth != h.fr.depth {
		return g.fr.depth > h.fr.depth
	}
	if g.fr.fn != h.fr.fn {
		return g.fr.fn.index < h.fr.fn.index
	}
	return g.pc < h.pc
}

// pick makes the group that should run next the current one, merged with all groups at the same
// position. It returns false if none is ready.
func (w *warp) pick() (pc int32, ok bool) {
	gs := w.groups
	best := -1
	for i := range gs {
		if g := &gs[i]; g.wait == ready && !g.yielded && (best < 0 || g.before(&gs[best])) {
			best = i
		}
	}
	if best < 0 {
		return 0, false
	}
	// Lanes at a loop header wait for lanes that are still in the loop.
	for {
		h := &gs[best]
		end := h.fr.fn.loopEnd[h.pc]
		if end == 0 {
			break
		}
		inner := -1
		for i := range gs {
			if g := &gs[i]; g.fr == h.fr && g.pc > h.pc && g.pc < end && g.wait == ready && !g.yielded &&
				(inner < 0 || g.pc < gs[inner].pc) {
				inner = i
			}
		}
		if inner < 0 {
			break
		}
		best = inner
	}
	g := gs[best]
	mask := uint32(0)
	k := 0
	for i := range gs {
		if h := &gs[i]; h.fr == g.fr && h.pc == g.pc && h.wait == ready {
			mask |= h.mask
		} else {
			gs[k] = gs[i]
			k++
		}
	}
	w.groups = gs[:k]
	w.fr, w.r, w.p, w.mask = g.fr, g.fr.r, g.fr.p, mask
	return g.pc, true
}

// run executes until no group is ready, or until it is the turn of other warps. It reports whether
// anything was executed.
func (w *warp) run() bool {
	ran := false
	w.turn = warpTurn
	for {
		pc, ok := w.pick()
		if !ok {
			again := false
			for i := range w.groups { // all had their turn
				if w.groups[i].yielded {
					w.groups[i].yielded = false
					again = true
				}
			}
			if again {
				return true
			}
			return ran
		}
		ran = true
		w.interpret(pc)
		if w.turn <= 0 {
			return true
		}
	}
}

// suspend puts the current group back at a position.
func (w *warp) suspend(pc int32, yielded bool) {
	w.groups = append(w.groups, group{fr: w.fr, mask: w.mask, pc: pc, yielded: yielded})
}

// interpret runs the current group until another one should run instead.
func (w *warp) interpret(pc int32) {
	code := w.fr.fn.code
	mask := w.mask
	for {
		in := &code[pc]
		m := mask
		if in.guard != 0 {
			m &= w.p[in.guard] ^ in.flip
		}
		if !in.free {
			w.warps++
			w.lanes += uint64(bits.OnesCount32(m))
		}
		var next int32
		switch in.kind {
		case kindPlain:
			if m != 0 {
				in.exec(w, in, m)
			}
			pc++
			continue
		case kindJump:
			next = in.target
		case kindBranch:
			switch m {
			case mask:
				next = in.target
			case 0:
				next = in.other
			default:
				next = in.target
				w.groups = append(w.groups, group{fr: w.fr, mask: mask &^ m, pc: in.other})
				mask = m
				w.mask = m
			}
		default:
			if next = w.control(pc, in, m); next < 0 {
				return
			}
			mask = w.mask
		}
		if next <= pc && w.backward() {
			w.suspend(next, true)
			return
		}
		if len(w.groups) > 0 && !w.leads(next) {
			w.suspend(next, false)
			return
		}
		pc = next
	}
}

// leads reports whether pick would choose the current group again, alone, at a position. It only
// spares the way through pick.
func (w *warp) leads(pc int32) bool {
	if w.fr.fn.loopEnd[pc] != 0 {
		return false
	}
	for i := range w.groups {
		if g := &w.groups[i]; g.wait == ready && (g.fr != w.fr || g.pc == pc || g.pc < pc && !g.yielded) {
			return false
		}
	}
	return true
}

// backward counts a backward jump and reports whether the current group has had its turn: because
// others of the warp were kept waiting too long, or to let other warps run.
func (w *warp) backward() bool {
	w.turn--
	if len(w.groups) == 0 {
		w.patience = w.wk.patience
	} else if w.patience--; w.patience <= 0 {
		w.wk.patience = max(minPatience, w.wk.patience/2)
		w.patience = w.wk.patience
		return true
	}
	return w.turn <= 0
}

// control executes an instruction that is neither plain nor a branch. It returns the next position
// of the current group, or -1 if there is none or another group should run.
func (w *warp) control(pc int32, in *inst, m uint32) int32 {
	if m == 0 {
		return pc + 1
	}
	switch in.kind {
	case kindSwitch:
		return w.branchIndexed(in, m)
	case kindCall:
		w.call(pc, in, m)
		return -1
	case kindReturn:
		w.ret(pc, m)
		return -1
	case kindExit:
		w.detach(pc, m)
		w.exit(m)
		return -1
	case kindBarrier:
		return w.barrier(pc, in, m)
	case kindWarpBar:
		return w.warpBarrier(pc, in, m)
	default:
		return w.sync(pc, in, m)
	}
}

// detach splits the current group: lanes outside of m go on at the next position.
func (w *warp) detach(pc int32, m uint32) {
	if rest := w.mask &^ m; rest != 0 {
		w.groups = append(w.groups, group{fr: w.fr, mask: rest, pc: pc + 1})
		w.mask = m
	}
}

func (w *warp) branchIndexed(in *inst, m uint32) int32 {
	idx := &w.r[in.a]
	for m != 0 {
		lane := bits.TrailingZeros32(m) & 31
		k := uint64(uint32(idx[lane]))
		if k >= uint64(len(in.targets)) {
			w.fault(in, lane, Fault{Kind: Trap, Detail: "index of brx.idx is past the end of its table"})
		}
		same := uint32(0)
		for n := m; n != 0; n &= n - 1 {
			if j := bits.TrailingZeros32(n) & 31; uint64(uint32(idx[j])) == k {
				same |= 1 << j
			}
		}
		w.groups = append(w.groups, group{fr: w.fr, mask: same, pc: in.targets[k]})
		m &^= same
	}
	return -1
}

// exit ends lanes; barriers and warp-wide operations no longer wait for them.
func (w *warp) exit(m uint32) {
	w.live &^= m
	for i := range w.groups {
		if g := &w.groups[i]; g.wait == waitSync {
			g.wait = ready
		}
	}
	w.releaseWarpBars()
	w.blk.exited(bits.OnesCount32(m))
}

// call enters a function.
func (w *warp) call(pc int32, in *inst, m uint32) {
	w.detach(pc, m)
	if w.fr.depth+1 >= maxDepth {
		w.fault(in, bits.TrailingZeros32(m), Fault{Kind: StackOverflow, Detail: "calls are nested too deeply"})
	}
	if in.call.callee != nil {
		w.enter(pc, in, m, in.call.callee)
		return
	}
	funcs := w.wk.l.Kernel.program.funcs
	for m != 0 {
		lane := bits.TrailingZeros32(m) & 31
		addr := w.r[in.a][lane]
		i := (addr-functionWindow)/16 - 1
		if addr%16 != 0 || i >= uint64(len(funcs)) {
			w.fault(in, lane, Fault{Kind: BadCall, Address: addr, Access: "call of a function"})
		}
		if err := in.call.check(funcs[i]); err != "" {
			w.fault(in, lane, Fault{Kind: BadCall, Address: addr, Access: "call of a function", Detail: err})
		}
		same := uint32(0)
		for n := m; n != 0; n &= n - 1 {
			if j := bits.TrailingZeros32(n) & 31; w.r[in.a][j] == addr {
				same |= 1 << j
			}
		}
		w.enter(pc, in, same, funcs[i])
		m &^= same
	}
}

func (w *warp) enter(pc int32, in *inst, m uint32, fn *function) {
	from := w.fr
	fr := w.frame(from.depth+1, fn)
	for n := m; n != 0; n &= n - 1 {
		i := uint32(bits.TrailingZeros32(n) & 31)
		fr.retFr[i], fr.retPC[i] = from, pc
		base := from.local[i] + uint32(alignUp(uint64(from.fn.localBytes), 16))
		if base+fn.localBytes > w.stride {
			w.fault(in, int(i), Fault{Kind: StackOverflow, Detail: "local memory of the thread is exhausted"})
		}
		fr.local[i] = base
		for _, c := range in.call.args {
			src := from.params[i*from.fn.paramArea+c.caller:]
			copy(fr.params[i*fn.paramArea+c.callee:][:c.size], src)
		}
		for k, col := range fn.locals {
			fr.r[col][i] = uint64(base + fn.localOf[k])
		}
		clear(w.localOK[i*w.stride+base:][:fn.localBytes])
	}
	w.groups = append(w.groups, group{fr: fr, mask: m})
}

// ret returns lanes to where each was called from; a return from the kernel is an exit.
func (w *warp) ret(pc int32, m uint32) {
	w.detach(pc, m)
	if w.fr.depth == 0 {
		w.exit(m)
		return
	}
	fr := w.fr
	for m != 0 {
		lane := bits.TrailingZeros32(m) & 31
		to, at := fr.retFr[lane], fr.retPC[lane]
		site := to.fn.code[at].call
		same := uint32(0)
		for n := m; n != 0; n &= n - 1 {
			i := uint32(bits.TrailingZeros32(n) & 31)
			if fr.retFr[i] != to || fr.retPC[i] != at {
				continue
			}
			same |= 1 << i
			for _, c := range site.rets {
				src := fr.params[i*fr.fn.paramArea+c.callee:]
				copy(to.params[i*to.fn.paramArea+c.caller:][:c.size], src)
			}
		}
		w.groups = append(w.groups, group{fr: to, mask: same, pc: at + 1})
		m &^= same
	}
}
