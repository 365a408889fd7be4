package workload

// Boxes returns n closed boxes with half edges of 0.25 to 1, turned any way, with centres that are normally distributed
// around the origin with a deviation of spread. The eight vertices of a box are shared by its faces, so that all twelve
// edges are wedges; boxes may overlap.
//
// Turns come from the rational parametrisation of rotations by four normal values.
func Boxes(seed uint64, n int, spread float64) Mesh {
	sizes, turns := NewStream(seed, 5), NewStream(seed, 6)
	m := Mesh{Vertices: make([]float32, 0, 24*n), Faces: make([]int32, 0, 36*n)}
	for k := range uint64(n) {
		var half, centre [3]float64
		for i := range half {
			half[i] = 0.25 + float64(0.75*float64(sizes.Unit(3*k+uint64(i))))
			centre[i] = float64(spread * turns.Normal(7*k+4+uint64(i)))
		}
		axes := turn(turns.Normal(7*k), turns.Normal(7*k+1), turns.Normal(7*k+2), turns.Normal(7*k+3))
		first := int32(m.NumVertices())
		for corner := range 8 {
			for i := range 3 {
				at := centre[i]
				for a := range axes {
					side := half[a]
					if corner>>a&1 == 0 {
						side = -side
					}
					at += float64(side * axes[a][i])
				}
				m.Vertices = append(m.Vertices, float32(at))
			}
		}
		for _, v := range boxFaces {
			m.Faces = append(m.Faces, first+v)
		}
	}
	return m
}

// boxFaces are the corners of the two triangles of each side, of which bit a says on which side of axis a they lie.
// Normals point outwards where the axes are right-handed.
var boxFaces = [36]int32{
	0, 2, 3, 0, 3, 1, 4, 5, 7, 4, 7, 6,
	0, 1, 5, 0, 5, 4, 2, 6, 7, 2, 7, 3,
	0, 4, 6, 0, 6, 2, 1, 3, 7, 1, 7, 5,
}

// turn is the rotation of a quaternion of any length, as the images of the three axes.
func turn(w, x, y, z float64) [3][3]float64 {
	n := (float64(w*w) + float64(x*x)) + (float64(y*y) + float64(z*z))
	if n < 1e-12 {
		return [3][3]float64{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}
	}
	s := 2 / n
	xx, yy, zz := float64(s*float64(x*x)), float64(s*float64(y*y)), float64(s*float64(z*z))
	xy, xz, yz := float64(s*float64(x*y)), float64(s*float64(x*z)), float64(s*float64(y*z))
	wx, wy, wz := float64(s*float64(w*x)), float64(s*float64(w*y)), float64(s*float64(w*z))
	return [3][3]float64{
		{1 - (yy + zz), xy + wz, xz - wy},
		{xy - wz, 1 - (xx + zz), yz + wx},
		{xz + wy, yz - wx, 1 - (xx + yy)},
	}
}

// FanRays returns n rays from one point in every direction.
func FanRays(seed uint64, from [3]float32, n int) Rays { return BoxRays(seed, from, from, n) }

// Middle returns the point of a box at fractions of its sides.
func Middle(lo, hi [3]float32, x, y, z float64) (p [3]float32) {
	for k, f := range [3]float64{x, y, z} {
		p[k] = float32(float64(lo[k]) + float64(f*(float64(hi[k])-float64(lo[k]))))
	}
	return p
}
