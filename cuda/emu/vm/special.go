package vm

import (
	"math/bits"
	"time"
)

// special is a special register, one component of it.
type special uint8

const (
	srTid special = iota // x, y, z follow each other
	_
	_
	srNtid
	_
	_
	srCtaid
	_
	_
	srNctaid
	_
	_
	srLane
	srWarp
	srNwarp
	srSM
	srNSM
	srGrid
	srMaskEq
	srMaskLe
	srMaskLt
	srMaskGe
	srMaskGt
	srDynShared
	srTotalShared
	srClock
	srClockHi
	srClock64
	srTimer
	srTimerLo
	srTimerHi
)

// specials maps names to registers and their widths.
var specials = map[string]struct {
	id    special
	width int
}{
	"%tid.x": {srTid, 32}, "%tid.y": {srTid + 1, 32}, "%tid.z": {srTid + 2, 32},
	"%ntid.x": {srNtid, 32}, "%ntid.y": {srNtid + 1, 32}, "%ntid.z": {srNtid + 2, 32},
	"%ctaid.x": {srCtaid, 32}, "%ctaid.y": {srCtaid + 1, 32}, "%ctaid.z": {srCtaid + 2, 32},
	"%nctaid.x": {srNctaid, 32}, "%nctaid.y": {srNctaid + 1, 32}, "%nctaid.z": {srNctaid + 2, 32},
	"%laneid": {srLane, 32}, "%warpid": {srWarp, 32}, "%nwarpid": {srNwarp, 32},
	"%smid": {srSM, 32}, "%nsmid": {srNSM, 32}, "%gridid": {srGrid, 64},
	"%lanemask_eq": {srMaskEq, 32}, "%lanemask_le": {srMaskLe, 32}, "%lanemask_lt": {srMaskLt, 32},
	"%lanemask_ge": {srMaskGe, 32}, "%lanemask_gt": {srMaskGt, 32},
	"%dynamic_smem_size": {srDynShared, 32}, "%total_smem_size": {srTotalShared, 32},
	"%clock": {srClock, 32}, "%clock_hi": {srClockHi, 32}, "%clock64": {srClock64, 64},
	"%globaltimer": {srTimer, 64}, "%globaltimer_lo": {srTimerLo, 32}, "%globaltimer_hi": {srTimerHi, 32},
}

// perBlock reports whether the register changes from block to block.
func (s special) perBlock() bool { return s >= srCtaid && s < srNctaid || s == srSM }

// volatile reports whether the register changes while a warp runs.
func (s special) volatile() bool { return s >= srClock }

// fillSpecial writes a register's value into all lanes of a column.
func (w *warp) fillSpecial(s special, c *col) {
	l := w.wk.l
	bx, by := l.Block[0], l.Block[1]
	for i := range uint32(32) {
		t := 32*uint32(w.index) + i
		c[i] = func() uint64 {
			switch s {
			case srTid:
				return uint64(t % bx)
			case srTid + 1:
				return uint64(t / bx % by)
			case srTid + 2:
				return uint64(t / bx / by)
			case srNtid, srNtid + 1, srNtid + 2:
				return uint64(l.Block[s-srNtid])
			case srCtaid, srCtaid + 1, srCtaid + 2:
				return uint64(w.blk.id[s-srCtaid])
			case srNctaid, srNctaid + 1, srNctaid + 2:
				return uint64(l.Grid[s-srNctaid])
			case srLane:
				return uint64(i)
			case srWarp:
				return uint64(w.index)
			case srNwarp:
				return uint64(len(w.blk.warps))
			case srSM:
				return w.blk.linear % uint64(max(1, l.SMs))
			case srNSM:
				return uint64(max(1, l.SMs))
			case srMaskEq:
				return 1 << i
			case srMaskLe:
				return 2<<i - 1
			case srMaskLt:
				return 1<<i - 1
			case srMaskGe:
				return uint64(fullMask << i)
			case srMaskGt:
				return uint64(fullMask << i << 1)
			case srDynShared:
				return uint64(l.DynShared)
			case srTotalShared:
				return uint64(len(w.blk.shared))
			}
			return 0 // %gridid: launches are not numbered
		}()
	}
}

// readVolatile returns the operation that reads a register which changes while a warp runs. Clocks
// count instructions of the warp.
func readVolatile(s special) execFn {
	return func(w *warp, in *inst, m uint32) {
		var v uint64
		switch s {
		case srClock:
			v = uint64(uint32(w.warps))
		case srClockHi:
			v = w.warps >> 32
		case srClock64:
			v = w.warps
		case srTimer:
			v = uint64(time.Now().UnixNano())
		case srTimerLo:
			v = uint64(uint32(time.Now().UnixNano()))
		case srTimerHi:
			v = uint64(time.Now().UnixNano()) >> 32
		}
		for n := m; n != 0; n &= n - 1 {
			w.r[in.d][bits.TrailingZeros32(n)&31] = v
		}
	}
}
