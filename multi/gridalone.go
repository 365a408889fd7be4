package multi

import (
	"context"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/scene"
)

// belowFloor reports whether a call of so many lanes, of which a remote needs least by default or
// more, is the master's whatever its plan depends on beside: no shard has more lanes than the
// call. Small calls are a few microseconds of host time, of which a plan would be a tenth.
func (s *Scene) belowFloor(key string, lanes, least int64, opts []scene.CallOption) bool {
	o := &s.opts.Options
	if o.MinLanesPerDevice != 0 {
		least = o.MinLanesPerDevice
	}
	return len(opts) == 0 && len(s.replicas) > 1 && lanes < least && o.ChunkRays == 0 && o.MemoryBudget == 0 && !s.tries(key)
}

// askAlone answers a call by the master.
func askAlone[R any](ctx context.Context, s *Scene, key string, lanes int64, ask func(master *scene.Scene) (*R, error)) (*R, error) {
	done, err := s.beginReady(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	r, err := ask(s.master().scene)
	s.called(chunked.Op{Key: key}, lanes) // while the device is busy
	return r, err
}
