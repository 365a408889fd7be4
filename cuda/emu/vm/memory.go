package vm

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"sort"
	"sync"
	"sync/atomic"
	"unsafe"
)

// freedKept is how many freed ranges a memory remembers, so that late accesses can be named.
const freedKept = 1024

// Memory is the memory of one virtual device, or of the host: a set of allocations within an
// address range. All methods may be called from several goroutines; bytes are not locked, so
// concurrent accesses to the same bytes are the caller's to order.
type Memory struct {
	name       string
	base, size uint64

	mu     sync.Mutex // serialises Map and Unmap
	allocs atomic.Pointer[[]*Alloc]
	freed  []span // guarded by mu; the newest last
}

type span struct{ addr, size uint64 }

// Alloc is one allocation of a Memory.
type Alloc struct {
	addr     uint64
	data     []byte   // 8-byte aligned
	written  []uint64 // one bit per byte of data
	full     atomic.Bool
	readOnly bool
}

// MapOptions say how an allocation begins.
type MapOptions struct {
	Written  bool   // the bytes count as written (they are zero, or what Backing holds)
	ReadOnly bool   // kernels may not store there
	Backing  []byte // memory to use, 8-byte aligned and of the requested size; nil allocates
}

// MapError says why an allocation could not be mapped or unmapped.
type MapError struct {
	Op         string
	Addr, Size uint64
	Msg        string
}

// Error returns the failed operation, its range and the reason.
func (e *MapError) Error() string {
	return fmt.Sprintf("%s of %d bytes at %#x: %s", e.Op, e.Size, e.Addr, e.Msg)
}

// NewMemory returns an empty memory for addresses in [base, base+size). The name, for instance
// "device 0", appears in faults.
func NewMemory(name string, base, size uint64) *Memory {
	m := &Memory{name: name, base: base, size: size}
	m.allocs.Store(new([]*Alloc))
	return m
}

// Name returns the name given to NewMemory.
func (m *Memory) Name() string { return m.name }

// Range returns the address range given to NewMemory.
func (m *Memory) Range() (base, size uint64) { return m.base, m.size }

// Map adds an allocation of size > 0 bytes at addr, which must be a multiple of 8. It fails if the
// range leaves the memory or overlaps another allocation.
func (m *Memory) Map(addr, size uint64, o MapOptions) (*Alloc, error) {
	fail := func(msg string) (*Alloc, error) { return nil, &MapError{"map", addr, size, msg} }
	switch {
	case size == 0:
		return fail("size is zero")
	case addr%8 != 0:
		return fail("address is not a multiple of 8")
	case addr < m.base || size > m.size || addr-m.base > m.size-size:
		return fail(fmt.Sprintf("outside of %s", m.name))
	case o.Backing != nil && uint64(len(o.Backing)) != size:
		return fail(fmt.Sprintf("backing has %d bytes", len(o.Backing)))
	case o.Backing != nil && uintptr(unsafe.Pointer(&o.Backing[0]))%8 != 0:
		return fail("backing is not 8-byte aligned")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	old := *m.allocs.Load()
	i := sort.Search(len(old), func(i int) bool { return old[i].addr >= addr })
	if i < len(old) && old[i].addr-addr < size || i > 0 && addr-old[i-1].addr < uint64(len(old[i-1].data)) {
		return fail("overlaps another allocation")
	}
	a := &Alloc{addr: addr, data: o.Backing, readOnly: o.ReadOnly}
	if a.data == nil {
		words := make([]uint64, (size+7)/8) // words, so that atomics on the bytes are aligned
		a.data = unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), size)
	}
	if o.Written {
		a.full.Store(true)
	} else {
		a.written = make([]uint64, (size+63)/64)
	}
	next := make([]*Alloc, 0, len(old)+1)
	next = append(append(append(next, old[:i]...), a), old[i:]...)
	m.allocs.Store(&next)
	for k := len(m.freed) - 1; k >= 0; k-- { // the range is alive again
		if f := m.freed[k]; f.addr < addr+size && addr < f.addr+f.size {
			m.freed = append(m.freed[:k], m.freed[k+1:]...)
		}
	}
	return a, nil
}

// Unmap removes the allocation that begins at addr and remembers its range.
func (m *Memory) Unmap(addr uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	old := *m.allocs.Load()
	i := sort.Search(len(old), func(i int) bool { return old[i].addr >= addr })
	if i == len(old) || old[i].addr != addr {
		return &MapError{"unmap", addr, 0, "no allocation begins there"}
	}
	if len(m.freed) == freedKept {
		m.freed = append(m.freed[:0], m.freed[1:]...)
	}
	m.freed = append(m.freed, span{addr, old[i].Size()})
	next := make([]*Alloc, 0, len(old)-1)
	next = append(append(next, old[:i]...), old[i+1:]...)
	m.allocs.Store(&next)
	return nil
}

// Find returns the allocation that contains addr, or nil.
func (m *Memory) Find(addr uint64) *Alloc {
	s := *m.allocs.Load()
	lo, hi := 0, len(s)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if s[mid].addr <= addr {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == 0 || addr-s[lo-1].addr >= uint64(len(s[lo-1].data)) {
		return nil
	}
	return s[lo-1]
}

// Allocs returns the allocations in address order.
func (m *Memory) Allocs() []*Alloc { return append([]*Alloc(nil), *m.allocs.Load()...) }

// Addr returns the first address.
func (a *Alloc) Addr() uint64 { return a.addr }

// Size returns the number of bytes.
func (a *Alloc) Size() uint64 { return uint64(len(a.data)) }

// Bytes returns the memory itself, not a copy. Writing through it does not mark bytes as written.
func (a *Alloc) Bytes() []byte { return a.data }

// locate returns the allocation that holds all of [addr, addr+n).
func (m *Memory) locate(op string, addr, n uint64) (*Alloc, uint64, error) {
	a := m.Find(addr)
	if a == nil || n > a.Size() || addr-a.addr > a.Size()-n {
		return nil, 0, &MapError{op, addr, n, "not within one allocation of " + m.name + "; " + m.nearest(addr)}
	}
	return a, addr - a.addr, nil
}

// Read copies len(dst) bytes at addr. Bytes that were never written read as zero.
func (m *Memory) Read(addr uint64, dst []byte) error {
	if len(dst) == 0 {
		return nil
	}
	a, off, err := m.locate("read", addr, uint64(len(dst)))
	if err != nil {
		return err
	}
	copy(dst, a.data[off:])
	return nil
}

// Write copies src to addr and marks the bytes as written.
func (m *Memory) Write(addr uint64, src []byte) error {
	if len(src) == 0 {
		return nil
	}
	a, off, err := m.locate("write", addr, uint64(len(src)))
	if err != nil {
		return err
	}
	copy(a.data[off:], src)
	a.mark(off, uint64(len(src)))
	return nil
}

// Fill stores count elements of 1, 2 or 4 bytes, the low bytes of v, at addr and marks them as written.
func (m *Memory) Fill(addr uint64, v uint32, width int, count uint64) error {
	if count == 0 {
		return nil
	}
	n := count * uint64(width)
	a, off, err := m.locate("fill", addr, n)
	if err != nil {
		return err
	}
	var one [4]byte
	binary.LittleEndian.PutUint32(one[:], v)
	d := a.data[off : off+n]
	for k := copy(d, one[:width]); k < len(d); k *= 2 {
		copy(d[k:], d[:k])
	}
	a.mark(off, n)
	return nil
}

// Copy copies n bytes between two memories, which may be the same and may overlap. The state
// written or never written travels with the bytes.
func Copy(dst *Memory, dstAddr uint64, src *Memory, srcAddr, n uint64) error {
	if n == 0 {
		return nil
	}
	s, so, err := src.locate("read", srcAddr, n)
	if err != nil {
		return err
	}
	d, do, err := dst.locate("write", dstAddr, n)
	if err != nil {
		return err
	}
	if !s.full.Load() && !s.isWritten(so, n) {
		copyWritten(d, do, s, so, n)
		copy(d.data[do:do+n], s.data[so:so+n])
		return nil
	}
	copy(d.data[do:do+n], s.data[so:so+n])
	d.mark(do, n)
	return nil
}

// copyWritten copies written bits of a source that has holes, through a snapshot as the ranges may overlap.
func copyWritten(d *Alloc, do uint64, s *Alloc, so, n uint64) {
	if d.full.Load() && len(d.written) == 0 {
		return // mapped as written for good: bits are not tracked there
	}
	snap := make([]bool, n)
	for i := range snap {
		snap[i] = s.isWritten(so+uint64(i), 1)
	}
	d.full.Store(false)
	for i, w := range snap {
		p, bit := &d.written[(do+uint64(i))/64], uint64(1)<<((do+uint64(i))%64)
		if w {
			atomic.OrUint64(p, bit)
		} else {
			atomic.AndUint64(p, ^bit)
		}
	}
}

// mark records that [off, off+n) was written. Bits share words between blocks, so it is atomic.
func (a *Alloc) mark(off, n uint64) {
	if a.full.Load() {
		return
	}
	if off == 0 && n == a.Size() {
		for i := range a.written {
			atomic.StoreUint64(&a.written[i], ^uint64(0))
		}
		a.full.Store(true)
		return
	}
	for n > 0 {
		k, sh := off/64, off%64
		c := min(n, 64-sh)
		want := ^uint64(0) >> (64 - c) << sh
		if atomic.LoadUint64(&a.written[k])&want != want {
			atomic.OrUint64(&a.written[k], want)
		}
		off, n = off+c, n-c
	}
}

// isWritten reports whether all of [off, off+n) was written.
func (a *Alloc) isWritten(off, n uint64) bool {
	if a.full.Load() {
		return true
	}
	for n > 0 {
		k, sh := off/64, off%64
		c := min(n, 64-sh)
		want := ^uint64(0) >> (64 - c) << sh
		if atomic.LoadUint64(&a.written[k])&want != want {
			return false
		}
		off, n = off+c, n-c
	}
	return true
}

// firstUnwritten returns the first offset in [off, off+n) that was never written.
func (a *Alloc) firstUnwritten(off, n uint64) uint64 {
	for i := off; i < off+n; i++ {
		if !a.isWritten(i, 1) {
			return i
		}
	}
	return off + n
}

// WrittenBytes counts the bytes that were written.
func (a *Alloc) WrittenBytes() uint64 {
	if a.full.Load() {
		return a.Size()
	}
	var n uint64
	for i := range a.written {
		v := atomic.LoadUint64(&a.written[i])
		if tail := a.Size() % 64; tail != 0 && i == len(a.written)-1 {
			v &= 1<<tail - 1 // marking the whole sets bits past the end
		}
		n += uint64(bits.OnesCount64(v))
	}
	return n
}

// nearest describes the allocation closest to addr.
func (m *Memory) nearest(addr uint64) string {
	s := *m.allocs.Load()
	if len(s) == 0 {
		return m.name + " has no allocation"
	}
	i := sort.Search(len(s), func(i int) bool { return s[i].addr > addr })
	before := func(a *Alloc) uint64 { return addr - (a.addr + a.Size()) } // bytes past the end
	best := ""
	switch {
	case i > 0 && addr-s[i-1].addr < s[i-1].Size():
		best = fmt.Sprintf("%d bytes into %s", addr-s[i-1].addr, m.describe(s[i-1]))
	case i == 0 || i < len(s) && s[i].addr-addr < before(s[i-1]):
		best = fmt.Sprintf("%d bytes before %s", s[i].addr-addr, m.describe(s[i]))
	default:
		best = fmt.Sprintf("%d bytes past the end of %s", before(s[i-1]), m.describe(s[i-1]))
	}
	return best
}

func (m *Memory) describe(a *Alloc) string {
	return fmt.Sprintf("the allocation [%#x, %#x) of %d bytes on %s", a.addr, a.addr+a.Size(), a.Size(), m.name)
}

// freedSpan returns the newest freed range that contains addr.
func (m *Memory) freedSpan(addr uint64) (span, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for k := len(m.freed) - 1; k >= 0; k-- {
		if f := m.freed[k]; addr-f.addr < f.size {
			return f, true
		}
	}
	return span{}, false
}

func (m *Memory) contains(addr uint64) bool { return addr-m.base < m.size }
