package workload

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// The digests were computed in another language.
func TestCityDigests(t *testing.T) {
	m := City(SceneSeed, 2)
	require.Equal(t, 2004, m.NumTriangles())
	require.Equal(t, "76d2affe734164146507195b8621e3be3c82ebc3195a47968a5529d7567a65a5", DigestFloats(m.Vertices))
	require.Equal(t, "e49f450d8ccf08620bf5439ded2a256b3c6a26c129a3c1863c2c688ac7a6e29e", DigestInts(m.Faces))

	lo, hi := m.Box()
	require.Equal(t, [3]float32{-40, -40, 0}, lo)
	require.Equal(t, [3]float32{40, 40, 38.5}, hi)
	camera := CameraRays(lo, hi, 256)
	require.Equal(t, "cb2e6c88abcf583c5e50b44d1cb450a653f413a3810bcc7a5c62788bd0205a36", DigestFloats(camera.Origins))
	require.Equal(t, "4672e2e15edac4f7e119bdb9ceace292ff8c1556fd65f298f50b216f036bd110", DigestFloats(camera.Directions))
	box := BoxRays(VolumeSeed, lo, hi, 4096)
	require.Equal(t, "f09fe4dbec37b33b49f0a45d1f2b8e713ef31c39227d4b86bdb802c31c68eb94", DigestFloats(box.Origins))
	require.Equal(t, "c235fca1aa86f93c52edaea7142994dae9b179e66e4145288d8c3b093ac65959", DigestFloats(box.Directions))
}

// The city of the benchmark has more than a million triangles.
func TestFullCity(t *testing.T) {
	m := City(SceneSeed, CityLots)
	require.Equal(t, 1_158_500, m.NumTriangles())
	require.Equal(t, "87c8ba20a324812d85c05c6d10d2cab0abf483ced0526acf66520e59568ee546", DigestFloats(m.Vertices))
	require.Equal(t, "d05ab87ee20db97f02686807b91a5e6cdc9031d363ac67715ad13c5aff826ebc", DigestInts(m.Faces))
}

// Every building stands in its lot, its walls and windows face away from its middle, and its roof up.
func TestCityBuildings(t *testing.T) {
	const lots = 3
	m := City(7, lots)
	vertex := func(i int32) (p [3]float64) {
		for k := range p {
			p[k] = float64(m.Vertices[3*int(i)+k])
		}
		return p
	}
	up, outward, largest := 0, 0, 0.0
	for f := 0; f < len(m.Faces); f += 3 {
		a, b, c := vertex(m.Faces[f]), vertex(m.Faces[f+1]), vertex(m.Faces[f+2])
		var middle, n [3]float64
		for k := range n {
			middle[k] = (a[k] + b[k] + c[k]) / 3
			i, j := (k+1)%3, (k+2)%3
			n[k] = (b[i]-a[i])*(c[j]-a[j]) - (b[j]-a[j])*(c[i]-a[i])
		}
		size := math.Sqrt(n[0]*n[0] + n[1]*n[1] + n[2]*n[2])
		largest = max(largest, size/2)
		require.Greater(t, size/2, 1.0, "the smallest triangle is half a window")
		if n[2]/size > .5 {
			up++
			continue
		}
		require.Less(t, math.Abs(n[2]/size), 1e-4, "walls are upright")
		x := middle[0] - cityPitch*math.Round(middle[0]/cityPitch)
		y := middle[1] - cityPitch*math.Round(middle[1]/cityPitch)
		require.Greater(t, x*n[0]+y*n[1], 0.0, "walls face outwards")
		require.Less(t, math.Hypot(x, y), cityPitch/2)
		outward++
	}
	require.Equal(t, 4*lots*lots, up, "ground and roof of every lot")
	require.Equal(t, m.NumTriangles(), up+outward)
	require.InDelta(t, cityPitch*cityPitch/2, largest, 1200)
}

func TestCameraSeesTheBox(t *testing.T) {
	lo, hi := [3]float32{-1, -2, 5}, [3]float32{3, 2, 6}
	r := CameraRays(lo, hi, 64)
	require.Equal(t, 64*64, r.Len())
	hits := 0
	for i := range r.Len() {
		near, far := math.Inf(-1), math.Inf(1)
		for k := range 3 {
			o, d := float64(r.Origins[3*i+k]), float64(r.Directions[3*i+k])
			a, b := (float64(lo[k])-o)/d, (float64(hi[k])-o)/d
			near, far = max(near, min(a, b)), min(far, max(a, b))
		}
		require.False(t, near <= 0 && far >= 0, "the camera is outside")
		if near <= far && far > 0 {
			hits++
		}
	}
	require.Greater(t, hits, r.Len()/5)
	require.Less(t, hits, r.Len())
}

func TestBoxRaysFillFlatBoxes(t *testing.T) {
	r := BoxRays(1, [3]float32{-2, -1, 3}, [3]float32{2, 1, 3}, 1<<13)
	lo, hi := Mesh{Vertices: r.Origins}.Box()
	for k, want := range [3][2]float32{{-2, 2}, {-1, 1}, {2.8, 3.2}} {
		require.InDelta(t, want[0], lo[k], .01)
		require.InDelta(t, want[1], hi[k], .01)
	}
}
