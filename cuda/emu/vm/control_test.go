package vm

import (
	"math/bits"
	"math/rand"
	"testing"

	"github.com/stretchr/testify/require"
)

func randomInts(seed int64, n, limit int) []int32 {
	rng := rand.New(rand.NewSource(seed))
	out := make([]int32, n)
	for i := range out {
		out[i] = int32(rng.Intn(limit))
	}
	return out
}

func TestNestedLoops(t *testing.T) {
	const n = 1000
	in := randomInts(1, n, 1<<16)
	r := rigFile(t, "control.ptx").kernel("nested")
	out := r.alloc(4*n, false)
	r.mustRun(8, 128, upload(r, in), out, int32(n))
	got := download[int32](r, out, n)
	for i, v := range in {
		acc := int32(0)
	outer:
		for a := int32(0); a < v%7; a++ {
			for b := int32(0); b < (v>>3)%5; b++ {
				if a^b == 3 {
					continue
				}
				if a*b > 8 {
					break
				}
				acc += a*10 + b
				if acc > 200 {
					break outer
				}
			}
			if acc&1 != 0 {
				acc += 3
			} else {
				acc--
			}
		}
		require.Equal(t, acc, got[i], i)
	}
}

func TestSwitch(t *testing.T) {
	in := randomInts(2, 32, 11)
	r := rigFile(t, "control.ptx").kernel("switches")
	out := r.alloc(4*32, false)
	r.mustRun(1, 32, upload(r, in), out)
	for i, got := range download[int32](r, out, 32) {
		i, v := int32(i), in[i]
		switch v {
		case 0:
			v = 11
		case 1:
			v = in[(i+1)&31]
		case 2:
			v = v*7 + 100
		case 3:
			v += 100
		case 4:
			for k := int32(0); k < i; k++ {
				v ^= k * 3
			}
		case 5:
			v = -i
		case 6:
			v = i * i
		case 7:
			v = i / 3
		case 8:
			v = 1 << (i & 7)
		default:
			v = 999
		}
		require.Equal(t, v, got, i)
	}
}

func TestRecursion(t *testing.T) {
	in := randomInts(3, 32, 14)
	r := rigFile(t, "control.ptx").kernel("recursion")
	out := r.alloc(4*32, false)
	r.mustRun(1, 32, upload(r, in), out)
	var fib func(n int32) int32
	fib = func(n int32) int32 {
		if n < 2 {
			return n
		}
		return fib(n-1) + fib(n-2)
	}
	for i, got := range download[int32](r, out, 32) {
		require.Equal(t, fib(in[i]), got)
	}
	_, f := r.run(1, 1, upload(r, []int32{2000}), out)
	require.NotNil(t, f)
	require.Equal(t, StackOverflow, f.Kind)
	require.Contains(t, f.Text, "call")
}

func TestStructArguments(t *testing.T) {
	in := randomInts(4, 32, 1000)
	r := rigFile(t, "control.ptx").kernel("structs")
	out := r.alloc(8*32, false)
	r.mustRun(1, 32, upload(r, in), out)
	for i, got := range download[float64](r, out, 32) {
		a, b, c := float64(in[i]), 0.25*float64(i), [3]float64{1, 2, 3}
		twist := func(k int) { a += float64(k); b *= 2; c[k%3] += 1.5 }
		twist(i % 5)
		if i&1 != 0 {
			twist(7)
		}
		require.Equal(t, a+b+c[0]*10+c[1]*100+c[2]*1000, got, i)
	}
}

func TestFunctionPointers(t *testing.T) {
	in := randomInts(5, 32, 1000)
	r := rigFile(t, "control.ptx").kernel("pointers")
	out := r.alloc(4*32, false)
	r.mustRun(1, 32, upload(r, in), out)
	for i, got := range download[int32](r, out, 32) {
		i := int32(i)
		require.Equal(t, []int32{i + 5, i - 5, i * 5}[in[i]%3], got)
	}
	bad := make([]byte, 24)
	bad[0] = 1
	require.NoError(t, r.mem.Write(r.l.Globals["table"], bad))
	_, f := r.run(1, 32, upload(r, in), out)
	require.NotNil(t, f)
	require.Equal(t, BadCall, f.Kind)
}

func TestSpinLocks(t *testing.T) {
	r := rigFile(t, "control.ptx").kernel("spinLock")
	const threads = 4 * 64
	order := r.alloc(4*threads, false)
	r.l.Workers = 2
	r.mustRun(4, 64, order)
	seen := map[int32]bool{}
	for _, v := range download[int32](r, order, threads) {
		seen[v] = true
	}
	require.Len(t, seen, threads)

	r = rigFile(t, "control.ptx").kernel("spinLockHard")
	counter := upload(r, []int32{0})
	r.mustRun(2, 64, counter)
	require.Equal(t, []int32{128}, download[int32](r, counter, 1))
}

func TestSharedReduction(t *testing.T) {
	in := make([]float32, 256)
	sum := float32(0)
	for i := range in {
		in[i] = float32(i % 17)
		sum += in[i]
	}
	r := rigFile(t, "control.ptx").kernel("reduceShared")
	out := r.alloc(8, false)
	r.l.DynShared = 4 * 256
	r.l.RaceCheck = true
	r.mustRun(1, 256, upload(r, in), out, int32(256))
	require.Equal(t, []float32{sum, 7}, download[float32](r, out, 2))
}

func TestBarrierReductions(t *testing.T) {
	const n = 96
	in := randomInts(6, n, 9)
	r := rigFile(t, "control.ptx").kernel("barrierCounts")
	out := r.alloc(12*n, false)
	r.mustRun(1, n, upload(r, in), out)
	count := int32(0)
	for _, v := range in {
		if v > 2 {
			count++
		}
	}
	for i, got := range download[[3]int32](r, out, n) {
		require.Equal(t, count, got[0], i)
		require.NotZero(t, got[1])
		require.Zero(t, got[2])
	}
}

func TestWarpOperations(t *testing.T) {
	in := randomInts(7, 32, 50)
	r := rigFile(t, "control.ptx").kernel("warpOps")
	out := r.alloc(4*12*32, false)
	r.mustRun(1, 32, upload(r, in), out)
	var odd, any13 int32
	for i, v := range in {
		odd |= v & 1 << i
		if v == 13 {
			any13 = 1
		}
	}
	low := int32(0)
	for _, v := range in[:16] {
		low += v
	}
	at := func(i, otherwise int) int32 {
		if i < 0 || i > 31 {
			return in[otherwise]
		}
		return in[i]
	}
	for i, g := range download[[12]int32](r, out, 32) {
		want := int32(0)
		for k := range in[i] % 4 {
			want += k
		}
		if i&1 != 0 {
			want += 100
		} else {
			want -= 100
		}
		same := uint32(0)
		for j, v := range in {
			if v%3 == in[i]%3 {
				same |= 1 << j
			}
		}
		require.Equal(t, want, g[0])
		require.Equal(t, []int32{at(i-3, i), at(i+5, i), in[i^9], in[i&^7|i*7&7], odd, any13, 1}, g[1:8], i)
		require.Equal(t, same, uint32(g[8]))
		all := uint32(0xffffffff) // match_all of 1 by all lanes
		require.Equal(t, []uint32{all, 1}, []uint32{uint32(g[9]), uint32(g[10])})
		if i < 16 {
			require.Equal(t, low, g[11])
		} else {
			require.Zero(t, g[11])
		}
	}
}

func TestEarlyExit(t *testing.T) {
	in := randomInts(8, 64, 30)
	r := rigFile(t, "control.ptx").kernel("earlyExit")
	out := upload(r, make([]int32, 64))
	r.mustRun(1, 64, upload(r, in), out)
	var live [2]uint32
	for i, v := range in {
		if v%3 != 0 {
			live[i/32] |= 1 << (i % 32)
		}
	}
	for i, g := range download[int32](r, out, 64) {
		want := 0
		if live[i/32]>>(i%32)&1 != 0 {
			want = bits.OnesCount32(live[i/32]) + 1
		}
		require.EqualValues(t, want, g, i)
	}
}
