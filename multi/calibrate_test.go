package multi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/emu"
	"github.com/raymux/raymux/offload"
	"github.com/raymux/raymux/ptx"
	"github.com/raymux/raymux/scene"
)

// machine is what a scripted meter pretends: how long the probe takes.
type machine struct {
	alone []time.Duration // on each device
	fixed time.Duration   // of dividing a call
	link  time.Duration   // of sending the whole batch to the others
	out   float64         // rate of the link from the master in bytes per second; 0: 52.72e9
	noise func(at point, t time.Duration) time.Duration
	seen  []point
}

// divided is the time of a call with these weights: the slower of the master and the
// remotes, which get as much as the link brings.
func (m *machine) divided(weights []float64) time.Duration {
	sum := 0.0
	for _, w := range weights {
		sum += w
	}
	slowest := float64(m.alone[0]) * weights[0] / sum
	for p, w := range weights[1:] {
		if w > 0 {
			slowest = max(slowest, float64(m.fixed)+max(float64(m.alone[1+p])*w/sum, float64(m.link)*remoteShare(weights)))
		}
	}
	return time.Duration(slowest)
}

// meter makes every call of the probe and answers with the machine's times. It also
// requires that calls of the operation are divided as the sample says, without floors.
func (m *machine) meter(t *testing.T, s *Scene, key string) meter {
	return meter{
		sample: func(at point, run func() error) (time.Duration, error) {
			m.seen = append(m.seen, at)
			if at.stage != stageThroughput {
				w, err := s.DeviceWeightsFor(key)
				require.NoError(t, err)
				require.Equal(t, at.weights, w)
				plan, err := s.Plan(chunked.Op{Key: key, In: 24, Wire: 4, Record: 76}, 1000)
				require.NoError(t, err)
				require.Equal(t, chunked.Split(0, 1000, w)[len(w)-1].Len() == 0, plan.Kind.Whole(), "the floor is lifted")
			}
			if err := run(); err != nil {
				return 0, err
			}
			d := m.divided(at.orAlone(len(m.alone)))
			if at.stage == stageThroughput {
				d = m.alone[at.position]
			}
			if m.noise != nil {
				d = m.noise(at, d)
			}
			return d, nil
		},
		rates: func(context.Context) (out, in float64, err error) {
			if m.out > 0 {
				return m.out, 52.72e9, nil
			}
			return 52.72e9, 52.72e9, nil
		},
	}
}

func (p point) orAlone(n int) []float64 {
	if p.weights == nil {
		return masterAlone(n)
	}
	return p.weights
}

func calibrated(t *testing.T, n int, opts Options) *Scene {
	t.Helper()
	drv, _, _ := emulator(t, n)
	s := quickScene(t, drv, n, opts)
	build(t, s, soup(rand.New(rand.NewPCG(4, 2)), 40))
	return s
}

// quickScene is newScene with a short test of the links.
func quickScene(t *testing.T, drv *cuda.Driver, n int, opts Options) *Scene {
	t.Helper()
	s, err := create(drv, upToDevices(n), opts, 256)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func upToDevices(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

const msec = time.Millisecond

func TestMultiSceneCalibration(t *testing.T) {
	for _, c := range []struct {
		name    string
		machine machine
		verdict Verdict
		weights []float64
		says    []string
	}{
		{"equal devices", machine{alone: []time.Duration{20 * msec, 20 * msec}, fixed: 20 * time.Microsecond}, VerdictShard, []float64{1, 1},
			[]string{"gain +99.", "shard: weights [1 1]", "9 pairs", "candidate"}},
		{"a slow link", machine{alone: []time.Duration{2 * msec, 2 * msec}, fixed: msec, link: 60 * msec}, VerdictMaster, []float64{1, 0},
			[]string{"master: weights [1 0]", "master alone", "gain -"}},
		{"a tie", machine{alone: []time.Duration{10 * msec, 10 * msec}, link: 100 * msec, fixed: 900 * time.Microsecond}, VerdictMaster, []float64{1, 0}, nil},
		{"a contended remote", machine{alone: []time.Duration{30100 * time.Microsecond, 17 * msec}}, VerdictShard, []float64{1, 17. / 16},
			[]string{"CONTENDED_THROUGHPUT"}},
		{"noise", machine{alone: []time.Duration{10 * msec, 10 * msec}, noise: func(at point, d time.Duration) time.Duration {
			if at.stage == stageDecision && at.weights[1] > 0 { // ten percent faster and slower in turn
				return time.Duration(float64(10*msec) * math.Exp(.1*float64(1-2*(at.round&1))))
			}
			return d
		}}, VerdictInconclusive, []float64{1, 0}, []string{"25 pairs", "inconclusive"}},
		{"three devices", machine{alone: []time.Duration{30 * msec, 30 * msec, 30 * msec}}, VerdictShard, []float64{1, 1, 1},
			[]string{"gain +200", "dev2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := len(c.machine.alone)
			s := calibrated(t, n, Options{})
			r, err := s.calibrate(bg, Probe{Rays: 100}, c.machine.meter(t, s, keyIntersectFull))
			require.NoError(t, err)
			require.NoError(t, r.check())
			text := r.Describe()
			require.Equal(t, text, fmt.Sprint(r))
			require.Equal(t, c.verdict, r.Verdict, text)
			require.Equal(t, c.weights, r.Weights, text)
			require.EqualValues(t, 100, r.Rows)
			require.Equal(t, "built-in", r.Probe)
			require.WithinDuration(t, time.Now(), r.Taken, time.Minute)
			require.Equal(t, ptx.ManifestDigest(), r.Kernels)
			require.Equal(t, [2]any{"cuda", 1}, [2]any{r.Backend, r.Shapes})
			lo, hi := s.Bounds()
			require.Equal(t, [2][3]float32{lo, hi}, r.Bounds)
			require.Contains(t, text, "backend cuda, 1 shapes from")
			for _, say := range c.says {
				require.Contains(t, text, say)
			}
			require.GreaterOrEqual(t, strings.Count(text, "\n"), 1+n+len(r.Ladder)+1, "a line per device and rung")
			require.Equal(t, c.weights, s.DeviceWeights())
			have, err := s.DeviceWeightsFor("intersect_full")
			require.NoError(t, err)
			require.Equal(t, c.weights, have)
			other, err := s.DeviceWeightsFor("intersect_reduced")
			require.NoError(t, err)
			require.Equal(t, slices.Repeat([]float64{1}, n), other, "only the calibrated key changes")
		})
	}
}

// The order of the samples: rounds rotate, the ladder has the rungs of the specification,
// pairs come in both orders.
func TestMultiSceneCalibrationStages(t *testing.T) {
	s := calibrated(t, 2, Options{Options: chunked.Options{MinRaysPerDevice: 1000}})
	m := machine{alone: []time.Duration{20 * msec, 20 * msec}, link: 30 * msec, fixed: msec, out: 24 * 400 / .030}
	r, err := s.calibrate(bg, Probe{Rays: 400, MaxBounces: 2}, m.meter(t, s, "trace_reflections:2"))
	require.NoError(t, err)
	require.Equal(t, "trace_reflections:2", r.Operation)
	require.Equal(t, VerdictShard, r.Verdict)
	require.True(t, r.BelowFloor, "the chosen split has fewer remote rows than the floor of the scene")
	require.Contains(t, r.Describe(), "BELOW_FLOOR")

	by := map[stage][]point{}
	for _, p := range m.seen {
		by[p.stage] = append(by[p.stage], p)
	}
	require.Len(t, by[stageThroughput], 2*(1+defaultRepeats))
	var first []int
	for i := 2; i < len(by[stageThroughput]); i += 2 {
		first = append(first, by[stageThroughput][i].position)
	}
	require.Equal(t, []int{0, 1, 0, 1, 0, 1, 0, 1, 0}, first, "rounds begin in turn")
	var shares []float64
	for _, rung := range r.Ladder {
		shares = append(shares, rung.Share)
	}
	require.InDeltaSlice(t, []float64{.5, 1. / 3, .2, 1. / 11, 0, 17. / 33, r.Model.Share}, shares, 1e-12)
	require.True(t, r.Ladder[6].Model)
	require.InDelta(t, (20-1)/(20+30.), r.Model.Share, 1e-3)
	require.Equal(t, float64(msec), r.Model.Fixed, "of the even split, over its slower part")
	require.Len(t, by[stageLadder], 1+len(shares)*(1+ladderRounds))
	require.Len(t, by[stageDecision], 2*(discardedPairs+9))
	orders := map[bool]int{}
	for i := 0; i < len(by[stageDecision]); i += 2 {
		orders[by[stageDecision][i].weights[1] == 0]++
	}
	require.Len(t, orders, 2, "master and candidate begin at random")

	// The fastest sharded rung, not the largest, is the candidate.
	for i, rung := range r.Ladder {
		if rung.Share > 0 {
			require.GreaterOrEqual(t, rung.Median, r.Ladder[r.Candidate].Median, "rung %d", i)
		}
	}
	// Without a ladder the split of the throughput stage is judged.
	m.seen = nil
	r, err = s.calibrate(bg, Probe{Rays: 400, NoLadder: true, Repeats: 2}, m.meter(t, s, keyIntersectFull))
	require.NoError(t, err)
	require.Len(t, r.Ladder, 1)
	require.Nil(t, r.Model)
	require.Equal(t, []float64{1, 1}, r.Ladder[0].Weights)
}

// The ladder of 21.6: of rungs that are all slower than the master alone the fastest is
// the candidate all the same.
func TestMultiSceneCalibrationCandidate(t *testing.T) {
	s := calibrated(t, 2, Options{})
	times := []time.Duration{1311, 1300, 1290, 1285, 1283, 1312}
	m := meter{
		sample: func(at point, run func() error) (time.Duration, error) {
			for i, f := range ladderFactors {
				if at.weights != nil && at.weights[1] == f {
					return times[i] * time.Microsecond, run()
				}
			}
			return msec, run()
		},
		rates: func(context.Context) (out, in float64, err error) { return 1e18, 1e18, nil },
	}
	r, err := s.calibrate(bg, Probe{Rays: 50}, m)
	require.NoError(t, err)
	require.Equal(t, 3, r.Candidate)
	require.Equal(t, VerdictMaster, r.Verdict)
	require.Len(t, r.Ladder, 6)
}

func TestMultiSceneCalibrationRefusals(t *testing.T) {
	s := calibrated(t, 2, Options{})
	run := func(context.Context, Target, int) error { panic("not to be called") }
	for _, c := range []struct {
		probe Probe
		field string
	}{
		{Probe{Rays: -1}, "Rays"},
		{Probe{Rays: math.MaxInt64}, "Rays"},
		{Probe{MaxBounces: -1}, "MaxBounces"},
		{Probe{MaxBounces: scene.MaxBounces + 1}, "MaxBounces"},
		{Probe{Repeats: -3}, "Repeats"},
		{Probe{Run: run}, "Operation"},
		{Probe{Run: run, Operation: "no such"}, "Operation"},
		{Probe{Operation: "visible"}, "Run"},
		{Probe{Operation: "intersect_full", MaxBounces: 1}, "Run"},
	} {
		_, err := s.CalibrateDevices(bg, c.probe)
		var pe *ProbeError
		require.ErrorAs(t, err, &pe, c.field)
		require.Equal(t, c.field, pe.Field)
	}
	one := calibrated(t, 1, Options{})
	_, err := one.CalibrateDevices(bg, Probe{})
	require.ErrorIs(t, err, ErrOneDevice)

	drv, _, _ := emulator(t, 2)
	unbuilt := quickScene(t, drv, 2, Options{})
	_, err = unbuilt.CalibrateDevices(bg, Probe{Rays: 10})
	require.ErrorIs(t, err, scene.ErrNotReady)
	_, err = s.DeviceWeightsFor("nothing")
	require.ErrorContains(t, err, "no such operation")
}

// Every operation of a scene has a key that a probe may name, and a mistake is answered with those keys.
func TestMultiSceneProbeKeys(t *testing.T) {
	for _, k := range probeKeys {
		key := strings.Replace(k, ":B", ":3", 1)
		require.NoError(t, checkProbeKey(key))
		_, ok := chunked.Family(key)
		require.True(t, ok, key)
	}
	for key, want := range map[string]string{
		OpIntersect:            `multi: Probe.Operation: "intersect" is a family: give a key of it, intersect_full or intersect_reduced`,
		OpTraceReflections:     `multi: Probe.Operation: "trace_reflections" is a family: give a key of it, trace_reflections:B`,
		"trace_reflections:65": `multi: Probe.Operation: "trace_reflections:65": no such operation: the keys are intersect_full, `,
		"trace_reflections:B":  `multi: Probe.Operation: "trace_reflections:B": no such operation: the keys are intersect_full, `,
		"nearest_edge":         `multi: Probe.Operation: "nearest_edge": no such operation: the keys are intersect_full, `,
		"intersct":             `multi: Probe.Operation: "intersct": no such operation: the keys are intersect_full, `,
	} {
		err := checkProbeKey(key)
		var pe *ProbeError
		require.ErrorAs(t, err, &pe, key)
		require.Contains(t, err.Error(), want)
		require.NotContains(t, err.Error(), "OperationWeights")
		require.NotContains(t, strings.TrimPrefix(err.Error(), want), "nearest")
	}
}

// A sample that fails, wherever it is, changes nothing and leaves nothing behind.
func TestMultiResilienceCalibrationFailsCleanly(t *testing.T) {
	before := Options{Options: chunked.Options{OperationWeights: map[string][]float64{"intersect": {3, 1}}, Weights: []float64{2, 1}}}
	s := calibrated(t, 2, before)
	op := IntersectOp(scene.All, 24)
	want, err := s.Plan(op, 1<<22)
	require.NoError(t, err)
	boom := errors.New("boom")
	good := machine{alone: []time.Duration{20 * msec, 20 * msec}}
	ok := good.meter(t, s, keyIntersectFull)
	failures := 0
	for k := 0; ; k++ {
		n := 0
		m := ok
		m.sample = func(at point, run func() error) (time.Duration, error) {
			if n++; n > k {
				return 0, boom
			}
			return ok.sample(at, run)
		}
		_, err := s.calibrate(bg, Probe{Rays: 3, Repeats: 2}, m)
		if err == nil {
			break
		}
		failures++
		require.ErrorIs(t, err, boom)
		have, err := s.Plan(op, 1<<22)
		require.NoError(t, err)
		require.Equal(t, want, have)
		require.Equal(t, []float64{2, 1}, s.DeviceWeights())
	}
	require.Greater(t, failures, 40)
	have, err := s.Plan(op, 1<<22)
	require.NoError(t, err)
	require.Equal(t, []float64{1, 1}, have.Weights, "now it is calibrated")
	require.Equal(t, "calibration", have.WeightSource)

	m := ok
	m.rates = func(context.Context) (float64, float64, error) { return 0, 0, boom }
	_, err = s.calibrate(bg, Probe{Rays: 3}, m)
	require.ErrorIs(t, err, boom)

	ctx, cancel := context.WithCancel(bg)
	m = ok
	m.sample = func(at point, run func() error) (time.Duration, error) {
		if at.stage == stageDecision {
			cancel()
		}
		return ok.sample(at, run)
	}
	_, err = s.calibrate(ctx, Probe{Rays: 3}, m)
	require.ErrorIs(t, err, context.Canceled)

	require.Panics(t, func() {
		s.calibrate(bg, Probe{Operation: "visible", Run: func(context.Context, Target, int) error { panic("probe") }}, ok)
	})
	_, err = s.calibrate(bg, Probe{Rays: 3}, good.meter(t, s, keyIntersectFull))
	require.NoError(t, err, "the scene can be calibrated again after a panic")
}

// A probe of one's own sees each replica, then the set; it holds no turn, so it may call
// anything that takes one.
func TestMultiSceneCustomProbe(t *testing.T) {
	s := calibrated(t, 2, Options{Options: chunked.Options{MinRaysPerDevice: 1 << 40}})
	segments := map[int]scene.Segments{}
	for _, r := range s.replicas {
		segments[r.ordinal] = scene.Segments{Start: upload(t, r.scene.Stream(), make([]float32, 3*33)), End: upload(t, r.scene.Stream(), slices.Repeat([]float32{1}, 3*33))}
	}
	defer func() {
		for _, x := range segments {
			require.NoError(t, cuda.Free(x.Start))
			require.NoError(t, cuda.Free(x.End))
		}
	}()
	targets := map[Target]int{}
	probe := Probe{Operation: "visible", Repeats: 1, Run: func(ctx context.Context, target Target, device int) error {
		require.Equal(t, device, target.Context().Device().Ordinal())
		targets[target]++
		_, err := s.EdgeMask()
		require.NoError(t, err)
		_, err = s.CalibrateDevices(ctx, Probe{})
		require.ErrorIs(t, err, ErrCalibrating)
		// Calls of other operations are not touched.
		w, err := s.DeviceWeightsFor("visible_edge")
		require.NoError(t, err)
		require.Equal(t, []float64{1, 1}, w)
		r, err := target.Visible(ctx, segments[device])
		if err != nil {
			return err
		}
		return r.Close()
	}}
	m := machine{alone: []time.Duration{20 * msec, 20 * msec}}
	r, err := s.calibrate(bg, probe, m.meter(t, s, "visible"))
	require.NoError(t, err)
	require.EqualValues(t, 33, r.Rows, "of the call that was made")
	require.Equal(t, "custom", r.Probe)
	require.Len(t, targets, 3)
	require.Equal(t, 2, targets[s.replicas[0].scene], "a warm-up and one round")
	require.Greater(t, targets[s], 40)

	probe.Operation = "visible_pair"
	_, err = s.calibrate(bg, probe, meter{sample: func(_ point, run func() error) (time.Duration, error) { return 1, run() }})
	var pe *ProbeError
	require.ErrorAs(t, err, &pe)
	require.Contains(t, err.Error(), "made no call of visible_pair")
}

// Close lets the sample of a running calibration end, and the calibration with it.
func TestMultiResilienceCloseDuringCalibration(t *testing.T) {
	drv, _, _ := emulator(t, 2)
	s, err := create(drv, []int{0, 1}, Options{}, 256)
	require.NoError(t, err)
	build(t, s, soup(rand.New(rand.NewPCG(1, 1)), 9))
	closed := make(chan error, 1)
	n := 0
	m := meter{sample: func(at point, run func() error) (time.Duration, error) {
		if n++; n == 5 {
			go func() { closed <- s.Close() }()
			for {
				if done, err := s.split.claim(); errors.Is(err, ErrClosed) {
					break
				} else if err == nil {
					done()
				}
				time.Sleep(time.Millisecond)
			}
		}
		return msec, run()
	}}
	_, err = s.calibrate(bg, Probe{Rays: 5}, m)
	require.ErrorIs(t, err, ErrClosed)
	require.NoError(t, <-closed)
	require.Equal(t, 5, n)
	_, err = s.CalibrateDevices(bg, Probe{})
	require.ErrorIs(t, err, ErrClosed)
}

// What is to close the set and is refused leaves calibrations alone: those to come, the one that is
// running, and one that waits for the turn of the caller.
func TestMultiResilienceRefusedCloseKeepsCalibrations(t *testing.T) {
	s := calibrated(t, 2, Options{})
	ended, cancel := context.WithCancel(bg)
	cancel()
	at := func(begin func()) error { // calibrates, after the first sample has begun
		n := 0
		_, err := s.calibrate(bg, Probe{Rays: 5, NoLadder: true}, meter{sample: func(_ point, run func() error) (time.Duration, error) {
			if n++; n == 1 {
				begin()
			}
			return msec, run()
		}})
		return err
	}
	rays, free := randomBatch(rand.New(rand.NewPCG(1, 15)), 9).rays(t, s.Stream())
	defer free()
	inConsumer := func(f func(inside context.Context)) {
		_, err := s.Intersect(bg, rays, scene.All, Offload(func(inside context.Context, _ int64, _ offload.Chunk[*scene.Hits]) error {
			f(inside)
			return nil
		}))
		require.NoError(t, err)
	}
	refused := func(ctx context.Context, want error) {
		got := make(chan error, 1)
		go func() {
			_, err := s.RebuildWithout(ctx, 1)
			got <- err
		}()
		select {
		case err := <-got:
			require.ErrorIs(t, err, want)
		case <-time.After(time.Minute):
			require.Fail(t, "RebuildWithout hangs", "instead of %v", want)
		}
	}

	inConsumer(func(inside context.Context) {
		refused(inside, ErrReentrant)
		refused(ended, context.Canceled) // of somebody who has to wait for the turn
		require.ErrorIs(t, s.Close(), ErrReentrant)
	})
	require.NoError(t, at(func() { refused(ended, context.Canceled) }))

	measured := make(chan error, 1)
	inConsumer(func(inside context.Context) {
		go func() { measured <- at(func() {}) }()
		for begun := false; !begun; time.Sleep(time.Millisecond) { // and waits for the turn
			s.split.mu.Lock()
			begun = s.split.running != nil
			s.split.mu.Unlock()
		}
		refused(inside, ErrReentrant)
		require.ErrorIs(t, s.Close(), ErrReentrant)
	})
	require.NoError(t, <-measured)
}

// By the clock, on devices whose speed means nothing: the parts fit together.
func TestMultiSceneCalibrationByTheClock(t *testing.T) {
	s := calibrated(t, 2, Options{})
	batch := randomBatch(rand.New(rand.NewPCG(3, 1)), 77)
	batch.tmax, batch.active = nil, nil
	want := answer(t, s, batch, scene.All)
	r, err := s.CalibrateDevices(bg, Probe{})
	require.NoError(t, err)
	require.EqualValues(t, 77, r.Rows, "those of the last call")
	require.NoError(t, r.check())
	require.Equal(t, want, answer(t, s, batch, scene.All))
}

func TestMultiSceneCalibrationRecord(t *testing.T) {
	s := calibrated(t, 2, Options{Options: chunked.Options{Weights: []float64{5, 1}}})
	m := machine{alone: []time.Duration{20 * msec, 20 * msec}}
	r, err := s.calibrate(bg, Probe{Rays: 10}, m.meter(t, s, keyIntersectFull))
	require.NoError(t, err)
	text, err := json.Marshal(r)
	require.NoError(t, err)
	read, err := ImportCalibration(text)
	require.NoError(t, err)
	require.Equal(t, r, read)

	other := calibrated(t, 2, Options{Options: chunked.Options{Weights: []float64{5, 1}}})
	require.Equal(t, []float64{5, 1}, other.DeviceWeights())
	require.NoError(t, other.RestoreCalibration(read))
	require.Equal(t, []float64{1, 1}, other.DeviceWeights())
	build(t, other) // calibrated weights survive a rebuild
	w, err := other.DeviceWeightsFor("intersect_full")
	require.NoError(t, err)
	require.Equal(t, []float64{1, 1}, w)

	three := calibrated(t, 3, Options{})
	require.ErrorIs(t, three.RestoreCalibration(read), ErrCalibration)
	drv, _, _ := emulator(t, 2, emu.WithName(func(int) string { return "another" }))
	stranger := quickScene(t, drv, 2, Options{})
	require.ErrorContains(t, stranger.RestoreCalibration(read), "another")

	for name, spoil := range map[string]func(c *Calibration){
		"one device":      func(c *Calibration) { c.Devices = c.Devices[:1] },
		"key":             func(c *Calibration) { c.Operation = "x" },
		"weights":         func(c *Calibration) { c.Weights = []float64{1} },
		"other weights":   func(c *Calibration) { c.Weights = []float64{2, 1} },
		"candidate":       func(c *Calibration) { c.Candidate = len(c.Ladder) },
		"rung":            func(c *Calibration) { c.Ladder[0].Weights = nil },
		"number of pairs": func(c *Calibration) { c.Pairs = c.Pairs[:8] },
		"time of a pair":  func(c *Calibration) { c.Pairs[3].Master = 0 },
		"verdict":         func(c *Calibration) { c.Verdict = VerdictMaster },
		"unknown verdict": func(c *Calibration) { c.Verdict = "maybe" },
		"pairs disagree":  func(c *Calibration) { c.Pairs[3].Master = 1 },
		"interval":        func(c *Calibration) { c.Interval.High += .01 },
	} {
		broken, err := ImportCalibration(text)
		require.NoError(t, err)
		spoil(broken)
		data, err := json.Marshal(broken)
		require.NoError(t, err)
		_, err = ImportCalibration(data)
		require.ErrorIs(t, err, ErrCalibration, name)
	}
	for _, bad := range []string{"", "{", "[]", `{"unknown": 1}`, string(text) + "{}", string(text) + "}", string(text) + "]"} {
		_, err := ImportCalibration([]byte(bad))
		require.ErrorIs(t, err, ErrCalibration, fmt.Sprintf("%.40q", bad))
	}
	require.ErrorIs(t, three.RestoreCalibration(nil), ErrCalibration)
}

// A record without pairs, such as one that nobody has filled, knows no gain and says so.
func TestCalibrationWithoutPairs(t *testing.T) {
	c := &Calibration{Operation: OpVisible, Rows: 7}
	for _, gain := range func() [3]float64 { a, b, c := c.Gain(); return [3]float64{a, b, c} }() {
		require.True(t, math.IsNaN(gain))
	}
	require.Equal(t, "calibration of visible, 7 rows,  probe\n  no pairs: nothing was decided\n", c.Describe())
}

// The options of a set are its own: what their giver writes to them later changes nothing.
func TestMultiPolicyOptionsAreCopied(t *testing.T) {
	base, own := []float64{1, 2}, map[string][]float64{"visible": {1, 3}}
	s := calibrated(t, 2, Options{Options: chunked.Options{Weights: base, OperationWeights: own}})
	base[1], own["visible"][1], own["intersect"] = 5, 6, []float64{1, 7}
	for key, want := range map[string]float64{"visible": 3, "intersect_full": 2} {
		w, err := s.DeviceWeightsFor(key)
		require.NoError(t, err)
		require.Equal(t, []float64{1, want}, w, key)
	}
}

// Precedence: the calibrated key, the exact key of the options, the family, the base.
func TestMultiPolicyWeightKeys(t *testing.T) {
	s := calibrated(t, 2, Options{Options: chunked.Options{Weights: []float64{1, 2}, OperationWeights: map[string][]float64{
		"intersect": {1, 3}, "intersect_reduced": {1, 4}, "trace_reflections": {1, 5}, "nearest_edge": {1, 6}}}})
	for key, want := range map[string]float64{"intersect_full": 3, "intersect_reduced": 4, "intersect": 3, "trace_reflections:7": 5,
		"visible": 2, "nearest_edge_ray": 6, "nearest_edges:4": 2} {
		w, err := s.DeviceWeightsFor(key)
		require.NoError(t, err)
		require.Equal(t, []float64{1, want}, w, key)
	}
	s.split.store("intersect_reduced", []float64{1, 9})
	for key, want := range map[string]float64{"intersect_reduced": 9, "intersect_full": 3} {
		w, err := s.DeviceWeightsFor(key)
		require.NoError(t, err)
		require.Equal(t, []float64{1, want}, w, key)
	}
}
