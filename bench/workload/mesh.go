package workload

// Mesh is an indexed triangle mesh on the host.
type Mesh struct {
	Vertices []float32 // 3 per vertex: x, y, z
	Faces    []int32   // 3 per triangle: vertex indices, counter-clockwise seen from the side its normal points to
}

// NumVertices returns the number of vertices.
func (m Mesh) NumVertices() int { return len(m.Vertices) / 3 }

// NumTriangles returns the number of triangles.
func (m Mesh) NumTriangles() int { return len(m.Faces) / 3 }

// Grid returns a square in the plane z = 0, centred on the origin, of side span, cut into cells x cells squares of two
// triangles each. All normals are +z. The first half of the faces are the lower left triangles of the cells in row-major
// order, the second half the upper right ones.
func Grid(cells int, span float64) Mesh {
	side := cells + 1
	axis := make([]float32, side)
	for i := range axis {
		axis[i] = float32((span / 2) * (float64(2*i-cells) / float64(cells)))
	}
	m := Mesh{Vertices: make([]float32, 3*side*side), Faces: make([]int32, 6*cells*cells)}
	for iy := range side {
		for ix := range side {
			v := 3 * (iy*side + ix)
			m.Vertices[v], m.Vertices[v+1] = axis[ix], axis[iy]
		}
	}
	upper := m.Faces[3*cells*cells:]
	for row := range cells {
		for column := range cells {
			a := int32(row*side + column)
			b, c := a+1, a+int32(side)
			d := c + 1
			f := 3 * (row*cells + column)
			m.Faces[f], m.Faces[f+1], m.Faces[f+2] = a, b, c
			upper[f], upper[f+1], upper[f+2] = b, d, c
		}
	}
	return m
}

// Cloud returns independent triangles with uniformly distributed centres in a cube of side span around the origin. Each
// vertex lies at most halfEdge from its centre along every axis. No two triangles share a vertex.
func Cloud(seed uint64, triangles int, halfEdge, span float32) Mesh {
	centres, offsets := NewStream(seed, 0), NewStream(seed, 1)
	m := Mesh{Vertices: make([]float32, 9*triangles), Faces: make([]int32, 3*triangles)}
	parallel(triangles, func(begin, end int) {
		for k := begin; k < end; k++ {
			for axis := range 3 {
				centre := float32((centres.Unit(uint64(3*k+axis)) - 0.5) * span)
				for j := range 3 {
					at := 9*k + 3*j + axis
					m.Vertices[at] = centre + float32((offsets.Unit(uint64(at))*2-1)*halfEdge)
				}
			}
			for j := 3 * k; j < 3*k+3; j++ {
				m.Faces[j] = int32(j)
			}
		}
	})
	return m
}
