package multi

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/raymux/raymux/chunked"
)

// splits are the weights that calls are divided by, beside those of the options, and what
// calibrations have to know about calls.
type splits struct {
	mu         sync.Mutex
	calibrated map[string][]float64 // by operation key
	latest     []float64            // the one chosen last
	rows       map[string]int64     // of the last call, by operation key
	trial      *trial               // of a running calibration
	running    chan struct{}        // closed when the calibration that is running ends; nil: none is
	closings   int                  // calls that close the scene or wait to: no calibration may begin
}

// trial is what a running calibration imposes on the calls of its operation.
type trial struct {
	key     string
	weights []float64
	op      chunked.Op // of the calls that were made
	rows    int64      // of the largest of them
	calls   int
}

// planInput is what a plan of op depends on. The weights are, in the order of precedence,
// those that a running calibration of the operation times, its calibrated ones, and those
// of the options. Other operations never see a running calibration.
func (s *Scene) planInput(op chunked.Op, rows int64) chunked.Input {
	in := chunked.Input{Op: op, Rows: rows, Devices: s.devices, Options: s.opts.Options, Transport: s.transport}
	s.split.mu.Lock()
	defer s.split.mu.Unlock()
	if t := s.split.trial; t != nil && t.key == op.Key {
		in.Weights, in.WeightSource = t.weights, "timed by a calibration"
		in.Options = unrestricted(in.Options)
	} else if w := s.split.calibrated[op.Key]; w != nil {
		in.Weights, in.WeightSource = w, "calibration"
	}
	return in
}

// unrestricted lifts floors and memory knobs.
func unrestricted(o chunked.Options) chunked.Options {
	o.MinRaysPerDevice, o.MinLanesPerDevice, o.ChunkRays, o.MemoryBudget = 1, 1, 0, 0
	return o
}

// tries reports whether a calibration of the operation is running.
func (s *Scene) tries(key string) bool {
	s.split.mu.Lock()
	defer s.split.mu.Unlock()
	return s.split.trial != nil && s.split.trial.key == key
}

// called notes a call of op.
func (s *Scene) called(op chunked.Op, rows int64) {
	s.split.mu.Lock()
	defer s.split.mu.Unlock()
	if t := s.split.trial; t != nil && t.key == op.Key {
		t.calls++
		if rows >= t.rows {
			t.op, t.rows = op, rows
		}
		return
	}
	if s.split.rows == nil {
		s.split.rows = map[string]int64{}
	}
	s.split.rows[op.Key] = rows
}

// claim makes the caller the only calibration of the scene, until its call of done.
func (x *splits) claim() (done func(), err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case x.closings > 0:
		return nil, ErrClosed
	case x.running != nil:
		return nil, ErrCalibrating
	}
	x.running = make(chan struct{})
	return func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		close(x.running)
		x.running, x.trial = nil, nil
	}, nil
}

// end lets a running calibration stop at its next sample, waits for that, and allows no
// other one until as many calls of resume.
func (x *splits) end(ctx context.Context) error {
	x.mu.Lock()
	x.closings++
	running := x.running
	x.mu.Unlock()
	if running == nil {
		return nil
	}
	select {
	case <-running:
		return nil
	case <-ctx.Done():
		x.resume()
		return context.Cause(ctx)
	}
}

// resume takes a call of end back.
func (x *splits) resume() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.closings--
}

// impose sets the split of the coming calls of a running calibration.
func (x *splits) impose(t *trial, weights []float64) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closings > 0 {
		return ErrClosed
	}
	t.weights = weights
	x.trial = t
	return nil
}

// lift lets calls be divided as always.
func (x *splits) lift() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.trial = nil
}

func (x *splits) store(key string, weights []float64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.calibrated == nil {
		x.calibrated = map[string][]float64{}
	}
	x.calibrated[key] = slices.Clone(weights)
	x.latest = x.calibrated[key]
}

func (x *splits) lastRows(key string) int64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.rows[key]
}

// DeviceWeights is the split that was chosen by the last calibration, or restored from one;
// without any the Weights of the options, or equal weights.
func (s *Scene) DeviceWeights() []float64 {
	s.split.mu.Lock()
	latest := s.split.latest
	s.split.mu.Unlock()
	switch {
	case latest != nil:
		return slices.Clone(latest)
	case s.opts.Weights != nil:
		return slices.Clone(s.opts.Weights)
	}
	return slices.Repeat([]float64{1}, len(s.devices))
}

// DeviceWeightsFor is the split that the next call of an operation uses, given by its key
// (chunked.Keys): of the calibration that is timing it right now; else of its last
// calibration or its entry of OperationWeights; else the entry of its family; else
// Weights; else equal weights. Errors: *chunked.OptionError for what is no key.
func (s *Scene) DeviceWeightsFor(key string) ([]float64, error) {
	family, ok := chunked.Family(key)
	if !ok {
		return nil, &chunked.OptionError{Option: fmt.Sprintf("DeviceWeightsFor(%q)", key), Reason: fmt.Sprintf("no such operation: the keys are %v", chunked.Keys())}
	}
	in := s.planInput(chunked.Op{Key: key, Family: family}, 0)
	in.Options = unrestricted(in.Options)
	plan, err := chunked.BuildPlan(in)
	return plan.Weights, err
}

// RestoreCalibration makes the split of an earlier calibration the one of its operation,
// as if it had just been measured. The set must have as many devices as the record, of
// the same products; ordinals may differ. Errors: ErrCalibration.
func (s *Scene) RestoreCalibration(c *Calibration) error {
	if c == nil {
		return fmt.Errorf("%w: it is nil", ErrCalibration)
	}
	if err := c.check(); err != nil {
		return err
	}
	if len(c.Devices) != len(s.devices) {
		return fmt.Errorf("%w: it is of %d devices, the set has %d", ErrCalibration, len(c.Devices), len(s.devices))
	}
	for p, d := range c.Devices {
		if name := s.ctxs[p].Device().Name(); name != d.Name {
			return fmt.Errorf("%w: position %d was a %s, here it is a %s: measure this set", ErrCalibration, p, d.Name, name)
		}
	}
	s.split.store(c.Operation, c.Weights)
	return nil
}

// checkKeyWeights validates weights of one operation as the options are.
func checkKeyWeights(key string, weights []float64, n int) error {
	return chunked.Options{OperationWeights: map[string][]float64{key: weights}}.Check(n)
}
