package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/multi"
	"github.com/raymux/raymux/scene"
)

// Of the probe of segments.
const (
	visibleKey        = "visible"
	defaultProbeRows  = 1 << 20 // as of the library's probes
	probeSegmentBytes = 24
)

// segmentProbe tests random segments inside the box of the scene, the same on every device.
type segmentProbe struct {
	starts, ends []float32
	staged       map[int]*scene.Segments // by ordinal
	results      map[multi.Target]scene.Reusable
}

// newSegmentProbe makes n segments, 0 for the default number.
func newSegmentProbe(e *engine, n int64) (*segmentProbe, error) {
	if n == 0 {
		n = defaultProbeRows
	}
	for _, ordinal := range e.ordinals {
		d, err := e.drv.Device(ordinal)
		if err != nil {
			return nil, err
		}
		if most := int64(d.TotalMem() / probeSegmentBytes); n > most {
			return nil, usagef("-rows: %d: segments take %d bytes each, and device %d has memory for %d", n, probeSegmentBytes, ordinal, most)
		}
	}
	lo, hi := e.scene.Bounds()
	rng := rand.New(rand.NewPCG(20260727, 15))
	points := func() []float32 {
		out := make([]float32, 3*n)
		for i := range out {
			out[i] = lo[i%3] + rng.Float32()*max(hi[i%3]-lo[i%3], 1e-3)
		}
		return out
	}
	return &segmentProbe{points(), points(), map[int]*scene.Segments{}, map[multi.Target]scene.Reusable{}}, nil
}

// run is multi.Probe.Run. The first call on a device, which is not timed, brings the segments there.
func (p *segmentProbe) run(ctx context.Context, target multi.Target, device int) (err error) {
	s := p.staged[device]
	if s == nil {
		s = &scene.Segments{}
		p.staged[device] = s
		if s.Start, err = cuda.Upload(ctx, target.Stream(), p.starts); err != nil {
			return err
		}
		if s.End, err = cuda.Upload(ctx, target.Stream(), p.ends); err != nil {
			return err
		}
	}
	r, err := target.Visible(ctx, *s, scene.Into(p.results[target]))
	if err != nil {
		return fmt.Errorf("testing segments: %w", err)
	}
	p.results[target] = r
	return nil
}

// close frees what is on the devices, but not after an interrupt, as engine.close.
func (p *segmentProbe) close(ctx context.Context) error {
	if ctx.Err() != nil {
		return nil
	}
	var errs []error
	for _, r := range p.results {
		errs = append(errs, r.Close())
	}
	for _, s := range p.staged {
		for _, v := range []cuda.Slice[float32]{s.Start, s.End} {
			if !v.IsNil() {
				errs = append(errs, cuda.Free(v))
			}
		}
	}
	return errors.Join(errs...)
}
