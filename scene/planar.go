package scene

import (
	"context"
	"math"

	"github.com/raymux/raymux/cuda"
)

// coplanarSlack is how much 1 - |cos| of the angle between two faces of one plane may be.
const coplanarSlack = 1e-6

// PlanarSurfaces tells which faces are parts of one plane surface: faces that are
// connected through edges whose two faces lie in one plane, to within 1e-6 of the cosine
// of their angle and 20 µm, or a millionth of the coordinates if that is more. The result
// has one entry per face of the scene, the smallest id of its surface. It is the table
// Canonical of Paths for scenes of plane walls. Faces of finely tessellated curved
// surfaces would be joined one by one; do not use it there. Meshes without edges (NoEdges)
// have surfaces of single faces, as have faces without area.
//
// It answers for the committed geometry, copies the vertices to the host, waits for that,
// and computes there: about a second for ten million edges.
func (s *Scene) PlanarSurfaces(ctx context.Context) ([]int32, error) {
	if err := s.shareReady(ctx); err != nil {
		return nil, err
	}
	defer s.turns.done(false)
	t := s.tables
	vertices, err := cuda.Download(ctx, s.stream, t.vertices)
	if err != nil {
		return nil, err
	}
	faces, err := cuda.Download(ctx, s.stream, t.faces)
	if err != nil {
		return nil, err
	}
	surface := newDisjoint(t.faceCount)
	for _, h := range t.shapes {
		f := int32(h.faceOffset)
		for _, e := range h.topology.edges {
			if e.face1 < 0 {
				continue
			}
			a, b := faceOf(vertices, faces, f+e.face0), faceOf(vertices, faces, f+e.face1)
			if a.coplanar(&b) {
				surface.join(f+e.face0, f+e.face1)
			}
		}
	}
	for i := range surface {
		surface[i] = surface.root(int32(i))
	}
	return surface, nil
}

// disjoint is sets of numbers: every number refers to a smaller one of its set, or is the
// smallest.
type disjoint []int32

func newDisjoint(n int) disjoint {
	d := make(disjoint, n)
	for i := range d {
		d[i] = int32(i)
	}
	return d
}

func (d disjoint) root(i int32) int32 {
	for d[i] != i {
		d[i] = d[d[i]] // halves the way for the next one
		i = d[i]
	}
	return i
}

func (d disjoint) join(a, b int32) {
	a, b = d.root(a), d.root(b)
	d[max(a, b)] = min(a, b)
}

// facePlane is a face in f64: its corners, and its unit normal, or zero without area.
type facePlane struct {
	corner [3][3]float64
	normal [3]float64
}

func faceOf(vertices []float32, faces []int32, f int32) (p facePlane) {
	for c := range p.corner {
		v := 3 * int(faces[3*f+int32(c)])
		for k := range 3 {
			p.corner[c][k] = float64(vertices[v+k])
		}
	}
	var e [2][3]float64
	for k := range 3 {
		e[0][k], e[1][k] = p.corner[1][k]-p.corner[0][k], p.corner[2][k]-p.corner[0][k]
	}
	for k := range 3 {
		i, j := (k+1)%3, (k+2)%3
		p.normal[k] = e[0][i]*e[1][j] - e[0][j]*e[1][i]
	}
	if length := math.Sqrt(inner(&p.normal, &p.normal)); length > 0 {
		for k := range p.normal {
			p.normal[k] /= length
		}
	}
	return p
}

func inner(a, b *[3]float64) float64 { return a[0]*b[0] + a[1]*b[1] + a[2]*b[2] }

func (p *facePlane) coplanar(q *facePlane) bool {
	if !(1-math.Abs(inner(&p.normal, &q.normal)) <= coplanarSlack) {
		return false
	}
	reach := 0.0
	for c := range 3 {
		for k := range 3 {
			reach = max(reach, math.Abs(p.corner[c][k]), math.Abs(q.corner[c][k]))
		}
	}
	offset := max(2e-5, 1e-6*reach)
	return p.holds(q, offset) && q.holds(p, offset)
}

// holds reports whether the corners of q are within offset of the plane.
func (p *facePlane) holds(q *facePlane, offset float64) bool {
	for c := range q.corner {
		var d [3]float64
		for k := range d {
			d[k] = q.corner[c][k] - p.corner[0][k]
		}
		if math.Abs(inner(&d, &p.normal)) > offset {
			return false
		}
	}
	return true
}
