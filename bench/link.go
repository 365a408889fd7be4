package main

import (
	"context"

	"github.com/raymux/raymux/bench/record"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/multi"
)

// probeBytes is the size of a copy of the link probe.
const probeBytes = 256 << 20

// probeLinks copies between every ordered pair of devices one way, and between every unordered pair both ways at
// once, the given number of bytes each way. The memory is returned to the driver: the benchmark that follows needs it.
func probeLinks(contexts []*cuda.Context, bytes int64) ([]record.Link, error) {
	links := []record.Link{}
	if len(contexts) < 2 {
		return links, nil
	}
	speeds, err := multi.MeasureLinks(background, contexts, bytes)
	for _, c := range contexts {
		if trimming := c.Pool().Trim(); err == nil {
			err = trimming
		}
	}
	if err != nil {
		return nil, err
	}
	for _, l := range speeds {
		direction, access := record.OneWay, l.Peer
		if l.Both {
			direction = record.BothWays
		}
		links = append(links, record.Link{
			Source: l.From, Destination: l.To, Direction: direction, Bytes: l.Bytes, Repeats: multi.LinkRepeats,
			MinNS: l.Duration.Nanoseconds(), BytesPerSecond: l.BytesPerSecond(), PeerAccess: &access,
		})
	}
	return links, nil
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
