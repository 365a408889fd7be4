package multi

import (
	"context"
	"fmt"
	"time"

	"github.com/raymux/raymux/cuda"
)

// LinkSpeed is the fastest of several copies from one device of the set to
// another.
type LinkSpeed struct {
	From, To int // ordinals
	Bytes    int64
	Duration time.Duration
}

// BytesPerSecond is the rate of the copy.
func (l LinkSpeed) BytesPerSecond() float64 { return float64(l.Bytes) / l.Duration.Seconds() }

// linkRepeats copies are timed after one that is not.
const linkRepeats = 5

// MeasureLinks copies so many bytes between the master and each remote, in both
// directions, one link at a time, as the Copy transport would. It is empty for
// one device.
//
// Cost: twice the bytes on every device for the time of the call, which waits
// for every copy; 64 MiB and more show the speed of a link, less its latency.
func (s *Scene) MeasureLinks(ctx context.Context, bytes int64) ([]LinkSpeed, error) {
	if bytes < 1 {
		return nil, fmt.Errorf("multi: MeasureLinks: %d bytes given, at least 1 is needed", bytes)
	}
	done, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	var out []LinkSpeed
	for _, r := range s.replicas[1:] {
		for _, pair := range [][2]*replica{{s.master(), r}, {r, s.master()}} {
			speed, err := measureLink(ctx, pair[0], pair[1], bytes)
			if err != nil {
				return nil, pair[0].fail("measuring a link", err)
			}
			out = append(out, speed)
		}
	}
	return out, nil
}

func measureLink(ctx context.Context, from, to *replica, bytes int64) (speed LinkSpeed, err error) {
	speed = LinkSpeed{From: from.ordinal, To: to.ordinal, Bytes: bytes}
	st, err := from.ctx.NewStream(cuda.StreamOptions{})
	if err != nil {
		return speed, err
	}
	defer func() { err = firstError([]error{err, st.Close()}) }()
	src, err := cuda.Alloc[uint8](from.ctx, int(bytes))
	if err != nil {
		return speed, err
	}
	defer func() { err = firstError([]error{err, cuda.Free(src)}) }()
	dst, err := cuda.Alloc[uint8](to.ctx, int(bytes))
	if err != nil {
		return speed, err
	}
	defer func() { err = firstError([]error{err, cuda.Free(dst)}) }()
	for i := range linkRepeats + 1 {
		begin := time.Now()
		if err := cuda.CopyAsync(st, dst, src); err != nil {
			return speed, err
		}
		// Without a limit: the buffers must not be freed under a copy.
		if err := st.Synchronize(context.WithoutCancel(ctx)); err != nil {
			return speed, err
		}
		if d := max(time.Since(begin), 1); i == 1 || i > 1 && d < speed.Duration {
			speed.Duration = d
		}
	}
	return speed, nil
}
