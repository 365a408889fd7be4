package vm

import "fmt"

// shadowByte is what the race check knows about a byte of shared memory: the last write and the
// reads since the last barrier.
type shadowByte struct {
	write         shadowAccess
	read, other   shadowAccess // the first reader of the interval, and the last one that is another thread
	writeIsAtomic bool
}

type shadowAccess struct {
	thread uint32 // index in the block
	epoch  uint32 // of the block; 0: never
	warp   uint32 // epoch of the thread's warp
	line   int32
}

// concurrent reports whether nothing orders an earlier access and one of a lane now: no barrier of
// the block, and for lanes of one warp no warp-wide operation.
func (w *warp) concurrent(a *shadowAccess, thread uint32) bool {
	if a.epoch != w.blk.epoch || a.thread == thread {
		return false
	}
	return a.thread/32 != thread/32 || a.warp == w.epoch
}

func (w *warp) raceCheck(in *inst, lane int, addr, size uint64, acc access) {
	thread := uint32(32*w.index + lane)
	now := shadowAccess{thread, w.blk.epoch, w.epoch, in.line}
	for i := addr; i < addr+size; i++ {
		s := &w.blk.shadow[i]
		atomics := s.writeIsAtomic && acc&accAtomic != 0
		if !atomics && w.concurrent(&s.write, thread) {
			w.raceFault(in, lane, addr, size, acc, "written", &s.write)
		}
		if acc&accWrite != 0 {
			for _, r := range [...]*shadowAccess{&s.read, &s.other} {
				if w.concurrent(r, thread) {
					w.raceFault(in, lane, addr, size, acc, "read", r)
				}
			}
			s.write, s.writeIsAtomic = now, acc&accAtomic != 0
		}
		if acc == accRead {
			if s.read.epoch != now.epoch || s.read.thread == thread {
				s.read = now
			} else {
				s.other = now
			}
		}
	}
}

func (w *warp) raceFault(in *inst, lane int, addr, size uint64, acc access, how string, other *shadowAccess) {
	w.memFault(in, lane, Fault{Kind: SharedRace, Detail: fmt.Sprintf(
		"thread %d %s it at ptx line %d with no barrier between", other.thread, how, other.line)}, addr, size, acc)
}

// sameShared reports whether a store to shared memory writes what another thread of the block wrote
// in this interval: storing one value several times is no race.
func (w *warp) sameShared(space Space, addr, size uint64, in *inst, lane int, n uint64) bool {
	if space == SpaceGeneric && addr >= sharedWindow && addr < sharedWindow+WindowSize {
		space, addr = SpaceShared, addr-sharedWindow
	}
	b := w.blk
	if space != SpaceShared || addr >= uint64(len(b.shared)) || size > uint64(len(b.shared))-addr || addr&(size-1) != 0 {
		return false
	}
	thread := uint32(32*w.index + lane)
	for i := addr; i < addr+size; i++ {
		if b.sharedOK[i] == 0 || !w.concurrent(&b.shadow[i].write, thread) || b.shadow[i].read.epoch == b.epoch {
			return false
		}
	}
	for k, reg := range in.v {
		e := b.shared[addr+uint64(k)*n:][:n]
		if word(e) != w.r[reg][lane]&(1<<(8*n-1)<<1-1) {
			return false
		}
	}
	return true
}
