package vm

import "math/bits"

// barrier brings the lanes of m to a block-wide barrier.
func (w *warp) barrier(pc int32, in *inst, m uint32) int32 {
	w.detach(pc, m)
	lane := bits.TrailingZeros32(m) & 31
	id := w.r[in.a][lane]
	expect := 0
	if in.bar.count {
		expect = int(uint32(w.r[in.b][lane]))
	}
	for n := m; n != 0; n &= n - 1 {
		i := bits.TrailingZeros32(n) & 31
		if w.r[in.a][i] != id || in.bar.count && int(uint32(w.r[in.b][i])) != expect {
			w.fault(in, i, Fault{Kind: Trap, Detail: "lanes of one warp name different barriers or thread counts"})
		}
	}
	if id > 15 || in.bar.count && (expect == 0 || expect%32 != 0) {
		w.fault(in, lane, Fault{Kind: Trap, Detail: "barrier number above 15, or a thread count that is no multiple of 32"})
	}
	truths := 0
	if in.bar.red != 0 {
		p := w.p[in.q]
		if in.bar.negP {
			p = ^p
		}
		truths = bits.OnesCount32(p & m)
	}
	if !in.bar.arrive {
		w.groups = append(w.groups, group{fr: w.fr, mask: m, pc: pc + 1, wait: waitBarrier, bar: uint32(id), in: in})
	}
	w.blk.arrive(int(id), bits.OnesCount32(m), expect, truths)
	if in.bar.arrive {
		return pc + 1
	}
	return -1
}

// needed returns the live lanes that the member masks of the lanes in m name.
func (w *warp) needed(in *inst, m uint32) uint32 {
	var need uint32
	for n := m; n != 0; n &= n - 1 {
		i := bits.TrailingZeros32(n) & 31
		mm := uint32(w.r[in.c][i])
		if mm>>i&1 == 0 {
			w.fault(in, i, Fault{Kind: Trap, Detail: "the member mask lacks the executing lane"})
		}
		need |= mm
	}
	return need & w.live
}

// sync executes a warp-wide operation when all lanes it needs are at it, else the group waits.
func (w *warp) sync(pc int32, in *inst, m uint32) int32 {
	if need := w.needed(in, m); need&^m != 0 {
		w.detach(pc, m)
		for k := 0; k < len(w.groups); {
			g := &w.groups[k]
			if g.wait == waitSync && g.fr == w.fr && g.pc == pc {
				m |= g.mask
				w.groups = append(w.groups[:k], w.groups[k+1:]...)
				continue
			}
			k++
		}
		w.mask = m
		if w.needed(in, m)&^m != 0 {
			w.groups = append(w.groups, group{fr: w.fr, mask: m, pc: pc, wait: waitSync, in: in})
			return -1
		}
	}
	w.epoch++
	in.exec(w, in, m)
	return pc + 1
}

// warpBarrier is bar.warp.sync, where lanes may arrive at different instructions.
func (w *warp) warpBarrier(pc int32, in *inst, m uint32) int32 {
	need := w.needed(in, m)
	if need&^m == 0 {
		w.epoch++
		return pc + 1
	}
	w.detach(pc, m)
	w.groups = append(w.groups, group{fr: w.fr, mask: m, pc: pc + 1, wait: waitWarpBar, need: need, in: in})
	w.releaseWarpBars()
	return -1
}

// releaseWarpBars lets groups go whose members have all arrived at some bar.warp.sync.
func (w *warp) releaseWarpBars() {
	var here uint32
	for i := range w.groups {
		if w.groups[i].wait == waitWarpBar {
			here |= w.groups[i].mask
		}
	}
	if here == 0 {
		return
	}
	for i := range w.groups {
		if g := &w.groups[i]; g.wait == waitWarpBar && g.need&w.live&^here == 0 {
			g.wait = ready
			w.epoch++
		}
	}
}

// shuffle modes
const (
	shflUp = iota
	shflDown
	shflBfly
	shflIdx
)

// shuffle returns the operation of shfl.sync: a the value, b the lane operand, v[0] the clamp and
// segment operand, c the member mask, p the predicate (0: none).
func shuffle(mode int) execFn {
	return func(w *warp, in *inst, m uint32) {
		d, b, cl := &w.r[in.d], &w.r[in.b], &w.r[in.v[0]]
		src := w.r[in.a] // a copy: d may be the same column
		var pred uint32
		for n := m; n != 0; n &= n - 1 {
			lane := bits.TrailingZeros32(n) & 31
			bval, cval, seg := int(b[lane]&31), int(cl[lane]&31), int(cl[lane]>>8&31)
			maxLane := lane&seg | cval&^seg
			minLane := lane & seg
			j, in := 0, false
			switch mode {
			case shflUp:
				j = lane - bval
				in = j >= maxLane
			case shflDown:
				j = lane + bval
				in = j <= maxLane
			case shflBfly:
				j = lane ^ bval
				in = j <= maxLane
			case shflIdx:
				j = minLane | bval&^seg
				in = j <= maxLane
			}
			if !in {
				j = lane
			} else {
				pred |= 1 << lane
			}
			d[lane] = uint64(uint32(src[j&31]))
		}
		if in.p != 0 {
			w.p[in.p] = w.p[in.p]&^m | pred
		}
	}
}

// memberGroups calls f for each set of lanes that share a member mask.
func memberGroups(w *warp, in *inst, m uint32, f func(lanes uint32)) {
	for m != 0 {
		mask := uint32(w.r[in.c][bits.TrailingZeros32(m)&31])
		f(mask & m)
		m &^= mask
	}
}

// vote returns the operation of vote.sync: q the predicate read, d or p the result.
func vote(mode string, neg bool) execFn {
	return func(w *warp, in *inst, m uint32) {
		src := w.p[in.q]
		if neg {
			src = ^src
		}
		memberGroups(w, in, m, func(lanes uint32) {
			yes := src & lanes
			if mode == "ballot" {
				for n := lanes; n != 0; n &= n - 1 {
					w.r[in.d][bits.TrailingZeros32(n)&31] = uint64(yes)
				}
				return
			}
			v := map[string]bool{"all": yes == lanes, "any": yes != 0, "uni": yes == 0 || yes == lanes}[mode]
			if w.p[in.p] &^= lanes; v {
				w.p[in.p] |= lanes
			}
		})
	}
}

// match returns the operation of match.any.sync or match.all.sync: a the value, d the mask, p the
// predicate of match.all.
func match(all bool) execFn {
	return func(w *warp, in *inst, m uint32) {
		val := w.r[in.a]
		memberGroups(w, in, m, func(lanes uint32) {
			for n := lanes; n != 0; n &= n - 1 {
				i := bits.TrailingZeros32(n) & 31
				var same uint32
				for k := lanes; k != 0; k &= k - 1 {
					if j := bits.TrailingZeros32(k) & 31; val[j] == val[i] {
						same |= 1 << j
					}
				}
				if all && same != lanes {
					same = 0
				}
				w.r[in.d][i] = uint64(same)
				if in.p != 0 {
					if w.p[in.p] &^= 1 << i; same != 0 {
						w.p[in.p] |= 1 << i
					}
				}
			}
		})
	}
}

// activeMask yields the lanes that execute together.
func activeMask(w *warp, in *inst, m uint32) {
	for n := m; n != 0; n &= n - 1 {
		w.r[in.d][bits.TrailingZeros32(n)&31] = uint64(m)
	}
}
