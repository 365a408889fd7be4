package main

import (
	"errors"
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
	require.Equal(t, []string{"a", "b", "c", "b", "c", "a", "c", "a", "b", "a", "b", "c"}, order)
	for i, want := range []int64{10, 20, 30} { // the wait after the call counts, the release does not
		require.Equal(t, []int64{want + 1000, want + 1000, want + 1000}, got[i].ns)
		timing := got[i].timing()
		require.Equal(t, want+1000, timing.MinNS)
		require.Equal(t, int64(1), timing.ResolutionNS)
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
