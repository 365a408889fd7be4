package main

import (
	"runtime"
	"runtime/debug"
	"time"

	"github.com/raymux/raymux/bench/record"
	"github.com/raymux/raymux/cuda"
)

// variant is one way to do the same work.
type variant struct {
	// run enqueues the work. The returned function gives the results back; it is called outside the timed part.
	run func() (release func() error, err error)
}

// stopwatch takes interleaved samples of variants.
type stopwatch struct {
	sync   func() error     // waits until every device of the set is idle
	allocs func() uint64    // driver allocations so far, on all devices of the set
	now    func() time.Time // monotonic
	short  time.Duration    // rows whose samples together take less get more rounds than were asked for
}

// Bounds of the rounds of a row. A collection costs more than calls of microseconds, and makes the next one slow: there is one for so
// much time of samples. The fastest of any number of such calls is a matter of luck, because the faster a call, the rarer it is, without
// a limit that many reach: a sample is the mean of several.
const (
	shortTime   = 150 * time.Millisecond
	mostRounds  = 500
	collectTime = 10 * time.Millisecond
	shortCall   = 100 * time.Microsecond
	shortCalls  = 16
)

// stopwatch is that of calls on some of the devices. What emulated ones take says nothing, however often they are asked.
func (h *host) stopwatch(contexts []*cuda.Context) stopwatch {
	w := stopwatch{sync: idle(contexts), allocs: h.allocs.Load, now: time.Now}
	if !h.driver.Emulated() {
		w.short = shortTime
	}
	return w
}

// samples of one variant in nanoseconds, and what the pools did meanwhile.
type samples struct {
	ns     []int64
	calls  int    // each sample is the mean of so many
	allocs uint64 // driver allocations inside samples after the first round
}

// measure takes a sample of every variant in each round: warmup rounds unrecorded, and then repeat recorded ones, or as many more as the
// row is short. Where the last warm-up had a short call, samples are of several calls, those of all variants. A single round is one call
// of each and no more: who asks for it counts launches, as a profiler does. The garbage collector runs between rounds and not inside a
// sample.
func (w stopwatch) measure(variants []variant, warmup, repeat int) ([]samples, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	result := make([]samples, len(variants))
	if repeat == 1 {
		w.short = 0
	}
	calls := 1
	var recorded, uncollected time.Duration // samples
	for round := 0; round < warmup+repeat || recorded < w.short && round < warmup+mostRounds; round++ {
		if round == 0 || uncollected >= collectTime {
			runtime.GC()
			uncollected = 0
		}
		took, shortest, err := w.round(variants, round, calls, round >= warmup, result)
		if err != nil {
			return nil, err
		}
		uncollected += took
		if round >= warmup {
			recorded += took
		} else if round == warmup-1 && w.short > 0 && shortest < shortCall {
			calls = shortCalls
		}
	}
	for i := range result {
		result[i].calls = calls
	}
	return result, nil
}

// place is which of n variants is the i-th of a round. The one that starts rotates, and within n rounds, 2n where n is odd, every
// variant follows each of the others equally often (Williams' design): what one leaves behind, an idle device or a full cache,
// meets them all.
func place(n, round, i int) int {
	step := (i + 1) / 2
	if i%2 == 0 {
		step = -step
	}
	if round/n%2 == 1 {
		step = -step
	}
	return ((round+step)%n + n) % n
}

// round returns what its calls take together, and the shortest of its samples.
func (w stopwatch) round(variants []variant, round, calls int, record bool, result []samples) (took, shortest time.Duration, err error) {
	for i := range variants {
		at := place(len(variants), round, i)
		before := w.allocs()
		sum := time.Duration(0)
		for range calls {
			ns, err := w.call(variants[at])
			if err != nil {
				return 0, 0, err
			}
			sum += time.Duration(ns)
		}
		sample := sum / time.Duration(calls)
		took += sum
		if i == 0 || sample < shortest {
			shortest = sample
		}
		if !record {
			continue
		}
		result[at].ns = append(result[at].ns, sample.Nanoseconds())
		if round > 0 { // the very first round fills the pools, also without a warm-up
			result[at].allocs += w.allocs() - before
		}
	}
	return took, shortest, nil
}

// call times a call from idle devices to idle devices.
func (w stopwatch) call(v variant) (int64, error) {
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
