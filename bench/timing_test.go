package main

import (
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// bench is a stopwatch on a clock that only variants advance, with a log of what happened.
type fakeWatch struct {
	clock  time.Time
	log    []string
	driver uint64 // allocations
}

func (f *fakeWatch) stopwatch() stopwatch {
	return stopwatch{
		sync:   func() error { f.log = append(f.log, "sync"); f.clock = f.clock.Add(time.Microsecond); return nil },
		allocs: func() uint64 { return f.driver },
		now:    func() time.Time { return f.clock },
	}
}

func (f *fakeWatch) variant(name string, took time.Duration, allocs ...uint64) variant {
	calls := 0
	return variant{run: func() (func() error, error) {
		f.log = append(f.log, name)
		f.clock = f.clock.Add(took)
		if calls < len(allocs) {
			f.driver += allocs[calls]
		}
		calls++
		return func() error {
			f.log = append(f.log, "release "+name)
			f.clock = f.clock.Add(time.Hour)
			return nil
		}, nil
	}}
}

func TestMeasureInterleavesAndRotates(t *testing.T) {
	f := &fakeWatch{}
	got, err := f.stopwatch().measure([]variant{f.variant("a", 10), f.variant("b", 20), f.variant("c", 30)}, 1, 3)
	require.NoError(t, err)
	var order []string
	for i, entry := range f.log {
		if len(entry) != 1 {
			continue
		}
		order = append(order, entry)
		require.Equal(t, []string{"sync", entry, "sync", "release " + entry}, f.log[i-1:i+3], "a sample is bounded by waits, and frees after the second")
	}
	require.Equal(t, []string{"a", "b", "c", "b", "c", "a", "c", "a", "b", "a", "c", "b"}, order)
	for i, want := range []int64{10, 20, 30} { // the wait after the call counts, the release does not
		require.Equal(t, []int64{want + 1000, want + 1000, want + 1000}, got[i].ns)
		timing := got[i].timing()
		require.Equal(t, want+1000, timing.MinNS)
		require.Equal(t, int64(1), timing.ResolutionNS)
	}
}

// Whatever a variant leaves behind, and whatever comes with a place in the round, meets every variant equally often.
func TestRoundsAreFair(t *testing.T) {
	for n := 1; n <= 7; n++ {
		rounds := n * (1 + n%2)
		at, after := map[[2]int]int{}, map[[2]int]int{}
		for round := range rounds {
			require.Equal(t, round%n, place(n, round, 0), "the variant that starts rotates")
			for i := range n {
				at[[2]int{i, place(n, round, i)}]++
				if i > 0 {
					after[[2]int{place(n, round, i-1), place(n, round, i)}]++
				}
			}
		}
		for first := range n {
			for second := range n {
				require.Equal(t, rounds/n, at[[2]int{first, second}], "%d variants: place %d has variant %d", n, first, second)
				if first != second {
					require.Equal(t, rounds/n, after[[2]int{first, second}], "%d variants: %d comes before %d", n, first, second)
				}
			}
		}
	}
}

// A row whose samples take little time goes on until they add up, with the same number of rounds for all of its variants.
func TestShortCallsGetMoreRounds(t *testing.T) {
	const us = time.Microsecond // which is what the waits of a sample take
	for _, c := range []struct {
		name           string
		took           []time.Duration
		warmup, repeat int
		want           int
	}{
		{"alone", []time.Duration{299 * us}, 0, 7, 200},
		{"samples of several calls", []time.Duration{49 * us, 24 * us}, 2, 7, 50},
		{"the warm-up does not count", []time.Duration{299 * us}, 5, 7, 200},
		{"three share the time", []time.Duration{99 * us, 199 * us, 299 * us}, 2, 7, 100},
		{"the shortest calls", []time.Duration{0}, 2, 7, 500},
		{"more were asked for", []time.Duration{0}, 2, 600, 600},
		{"long calls", []time.Duration{100 * us, 30 * time.Millisecond}, 2, 3, 3},
		{"a single round", []time.Duration{0}, 2, 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &fakeWatch{}
			var variants []variant
			for _, d := range c.took {
				variants = append(variants, f.variant("a", d))
			}
			w := f.stopwatch()
			w.short = 60 * time.Millisecond
			got, err := w.measure(variants, c.warmup, c.repeat)
			require.NoError(t, err)
			for _, s := range got {
				require.Len(t, s.ns, c.want)
				require.True(t, c.want > 1 || s.calls == 1, "a single round is one call")
			}
		})
	}
}

// Where a call is short, every sample of the row is the mean of 16 calls: what a call takes now and then, and luck, are in all of them.
func TestSamplesOfShortCalls(t *testing.T) {
	const us = time.Microsecond // which is what the waits of a call take
	for _, c := range []struct {
		name   string
		took   []time.Duration // of a call, in turn
		other  time.Duration
		warmup int
		short  time.Duration
		calls  int
		first  int64 // sample
	}{
		{"short", []time.Duration{9 * us, 49 * us}, time.Millisecond, 2, time.Millisecond, 16, 30_000},
		{"both", []time.Duration{9 * us, 49 * us}, 0, 2, time.Millisecond, 16, 30_000},
		{"at the limit", []time.Duration{99 * us}, time.Millisecond, 2, time.Millisecond, 1, 100_000},
		{"emulated", []time.Duration{9 * us}, time.Millisecond, 2, 0, 1, 10_000},
		{"without a warm-up", []time.Duration{9 * us}, time.Millisecond, 0, time.Millisecond, 1, 10_000},
		{"long at first", []time.Duration{200 * us, 9 * us}, time.Millisecond, 2, time.Millisecond, 16, 105_500},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &fakeWatch{}
			made, other := 0, f.variant("b", c.other)
			v := variant{run: func() (func() error, error) {
				f.clock = f.clock.Add(c.took[made%len(c.took)])
				made++
				return func() error { f.clock = f.clock.Add(time.Hour); return nil }, nil
			}}
			w := f.stopwatch()
			w.short = c.short
			got, err := w.measure([]variant{v, other}, c.warmup, 3)
			require.NoError(t, err)
			for _, s := range got {
				require.Equal(t, c.calls, s.calls)
			}
			require.Equal(t, c.first, got[0].ns[0])
			require.Equal(t, c.warmup+c.calls*len(got[0].ns), made)
			require.Equal(t, c.other.Nanoseconds()+1000, got[1].ns[0])
		})
	}
}

// The collector runs before the first round, and again when samples have taken ten milliseconds.
func TestCollectionsAreBetweenRounds(t *testing.T) {
	collections := func() uint32 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.NumGC
	}
	for _, c := range []struct {
		took time.Duration
		want uint32
	}{
		{99 * time.Microsecond, 3}, // before rounds 0, 50 and 100 of 101, of two samples of 100 microseconds each
		{time.Second, 101},
	} {
		f := &fakeWatch{}
		v := f.variant("a", c.took)
		garbage := variant{run: func() (func() error, error) {
			within := collections()
			kept := make([][]byte, 64)
			for i := range kept {
				kept[i] = make([]byte, 1<<16)
			}
			require.Equal(t, within, collections(), "inside a sample")
			return v.run()
		}}
		runtime.GC() // which ends one that has begun
		before := collections()
		_, err := f.stopwatch().measure([]variant{garbage, v}, 1, 100)
		require.NoError(t, err)
		require.Equal(t, c.want, collections()-before)
	}
}

func TestMeasureCountsAllocations(t *testing.T) {
	for _, c := range []struct {
		name   string
		warmup int
		made   []uint64
		want   uint64
	}{
		{"warm-up fills the pools", 1, []uint64{5}, 0},
		{"so does the first round without one", 0, []uint64{5}, 0},
		{"a later allocation counts", 1, []uint64{5, 0, 2}, 2},
		{"also without a warm-up", 0, []uint64{5, 1}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &fakeWatch{}
			got, err := f.stopwatch().measure([]variant{f.variant("a", 1, c.made...)}, c.warmup, 3)
			require.NoError(t, err)
			require.Equal(t, c.want, got[0].allocs)
			require.Len(t, got[0].ns, 3)
		})
	}
}

func TestMeasureStopsAtAnError(t *testing.T) {
	boom := errors.New("boom")
	f := &fakeWatch{}
	_, err := f.stopwatch().measure([]variant{{run: func() (func() error, error) { return nil, boom }}}, 0, 3)
	require.ErrorIs(t, err, boom)

	w := f.stopwatch()
	waits := 0
	w.sync = func() error {
		if waits++; waits == 4 {
			return boom
		}
		return nil
	}
	_, err = w.measure([]variant{f.variant("a", 1)}, 0, 3)
	require.ErrorIs(t, err, boom)
}
