package scene

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/tests/gputest"
)

// sortOnDevice sorts keys with their indices as values.
func sortOnDevice(t *testing.T, s *Scene, keys []uint64, bits int) ([]uint64, []uint32) {
	t.Helper()
	ctx, n := context.Background(), len(keys)
	index := make([]uint32, n)
	for i := range index {
		index[i] = uint32(i)
	}
	p := &pairs{}
	require.NoError(t, firstError(
		upload(ctx, s, &p.keys, keys), upload(ctx, s, &p.values, index),
		allocate(s, &p.otherKeys, n), allocate(s, &p.otherValues, n),
		allocate(s, &p.counters, sortCounters(n))))
	require.NoError(t, s.ctxDo(func(sc cuda.Scope) error { return s.sortPairs(sc, s.stream, p, bits) }))
	gotKeys, gotValues := download(t, s, p.keys), download(t, s, p.values)
	require.NoError(t, firstError(
		release(s, &p.keys), release(s, &p.otherKeys), release(s, &p.values), release(s, &p.otherValues),
		release(s, &p.counters)))
	return gotKeys, gotValues
}

func TestSortIsStable(t *testing.T) {
	c := gputest.Open(t, 1, nil).Context(t, 0)
	s, err := New(c, Options{Backend: CUDA})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	rng := rand.New(rand.NewPCG(50, 1))
	sizes := []int{0, 1, 2, 33, 257, sortTile, 2*sortTile + 77}
	if gputest.Native() {
		sizes = append(sizes, 1<<21, 5_000_001)
	}
	for _, n := range sizes {
		for name, key := range map[string]func(i int) (key uint64, bits int){
			"random":       func(int) (uint64, int) { return rng.Uint64() >> 1, 63 },
			"all bits":     func(int) (uint64, int) { return rng.Uint64(), 64 },
			"few bits":     func(int) (uint64, int) { return rng.Uint64N(8), 3 },
			"equal":        func(int) (uint64, int) { return 0x123456789abcdef0, 64 },
			"largest":      func(int) (uint64, int) { return ^uint64(0), 64 },
			"sorted":       func(i int) (uint64, int) { return uint64(i), 24 },
			"backwards":    func(i int) (uint64, int) { return uint64(n - i), 24 },
			"high digit":   func(int) (uint64, int) { return rng.Uint64N(2) << 63, 64 },
			"two far ones": func(i int) (uint64, int) { return uint64(i%2)*(1<<40) + uint64(i%3), 41 },
		} {
			keys, bits := make([]uint64, n), 8
			for i := range keys {
				keys[i], bits = key(i)
			}
			want := make([]uint32, n)
			for i := range want {
				want[i] = uint32(i)
			}
			slices.SortStableFunc(want, func(a, b uint32) int {
				switch {
				case keys[a] < keys[b]:
					return -1
				case keys[a] > keys[b]:
					return 1
				}
				return 0
			})
			gotKeys, got := sortOnDevice(t, s, keys, bits)
			require.True(t, slices.Equal(want, got), "%d %s keys", n, name)
			for i, v := range got {
				require.Equal(t, keys[v], gotKeys[i], "%d %s keys, place %d", n, name, i)
			}
		}
	}
}
