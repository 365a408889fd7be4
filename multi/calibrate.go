package multi

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/ptx"
)

// Sizes of a calibration.
const (
	ladderRounds   = 3
	discardedPairs = 2
	// linkProbe are the bytes of a copy that shows the rate of a link to the model.
	linkProbe         = 32 << 20
	linkProbeEmulated = 1 << 20
)

// ladderFactors multiply the weights of the remotes. The last one is there because the
// master finalizes the rows of all devices: a remote that is as fast can search a little
// more.
var ladderFactors = [...]float64{1, 1. / 2, 1. / 4, 1. / 10, 0, 17. / 16}

// stage is a part of a calibration.
type stage string

const (
	stageThroughput stage = "throughput"
	stageFixed      stage = "fixed cost"
	stageLadder     stage = "ladder"
	stageDecision   stage = "decision"
)

// point is what a sample times: the probe on the replica of a position, or on the set
// with these weights.
type point struct {
	stage    stage
	position int       // of stageThroughput
	weights  []float64 // of the other stages
	round    int       // negative: warm-up, its time is dropped
}

// meter takes the measurements of a calibration.
type meter struct {
	// sample times a call of run; run has not been called when it fails early.
	sample func(at point, run func() error) (time.Duration, error)
	// rates are those of the slowest links, from and to the master, in bytes per second.
	rates func(ctx context.Context) (out, in float64, err error)
}

// CalibrateDevices times one operation on the devices of the set, decides whether dividing
// its batches pays, and stores the split under the exact key of the operation; the splits
// of other operations stay. At given weights execution is as reproducible as ever.
//
// It measures in three stages. First the probe runs on every replica alone, which gives
// weights in proportion to speed. Then several splits run through the real dispatch, from
// these weights down to the master alone, and the fastest with remote rows becomes the
// candidate. At last candidate and master run in pairs, in random order, and an interval of
// the median gain decides: for the candidate only where the gain is more than two percent
// with certainty, otherwise for the master alone. So it fails by missing a small gain, and
// not by an unnoticed loss. It promises nothing about the speed of later calls: calibrate
// with your own batch size and probe on a quiet machine, read Describe, and keep the
// record as configuration.
//
// While it runs, calls of this operation are divided by the weights that are being timed,
// without floors and memory knobs; every exit restores both. Calls of other operations are
// as always, but all calls of others disturb the timing. A second calibration of the
// scene at the same time is ErrCalibrating. After an error nothing has changed.
//
// Errors: ErrOneDevice, *ProbeError, ErrCalibrating, those of the operation and of Run, the
// error of a context that ended (checked before every sample).
//
// Cost: for n devices and R repeats n (R+1) runs on one device, about 30 on the set for the
// ladder, and 22, 34 or 54 for the decision: with two devices some 70 to 100 times the batch.
// The built-in probe holds 24 bytes per row and the result on each device meanwhile.
func (s *Scene) CalibrateDevices(ctx context.Context, probe Probe) (*Calibration, error) {
	return s.calibrate(ctx, probe, meter{s.byTheClock, s.linkRates})
}

func (s *Scene) calibrate(ctx context.Context, probe Probe, m meter) (record *Calibration, err error) {
	p, err := probe.resolve(s)
	if err != nil {
		return nil, err
	}
	release, err := s.split.claim()
	if err != nil {
		return nil, err
	}
	defer release()
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	c := &calibration{s: s, ctx: ctx, meter: m, probe: p, run: p.Run, trial: &trial{key: p.Operation},
		rng: rand.New(rand.NewPCG(14, 0)), record: &Calibration{Operation: p.Operation, Probe: "custom"}}
	if p.Run == nil {
		b, err := newBuiltInProbe(ctx, s, p.Rays, p.MaxBounces)
		if err != nil {
			return nil, err
		}
		defer func() {
			if e := b.close(); e != nil && err == nil {
				record, err = nil, e
			}
		}()
		c.run, c.record.Probe = b.run, "built-in"
	}
	for _, f := range []func() error{c.throughput, c.prepare, c.ladder, c.decide} {
		if err := f(); err != nil {
			return nil, fmt.Errorf("multi: CalibrateDevices of %s: %w", p.Operation, err)
		}
	}
	c.provenance()
	s.split.store(p.Operation, c.record.Weights)
	return c.record, nil
}

// provenance notes what a reader of the record compares with his own scene.
func (c *calibration) provenance() {
	r := c.record
	r.Taken = time.Now().UTC().Truncate(time.Second)
	r.Backend, r.Kernels, r.Shapes = c.s.Backend().String(), ptx.ManifestDigest(), c.s.NumShapes()
	r.Bounds[0], r.Bounds[1] = c.s.Bounds()
}

// usable refuses a set that is closed or has diverged.
func (s *Scene) usable(ctx context.Context) error {
	done, err := s.beginReady(ctx)
	if err == nil {
		done()
	}
	return err
}

// calibration is one run.
type calibration struct {
	s      *Scene
	ctx    context.Context
	meter  meter
	probe  Probe
	run    func(ctx context.Context, target Target, device int) error
	trial  *trial
	rng    *rand.Rand
	base   []float64 // weights of the throughput stage
	record *Calibration
}

// alone times the probe on one replica.
func (c *calibration) alone(position, round int) (time.Duration, error) {
	r := c.s.replicas[position]
	if err := context.Cause(c.ctx); err != nil {
		return 0, err
	}
	if err := c.s.split.impose(c.trial, c.base); err != nil { // refused while the set closes
		return 0, err
	}
	t, err := c.meter.sample(point{stage: stageThroughput, position: position, round: round}, func() error {
		return c.run(c.ctx, r.scene, r.ordinal)
	})
	return t, r.fail("the probe", err)
}

// divided times the probe on the set.
func (c *calibration) divided(st stage, weights []float64, round int) (time.Duration, error) {
	if err := context.Cause(c.ctx); err != nil {
		return 0, err
	}
	if err := c.s.split.impose(c.trial, weights); err != nil {
		return 0, err
	}
	calls := c.trial.calls
	t, err := c.meter.sample(point{stage: st, weights: weights, round: round}, func() error {
		return c.run(c.ctx, c.s, c.s.devices[0])
	})
	if err == nil && c.trial.calls == calls {
		err = &ProbeError{"Run", fmt.Sprintf("it made no call of %s on its target", c.probe.Operation)}
	}
	return max(t, 1), err
}

// rounds times variants in turn, each round beginning with another one, after a warm-up.
func rounds(variants, n int, sample func(variant, round int) (time.Duration, error)) ([][]time.Duration, error) {
	out := make([][]time.Duration, variants)
	for round := -1; round < n; round++ {
		for i := range variants {
			v := (i + max(round, 0)) % variants
			t, err := sample(v, round)
			if err != nil {
				return nil, err
			}
			if round >= 0 {
				out[v] = append(out[v], max(t, 1))
			}
		}
	}
	return out, nil
}

// throughput is the first stage: every device alone.
func (c *calibration) throughput() error {
	n := len(c.s.devices)
	c.base = masterAlone(n)
	samples, err := rounds(n, c.probe.Repeats, c.alone)
	if err != nil {
		return err
	}
	same := make([]bool, n)
	for p, x := range c.s.ctxs {
		same[p] = identityOf(x.Device()) == identityOf(c.s.ctxs[0].Device())
	}
	medians, weights, contended := throughput(samples, same)
	c.base = weights
	for p, x := range c.s.ctxs {
		c.record.Devices = append(c.record.Devices, CalibratedDevice{Device: c.s.devices[p], Name: x.Device().Name(),
			Samples: samples[p], Median: medians[p], Weight: weights[p], Contended: contended[p]})
	}
	return nil
}

// prepare runs the probe once on the set, which shows the batch.
func (c *calibration) prepare() error {
	if _, err := c.divided(stageLadder, c.base, -1); err != nil {
		return err
	}
	if c.record.Rows = c.trial.rows; c.record.Rows == 0 {
		return &ProbeError{"Run", "its batch is empty"}
	}
	c.record.Ladder = []Rung{{Share: remoteShare(c.base), Weights: c.base}}
	return nil
}

// ladder is the second stage: several splits through the real dispatch. Its fastest rung
// with remote rows becomes the candidate.
func (c *calibration) ladder() error {
	if c.probe.NoLadder {
		return nil
	}
	var rungs []Rung
	for _, f := range ladderFactors {
		rungs = c.addRung(rungs, Rung{Weights: scaleRemotes(c.base, f)})
	}
	if err := c.predict(); err != nil {
		return err
	}
	if m := c.record.Model; m.Share > 0 && m.Share < 1 && !nearRung(rungs, m.Share) {
		rungs = c.addRung(rungs, Rung{Weights: splitOf(c.base, m.Share), Model: true})
	}
	samples, err := rounds(len(rungs), ladderRounds, func(v, round int) (time.Duration, error) {
		return c.divided(stageLadder, rungs[v].Weights, round)
	})
	if err != nil {
		return err
	}
	best := -1
	for i := range rungs {
		rungs[i].Median = median(samples[i])
		if rungs[i].Share > 0 && (best < 0 || rungs[i].Median < rungs[best].Median) {
			best = i
		}
	}
	c.record.Ladder, c.record.Candidate = rungs, best
	return nil
}

// addRung appends a rung, unless another one divides the batch in the same way.
func (c *calibration) addRung(rungs []Rung, r Rung) []Rung {
	r.Share = remoteShare(r.Weights)
	cuts := c.split(r.Weights)
	if cuts[0].Len() == c.record.Rows { // of a share that rounds to nothing
		r.Weights, r.Share = masterAlone(len(cuts)), 0
	}
	for _, other := range rungs {
		if slices.Equal(cuts, c.split(other.Weights)) {
			return rungs
		}
	}
	return append(rungs, r)
}

// split divides the batch as its plan does.
func (c *calibration) split(weights []float64) []chunked.Range {
	if op := &c.trial.op; op.Class == chunked.SourceLane {
		return chunked.SplitBlocks(0, c.record.Rows, op.Block, weights)
	}
	return chunked.Split(0, c.record.Rows, weights)
}

// nearRung reports that a rung has this share to within a tenth.
func nearRung(rungs []Rung, share float64) bool {
	for _, r := range rungs {
		if r.Share >= 0.9*share && r.Share <= 1.1*share {
			return true
		}
	}
	return false
}

// predict measures what the model needs beside the throughput: the rates of the links, and
// the fixed cost, by which the split of the throughput stage takes longer than its slower
// part. (A token share would not show it, as it ends long before the master.)
func (c *calibration) predict() error {
	rows := c.record.Rows
	m := &Model{MasterRow: float64(c.record.Devices[0].Median) / float64(rows), Rows: rows}
	for _, w := range c.base[1:] { // contention is not in the weights
		m.RemoteRow += w / c.base[0]
	}
	m.RemoteRow = m.MasterRow / m.RemoteRow
	out, in, err := c.meter.rates(c.ctx)
	if err != nil {
		return err
	}
	m.LinkRow = 1e9 * max(float64(c.trial.op.In)/out, float64(c.trial.op.Wire)/in)
	t, err := rounds(1, ladderRounds, func(_, round int) (time.Duration, error) {
		return c.divided(stageFixed, c.base, round)
	})
	if err != nil {
		return err
	}
	m.setFixed(float64(median(t[0])), remoteShare(c.base))
	m.solve()
	c.record.Model = m
	return nil
}

// decide is the last stage: the candidate against the master, in pairs.
func (c *calibration) decide() error {
	r := c.record
	candidate, master := r.Ladder[r.Candidate].Weights, masterAlone(len(c.s.devices))
	for i := -discardedPairs; ; i++ {
		if at := lookAfter(i); at >= 0 {
			var done bool
			if r.Verdict, r.Interval, done = verdictOf(differences(r.Pairs), at); done {
				break
			}
		}
		var p Pair
		samples := []struct {
			weights []float64
			time    *time.Duration
		}{{candidate, &p.Sharded}, {master, &p.Master}}
		c.rng.Shuffle(len(samples), func(a, b int) { samples[a], samples[b] = samples[b], samples[a] })
		for _, x := range samples {
			var err error
			if *x.time, err = c.divided(stageDecision, x.weights, i); err != nil {
				return err
			}
		}
		if i >= 0 {
			r.Pairs = append(r.Pairs, p)
		}
	}
	r.Weights = master
	if r.Verdict == VerdictShard {
		r.Weights = candidate
		return c.checkFloor()
	}
	return nil
}

// lookAfter is the look that so many pairs allow, -1 for none.
func lookAfter(pairs int) int {
	for at, l := range looks {
		if l.pairs == pairs {
			return at
		}
	}
	return -1
}

// checkFloor notes that the scene's own floors keep the chosen split from being used.
func (c *calibration) checkFloor() error {
	c.s.split.lift()
	in := c.s.planInput(c.trial.op, c.record.Rows)
	in.Weights = c.record.Weights
	plan, err := chunked.BuildPlan(in)
	if err != nil {
		return err
	}
	c.record.BelowFloor = plan.Kind.Whole()
	return nil
}

// byTheClock is the meter's sample by the clock: all devices idle, then the call, until the
// device that it was for is idle again.
func (s *Scene) byTheClock(at point, run func() error) (time.Duration, error) {
	if err := idle(s.ctxs); err != nil {
		return 0, err
	}
	begin := time.Now()
	err := run()
	// Also after a failure: what was enqueued must not run into the next sample.
	err = errors.Join(err, idle(s.ctxs[at.position:at.position+1]))
	return time.Since(begin), err
}
