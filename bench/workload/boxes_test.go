package workload

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every box is closed and has its faces outwards: each edge occurs once in each direction, and the volume by the
// divergence theorem is that of the half edges.
func TestBoxes(t *testing.T) {
	const n = 20
	m := Boxes(SceneSeed, n, 3)
	require.Equal(t, 8*n, m.NumVertices())
	require.Equal(t, 12*n, m.NumTriangles())
	sizes := NewStream(SceneSeed, 5)
	far := 0.0
	for k := range n {
		sides := map[[2]int32]int{}
		volume := 0.0
		for f := 36 * k; f < 36*(k+1); f += 3 {
			var p [3][3]float64
			for c := range 3 {
				v := m.Faces[f+c]
				require.Equal(t, k, int(v)/8, "boxes share no vertex")
				sides[[2]int32{v, m.Faces[f+(c+1)%3]}]++
				for i := range 3 {
					p[c][i] = float64(m.Vertices[3*v+int32(i)])
				}
			}
			far = max(far, math.Abs(p[0][0]))
			volume += (p[0][0]*(p[1][1]*p[2][2]-p[1][2]*p[2][1]) + p[0][1]*(p[1][2]*p[2][0]-p[1][0]*p[2][2]) +
				p[0][2]*(p[1][0]*p[2][1]-p[1][1]*p[2][0])) / 6
		}
		require.Len(t, sides, 36)
		for side, times := range sides {
			require.Equal(t, 1, times)
			require.Contains(t, sides, [2]int32{side[1], side[0]})
		}
		want := 8.0
		for i := range 3 {
			want *= 0.25 + 0.75*float64(sizes.Unit(uint64(3*k+i)))
		}
		require.InEpsilon(t, want, volume, 1e-4, "box %d", k)
	}
	require.Greater(t, far, 2.0)
	// Computed in another language.
	require.Equal(t, "31638860565c800d2be7d1284b47d0136cc84e95965fcdcce2b044a11c6ccc25", DigestFloats(m.Vertices))
}

func TestTurn(t *testing.T) {
	require.Equal(t, [3][3]float64{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}, turn(0, 0, 0, 0))
	require.Equal(t, [3][3]float64{{0, 1, 0}, {-1, 0, 0}, {0, 0, 1}}, turn(2, 0, 0, 2), "a quarter about z")
}

func TestFanRays(t *testing.T) {
	r := FanRays(VolumeSeed, [3]float32{1, 2, 3}, 1<<12)
	var sum [3]float64
	for i := range r.Len() {
		require.Equal(t, []float32{1, 2, 3}, r.Origins[3*i:3*i+3])
		square := 0.0
		for k := range sum {
			d := float64(r.Directions[3*i+k])
			sum[k] += d
			square += d * d
		}
		require.InDelta(t, 1, square, 1e-6)
	}
	for k := range sum {
		require.InDelta(t, 0, sum[k]/(1<<12), .05)
	}
}

func TestMiddle(t *testing.T) {
	require.Equal(t, [3]float32{0, 3, 12}, Middle([3]float32{-2, 3, 4}, [3]float32{2, 3, 8}, .5, .7, 2))
}
