package multi

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
)

// Target is what a probe calls: in the first stage of a calibration the replica on one
// device, then the whole set.
type Target interface {
	Intersect(ctx context.Context, rays scene.Rays, flags scene.Flags, opts ...scene.CallOption) (*scene.Hits, error)
	TraceReflections(ctx context.Context, rays scene.Rays, maxBounces int, fields scene.ChainFields, opts ...scene.CallOption) (*scene.Chains, error)
	Visible(ctx context.Context, s scene.Segments, opts ...scene.CallOption) (*scene.Visibility, error)
	VisiblePair(ctx context.Context, s scene.SegmentPairs, opts ...scene.CallOption) (*scene.PairVisibility, error)
	VisibleEdge(ctx context.Context, e scene.EdgeSamples, opts ...scene.CallOption) (*scene.EdgeVisibility, error)
	VisibleChain(ctx context.Context, p scene.Polylines, opts ...scene.CallOption) (*scene.ChainVisibility, error)
	TraceReflEPC(ctx context.Context, in scene.EPCRows, opt scene.EPCOptions, opts ...scene.CallOption) (*scene.EPCPaths, error)
	TraceReflEPCField(ctx context.Context, in scene.EPCRows, opt scene.EPCFieldOptions, opts ...scene.CallOption) (*scene.EPCFields, error)
	TraceDfrPaths(ctx context.Context, tx, rx cuda.Slice[float32], states *scene.StateTable, opt scene.DfrPathOptions, opts ...scene.CallOption) (*scene.DfrPaths, error)
	AccumulateReflections(ctx context.Context, rays scene.Rays, grid scene.Grid, opt scene.ReflGridOptions, opts ...scene.CallOption) (*scene.ReflGrids, error)
	AccumDfrDirect(ctx context.Context, states *scene.StateTable, grid scene.Grid, opt scene.DfrDirectOptions, opts ...scene.CallOption) (*scene.DfrAccum, error)
	AccumDfrCoherentDirect(ctx context.Context, states *scene.StateTable, grid scene.Grid, opt scene.DfrCoherentOptions, opts ...scene.CallOption) (*scene.DfrCoherentAccum, error)
	Bounds() (lo, hi [3]float32)
	Context() *cuda.Context
	Stream() *cuda.Stream
}

// Probe says what CalibrateDevices measures.
type Probe struct {
	// Operation is the key of the measured operation, of those that docs/calibration.md
	// lists; a family, such as OpIntersect, is not one. Without it: intersect_full, or
	// trace_reflections:B with MaxBounces = B. Any other key needs Run.
	Operation string
	// Rays are the rows of the built-in probe. 0: those of the last call of the operation
	// on this scene, or 2^20. Where splitting pays depends on it: use your batch size.
	Rays int64
	// MaxBounces are the bounces of the built-in probe; 0 means Intersect.
	MaxBounces int
	// Run is your own probe; it needs Operation. It makes one call of the operation with
	// rows on the device with the given ordinal, and returns when that is enqueued. Build
	// inputs once per device and keep them: what Run does is timed. Tables of the set, of
	// states, materials and groups, are on all of its devices. Run may be called on any
	// replica and must neither change nor close the scene.
	Run func(ctx context.Context, target Target, device int) error
	// Repeats are the rounds in which the devices are timed alone. 0: 9. Fewer than 6
	// cannot tell devices of one product apart.
	Repeats int
	// NoLadder leaves the report of several splits out and judges the split that
	// follows from the devices' speed.
	NoLadder bool
}

// ProbeError says which field of a Probe cannot be used and why.
type ProbeError struct{ Field, Reason string }

func (e *ProbeError) Error() string { return "multi: Probe." + e.Field + ": " + e.Reason }

const (
	defaultProbeRows = 1 << 20
	defaultRepeats   = 9
	probeRowBytes    = 24 // origin and direction
	keyIntersectFull = "intersect_full"
	keyReflections   = "trace_reflections:"
)

// probeKeys are the keys of the operations of a scene, with B for a number of bounces.
var probeKeys = []string{
	keyIntersectFull, "intersect_reduced", "visible", "visible_pair", "visible_edge", "visible_chain", "trace_reflections:B",
	"trace_refl_epc:B", "trace_refl_epc_field:B", OpDfrPaths, keyReflGrid, keyDfrDirect, keyDfrCoherent,
}

// checkProbeKey requires the exact key of an operation.
func checkProbeKey(key string) error {
	family, known := chunked.Family(key)
	var members []string
	for _, k := range probeKeys {
		name, _, numbered := strings.Cut(k, ":")
		if key == k && !numbered || numbered && known && family == name && key != name {
			return nil
		}
		if of, ok := chunked.Family(k); numbered && name == key || ok && of == key {
			members = append(members, k)
		}
	}
	if len(members) > 0 {
		return &ProbeError{"Operation", fmt.Sprintf("%q is a family: give a key of it, %s", key, strings.Join(members, " or "))}
	}
	return &ProbeError{"Operation", fmt.Sprintf("%q: no such operation: the keys are %s", key, strings.Join(probeKeys, ", "))}
}

// resolve validates a probe and fills in what it leaves open.
func (p Probe) resolve(s *Scene) (Probe, error) {
	switch {
	case len(s.devices) < 2:
		return p, ErrOneDevice
	case p.Rays < 0:
		return p, &ProbeError{"Rays", fmt.Sprintf("%d: 0 is the last batch, otherwise give a positive number", p.Rays)}
	case p.MaxBounces < 0 || p.MaxBounces > scene.MaxBounces:
		return p, &ProbeError{"MaxBounces", fmt.Sprintf("%d: from 0 (Intersect) to %d", p.MaxBounces, scene.MaxBounces)}
	case p.Repeats < 0:
		return p, &ProbeError{"Repeats", fmt.Sprintf("%d: 0 is the default (%d), otherwise give a positive number", p.Repeats, defaultRepeats)}
	case p.Run != nil && p.Operation == "":
		return p, &ProbeError{"Operation", "missing: a probe of your own must say which operation it calls"}
	}
	if p.Repeats == 0 {
		p.Repeats = defaultRepeats
	}
	builtIn := keyIntersectFull
	if p.MaxBounces > 0 {
		builtIn = keyReflections + strconv.Itoa(p.MaxBounces)
	}
	if p.Operation == "" {
		p.Operation = builtIn
	}
	if err := checkProbeKey(p.Operation); err != nil {
		return p, err
	}
	if p.Run == nil && p.Operation != builtIn {
		return p, &ProbeError{"Run", fmt.Sprintf("missing: the built-in probe with MaxBounces %d measures %s, %s needs a probe of your own",
			p.MaxBounces, builtIn, p.Operation)}
	}
	if p.Rays == 0 {
		if p.Rays = s.split.lastRows(p.Operation); p.Rays == 0 {
			p.Rays = defaultProbeRows
		}
	}
	for _, c := range s.ctxs {
		if most := int64(c.Device().TotalMem() / probeRowBytes); p.Run == nil && p.Rays > most {
			return p, &ProbeError{"Rays", fmt.Sprintf("%d: the rays of the built-in probe take %d bytes each, and device %d has memory for %d",
				p.Rays, probeRowBytes, c.Device().Ordinal(), most)}
		}
	}
	return p, nil
}

// builtInProbe traces random rays inside the box of the scene. It shows what the
// operation costs on this geometry, for rays that have nothing in common.
type builtInProbe struct {
	bounces int
	rays    map[int]scene.Rays // by ordinal
	results map[Target]scene.Reusable
}

// newBuiltInProbe makes n rays and puts a copy on every device.
func newBuiltInProbe(ctx context.Context, s *Scene, n int64, bounces int) (b *builtInProbe, err error) {
	b = &builtInProbe{bounces: bounces, rays: map[int]scene.Rays{}, results: map[Target]scene.Reusable{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close())
		}
	}()
	lo, hi := s.Bounds()
	o, d := probeRays(n, lo, hi)
	for _, r := range s.replicas {
		rays := scene.Rays{}
		if rays.O, err = cuda.Upload(ctx, r.scene.Stream(), o); err != nil {
			return b, r.fail("staging the probe", err)
		}
		b.rays[r.ordinal] = rays
		if rays.D, err = cuda.Upload(ctx, r.scene.Stream(), d); err != nil {
			return b, r.fail("staging the probe", err)
		}
		b.rays[r.ordinal] = rays
	}
	return b, nil
}

// probeRays are n rays from a fixed seed: origins uniform in the box, directions in all
// directions alike.
func probeRays(n int64, lo, hi [3]float32) (o, d []float32) {
	rng := rand.New(rand.NewPCG(20260727, 14))
	o, d = make([]float32, 3*n), make([]float32, 3*n)
	for i := range o {
		extent := max(hi[i%3]-lo[i%3], 1e-3)
		o[i] = lo[i%3] + rng.Float32()*extent
		d[i] = float32(rng.NormFloat64())
	}
	return o, d
}

func (b *builtInProbe) run(ctx context.Context, target Target, device int) error {
	into := scene.Into(b.results[target])
	if b.bounces > 0 {
		r, err := target.TraceReflections(ctx, b.rays[device], b.bounces, scene.ChainCore, into)
		if err != nil {
			return err
		}
		b.results[target] = r
		return nil
	}
	r, err := target.Intersect(ctx, b.rays[device], scene.All, into)
	if err != nil {
		return err
	}
	b.results[target] = r
	return nil
}

// close frees the results and the rays.
func (b *builtInProbe) close() error {
	var errs []error
	for _, r := range b.results {
		errs = append(errs, r.Close())
	}
	for _, r := range b.rays {
		for _, v := range []cuda.Slice[float32]{r.O, r.D} {
			if !v.IsNil() {
				errs = append(errs, cuda.Free(v))
			}
		}
	}
	return firstError(errs)
}
