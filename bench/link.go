package main

import (
	"context"
	"time"

	"github.com/raymux/raymux/bench/record"
	"github.com/raymux/raymux/cuda"
)

// Size of the link probe.
const (
	probeBytes   = 256 << 20
	probeRepeats = 5 // after one that is discarded
)

// prober measures the links between devices.
type prober struct {
	contexts []*cuda.Context
	streams  []*cuda.Stream
	source   []cuda.Slice[uint8]
	target   []cuda.Slice[uint8]
	sync     func() error
	bytes    int // of one copy
}

// probeLinks copies between every ordered pair of devices one way, and between every unordered pair both ways at
// once, the given number of bytes each way.
func probeLinks(contexts []*cuda.Context, bytes int) (links []record.Link, err error) {
	links = []record.Link{}
	if len(contexts) < 2 {
		return links, nil
	}
	p := &prober{contexts: contexts, sync: idle(contexts), bytes: bytes}
	defer func() {
		if closing := p.close(); err == nil {
			err = closing
		}
	}()
	if err := p.open(); err != nil {
		return nil, err
	}
	for from := range contexts {
		for to := range contexts {
			if from == to {
				continue
			}
			l, err := p.probe(record.OneWay, [][2]int{{from, to}})
			if err != nil {
				return nil, err
			}
			links = append(links, l)
			if from < to {
				if l, err = p.probe(record.BothWays, [][2]int{{from, to}, {to, from}}); err != nil {
					return nil, err
				}
				links = append(links, l)
			}
		}
	}
	return links, nil
}

func (p *prober) open() error {
	for _, c := range p.contexts {
		st, err := c.NewStream(cuda.StreamOptions{})
		if err != nil {
			return err
		}
		p.streams = append(p.streams, st)
		for _, list := range []*[]cuda.Slice[uint8]{&p.source, &p.target} {
			s, err := cuda.Alloc[uint8](c, p.bytes)
			if err != nil {
				return err
			}
			*list = append(*list, s)
		}
	}
	return p.enablePeers()
}

// enablePeers makes copies go over the links: without peer access the driver stages them through the host.
func (p *prober) enablePeers() error {
	for _, from := range p.contexts {
		for _, to := range p.contexts {
			if from == to {
				continue
			}
			ok, err := from.Device().CanAccessPeer(to.Device())
			if err != nil {
				return err
			}
			if ok {
				if err := from.EnablePeer(to); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// close returns the buffers to the driver: the benchmark that follows needs the memory.
func (p *prober) close() error {
	var first error
	keep := func(err error) {
		if first == nil {
			first = err
		}
	}
	for _, s := range append(p.source, p.target...) {
		keep(cuda.Free(s))
	}
	for _, st := range p.streams {
		keep(st.Close())
	}
	for _, c := range p.contexts {
		keep(c.Pool().Trim())
	}
	return first
}

// probe measures copies that run at the same time, each on a stream of its source.
func (p *prober) probe(direction string, pairs [][2]int) (record.Link, error) {
	from, to := p.contexts[pairs[0][0]].Device(), p.contexts[pairs[0][1]].Device()
	access, err := mutualAccess(from, to)
	if err != nil {
		return record.Link{}, err
	}
	best := int64(0)
	for i := range probeRepeats + 1 {
		if err := p.sync(); err != nil {
			return record.Link{}, err
		}
		start := time.Now()
		for _, pair := range pairs {
			if err := cuda.CopyAsync(p.streams[pair[0]], p.target[pair[1]], p.source[pair[0]]); err != nil {
				return record.Link{}, err
			}
		}
		if err := p.sync(); err != nil {
			return record.Link{}, err
		}
		ns := time.Since(start).Nanoseconds()
		if i == 1 || i > 1 && ns < best {
			best = ns
		}
	}
	bytes := int64(p.bytes * len(pairs))
	return record.Link{
		Source: from.Ordinal(), Destination: to.Ordinal(), Direction: direction, Bytes: bytes, Repeats: probeRepeats,
		MinNS: best, BytesPerSecond: rate(bytes, best), PeerAccess: &access,
	}, nil
}

// rate is in bytes per second.
func rate(bytes, ns int64) float64 { return float64(bytes) / (float64(ns) / 1e9) }

// mutualAccess reports whether both devices can access each other; otherwise the driver stages copies through the host.
func mutualAccess(a, b *cuda.Device) (bool, error) {
	there, err := a.CanAccessPeer(b)
	if err != nil {
		return false, err
	}
	back, err := b.CanAccessPeer(a)
	return there && back, err
}

// idle waits for every device of the set, without a limit: the benchmark has nothing else to do.
func idle(contexts []*cuda.Context) func() error {
	return func() error {
		for _, c := range contexts {
			if err := c.Synchronize(); err != nil {
				return err
			}
		}
		return nil
	}
}

var background = context.Background()
