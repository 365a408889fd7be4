package workload

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPrefixDigests(t *testing.T) {
	plane, volume := PlaneRays(20260727, 64), VolumeRays(20260728, 64)
	require.Equal(t, "b4d078e768b35e4d052f05de0fa9aa60e4cccdc19a8f6c2bbc68b7fcaf8273d8", DigestFloats(plane.Origins))
	require.Equal(t, "3fe0a32b097a89fffcbf9b7dc077f68a5295db88e83d2c390702e737b1019518", DigestFloats(plane.Directions))
	require.Equal(t, "0367b4fb81fef387f43987e8263d4e92b6161657634f87121a477dbc0381430d", DigestFloats(volume.Origins))
	require.Equal(t, "5d35c12063c71d47bae196995351820ac3e0851bfcbf06d38c02294d22bb3a15", DigestFloats(volume.Directions))

	cloud := Cloud(20260727, 64, 0.005, 2)
	require.Equal(t, "aea877fda745739fcf5f474214f6f8ffb31d24f87067bd608248795d288bb95b", DigestFloats(cloud.Vertices))
	require.Equal(t, "2d5e3096b4525412bfe403ef48edaca56d7c04ef99a247a0b30e2f635e8f7979", DigestInts(cloud.Faces))

	grid := Grid(16, 2)
	require.Equal(t, 289, grid.NumVertices())
	require.Equal(t, 512, grid.NumTriangles())
	require.Equal(t, "d36b9344482866a63f956286f29499e188665b6b05ebb3105b94e4f73594cda8", DigestFloats(grid.Vertices))
	require.Equal(t, "8564c78a1bb3f9a8f5cfb085eea6922b6fae1efcd234134c98e191bd84fed6e1", DigestInts(grid.Faces))
}

func TestGridFaces(t *testing.T) {
	require.Equal(t, []int32{
		0, 1, 3, 1, 2, 4, 3, 4, 6, 4, 5, 7,
		1, 4, 3, 2, 5, 4, 4, 7, 6, 5, 8, 7,
	}, Grid(2, 2).Faces)
}

// TestFullDigests generates every configuration at its full size and compares all four arrays with the pinned digests.
func TestFullDigests(t *testing.T) {
	for _, c := range Configs() {
		t.Run(c.Name, func(t *testing.T) {
			require.Equal(t, c.Digests, DigestOf(c.Meshes(), c.Rays(c.RayCount)))
		})
	}
}

// TestPinnedDigests repeats the pins of the specification literally, so that an edit of the table in config.go that
// follows a changed generator does not pass unseen. Those of mini were computed in another language.
func TestPinnedDigests(t *testing.T) {
	want := map[string]Digests{
		Light: {
			Vertices:   "6e792ece70c414d8e7952f9933df49f8787344e43ba75d407279665ee20347ea",
			Faces:      "dca064c6d8721e3042b63deb8c9fbd480b1b636878509764e727bd1bf7f9f8ac",
			Origins:    "b3c8979af7b3163a28dc24b692244f997f11f48a4f2177cc46b37137630ee4ac",
			Directions: "e96f993fa3131c017705a7fb510019084304f0b25fca4f8f2201a86a02e67166",
		},
		Compute: {
			Vertices:   "56aed2970212a9f8a237d25640df39bfebec93289e399ba99acce24cc5a628cf",
			Faces:      "a2704af424b57b698ee1014fce83ca8087b2f6ee91d7abfb95200278c2750ac6",
			Origins:    "6d37ed94d8b108b566bda10021edaffc3e7ff659ec86bb01af45390b36d70200",
			Directions: "55f2b30fe166e1587b7131450fd3190c6a3a2557acfe55247d8f019df45ab7ba",
		},
		Mini: {
			Vertices:   "b0d75f13cb969283f5c4aa906d8efa29df0db788b6cf96aec258df17d802677a",
			Faces:      "f8f4c3421b3eaf6728fc7e512ea9f42f378462e185d71f76e64d545874dbb3ef",
			Origins:    "064e4e03b3c3ae60642042ddf75f43bb5d3c96842f9d608a79f20c67ab40eebc",
			Directions: "9859d3c012166c4c74c84828b37ead4340f921249d907b49550cc36365833deb",
		},
	}
	for name, digests := range want {
		c, err := Find(name)
		require.NoError(t, err)
		require.Equal(t, digests, c.Digests, name)
	}
}

func TestSizes(t *testing.T) {
	for _, c := range []struct {
		name                string
		vertices, triangles int
	}{
		{Light, 36864, 72962},
		{Compute, 6291456, 2097152},
		{Mini, 289 + 3*2048, 512 + 2048},
	} {
		config, err := Find(c.name)
		require.NoError(t, err)
		vertices, triangles := 0, 0
		for _, m := range config.Meshes() {
			vertices += m.NumVertices()
			triangles += m.NumTriangles()
		}
		require.Equal(t, c.vertices, vertices, c.name)
		require.Equal(t, c.triangles, triangles, c.name)
	}
}

// The pinned extent of the compute cloud: a digest says that something changed, this says what.
func TestCloudExtent(t *testing.T) {
	c, err := Find(Compute)
	require.NoError(t, err)
	low, high := float32(0), float32(0)
	for _, v := range c.Meshes()[0].Vertices {
		low, high = min(low, v), max(high, v)
	}
	require.Equal(t, float32(-1.0049635), low)
	require.Equal(t, float32(1.0049489), high)
}

func TestRaysArePrefixes(t *testing.T) {
	for _, name := range []string{Light, Compute} {
		c, err := Find(name)
		require.NoError(t, err)
		long, short := c.Rays(3*parallelMin+17), c.Rays(100)
		require.Equal(t, long.Origins[:300], short.Origins, name)
		require.Equal(t, long.Directions[:300], short.Directions, name)
	}
}

func TestMiniHalves(t *testing.T) {
	c, err := Find(Mini)
	require.NoError(t, err)
	r := c.Rays(1001)
	require.Equal(t, 1001, r.Len())
	require.Equal(t, PlaneRays(SceneSeed, 500).Directions, r.Directions[:1500])
	require.Equal(t, VolumeRays(VolumeSeed, 501).Origins, r.Origins[1500:])
}

func TestFindUnknown(t *testing.T) {
	_, err := Find("heavy")
	require.EqualError(t, err, `workload: no configuration "heavy"; there are light, compute, mini`)
}

func BenchmarkComputeRays(b *testing.B) {
	c, err := Find(Compute)
	require.NoError(b, err)
	for b.Loop() {
		c.Rays(c.RayCount)
	}
}
