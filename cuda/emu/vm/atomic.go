package vm

import (
	"encoding/binary"
	"math"
	"math/bits"
	"sync/atomic"
	"unsafe"
)

// update computes the new value of an atomic from the old one and its operands.
type update func(old, b, c uint64) uint64

// atomicUpdate returns the update of an operation on a type, or nil if PTX has none.
func atomicUpdate(op string, t typ) update {
	narrow := func(f update) update {
		if t.bits() == 32 {
			return func(old, b, c uint64) uint64 { return uint64(uint32(f(old, b, c))) }
		}
		return f
	}
	sext := func(v uint64) int64 {
		if t.bits() == 32 {
			return int64(int32(v))
		}
		return int64(v)
	}
	wide := t.bits() >= 32
	switch {
	case !wide:
		return nil
	case op == "exch" && t.untyped():
		return func(_, b, _ uint64) uint64 { return b }
	case op == "cas" && t.untyped():
		return func(old, b, c uint64) uint64 {
			if old == b {
				return c
			}
			return old
		}
	case op == "and" && t.untyped():
		return func(old, b, _ uint64) uint64 { return old & b }
	case op == "or" && t.untyped():
		return func(old, b, _ uint64) uint64 { return old | b }
	case op == "xor" && t.untyped():
		return func(old, b, _ uint64) uint64 { return old ^ b }
	case op == "add" && t.integer():
		return narrow(func(old, b, _ uint64) uint64 { return old + b })
	case op == "add" && t == f32:
		return func(old, b, _ uint64) uint64 { return bitsF32(f32of(old) + f32of(b)) }
	case op == "add" && t == f64:
		return func(old, b, _ uint64) uint64 { return addF64(old, b) }
	case op == "min" && t.signed():
		return func(old, b, _ uint64) uint64 { return choose(sext(b) < sext(old), b, old) }
	case op == "max" && t.signed():
		return func(old, b, _ uint64) uint64 { return choose(sext(b) > sext(old), b, old) }
	case op == "min" && t.unsigned():
		return func(old, b, _ uint64) uint64 { return min(old, b) }
	case op == "max" && t.unsigned():
		return func(old, b, _ uint64) uint64 { return max(old, b) }
	case op == "inc" && t == u32:
		return func(old, b, _ uint64) uint64 { return choose(old >= b, 0, old+1) }
	case op == "dec" && t == u32:
		return func(old, b, _ uint64) uint64 { return choose(old == 0 || old > b, b, old-1) }
	}
	return nil
}

func choose(c bool, a, b uint64) uint64 {
	if c {
		return a
	}
	return b
}

// flushAdd is add.f32 on global memory, which flushes subnormals as PTX says; on shared memory it keeps them.
func flushAdd(old, b, _ uint64) uint64 {
	return flushF32(bitsF32(f32of(flushF32(old)) + f32of(flushF32(b))))
}

// atomicOp returns the operation of atom or red: a the address, x the offset, b and c the operands,
// d the old value. Lanes act in ascending order.
func atomicOp(space Space, t typ, f, global update) execFn {
	size := uint64(t.bytes())
	return func(w *warp, in *inst, m uint32) {
		addrs, b := &w.r[in.a], &w.r[in.b]
		c := b
		if in.uc {
			c = &w.r[in.c]
		}
		for ; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m) & 31
			addr := addrs[lane] + in.x
			mem := w.bytes(in, lane, space, addr, size, accRead|accWrite|accAtomic)
			operand := b[lane]
			if p := w.wk.slots[in.site].peer; p != nil && outside(space, addr) {
				operand = w.wk.sent(p, operand, size)
			}
			var old uint64
			private := space == SpaceShared || space == SpaceGeneric && addr >= WindowBase
			g := global
			if private {
				g = f
			}
			if size == 4 {
				old = update32((*uint32)(unsafe.Pointer(&mem[0])), g, operand, c[lane])
			} else {
				old = update64((*uint64)(unsafe.Pointer(&mem[0])), g, operand, c[lane])
			}
			if in.def {
				w.r[in.d][lane] = old
			}
		}
	}
}

// sent is an operand as it arrives at a peer.
func (wk *worker) sent(p *Memory, v, size uint64) uint64 {
	data := binary.LittleEndian.AppendUint64(nil, v)
	wk.l.OnPeer(p, data[:size], true)
	return binary.LittleEndian.Uint64(data)
}

func update32(p *uint32, f update, b, c uint64) uint64 {
	for {
		old := atomic.LoadUint32(p)
		if v := uint32(f(uint64(old), b, c)); atomic.CompareAndSwapUint32(p, old, v) {
			return uint64(old)
		}
	}
}

func update64(p *uint64, f update, b, c uint64) uint64 {
	for {
		old := atomic.LoadUint64(p)
		if v := f(old, b, c); atomic.CompareAndSwapUint64(p, old, v) {
			return old
		}
	}
}

// Integer helpers of rare instructions.

func clz(x uint64, width int) uint64 { return uint64(bits.LeadingZeros64(x) - (64 - width)) }

func lop3(a, b, c, lut uint64) uint64 {
	var r uint64
	for k := range uint64(8) {
		if lut>>k&1 == 0 {
			continue
		}
		x, y, z := a, b, c
		if k&4 == 0 {
			x = ^x
		}
		if k&2 == 0 {
			y = ^y
		}
		if k&1 == 0 {
			z = ^z
		}
		r |= x & y & z
	}
	return uint64(uint32(r))
}

// copysignF32 returns b with the sign of a.
func copysignF32(a, b uint64) uint64 { return a&(1<<31) | b&^(1<<31)&math.MaxUint32 }
func copysignF64(a, b uint64) uint64 { return a&(1<<63) | b&^(1<<63) }
