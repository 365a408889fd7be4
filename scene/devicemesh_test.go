package scene_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tests/gputest"
)

// Vertices that are on the device already stay there: a Build of them moves faces
// and ids over the bus, and a second one the same, though the caller's arrays are
// gone. Meshes on the host on both sides keep their places in the tables.
func TestVerticesOnTheDeviceStayThere(t *testing.T) {
	count := &bus{}
	g := gputest.Open(t, 1, func(api cuapi.API) cuapi.API {
		count.API = api
		return count
	})
	r := openOn(t, g.Context(t, 0))
	rng := rand.New(rand.NewPCG(12, 4))
	host := []scene.Mesh{randomSoup(rng, 3, .1), randomSoup(rng, 5, .1), randomSoup(rng, 7, .1)}
	// Many vertices that no face uses, so that they can be told from the rest, and
	// enough faces for a build on the device.
	large := randomSoup(rng, 4000, .1)
	large.Faces = large.Faces[:3*300]
	onDevice := large
	onDevice.Vertices, onDevice.Faces = nil, nil
	onDevice.DeviceFaces = toDevice(r, large.Faces)
	var err error
	onDevice.DeviceVertices, err = cuda.Upload(background, r.Stream(), large.Vertices)
	require.NoError(t, err)
	r.add(host[0], host[1], onDevice, host[2])
	var want []float32
	for _, m := range []scene.Mesh{host[0], host[1], large, host[2]} {
		want = append(want, m.Vertices...)
	}
	for range 2 {
		count.bytes.Store(0)
		require.NoError(t, r.Build(background))
		require.Less(t, count.bytes.Load(), int64(len(large.Vertices)))
		require.Equal(t, want, r.geometry().Vertices)
		if !onDevice.DeviceVertices.Freed() {
			require.NoError(t, cuda.Free(onDevice.DeviceVertices))
		}
	}
}
