package multi

import (
	"context"
	"fmt"
	"time"

	"github.com/raymux/raymux/cuda"
)

// LinkRepeats copies are timed after one that is not.
const LinkRepeats = 5

// LinkSpeed is the fastest of several copies from one device to another.
type LinkSpeed struct {
	From, To int // ordinals
	// Both directions were copied at the same time. Bytes are those of both.
	Both bool
	// Peer: both devices access each other. Otherwise the driver stages the copy through
	// the host.
	Peer     bool
	Bytes    int64         // of the copy
	Duration time.Duration // of the fastest
}

// String is the pair and the rate, of 1e9 bytes per second.
func (l LinkSpeed) String() string {
	text := fmt.Sprintf("%s: %.1f GB/s", pair(l.From, l.To), l.BytesPerSecond()/1e9)
	if l.Both {
		text += " with the way back"
	}
	if !l.Peer {
		text += ", through the host"
	}
	return text
}

// BytesPerSecond is the rate of the copy.
func (l LinkSpeed) BytesPerSecond() float64 { return float64(l.Bytes) / l.Duration.Seconds() }

// MeasureLinks copies so many bytes between every ordered pair of devices, and between
// every pair in both directions at once, one pair at a time; nothing else should run.
// contexts are of different devices. Pairs come in the order of the contexts: one way, and
// where the first of the two comes first in the list, both ways after it. It is empty for
// one device. Where a device can access another one, it gets access.
//
// Cost: twice the bytes on every device meanwhile, which end in the pools of the
// contexts, and six copies for each of n(n-1) 3/2 measurements, which it waits for. The
// context is asked before each copy. Copies of 64 MiB and more show the speed of a link,
// less its latency.
func MeasureLinks(ctx context.Context, contexts []*cuda.Context, bytes int64) (out []LinkSpeed, err error) {
	p, err := newLinkProber(contexts, bytes)
	if err != nil {
		return nil, err
	}
	defer func() { err = firstError([]error{err, p.close()}) }()
	for a := range contexts {
		for b := range contexts {
			if a == b {
				continue
			}
			speed, err := p.copy(ctx, [2]int{a, b})
			if err != nil {
				return nil, err
			}
			out = append(out, speed)
			if a > b {
				continue
			}
			if speed, err = p.copy(ctx, [2]int{a, b}, [2]int{b, a}); err != nil {
				return nil, err
			}
			out = append(out, speed)
		}
	}
	return out, nil
}

// MeasureLinks is the function of this name, for the devices of the set.
func (s *Scene) MeasureLinks(ctx context.Context, bytes int64) ([]LinkSpeed, error) {
	done, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	return MeasureLinks(ctx, s.ctxs, bytes)
}

// linkRates are the slowest rates from the master to a remote and back.
func (s *Scene) linkRates(ctx context.Context) (out, in float64, err error) {
	bytes := int64(linkProbe)
	if s.drv.Emulated() {
		bytes = linkProbeEmulated
	}
	p, err := newLinkProber(s.ctxs, bytes)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = firstError([]error{err, p.close()}) }()
	for k := 1; k < len(s.ctxs); k++ {
		there, err := p.copy(ctx, [2]int{0, k})
		if err != nil {
			return 0, 0, err
		}
		back, err := p.copy(ctx, [2]int{k, 0})
		if err != nil {
			return 0, 0, err
		}
		if k == 1 || there.BytesPerSecond() < out {
			out = there.BytesPerSecond()
		}
		if k == 1 || back.BytesPerSecond() < in {
			in = back.BytesPerSecond()
		}
	}
	return out, in, nil
}

// linkProber has what copies between devices need.
type linkProber struct {
	contexts       []*cuda.Context
	streams        []*cuda.Stream
	source, target []cuda.Slice[uint8]
	bytes          int64
}

func newLinkProber(contexts []*cuda.Context, bytes int64) (p *linkProber, err error) {
	if bytes < 1 {
		return nil, badArg("MeasureLinks", "bytes", "is %d, want 1 or more", bytes)
	}
	p = &linkProber{contexts: contexts, bytes: bytes}
	if len(contexts) < 2 {
		return p, nil
	}
	defer func() {
		if err != nil {
			err = firstError([]error{err, p.close()})
			p = nil
		}
	}()
	for _, c := range contexts {
		st, err := c.NewStream(cuda.StreamOptions{})
		if err != nil {
			return p, err
		}
		p.streams = append(p.streams, st)
		for _, list := range []*[]cuda.Slice[uint8]{&p.source, &p.target} {
			b, err := cuda.Alloc[uint8](c, int(bytes))
			if err != nil {
				return p, err
			}
			*list = append(*list, b)
		}
		for _, to := range contexts {
			if err := enablePeer(c, to); err != nil {
				return p, err
			}
		}
	}
	return p, nil
}

// enablePeer makes copies go over the link, where there is one.
func enablePeer(from, to *cuda.Context) error {
	if from.Device() == to.Device() {
		return nil
	}
	ok, err := from.Device().CanAccessPeer(to.Device())
	if err != nil || !ok {
		return err
	}
	return from.EnablePeer(to)
}

func (p *linkProber) close() error {
	var errs []error
	for _, b := range append(p.source[:len(p.source):len(p.source)], p.target...) {
		errs = append(errs, cuda.Free(b))
	}
	for _, st := range p.streams {
		errs = append(errs, st.Close())
	}
	return firstError(errs)
}

// copy times copies that run at the same time, each on a stream of its source.
func (p *linkProber) copy(ctx context.Context, pairs ...[2]int) (speed LinkSpeed, err error) {
	from, to := p.contexts[pairs[0][0]].Device(), p.contexts[pairs[0][1]].Device()
	speed = LinkSpeed{From: from.Ordinal(), To: to.Ordinal(), Both: len(pairs) > 1, Bytes: p.bytes * int64(len(pairs))}
	if speed.Peer, err = from.CanAccessPeer(to); err == nil && speed.Peer {
		speed.Peer, err = to.CanAccessPeer(from)
	}
	if err != nil {
		return speed, err
	}
	for i := range LinkRepeats + 1 {
		if err := context.Cause(ctx); err != nil {
			return speed, err
		}
		if err := idle(p.contexts); err != nil {
			return speed, err
		}
		begin := time.Now()
		for _, pair := range pairs {
			if err := cuda.CopyAsync(p.streams[pair[0]], p.target[pair[1]], p.source[pair[0]]); err != nil {
				return speed, firstError([]error{err, idle(p.contexts)}) // the buffers must not be freed under a copy
			}
		}
		if err := idle(p.contexts); err != nil {
			return speed, err
		}
		if d := max(time.Since(begin), 1); i == 1 || i > 1 && d < speed.Duration {
			speed.Duration = d
		}
	}
	return speed, nil
}

// idle waits until devices have nothing left to do.
func idle(contexts []*cuda.Context) error {
	for _, c := range contexts {
		if err := c.Synchronize(); err != nil {
			return err
		}
	}
	return nil
}
