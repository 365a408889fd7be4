package multi

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/offload"
	"github.com/raymux/raymux/scene"
)

// Mistakes in arguments have the type that those of package scene have.
func TestMultiArgumentErrors(t *testing.T) {
	s := newStreaming(t, 2, 17)
	chunks := func() scene.CallOption {
		return Offload(func(context.Context, int64, offload.Chunk[*scene.Hits]) error { return nil })
	}
	hits, err := s.Intersect(bg, s.rays, scene.All)
	require.NoError(t, err)
	defer func() { require.NoError(t, hits.Close()) }()
	intersect := func(opts ...scene.CallOption) func() error {
		return func() error { _, err := s.Intersect(bg, s.rays, scene.All, opts...); return err }
	}
	for name, c := range map[string]struct {
		ask  func() error
		says string
	}{
		"another operation": {func() error { _, err := s.TraceReflections(bg, s.rays, 1, scene.ChainCore, chunks()); return err },
			"Offload: f: takes *scene.Hits, the operation makes *scene.Chains"},
		"two consumers": {intersect(chunks(), chunks()), "Offload: opts: has Offload twice"},
		"a result":      {intersect(chunks(), scene.Into(hits)), "Offload: opts: has Into as well"},
		"no option":     {intersect(nil), "Intersect: opts: option 0 is nil"},
		"carried":       {intersect(scene.Carry(7)), "Carry: opts: has an option of another scheduler (int)"},
		"rows":          {func() error { _, err := NewHostSink[*scene.Hits](s.Scene, -1); return err }, "NewHostSink: rows: is -1"},
		"bytes":         {func() error { _, err := s.MeasureLinks(bg, 0); return err }, "MeasureLinks: bytes: is 0"},
		"times":         {func() error { _, err := (&CallInfo{}).Times(bg); return err }, "CallInfo.Times: Timing: was not set"},
	} {
		var wrong *scene.ArgumentError
		err := c.ask()
		require.ErrorAs(t, err, &wrong, name)
		require.ErrorContains(t, err, c.says, name)
	}
}
