package scene_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
)

// The memory of a result that nobody closed is told with the line of the call that made it.
func TestALeakedResultIsToldWithItsCall(t *testing.T) {
	drv, err := cuda.OpenEmulator(1)
	require.NoError(t, err)
	c, err := drv.Devices()[0].Retain()
	require.NoError(t, err)
	s, err := scene.New(c, scene.Options{})
	require.NoError(t, err)
	_, err = s.AddMesh(meshT())
	require.NoError(t, err)
	require.NoError(t, s.Build(background))
	o, err := cuda.Upload(background, s.Stream(), i1.o)
	require.NoError(t, err)
	d, err := cuda.Upload(background, s.Stream(), i1.d)
	require.NoError(t, err)
	_, _, line, _ := runtime.Caller(0)
	hits, err := s.Intersect(background, scene.Rays{O: o, D: d}, scene.All) // the line after
	require.NoError(t, err)
	require.NoError(t, cuda.Free(o))
	require.NoError(t, cuda.Free(d))
	require.NoError(t, s.Stream().Synchronize(background))
	require.NoError(t, s.Close())
	var leak *cuda.LeakError
	require.ErrorAs(t, c.Close(), &leak)
	require.Len(t, leak.Leaks, 1)
	assert.Equal(t, []string{fmt.Sprintf("leaksites_test.go:%d", line+1)}, leak.Leaks[0].Sites)
	require.NoError(t, hits.Close())
	require.NoError(t, drv.Close())
}
