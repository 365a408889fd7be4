package multi

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/raymux/raymux/chunked"
)

// RebuildWithout makes a set of the same devices but the one at position k, which is lost
// or no longer wanted. The new set takes the master, with the buffers of the caller on it,
// and the other replicas over; s is closed. Weights of the device are dropped, calibrated
// weights are forgotten. The master cannot be left out: without it only Close works.
//
// Tables of states, materials and groups have a copy on the device that goes. Close them
// before, and upload them again with the new set: for one that is open the set comes with a
// *cuda.LeakError.
//
// Replicas that are in step stay as they are, so that the call costs next to nothing. If s
// had diverged, they are copied from the master again; when that fails, the error comes
// with a set that has diverged and can be built.
func (s *Scene) RebuildWithout(ctx context.Context, k int) (*Scene, error) {
	if k < 1 || k >= len(s.devices) {
		return nil, fmt.Errorf("%w: RebuildWithout(%d): the remotes of this set are at positions 1 to %d", ErrDeviceList, k, len(s.devices)-1)
	}
	done, err := s.beginClosing(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	if s.closed.Load() {
		return nil, ErrClosed
	}
	if err := s.master().ctx.Lost(); err != nil {
		return nil, s.master().fail("leaving a device out", err)
	}
	for _, r := range s.openTimes() {
		if err := r.close(); err != nil {
			return nil, err
		}
	}
	gone, ordinal := s.replicas[k], s.devices[k]
	out := &Scene{
		drv: s.drv, devices: without(s.devices, k), opts: s.opts, transport: s.transport, warmed: s.warmed,
		ctxs: without(s.ctxs, k), replicas: without(s.replicas, k),
		links: slices.DeleteFunc(slices.Clone(s.links), func(l Link) bool { return l.From == ordinal || l.To == ordinal }),
	}
	out.opts.Options = optionsWithout(s.opts.Options, k)
	for p, r := range out.replicas {
		r.position = p
	}
	s.closed.Store(true)
	s.closeErr = firstError([]error{gone.release(), gone.ctx.Close()})
	d := s.diverged.Load()
	if d == nil || !out.master().scene.IsReady() {
		out.diverged.Store(d)
		return out, s.closeErr
	}
	return out, attach(out.replicate(ctx, "RebuildWithout"), s.closeErr)
}

func without[T any](list []T, k int) []T { return slices.Delete(slices.Clone(list), k, k+1) }

// optionsWithout drops the weights of a device, and splits that would leave nothing.
func optionsWithout(o chunked.Options, k int) chunked.Options {
	if o.Weights != nil {
		if o.Weights = without(o.Weights, k); chunked.CheckWeights("", o.Weights, len(o.Weights)) != nil {
			o.Weights = nil
		}
	}
	o.OperationWeights = maps.Clone(o.OperationWeights)
	for key, w := range o.OperationWeights {
		o.OperationWeights[key] = without(w, k)
		if chunked.CheckWeights("", o.OperationWeights[key], len(w)-1) != nil {
			delete(o.OperationWeights, key)
		}
	}
	return o
}
