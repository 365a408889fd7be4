package scene

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/bench/workload"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/tests/gputest"
)

func TestTimeBuild(t *testing.T) {
	c := gputest.Open(t, 1, nil).Context(t, 0)
	v, f := soup(80, 700, 0.1)
	s, x := grow(t, c, v, f, treeCheaper)
	before := download(t, s, x.pool)
	inUse := c.Pool().Stats().BytesInUse
	build, refit, err := s.TimeBuild(context.Background())
	require.NoError(t, err)
	require.Positive(t, build)
	require.Positive(t, refit)
	require.Less(t, refit, build)
	require.Equal(t, inUse, c.Pool().Stats().BytesInUse)
	require.Equal(t, before, download(t, s, x.pool))
}

// stopwatch records an event at every mark of a build.
type stopwatch struct {
	t      *testing.T
	s      *Scene
	names  []string
	events []*cuda.Event
}

func (w *stopwatch) mark(stage string) error {
	e, err := w.s.ctx.NewEvent(cuda.EventOptions{Timing: true})
	require.NoError(w.t, err)
	w.names, w.events = append(w.names, stage), append(w.events, e)
	return w.s.stream.Record(e)
}

// lap is the time between each mark and the one before.
func (w *stopwatch) lap() []time.Duration {
	require.NoError(w.t, w.s.stream.Synchronize(context.Background()))
	var all []time.Duration
	for i, e := range w.events[1:] {
		d, err := e.Since(w.events[i])
		require.NoError(w.t, err)
		all = append(all, d)
	}
	for _, e := range w.events {
		require.NoError(w.t, e.Close())
	}
	return all
}

// TestBuildTimes prints medians of 9 builds on a GPU, stage by stage.
func TestBuildTimes(t *testing.T) {
	if !gputest.Native() {
		t.Skip("times of an emulator mean nothing")
	}
	const rounds = 9
	c := gputest.Open(t, 1, nil).Context(t, 0)
	ctx := context.Background()
	for _, scene := range []struct {
		name string
		mesh workload.Mesh
	}{
		{"soup", workload.Cloud(workload.SceneSeed, 1<<21, 0.01, workload.Span)},
		{"city", workload.City(workload.SceneSeed, workload.CityLots)},
	} {
		for name, tree := range deviceTrees {
			s, x := grow(t, c, scene.mesh.Vertices, scene.mesh.Faces, tree)
			laps := map[string][]time.Duration{}
			var order []string
			for range rounds {
				w := &stopwatch{t: t, s: s}
				s.device.mark = w.mark
				require.NoError(t, w.mark("start"))
				_, err := x.build(ctx)
				require.NoError(t, err)
				require.NoError(t, w.mark("measure"))
				for i, d := range w.lap() {
					laps[w.names[i+1]] = append(laps[w.names[i+1]], d)
				}
				order = w.names[1:]
			}
			s.device.mark = newDeviceBuild().mark
			t.Logf("%s, %d triangles, tree %s: %d levels, %d nodes, cost %.3f", scene.name, s.tables.faceCount, name,
				len(x.plan.levels)-1, x.plan.levels[len(x.plan.levels)-1], x.plan.cost)
			for _, stage := range order {
				t.Logf("    %-20s %8.3f ms", stage, median(laps[stage]))
			}
			var builds, refits []time.Duration
			for range rounds {
				build, refit, err := s.TimeBuild(ctx)
				require.NoError(t, err)
				builds, refits = append(builds, build), append(refits, refit)
			}
			t.Logf("    %-20s %8.3f ms", "whole build", median(builds))
			t.Logf("    %-20s %8.3f ms", "refit alone", median(refits))
		}
		s, err := New(c, Options{Backend: CUDA, Builder: BuilderSAH})
		require.NoError(t, err)
		_, err = s.AddMesh(Mesh{Vertices: scene.mesh.Vertices, Faces: scene.mesh.Faces, NoEdges: true})
		require.NoError(t, err)
		require.NoError(t, s.Build(ctx))
		plan := s.tables.search.(*treeSearch).plan
		t.Logf("%s, tree of the host: %d levels, %d nodes, cost %.3f", scene.name, len(plan.levels)-1,
			plan.levels[len(plan.levels)-1], plan.cost)
		require.NoError(t, s.Close())
	}
}

func median(d []time.Duration) float64 {
	slices.Sort(d)
	return float64(d[len(d)/2]) / float64(time.Millisecond)
}
