package workload

import "math"

// MaxRays is the most rows of a batch. A row takes 24 bytes of host memory, and those of its results.
const MaxRays = 1 << 28

// Rays is a batch of rays on the host: 3 values per row in each array, directions of unit length. No row has a length
// limit, and all are active.
type Rays struct {
	Origins    []float32
	Directions []float32
}

// Len returns the number of rows.
func (r Rays) Len() int { return len(r.Origins) / 3 }

func newRays(n int) Rays {
	return Rays{Origins: make([]float32, 3*n), Directions: make([]float32, 3*n)}
}

// PlaneRays returns n rays that start in the plane z = -1, within 0.9 of the z axis along x and along y, and point
// upwards. None is parallel to the plane z = 0.
func PlaneRays(seed uint64, n int) Rays {
	r := newRays(n)
	fillPlane(seed, r)
	return r
}

// VolumeRays returns n rays that start uniformly in the cube [-1, 1)^3 and point in every direction.
func VolumeRays(seed uint64, n int) Rays {
	r := newRays(n)
	fillVolume(seed, r)
	return r
}

func fillPlane(seed uint64, r Rays) {
	positions, normals := NewStream(seed, 2), NewStream(seed, 3)
	o, d := r.Origins, r.Directions
	parallel(r.Len(), func(begin, end int) {
		for i := begin; i < end; i++ {
			o[3*i] = float32(positions.Unit(uint64(2*i))*1.8) - 0.9
			o[3*i+1] = float32(positions.Unit(uint64(2*i+1))*1.8) - 0.9
			o[3*i+2] = -1
			j := uint64(3 * i)
			d[3*i], d[3*i+1], d[3*i+2] = normalize(
				normals.Normal(j), normals.Normal(j+1), math.Abs(normals.Normal(j+2))+0.25)
		}
	})
}

func fillVolume(seed uint64, r Rays) {
	positions, normals := NewStream(seed, 0), NewStream(seed, 1)
	o, d := r.Origins, r.Directions
	parallel(r.Len(), func(begin, end int) {
		for i := begin; i < end; i++ {
			j := uint64(3 * i)
			for axis := range 3 {
				// The doubling is exact, so this rounds once even where the compiler fuses.
				o[3*i+axis] = positions.Unit(j+uint64(axis))*2 - 1
			}
			d[3*i], d[3*i+1], d[3*i+2] = normalize(normals.Normal(j), normals.Normal(j+1), normals.Normal(j+2))
		}
	})
}
