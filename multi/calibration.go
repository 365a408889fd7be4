package multi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"
)

// Calibration is what CalibrateDevices measured and decided. It is configuration: write
// it with package json, read it with ImportCalibration and give it to
// Scene.RestoreCalibration. All times are in nanoseconds.
type Calibration struct {
	Operation string `json:"operation"` // key of the weights
	Probe     string `json:"probe"`     // built-in or custom
	Rows      int64  `json:"rows"`      // of the timed batch
	// When and of what it was measured. Nothing checks it: whether another scene is alike
	// is for its user to say.
	Taken   time.Time     `json:"taken,omitzero"`
	Backend string        `json:"backend,omitempty"`
	Kernels string        `json:"kernels,omitempty"` // ptx.ManifestDigest
	Shapes  int           `json:"shapes,omitempty"`  // meshes and instances
	Bounds  [2][3]float32 `json:"bounds,omitzero"`   // of the scene
	// Devices are the throughput of each device alone, in the order of the set.
	Devices []CalibratedDevice `json:"devices"`
	// Ladder are the splits that were timed through the real dispatch. It decides
	// nothing; Candidate is the fastest rung with remote rows, which the pairs judge.
	Ladder    []Rung `json:"ladder"`
	Candidate int    `json:"candidate"` // index in Ladder
	// Model is the predicted best split, absent without a ladder.
	Model *Model `json:"model,omitempty"`
	// Pairs are the timings that decide, in the order of measurement.
	Pairs    []Pair   `json:"pairs"`
	Interval Interval `json:"interval"` // of the median of ln(master/sharded)
	Verdict  Verdict  `json:"verdict"`
	// Weights are the chosen split: the candidate's, or the master alone.
	Weights []float64 `json:"weights"`
	// BelowFloor: the chosen split has remote rows, but the floors of the scene let the
	// master answer a batch of this size alone.
	BelowFloor bool `json:"below_floor"`
}

// CalibratedDevice is the throughput of one device alone.
type CalibratedDevice struct {
	Device  int             `json:"device"` // ordinal
	Name    string          `json:"name"`
	Samples []time.Duration `json:"samples_ns"` // of whole batches, in the order of the rounds
	Median  time.Duration   `json:"median_ns"`
	Weight  float64         `json:"weight"` // in proportion to the speed; 1 on average
	// Contended: it differs from the master, a device of the same product, by more than
	// five percent. Somebody else's work is the likeliest reason, so the difference is
	// not in the weights.
	Contended bool `json:"contended"`
}

// Rung is one split of the ladder.
type Rung struct {
	Share   float64       `json:"share"`     // part of the rows that is not the master's
	Weights []float64     `json:"weights"`   // by position
	Median  time.Duration `json:"median_ns"` // of a batch; 0: not timed
	Model   bool          `json:"model"`     // the rung that the model suggested
}

// Pair is a batch divided as the candidate says and one by the master alone, timed one after
// the other.
type Pair struct {
	Sharded time.Duration `json:"sharded_ns"`
	Master  time.Duration `json:"master_ns"`
}

// Contended reports that a device looked busy with other work.
func (c *Calibration) Contended() bool {
	return slices.ContainsFunc(c.Devices, func(d CalibratedDevice) bool { return d.Contended })
}

// Gain is the median gain of the candidate over the master alone and its interval, as
// parts of 1: 0.61 is a batch that takes 1/1.61 of the time. They are NaN of a record without
// pairs.
func (c *Calibration) Gain() (median, low, high float64) {
	d := differences(c.Pairs)
	if len(d) == 0 {
		return math.NaN(), math.NaN(), math.NaN()
	}
	slices.Sort(d)
	m := (d[(len(d)-1)/2] + d[len(d)/2]) / 2
	return math.Expm1(m), math.Expm1(c.Interval.Low), math.Expm1(c.Interval.High)
}

// differences are ln(master/sharded) of each pair.
func differences(pairs []Pair) []float64 {
	d := make([]float64, len(pairs))
	for i, p := range pairs {
		d[i] = math.Log(float64(p.Master) / float64(p.Sharded))
	}
	return d
}

// Describe prints the record: one line per device, one per rung, the model, and the
// decision with its margin.
func (c *Calibration) Describe() string {
	var b strings.Builder
	fmt.Fprintf(&b, "calibration of %s, %d rows, %s probe\n", c.Operation, c.Rows, c.Probe)
	if !c.Taken.IsZero() {
		fmt.Fprintf(&b, "  %s, backend %s, %d shapes from %v to %v, kernels %.12s\n",
			c.Taken.Format(time.RFC3339), c.Backend, c.Shapes, c.Bounds[0], c.Bounds[1], c.Kernels)
	}
	for _, d := range c.Devices {
		fmt.Fprintf(&b, "  dev%d  %s  alone %s  weight %.4f", d.Device, d.Name, ms(float64(d.Median)), d.Weight)
		if d.Contended {
			b.WriteString("  CONTENDED_THROUGHPUT: unlike the master by more than 5 %, not adopted")
		}
		b.WriteByte('\n')
	}
	for i, r := range c.Ladder {
		fmt.Fprintf(&b, "  rung  share %.4f  weights %.4g", r.Share, r.Weights)
		if r.Median > 0 {
			fmt.Fprintf(&b, "  %s", ms(float64(r.Median)))
		}
		switch {
		case i == c.Candidate:
			b.WriteString("  candidate")
		case r.Share == 0:
			b.WriteString("  master alone")
		}
		if r.Model {
			b.WriteString("  (model)")
		}
		b.WriteByte('\n')
	}
	if c.Model != nil {
		fmt.Fprintf(&b, "  model  %s\n", c.Model)
	}
	if len(c.Pairs) == 0 {
		b.WriteString("  no pairs: nothing was decided\n")
		return b.String()
	}
	gain, low, high := c.Gain()
	fmt.Fprintf(&b, "  gain %+.1f%% [%+.1f%%, %+.1f%%], %s: weights %.4g; %d pairs, interval of %.1f %%\n",
		100*gain, 100*low, 100*high, c.Verdict, c.Weights, len(c.Pairs), 100*c.Interval.Coverage)
	if c.BelowFloor {
		b.WriteString("  BELOW_FLOOR: the row floor lets the master answer this batch alone\n")
	}
	return b.String()
}

// String is Describe.
func (c *Calibration) String() string { return c.Describe() }

// ImportCalibration reads a record that package json wrote, and checks that it hangs
// together. Errors: ErrCalibration.
func ImportCalibration(data []byte) (*Calibration, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	var c Calibration
	if err := dec.Decode(&c); err != nil {
		return nil, fmt.Errorf("%w: it is no JSON of a record: %w", ErrCalibration, err)
	}
	if _, err := dec.Token(); err != io.EOF { // More takes a bracket for an end
		return nil, fmt.Errorf("%w: there is more behind the record", ErrCalibration)
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	return &c, nil
}

// check requires what users of a record rely on: its parts belong together, and the
// verdict and the weights follow from the pairs.
func (c *Calibration) check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrCalibration, fmt.Sprintf(format, args...))
	}
	n := len(c.Devices)
	if n < 2 {
		return bad("%d devices, a split has at least 2", n)
	}
	if err := checkKeyWeights(c.Operation, c.Weights, n); err != nil {
		return fmt.Errorf("%w: %w", ErrCalibration, err)
	}
	if c.Candidate < 0 || c.Candidate >= len(c.Ladder) {
		return bad("candidate %d of %d rungs", c.Candidate, len(c.Ladder))
	}
	for i, r := range c.Ladder {
		if err := checkKeyWeights(c.Operation, r.Weights, n); err != nil {
			return fmt.Errorf("%w: rung %d: %w", ErrCalibration, i, err)
		}
	}
	at := slices.IndexFunc(looks[:], func(l look) bool { return l.pairs == len(c.Pairs) })
	if at < 0 {
		return bad("%d pairs, a decision has 9, 15 or 25", len(c.Pairs))
	}
	for i, p := range c.Pairs {
		if p.Master < 1 || p.Sharded < 1 {
			return bad("pair %d holds times of %d and %d ns", i, p.Master, p.Sharded)
		}
	}
	verdict, interval, done := verdictOf(differences(c.Pairs), at)
	if !done || verdict != c.Verdict {
		return bad("verdict %q, the pairs give %q", c.Verdict, verdict)
	}
	if !interval.near(c.Interval) {
		return bad("interval %+v, the pairs give %+v", c.Interval, interval)
	}
	want := masterAlone(n)
	if verdict == VerdictShard {
		want = c.Ladder[c.Candidate].Weights
	}
	if !slices.Equal(c.Weights, want) {
		return bad("weights %v, a verdict of %q means %v", c.Weights, verdict, want)
	}
	return nil
}

// masterAlone are the weights that give every row to the master.
func masterAlone(n int) []float64 {
	w := make([]float64, n)
	w[0] = 1
	return w
}
