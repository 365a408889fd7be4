package vm

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"sync/atomic"
	"unsafe"
)

// site remembers the allocation that a memory instruction met last, per worker.
type site struct {
	base, size uint64
	data       []byte
	a          *Alloc
	peer       *Memory // set, and size zero, if each access goes to Launch.OnPeer
}

type access uint8

const (
	accRead   access = 1 << iota
	accWrite         // both for an atomic
	accAtomic        // atomic, volatile, relaxed or stronger: orders instead of races
)

func (a access) String() string {
	switch {
	case a&(accRead|accWrite) == accRead|accWrite:
		return "atomic"
	case a&accWrite != 0:
		return "write"
	}
	return "read"
}

func alignedBytes(n int) []byte {
	if n == 0 {
		return nil
	}
	words := make([]uint64, (n+7)/8)
	return unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), n)
}

// memFault ends the block with a fault of an access.
func (w *warp) memFault(in *inst, lane int, f Fault, addr, size uint64, acc access) {
	f.Address, f.Size = addr, size
	f.Access = fmt.Sprintf("%s of %d bytes", acc, size)
	w.fault(in, lane, f)
}

// global returns the bytes of a global access after checking everything. Stores mark their bytes.
func (w *warp) global(in *inst, lane int, addr, size uint64, acc access) []byte {
	s := &w.wk.slots[in.site]
	off := addr - s.base
	if off >= s.size || size > s.size-off || addr&(size-1) != 0 || s.a.readOnly {
		w.lookup(in, lane, addr, size, acc, s)
		off = addr - s.base
	}
	if !s.a.full.Load() {
		if acc&accRead != 0 {
			if !s.a.isWritten(off, size) {
				bad := s.a.firstUnwritten(off, size)
				w.memFault(in, lane, Fault{Kind: Uninitialized, Nearest: w.nearest(addr),
					Detail: fmt.Sprintf("byte %#x was never written", s.base+bad)}, addr, size, acc)
			}
		} else {
			s.a.mark(off, size)
		}
	}
	b := s.data[off : off+size]
	if s.peer != nil && acc&accWrite == 0 {
		b = append([]byte(nil), b...)
		w.wk.l.OnPeer(s.peer, b, false)
	}
	return b
}

// lookup finds the allocation of an access, or faults.
func (w *warp) lookup(in *inst, lane int, addr, size uint64, acc access, s *site) {
	l := w.wk.l
	if addr&(size-1) != 0 {
		w.memFault(in, lane, Fault{Kind: Misaligned, Detail: fmt.Sprintf("the address is not a multiple of %d", size),
			Nearest: w.nearest(addr)}, addr, size, acc)
	}
	for i, m := range l.Spaces {
		a := m.Find(addr)
		if a == nil {
			continue
		}
		if size > a.Size()-(addr-a.addr) {
			break
		}
		if a.readOnly && acc&accWrite != 0 {
			w.memFault(in, lane, Fault{Kind: ReadOnly, Nearest: m.nearest(addr)}, addr, size, acc)
		}
		*s = site{base: a.addr, size: a.Size(), data: a.data, a: a}
		if i > 0 && l.OnPeer != nil {
			s.size, s.peer = 0, m
		}
		return
	}
	for _, m := range l.AllSpaces {
		if a := m.Find(addr); a != nil && !w.accessible(m) {
			w.memFault(in, lane, Fault{Kind: NoPeerAccess, Nearest: m.nearest(addr),
				Detail: "peer access is not enabled: the address belongs to " + m.name}, addr, size, acc)
		}
	}
	for _, list := range [][]*Memory{l.Spaces, l.AllSpaces} {
		for _, m := range list {
			if f, ok := m.freedSpan(addr); ok && m.Find(addr) == nil {
				w.memFault(in, lane, Fault{Kind: UseAfterFree, Nearest: fmt.Sprintf(
					"%d bytes into the freed allocation [%#x, %#x) of %d bytes on %s", addr-f.addr, f.addr, f.addr+f.size, f.size, m.name)},
					addr, size, acc)
			}
		}
	}
	w.memFault(in, lane, Fault{Kind: OutOfBounds, Nearest: w.nearest(addr)}, addr, size, acc)
}

func (w *warp) accessible(m *Memory) bool {
	for _, s := range w.wk.l.Spaces {
		if s == m {
			return true
		}
	}
	return false
}

// nearest describes the allocation next to an address in the memory whose range holds it, the
// launching device's if none does.
func (w *warp) nearest(addr uint64) string {
	l := w.wk.l
	for _, list := range [][]*Memory{l.Spaces, l.AllSpaces} {
		for _, m := range list {
			if m.Find(addr) != nil {
				return m.nearest(addr)
			}
		}
	}
	for _, list := range [][]*Memory{l.Spaces, l.AllSpaces} {
		for _, m := range list {
			if m.contains(addr) && len(*m.allocs.Load()) > 0 {
				return m.nearest(addr)
			}
		}
	}
	if len(l.Spaces) == 0 {
		return ""
	}
	return l.Spaces[0].nearest(addr)
}

// sharedBytes returns the bytes of a shared access.
func (w *warp) sharedBytes(in *inst, lane int, addr, size uint64, acc access) []byte {
	b := w.blk
	n := uint64(len(b.shared))
	if addr&(size-1) != 0 {
		w.memFault(in, lane, Fault{Kind: Misaligned, Detail: "shared address"}, addr, size, acc)
	}
	if addr >= n || size > n-addr {
		w.memFault(in, lane, Fault{Kind: SharedOutOfBounds, Detail: fmt.Sprintf("the block has %d bytes of shared memory", n)},
			addr, size, acc)
	}
	w.checkWritten(in, lane, b.sharedOK[addr:addr+size], addr, acc, "shared memory")
	if b.shadow != nil {
		w.raceCheck(in, lane, addr, size, acc)
	}
	return b.shared[addr : addr+size]
}

// checkWritten handles the written state of private memories, which is a byte per byte.
func (w *warp) checkWritten(in *inst, lane int, ok []byte, addr uint64, acc access, what string) {
	if acc&accRead == 0 {
		for i := range ok {
			ok[i] = 1
		}
		return
	}
	for i, v := range ok {
		if v == 0 {
			w.memFault(in, lane, Fault{Kind: Uninitialized,
				Detail: fmt.Sprintf("byte %#x of %s was never written", addr+uint64(i), what)}, addr, uint64(len(ok)), acc)
		}
	}
}

// localBytes returns the bytes of an access to the lane's local memory.
func (w *warp) localBytes(in *inst, lane int, addr, size uint64, acc access) []byte {
	if addr&(size-1) != 0 {
		w.memFault(in, lane, Fault{Kind: Misaligned, Detail: "local address"}, addr, size, acc)
	}
	end := uint64(w.fr.local[lane&31]) + uint64(w.fr.fn.localBytes)
	if addr >= end || size > end-addr {
		w.memFault(in, lane, Fault{Kind: LocalOutOfBounds, Detail: fmt.Sprintf("the thread has %d bytes of local memory", end)},
			addr, size, acc)
	}
	at := uint64(lane)*uint64(w.stride) + addr
	w.checkWritten(in, lane, w.localOK[at:at+size], addr, acc, "local memory")
	return w.local[at : at+size]
}

// paramBytes returns bytes of the launch's parameters.
func (w *warp) paramBytes(in *inst, lane int, addr, size uint64, acc access) []byte {
	p := w.wk.l.Params
	switch n := uint64(len(p)); {
	case acc&accWrite != 0:
		w.memFault(in, lane, Fault{Kind: ReadOnly, Detail: "parameters of a kernel"}, addr, size, acc)
	case addr&(size-1) != 0:
		w.memFault(in, lane, Fault{Kind: Misaligned, Detail: "parameter address"}, addr, size, acc)
	case addr >= n || size > n-addr:
		w.memFault(in, lane, Fault{Kind: ParamOutOfBounds, Detail: fmt.Sprintf("the kernel takes %d bytes", n)}, addr, size, acc)
	}
	return p[addr : addr+size]
}

// frameBytes returns bytes of the parameter area of the current frame.
func (w *warp) frameBytes(lane int, off, size uint64) []byte {
	at := uint64(lane)*uint64(w.fr.fn.paramArea) + off
	return w.fr.params[at : at+size]
}

// bytes returns the bytes of an access in any space.
func (w *warp) bytes(in *inst, lane int, space Space, addr, size uint64, acc access) []byte {
	switch space {
	case SpaceShared:
		return w.sharedBytes(in, lane, addr, size, acc)
	case SpaceLocal:
		return w.localBytes(in, lane, addr, size, acc)
	case SpaceParam:
		return w.paramBytes(in, lane, addr, size, acc)
	case SpaceGeneric:
		if k := (addr - WindowBase) / WindowSize; addr >= WindowBase && k < 3 {
			return w.bytes(in, lane, [...]Space{SpaceShared, SpaceLocal, SpaceParam}[k], addr%WindowSize, size, acc)
		}
	}
	return w.global(in, lane, addr, size, acc)
}

// word reads an element of 1, 2, 4 or 8 bytes.
func word(b []byte) uint64 {
	switch len(b) {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(binary.LittleEndian.Uint16(b))
	case 4:
		return uint64(binary.LittleEndian.Uint32(b))
	}
	return binary.LittleEndian.Uint64(b)
}

func putWord(b []byte, v uint64) {
	switch len(b) {
	case 1:
		b[0] = byte(v)
	case 2:
		binary.LittleEndian.PutUint16(b, uint16(v))
	case 4:
		binary.LittleEndian.PutUint32(b, uint32(v))
	default:
		binary.LittleEndian.PutUint64(b, v)
	}
}

func signExtend(v uint64, n uint64) uint64 {
	sh := 64 - 8*n
	return uint64(int64(v<<sh) >> sh)
}

// loadOp describes a load or store.
type loadOp struct {
	space  Space
	n, vec uint64 // bytes of an element, elements
	signed bool   // extend the sign to destMask
	keep   uint64 // mask of the destination's width
	atomic bool
}

// load returns the operation of ld: a the address, x the offset, v the destinations.
func load(o loadOp) execFn {
	size := o.n * o.vec
	acc := accRead
	if o.atomic {
		acc |= accAtomic
	}
	if (o.space == SpaceGlobal || o.space == SpaceGeneric) && !o.atomic && !o.signed {
		switch {
		case o.n == 4 && o.vec == 1:
			return func(w *warp, in *inst, m uint32) { load32(w, in, m, o.space) }
		case o.n == 4 && o.vec == 4:
			return func(w *warp, in *inst, m uint32) { load128(w, in, m, o.space) }
		}
	}
	return func(w *warp, in *inst, m uint32) {
		base := &w.r[in.a]
		for ; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m) & 31
			b := w.bytes(in, lane, o.space, base[lane]+in.x, size, acc)
			for k, reg := range in.v {
				e := b[uint64(k)*o.n:][:o.n]
				var v uint64
				if o.atomic {
					v = atomicLoad(e)
				} else {
					v = word(e)
				}
				if o.signed {
					v = signExtend(v, o.n) & o.keep
				}
				w.r[reg][lane] = v
			}
		}
	}
}

// load32 is the most frequent load, with the checks of a repeated hit in line.
func load32(w *warp, in *inst, m uint32, space Space) {
	base, d := &w.r[in.a], &w.r[in.v[0]]
	s := &w.wk.slots[in.site]
	for ; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m) & 31
		addr := base[lane] + in.x
		if off := addr - s.base; off+4 <= s.size && off < s.size && addr&3 == 0 && s.a.full.Load() {
			d[lane] = uint64(binary.LittleEndian.Uint32(s.data[off:]))
			continue
		}
		d[lane] = word(w.bytes(in, lane, space, addr, 4, accRead))
	}
}

// load128 is ld.v4 of 32-bit elements.
func load128(w *warp, in *inst, m uint32, space Space) {
	base := &w.r[in.a]
	d0, d1, d2, d3 := &w.r[in.v[0]], &w.r[in.v[1]], &w.r[in.v[2]], &w.r[in.v[3]]
	s := &w.wk.slots[in.site]
	for ; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m) & 31
		addr := base[lane] + in.x
		var b []byte
		if off := addr - s.base; off+16 <= s.size && off < s.size && addr&15 == 0 && s.a.full.Load() {
			b = s.data[off : off+16 : off+16]
		} else {
			b = w.bytes(in, lane, space, addr, 16, accRead)
		}
		d0[lane] = uint64(binary.LittleEndian.Uint32(b[0:4]))
		d1[lane] = uint64(binary.LittleEndian.Uint32(b[4:8]))
		d2[lane] = uint64(binary.LittleEndian.Uint32(b[8:12]))
		d3[lane] = uint64(binary.LittleEndian.Uint32(b[12:16]))
	}
}

// store returns the operation of st: a the address, x the offset, v the values.
func store(o loadOp) execFn {
	size := o.n * o.vec
	acc := accWrite
	if o.atomic {
		acc |= accAtomic
	}
	return func(w *warp, in *inst, m uint32) {
		base := &w.r[in.a]
		for ; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m) & 31
			addr := base[lane] + in.x
			if w.blk.shadow != nil && w.sameShared(o.space, addr, size, in, lane, o.n) {
				continue
			}
			b := w.bytes(in, lane, o.space, addr, size, acc)
			for k, reg := range in.v {
				e := b[uint64(k)*o.n:][:o.n]
				if o.atomic {
					atomicStore(e, w.r[reg][lane])
				} else {
					putWord(e, w.r[reg][lane])
				}
			}
			if p := w.wk.slots[in.site].peer; p != nil && outside(o.space, addr) {
				w.wk.l.OnPeer(p, b, true)
			}
		}
	}
}

// outside reports whether an address of a space lies in device or host memory.
func outside(space Space, addr uint64) bool {
	return space == SpaceGlobal || space == SpaceGeneric && addr < WindowBase
}

// Parameter areas of calls: kernels read the launch's parameters through load.

// loadFrame and storeFrame are ld.param and st.param of a variable in the current frame.
func loadFrame(o loadOp) execFn {
	return func(w *warp, in *inst, m uint32) {
		for ; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m) & 31
			b := w.frameBytes(lane, in.x, o.n*o.vec)
			for k, reg := range in.v {
				v := word(b[uint64(k)*o.n:][:o.n])
				if o.signed {
					v = signExtend(v, o.n) & o.keep
				}
				w.r[reg][lane] = v
			}
		}
	}
}

func storeFrame(o loadOp) execFn {
	return func(w *warp, in *inst, m uint32) {
		for ; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m) & 31
			b := w.frameBytes(lane, in.x, o.n*o.vec)
			for k, reg := range in.v {
				putWord(b[uint64(k)*o.n:][:o.n], w.r[reg][lane])
			}
		}
	}
}

// atomicLoad and atomicStore are for accesses that synchronise with other blocks. Elements narrower
// than a word go through the word that holds them.
func atomicLoad(b []byte) uint64 {
	switch len(b) {
	case 4:
		return uint64(atomic.LoadUint32((*uint32)(unsafe.Pointer(&b[0]))))
	case 8:
		return atomic.LoadUint64((*uint64)(unsafe.Pointer(&b[0])))
	}
	p, sh := wordOf(b)
	return uint64(atomic.LoadUint32(p)>>sh) & (1<<(8*len(b)) - 1)
}

func atomicStore(b []byte, v uint64) {
	switch len(b) {
	case 4:
		atomic.StoreUint32((*uint32)(unsafe.Pointer(&b[0])), uint32(v))
	case 8:
		atomic.StoreUint64((*uint64)(unsafe.Pointer(&b[0])), v)
	default:
		p, sh := wordOf(b)
		mask := uint32(1<<(8*len(b))-1) << sh
		for {
			old := atomic.LoadUint32(p)
			if atomic.CompareAndSwapUint32(p, old, old&^mask|uint32(v)<<sh&mask) {
				return
			}
		}
	}
}

// wordOf returns the aligned 32-bit word around an element of 1 or 2 bytes. Memories are made of
// whole 8-byte words, so that the word always exists.
func wordOf(b []byte) (*uint32, uint) {
	p := unsafe.Pointer(&b[0])
	low := uintptr(p) & 3
	return (*uint32)(unsafe.Add(p, -int(low))), uint(8 * low)
}
