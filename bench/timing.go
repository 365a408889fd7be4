package main

import (
	"runtime"
	"runtime/debug"
	"time"

	"github.com/raymux/raymux/bench/record"
)

// variant is one way to do the same work.
type variant struct {
	// run enqueues the work. The returned function gives the results back; it is called outside the sample.
	run func() (release func() error, err error)
}

// stopwatch takes interleaved samples of variants.
type stopwatch struct {
	sync   func() error     // waits until every device of the set is idle
	allocs func() uint64    // driver allocations so far, on all devices of the set
	now    func() time.Time // monotonic
}

// samples of one variant in nanoseconds, and what the pools did meanwhile.
type samples struct {
	ns     []int64
	allocs uint64 // driver allocations inside samples after the first round
}

// measure runs every variant once a round, warmup rounds unrecorded and repeat rounds recorded. The variant that starts
// rotates from round to round.
func (w stopwatch) measure(variants []variant, warmup, repeat int) ([]samples, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	result := make([]samples, len(variants))
	for round := range warmup + repeat {
		if err := w.round(variants, round, round >= warmup, result); err != nil {
			return nil, err
		}
	}
	return result, nil
}

// round collects garbage and then keeps the collector off, so that no sample pays for the garbage of another.
func (w stopwatch) round(variants []variant, round int, record bool, result []samples) error {
	runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	for i := range variants {
		at := (round + i) % len(variants)
		before := w.allocs()
		ns, err := w.sample(variants[at])
		if err != nil {
			return err
		}
		if !record {
			continue
		}
		result[at].ns = append(result[at].ns, ns)
		if round > 0 { // the very first round fills the pools, also without a warm-up
			result[at].allocs += w.allocs() - before
		}
	}
	return nil
}

func (w stopwatch) sample(v variant) (int64, error) {
	if err := w.sync(); err != nil {
		return 0, err
	}
	start := w.now()
	release, err := v.run()
	if err != nil {
		return 0, err
	}
	if err := w.sync(); err != nil {
		return 0, err
	}
	ns := w.now().Sub(start).Nanoseconds()
	return ns, release()
}

// timing summarises samples for the record.
func (s samples) timing() record.Timing {
	low, median, high := record.Summary(s.ns)
	return record.Timing{MinNS: low, MedianNS: &median, MaxNS: &high, SamplesNS: s.ns, ResolutionNS: 1}
}
