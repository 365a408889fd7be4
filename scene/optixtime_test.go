package scene_test

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/optixabi"
	"github.com/raymux/raymux/optixabi/fakeoptix"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tests/optixtest"
)

// Builds and refits of OptiX are timed as a scene does them, and leave the scene as it was.
func TestTimeBuildOfOptix(t *testing.T) {
	var mu sync.Mutex
	var did []optixabi.BuildOperation
	rng := rand.New(rand.NewPCG(22, 1))
	r := optixtest.Open(t, 1, fakeoptix.Config{})
	for _, c := range []struct {
		mesh scene.Mesh
		want []optixabi.BuildOperation
	}{
		{dynamic(randomSoup(rng, 40, .2)), []optixabi.BuildOperation{optixabi.OperationBuild, optixabi.OperationUpdate}},
		{randomSoup(rng, 40, .2), []optixabi.BuildOperation{optixabi.OperationBuild}},
	} {
		s := sceneOn(t, r.Driver.Devices()[0], scene.OptiX)
		s.add(c.mesh)
		require.NoError(t, s.Build(background))
		b := oddBatch(rng, 100)
		before := s.intersect(b, scene.All).exact()
		inUse := s.Stream().Context().Pool().Stats().BytesInUse
		r.OnBuild = func(b fakeoptix.Build) {
			mu.Lock()
			did = append(did, b.Options.Operation)
			mu.Unlock()
		}
		did = nil
		build, _, err := s.TimeBuild(background)
		require.NoError(t, err)
		r.OnBuild = nil
		require.Equal(t, append(c.want, c.want...), did, "once for the memory, once to measure")
		require.Positive(t, build)
		require.Equal(t, inUse, s.Stream().Context().Pool().Stats().BytesInUse)
		require.Equal(t, before, s.intersect(b, scene.All).exact())
	}
}
