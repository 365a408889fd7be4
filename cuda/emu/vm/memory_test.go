package vm

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// lineOf returns the only 1-based line within a kernel's text that contains all needles, the n-th if several do.
func lineOf(t *testing.T, file, kernel string, n int, needle string) int {
	t.Helper()
	b, err := os.ReadFile("testdata/" + file)
	require.NoError(t, err)
	in := false
	for i, l := range strings.Split(string(b), "\n") {
		if strings.Contains(l, ".entry ") {
			in = strings.Contains(l, ".entry "+kernel+"(")
		}
		if in && strings.Contains(l, needle) {
			if n--; n < 0 {
				return i + 1
			}
		}
	}
	require.Fail(t, "no such line")
	return 0
}

func requireFault(t *testing.T, f *Fault, kind FaultKind, line, lane int, addr uint64) {
	t.Helper()
	require.NotNil(t, f)
	require.Equal(t, kind, f.Kind, f.Error())
	require.Equal(t, line, f.Line, f.Error())
	require.Equal(t, lane, f.Lane, f.Error())
	require.Equal(t, addr, f.Address, f.Error())
	require.NotEmpty(t, f.Text)
}

func TestGlobalFaults(t *testing.T) {
	r := rigFile(t, "memory.ptx").kernel("readAt")
	load := lineOf(t, "memory.ptx", "readAt", 0, "ld.global")
	out := r.alloc(4*64, false)
	buf := upload(r, make([]int32, 25))

	_, f := r.run(1, 64, buf+100, out, int32(37))
	requireFault(t, f, OutOfBounds, load, 5, buf+100)
	require.Equal(t, [3]uint32{37, 0, 0}, f.Thread)
	require.EqualValues(t, 4, f.Size)
	require.Contains(t, f.Nearest, "0 bytes past the end of the allocation")
	require.Contains(t, f.Nearest, "100 bytes on device 0")

	_, f = r.run(1, 64, buf-8, out, int32(0))
	requireFault(t, f, OutOfBounds, load, 0, buf-8)
	require.Contains(t, f.Nearest, "8 bytes before the allocation")

	_, f = r.run(1, 64, buf+2, out, int32(3))
	requireFault(t, f, Misaligned, load, 3, buf+2)

	_, f = r.run(1, 64, uint64(0), out, int32(31))
	requireFault(t, f, OutOfBounds, load, 31, 0)

	fresh := r.alloc(64, false)
	require.NoError(t, r.mem.Write(fresh, make([]byte, 35)))
	r.mustRun(1, 64, fresh+28, out, int32(0))
	_, f = r.run(1, 64, fresh+32, out, int32(9))
	requireFault(t, f, Uninitialized, load, 9, fresh+32)
	require.Contains(t, f.Detail, "never written")

	require.NoError(t, r.mem.Unmap(buf))
	_, f = r.run(1, 64, buf+8, out, int32(1))
	requireFault(t, f, UseAfterFree, load, 1, buf+8)
	require.Contains(t, f.Nearest, "8 bytes into the freed allocation")

	other := NewMemory("device 1", 1<<40, 1<<32)
	_, err := other.Map(1<<40, 4096, MapOptions{Written: true})
	require.NoError(t, err)
	r.l.AllSpaces = []*Memory{r.mem, other}
	_, f = r.run(1, 64, uint64(1<<40+16), out, int32(2))
	requireFault(t, f, NoPeerAccess, load, 2, 1<<40+16)
	require.Contains(t, f.Detail, "device 1")
	r.l.Spaces = append(r.l.Spaces, other)
	r.mustRun(1, 64, uint64(1<<40+16), out, int32(2))
}

func TestStoreFaults(t *testing.T) {
	r := rigFile(t, "memory.ptx").kernel("writeAt")
	store := lineOf(t, "memory.ptx", "writeAt", 0, "st.global")
	at := r.alloc(8, false)
	_, f := r.run(1, 32, at+8, int32(4))
	requireFault(t, f, OutOfBounds, store, 4, at+8)
	ro := r.next
	_, err := r.mem.Map(ro, 64, MapOptions{Written: true, ReadOnly: true})
	require.NoError(t, err)
	_, f = r.run(1, 32, ro, int32(4))
	requireFault(t, f, ReadOnly, store, 4, ro)
	r.mustRun(1, 32, at, int32(4))
	require.EqualValues(t, 4, r.mem.Find(at).WrittenBytes())
	require.EqualValues(t, 5, download[int32](r, at, 1)[0])
}

func TestSharedAndLocalFaults(t *testing.T) {
	r := rigFile(t, "memory.ptx").kernel("sharedAt")
	out := r.alloc(4*64, false)
	r.mustRun(1, 32, int32(31), out)
	base := uint64(0)
	_, f := r.run(1, 32, int32(1<<14), out)
	require.NotNil(t, f)
	base = f.Address - 4<<14
	requireFault(t, f, SharedOutOfBounds, lineOf(t, "memory.ptx", "sharedAt", 0, "ld.volatile.shared"), 9, base+4<<14)

	r.kernel("sharedUnwritten")
	_, f = r.run(1, 32, out)
	require.NotNil(t, f)
	requireFault(t, f, Uninitialized, lineOf(t, "memory.ptx", "sharedUnwritten", 0, "ld.shared"), 31, f.Address)

	r.kernel("localAt")
	r.mustRun(1, 32, int32(15), out)
	_, f = r.run(1, 32, int32(16), out)
	requireFault(t, f, LocalOutOfBounds, lineOf(t, "memory.ptx", "localAt", 0, "ld.local"), 3, 64)
}

func TestSharedRace(t *testing.T) {
	r := rigFile(t, "memory.ptx").kernel("race")
	out := r.alloc(4*64, false)
	r.mustRun(1, 64, out) // checked on request only
	r.l.RaceCheck = true
	_, f := r.run(1, 64, out)
	require.NotNil(t, f)
	store := lineOf(t, "memory.ptx", "race", 1, "st.shared")
	requireFault(t, f, SharedRace, store, 0, 0) // the second warp, last at the barrier, goes on first
	require.Contains(t, f.Detail, "thread 32 read it")
	r.kernel("noRace").mustRun(1, 64, out)
	for i, v := range download[int32](r, out, 64) {
		require.EqualValues(t, i^32+4, v)
	}
}

func TestTrapAndDeadlock(t *testing.T) {
	r := rigFile(t, "memory.ptx").kernel("trapAt")
	_, f := r.run(1, 96, int32(70))
	require.NotNil(t, f)
	require.Equal(t, Trap, f.Kind)
	require.Equal(t, [3]uint32{70, 0, 0}, f.Thread)
	require.Equal(t, lineOf(t, "memory.ptx", "trapAt", 0, "trap;"), f.Line)

	out := r.alloc(256, false)
	_, f = r.kernel("deadlock").run(1, 64, out)
	require.NotNil(t, f)
	require.Equal(t, Deadlock, f.Kind)
	require.Equal(t, lineOf(t, "memory.ptx", "deadlock", 0, "bar.sync"), f.Line)
	require.Contains(t, f.Detail, "waits for 64 threads, 32 have arrived")
}

func TestAccessWidths(t *testing.T) {
	r := rigFile(t, "memory.ptx").kernel("copyWidths")
	seq := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(i * 7)
		}
		return b
	}
	out := r.alloc(2048+128, false)
	r.mustRun(1, 32, upload(r, seq(32)), upload(r, seq(64)), upload(r, seq(256)), upload(r, make([]float64, 64)), upload(r, seq(512)), upload(r, seq(128)), out)
	got := download[byte](r, out, 2048+128)
	for i := range 32 {
		require.Equal(t, byte(i*7)+1, got[i])
	}
	for i := range 32 {
		require.Equal(t, seq(256)[8*i:8*i+4], got[128+8*i+4:128+8*i+8])
		require.Equal(t, seq(512)[16*i+12:16*i+16], got[1024+16*i:1024+16*i+4])
		require.Equal(t, seq(128)[4*i], got[2048+4*i+3])
	}
}

func TestConstantsParamsAndGeneric(t *testing.T) {
	r := rigFile(t, "memory.ptx").kernel("readConst")
	out := r.alloc(128, false)
	r.mustRun(1, 32, out)
	for i, v := range download[int32](r, out, 32) {
		require.EqualValues(t, i&7+1, v)
	}
	r.kernel("params")
	var big [20]int32
	for i := range big {
		big[i] = int32(100 + i)
	}
	r.mustRun(1, 32, big, int32(3), out)
	for i, v := range download[int32](r, out, 32) {
		require.EqualValues(t, 100+(i+3)%20, v)
	}
	r.kernel("generic")
	for which, want := range [][2]int32{{41, 300}, {4, 100}, {0, 200}} {
		g := upload(r, []int32{40})
		r.mustRun(1, 1, int32(which), g, out)
		if which == 2 {
			want[0] = 1
		}
		require.Equal(t, want[0]+want[1], download[int32](r, out, 1)[0], which)
	}
}

func TestAtomics(t *testing.T) {
	const n = 4 * 96
	r := rigFile(t, "atomics.ptx").kernel("atomicsGlobal")
	i, u := upload(r, []int32{0, 0, 0, 0, 0, 0, -1, 0, 0}), upload(r, []uint32{0, 0, 0, 1 << 30, 0})
	l := upload(r, []uint64{0, 1 << 62, 0, 0, 0, ^uint64(0), 0, 0})
	f, d, sl := upload(r, []float32{0}), upload(r, []float64{0}), upload(r, []int64{0, 0})
	r.l.Workers = 2
	r.mustRun(4, 96, i, u, l, f, d, sl)
	sum := int32(n * (n - 1) / 2)
	require.Equal(t, []int32{sum, -sum, -n + 1, n - 1, 5, 9, 0, -1, 0}, download[int32](r, i, 9))
	dec := uint32(0)
	for range n {
		if dec == 0 || dec > 10 {
			dec = 10
		} else {
			dec--
		}
	}
	require.Equal(t, []uint32{3 * n, n % 11, dec, 1000 - n + 1, n - 1}, download[uint32](r, u, 5))
	require.Equal(t, []uint64{n << 33, 1<<40 - n + 1, 1<<40 + n - 1, 77, 123456789012, 0, ^uint64(0), 0}, download[uint64](r, l, 8))
	require.Equal(t, float32(n)/2, download[float32](r, f, 1)[0])
	require.Equal(t, float64(n)/4, download[float64](r, d, 1)[0])
	require.Equal(t, []int64{-n + 1, n - 1}, download[int64](r, sl, 2))

	out := upload(r, make([]int32, 7))
	r.kernel("atomicsShared").mustRun(3, 64, out)
	require.Equal(t, []int32{16, 16, 16, 16, 64, 64, 192}, download[int32](r, out, 7))

	in := randomInts(1, 640, 100)
	total := int32(0)
	for _, v := range in {
		total += v
	}
	res := r.alloc(4, false)
	r.kernel("lastBlock").mustRun(10, 64, upload(r, in), r.alloc(40, false), res)
	require.Equal(t, total, download[int32](r, res, 1)[0])
}

func TestOnPeer(t *testing.T) {
	r := rigFile(t, "memory.ptx").kernel("readAt")
	peer := NewMemory("device 1", 1<<40, 1<<32)
	_, err := peer.Map(1<<40, 256, MapOptions{Written: true})
	require.NoError(t, err)
	r.l.Spaces = append(r.l.Spaces, peer)
	stores := 0
	r.l.OnPeer = func(m *Memory, data []byte, store bool) {
		require.Same(t, peer, m)
		data[0] ^= 0x80
		if store {
			stores++
		}
	}
	out := r.alloc(4*32, false)
	r.mustRun(1, 32, uint64(1<<40+8), out, int32(7))
	require.EqualValues(t, 0x80, download[int32](r, out, 32)[7]) // the load is changed, the memory is not
	require.Zero(t, stores)
	r.kernel("writeAt").mustRun(1, 32, uint64(1<<40+8), int32(3))
	require.Equal(t, 1, stores)
	got := make([]byte, 4)
	require.NoError(t, peer.Read(1<<40+8, got))
	require.Equal(t, []byte{5 ^ 0x80, 0, 0, 0}, got)
}

func TestMemoryMap(t *testing.T) {
	m, other := NewMemory("device 0", 0x1000, 0x10000), NewMemory("device 1", 1<<40, 1<<20)
	for _, bad := range [][2]uint64{{0x1001, 8}, {0x800, 8}, {0x1000, 0}, {0x10ff8, 0x10}, {0x1000, 1 << 63}} {
		_, err := m.Map(bad[0], bad[1], MapOptions{})
		require.Error(t, err, bad)
	}
	_, err := m.Map(0x2000, 100, MapOptions{})
	require.NoError(t, err)
	_, err = m.Map(0x1ff8, 16, MapOptions{})
	require.ErrorContains(t, err, "overlaps")
	_, err = other.Map(1<<40, 4096, MapOptions{})
	require.NoError(t, err)

	require.NoError(t, m.Fill(0x2000, 0xabcd, 2, 10)) // 20 bytes
	require.EqualValues(t, 20, m.Find(0x2000).WrittenBytes())
	require.NoError(t, Copy(other, 1<<40+3, m, 0x2000+10, 50)) // 10 written bytes among them
	a := other.Find(1 << 40)
	require.EqualValues(t, 10, a.WrittenBytes())
	require.True(t, a.isWritten(3, 10))
	require.False(t, a.isWritten(13, 1))
	require.NoError(t, other.Fill(1<<40, 7, 1, 4096))
	require.EqualValues(t, 4096, a.WrittenBytes())
	require.NoError(t, Copy(other, 1<<40, m, 0x2000+20, 10)) // holes travel too
	require.EqualValues(t, 4086, a.WrittenBytes())
	require.Error(t, m.Read(0x2000+96, make([]byte, 8)))
	require.NoError(t, m.Unmap(0x2000))
	require.Error(t, m.Unmap(0x2000))
	require.Nil(t, m.Find(0x2000))
}
