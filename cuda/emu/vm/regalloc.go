package vm

import (
	"math/bits"
	"slices"
)

// maxLiveBits bounds the memory of the liveness analysis: blocks times columns.
const maxLiveBits = 1 << 26

// bitset is a set of columns.
type bitset []uint64

func (b bitset) add(i int32)      { b[i/64] |= 1 << (i % 64) }
func (b bitset) has(i int32) bool { return b[i/64]>>(i%64)&1 != 0 }

// reads and writes call f with the place of every column number that an instruction reads or writes.
func (in *inst) reads(f func(c *int32)) {
	if in.ua {
		f(&in.a)
	}
	if in.ub {
		f(&in.b)
	}
	if in.uc {
		f(&in.c)
	}
	if !in.vdef {
		for i := range in.v {
			f(&in.v[i])
		}
	}
}

func (in *inst) writes(f func(c *int32)) {
	if in.def {
		f(&in.d)
	}
	if in.vdef {
		for i := range in.v {
			f(&in.v[i])
		}
	}
}

// allocate lets registers whose values are never alive together share a column, so that the columns of
// a warp stay in the cache. A register is taken to live from the first to the last position of the
// text where it is alive. Columns of constants, special registers and addresses stay their own.
func (c *compiler) allocate(blocks []basicBlock) {
	n := int(c.cols)
	c.f.cols, c.f.regs = n, n
	if len(blocks)*n > maxLiveBits {
		return
	}
	fixed := make(bitset, (n+63)/64)
	for _, k := range c.f.consts {
		fixed.add(k.col)
	}
	for _, k := range c.f.special {
		fixed.add(k.col)
	}
	for _, k := range c.f.locals {
		fixed.add(k)
	}
	first, last := c.intervals(blocks, fixed)

	type interval struct{ first, last, col int32 }
	var ivs []interval
	next := int32(0)
	renamed := make([]int32, n)
	for i := range int32(n) {
		switch {
		case fixed.has(i):
		case last[i] >= 0:
			ivs = append(ivs, interval{first[i], last[i], i})
		}
	}
	slices.SortFunc(ivs, func(a, b interval) int {
		if a.first != b.first {
			return int(a.first - b.first)
		}
		return int(a.col - b.col)
	})
	var active []interval // sorted by last
	var free []int32
	for _, iv := range ivs {
		k := 0
		for k < len(active) && active[k].last < iv.first {
			free = append(free, renamed[active[k].col])
			k++
		}
		active = active[k:]
		if len(free) > 0 {
			renamed[iv.col] = free[len(free)-1]
			free = free[:len(free)-1]
		} else {
			renamed[iv.col] = next
			next++
		}
		at, _ := slices.BinarySearchFunc(active, iv, func(a, b interval) int { return int(a.last - b.last) })
		active = slices.Insert(active, at, iv)
	}
	c.f.regs = int(next)
	for i := range int32(n) {
		if fixed.has(i) {
			renamed[i] = next
			next++
		}
	}
	c.rename(renamed)
	c.f.cols = int(next)
}

// intervals returns the first and last position where each column is alive; last is -1 for columns
// that no instruction names.
func (c *compiler) intervals(blocks []basicBlock, fixed bitset) (first, last []int32) {
	n := int(c.cols)
	words := (n + 63) / 64
	in, def := make([]bitset, len(blocks)), make([]bitset, len(blocks))
	first, last = make([]int32, n), make([]int32, n)
	for i := range last {
		last[i] = -1
	}
	touch := func(col, pos int32) {
		if last[col] < 0 {
			first[col], last[col] = pos, pos
		}
		first[col], last[col] = min(first[col], pos), max(last[col], pos)
	}
	for b := range blocks {
		in[b], def[b] = make(bitset, words), make(bitset, words)
		for i := blocks[b].first; i < blocks[b].last; i++ {
			inst := &c.insts[i]
			inst.reads(func(col *int32) {
				touch(*col, int32(i))
				if !def[b].has(*col) && !fixed.has(*col) {
					in[b].add(*col)
				}
			})
			inst.writes(func(col *int32) {
				touch(*col, int32(i))
				if inst.guard == 0 { // a guarded write keeps the old value of other lanes
					def[b].add(*col)
				} else if !def[b].has(*col) {
					in[b].add(*col)
				}
			})
		}
	}
	for changed := true; changed; {
		changed = false
		for b := len(blocks) - 1; b >= 0; b-- {
			for _, s := range blocks[b].succ {
				for w := range words {
					if add := in[s][w] &^ def[b][w] &^ in[b][w]; add != 0 {
						in[b][w] |= add
						changed = true
					}
				}
			}
		}
	}
	for b := range blocks {
		for w := range words {
			for m := in[b][w]; m != 0; m &= m - 1 {
				touch(int32(64*w+bits.TrailingZeros64(m)), int32(blocks[b].first))
			}
			for _, s := range blocks[b].succ {
				for m := in[s][w]; m != 0; m &= m - 1 {
					touch(int32(64*w+bits.TrailingZeros64(m)), int32(blocks[b].last-1))
				}
			}
		}
	}
	return first, last
}

// rename replaces column numbers everywhere.
func (c *compiler) rename(to []int32) {
	f := func(col *int32) { *col = to[*col] }
	for i := range c.insts {
		c.insts[i].reads(f)
		c.insts[i].writes(f)
	}
	for i := range c.f.consts {
		f(&c.f.consts[i].col)
	}
	for i := range c.f.special {
		f(&c.f.special[i].col)
	}
	for i := range c.f.locals {
		f(&c.f.locals[i])
	}
}
