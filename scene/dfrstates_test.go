package scene_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/scene"
)

type vec64 = [3]float64

func minus(a, b vec64) vec64         { return vec64{a[0] - b[0], a[1] - b[1], a[2] - b[2]} }
func along(a vec64, f float64) vec64 { return vec64{f * a[0], f * a[1], f * a[2]} }
func plus(a, b vec64) vec64          { return vec64{a[0] + b[0], a[1] + b[1], a[2] + b[2]} }
func product(a, b vec64) float64     { return a[0]*b[0] + a[1]*b[1] + a[2]*b[2] }
func vectorProduct(a, b vec64) vec64 {
	return vec64{a[1]*b[2] - a[2]*b[1], a[2]*b[0] - a[0]*b[2], a[0]*b[1] - a[1]*b[0]}
}
func length(a vec64) float64 { return math.Sqrt(product(a, a)) }
func wide(v []float32, i int) vec64 {
	return vec64{float64(v[3*i]), float64(v[3*i+1]), float64(v[3*i+2])}
}
func narrow(a vec64) (out vec)         { return vec{float32(a[0]), float32(a[1]), float32(a[2])} }
func near(a, b vec64, by float64) bool { return length(minus(a, b)) <= by }

// motion is a random rotation and a shift.
type motion struct {
	axes [3]vec64
	to   vec64
}

func randomMotion(rng *rand.Rand) motion {
	var m motion
	random := func() vec64 { return vec64{rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64()} }
	x := random()
	m.axes[0] = along(x, 1/length(x))
	y := vectorProduct(m.axes[0], random())
	m.axes[1] = along(y, 1/length(y))
	m.axes[2] = vectorProduct(m.axes[0], m.axes[1])
	m.to = random()
	return m
}

func (m motion) turn(p vec64) vec64 {
	return plus(plus(along(m.axes[0], p[0]), along(m.axes[1], p[1])), along(m.axes[2], p[2]))
}

func (m motion) move(p vec64) vec64 { return plus(m.turn(p), m.to) }

// boxMesh is a closed box around the origin with its faces in the order of a permutation,
// and moved.
func boxMesh(half vec64, m motion, order []int) scene.Mesh {
	var out scene.Mesh
	for i := range 8 {
		p := vec64{half[0] * float64(i&1*2-1), half[1] * float64(i>>1&1*2-1), half[2] * float64(i>>2&1*2-1)}
		q := narrow(m.move(p))
		out.Vertices = append(out.Vertices, q[:]...)
	}
	var faces [][3]int32
	for _, q := range [6][4]int32{{0, 2, 3, 1}, {4, 5, 7, 6}, {0, 1, 5, 4}, {2, 6, 7, 3}, {0, 4, 6, 2}, {1, 3, 7, 5}} {
		faces = append(faces, [3]int32{q[0], q[1], q[2]}, [3]int32{q[0], q[2], q[3]})
	}
	for _, i := range order {
		out.Faces = append(out.Faces, faces[i][:]...)
	}
	return out
}

func inOrder(n int) (order []int) {
	for i := range n {
		order = append(order, i)
	}
	return order
}

var still = motion{axes: [3]vec64{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}}

func (r *rig) dfrStates(opts scene.DfrStateOptions) (*scene.DfrStates, scene.DfrStateReport) {
	r.Helper()
	states, report, err := r.DfrStates(background, opts)
	require.NoError(r, err)
	n := states.Count
	require.Equal(r, n, report.States)
	require.Equal(r, report.Edges, report.States+report.Flat+report.Concave+report.Inconsistent+report.Closed+report.Degenerate)
	require.True(r, slices.IsSorted(states.EdgeIndex))
	for _, column := range [][]float32{states.EdgePos, states.EdgeDir, states.N0, states.N1, states.Src} {
		require.Len(r, column, 3*n)
	}
	for _, column := range [][]float32{states.TMin, states.TMax, states.ExteriorAngle, states.SrcPower} {
		require.Len(r, column, n)
	}
	require.Equal(r, []int{n, n, n}, []int{len(states.EdgeIndex), len(states.Prim0), len(states.Prim1)})
	r.checkStates(states, report.NonManifold > 0)
	return states, *report
}

// checkStates requires of every state what its definition says: units, the normals by the
// angle between the faces, and the ends of the edge and the normals of the faces by the
// geometry of the scene. Where more than two faces meet, face n may show its back.
func (r *rig) checkStates(states *scene.DfrStates, back bool) {
	r.Helper()
	g, err := r.GlobalGeometry(background)
	require.NoError(r, err)
	records, err := r.EdgeRecords(background)
	require.NoError(r, err)
	for i := range states.Count {
		e, n0, n1 := wide(states.EdgeDir, i), wide(states.N0, i), wide(states.N1, i)
		require.InDelta(r, 1, length(e), 1e-6)
		require.InDelta(r, 1, length(n0), 1e-6)
		require.InDelta(r, 0, product(e, n0), 1e-6)
		t0 := vectorProduct(n0, e)
		sin, cos := math.Sincos(float64(states.ExteriorAngle[i]))
		require.True(r, near(n1, minus(along(t0, sin), along(n0, cos)), 1e-6), "normal of face n of state %d", i)

		id := states.EdgeIndex[i]
		a, b := wide(records.A, int(id)), wide(records.B, int(id))
		p := wide(states.EdgePos, i)
		q := plus(p, along(e, float64(states.TMax[i])))
		require.Zero(r, states.TMin[i])
		require.True(r, p == a && near(q, b, 1e-5) || p == b && near(q, a, 1e-5), "ends of state %d", i)

		require.True(r, near(n0, wide(g.FaceNormals, int(states.Prim0[i])), 1e-6), "normal of face 0 of state %d", i)
		if states.Prim1[i] != states.Prim0[i] {
			n := wide(g.FaceNormals, int(states.Prim1[i]))
			require.True(r, near(n1, n, 1e-6) || back && near(n1, along(n, -1), 1e-6), "normal of face n of state %d", i)
		}
		// Face 0 and face n have their third corner on their side of the edge.
		into := []vec64{t0, plus(along(t0, cos), along(n0, sin))}
		for k, prim := range []int32{states.Prim0[i], states.Prim1[i]} {
			centre := vec64{}
			for _, v := range g.Faces[3*prim : 3*prim+3] {
				centre = plus(centre, along(wide(g.Vertices, int(v)), 1./3))
			}
			require.Positive(r, product(minus(centre, p), into[k]), "face %d of state %d", k, i)
		}
	}
}

func TestDfrStatesOfACube(t *testing.T) {
	top := []int{2, 3, 0, 1, 4, 5, 6, 7, 8, 9, 10, 11}
	mesh := boxMesh(vec64{.5, .5, .5}, motion{axes: still.axes, to: vec64{.5, .5, .5}}, top)
	r := build(t, mesh)
	states, report := r.dfrStates(scene.DfrStateOptions{Src: vec{1, 2, 3}, SrcPower: 4})
	assert.Equal(t, scene.DfrStateReport{Edges: 18, States: 12, Flat: 6}, report)
	found := 0
	for i := range states.Count {
		assert.InDelta(t, 1.5*math.Pi, states.ExteriorAngle[i], 1e-6)
		assert.Equal(t, vec64{1, 2, 3}, wide(states.Src, i))
		assert.Equal(t, float32(4), states.SrcPower[i])
		p, e := wide(states.EdgePos, i), wide(states.EdgeDir, i)
		if p == (vec64{0, 0, 1}) && e == (vec64{1, 0, 0}) {
			found++
			n0, n1 := wide(states.N0, i), wide(states.N1, i)
			assert.Equal(t, vec64{0, 0, 1}, n0)
			assert.True(t, near(n1, vec64{0, -1, 0}, 1e-7))
			assert.Equal(t, vec64{0, 1, 0}, vectorProduct(n0, e))
			assert.Equal(t, float32(1), states.TMax[i])
		}
	}
	assert.Equal(t, 1, found, "edge (0,0,1)-(1,0,1) with the top as face 0")
}

func TestDfrStatesOfSmallMeshes(t *testing.T) {
	corner := scene.Mesh{ // the inner side of an L, and its two ends
		Vertices: []float32{0, 0, 0, 0, 0, 2, 1, 0, 0, 1, 0, 2, 0, 1, 0, 0, 1, 2},
		Faces:    []int32{0, 1, 3, 0, 3, 2, 0, 5, 1, 0, 4, 5},
	}
	twisted := scene.Mesh{Vertices: []float32{0, 0, 0, 1, 0, 0, 0, 1, 0, 0, -1, -1}, Faces: []int32{0, 1, 2, 0, 1, 3}}
	needle := scene.Mesh{Vertices: []float32{0, 0, 0, 1, 0, 0, 2, 0, 0}, Faces: []int32{0, 1, 2}}
	tiny := scaled(meshT(), 8e-7)
	// A face without area does not count where it touches another one.
	hinge := scene.Mesh{Vertices: []float32{0, 0, 0, 1, 0, 0, 0, 1, 0, 2, 0, 0}, Faces: []int32{0, 1, 2, 1, 0, 3}}
	// Faces at the z axis with vertices of their own.
	apart := scene.Mesh{
		Vertices: []float32{0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, -1, 0, 0, 0, 0, 1},
		Faces:    []int32{0, 1, 2, 3, 4, 5, 6, 7, 8},
	}
	for _, c := range []struct {
		id   string
		mesh scene.Mesh
		want scene.DfrStateReport
	}{
		{"two faces apart", scene.Mesh{Vertices: apart.Vertices[:18], Faces: apart.Faces[:6]}, scene.DfrStateReport{Edges: 6, States: 6, Boundary: 6, Coincident: 2}},
		{"three faces apart", apart, scene.DfrStateReport{Edges: 9, States: 9, Boundary: 9, Coincident: 3}},
		{"triangle", meshT(), scene.DfrStateReport{Edges: 3, States: 3, Boundary: 3}},
		{"two coplanar triangles", meshQ(), scene.DfrStateReport{Edges: 5, States: 4, Boundary: 4, Flat: 1}},
		{"concave edge", corner, scene.DfrStateReport{Edges: 9, States: 6, Boundary: 6, Flat: 2, Concave: 1}},
		{"oriented differently", twisted, scene.DfrStateReport{Edges: 5, States: 4, Boundary: 4, Inconsistent: 1}},
		{"without area", needle, scene.DfrStateReport{Edges: 3, Degenerate: 3}},
		{"too short", tiny, scene.DfrStateReport{Edges: 3, Degenerate: 2, States: 1, Boundary: 1}},
		{"beside a face without area", hinge, scene.DfrStateReport{Edges: 5, States: 3, Boundary: 3, Degenerate: 2}},
	} {
		t.Run(c.id, func(t *testing.T) {
			r := build(t, moved(scaled(meshT(), 1e3), vec{1e4, 0, 0}), c.mesh)
			mask := make([]bool, r.NumEdges())
			for i := 3; i < len(mask); i++ {
				mask[i] = true
			}
			states, report := r.dfrStates(scene.DfrStateOptions{EdgeMask: mask})
			assert.Equal(t, c.want, report)
			for i := range states.Count {
				assert.GreaterOrEqual(t, states.EdgeIndex[i], int32(3))
				if states.Prim0[i] == states.Prim1[i] {
					assert.InDelta(t, 2*math.Pi, states.ExteriorAngle[i], 1e-6)
					assert.Equal(t, along(wide(states.N0, i), -1), wide(states.N1, i))
				}
			}
		})
	}
}

func TestDfrStatesAngleBetweenTwoFaces(t *testing.T) {
	va, vb, o0, o1 := vec{0, 0, 0}, vec{.1, .2, 1.5}, vec{1, .1, .3}, vec{-.2, -1, .8}
	var m scene.Mesh
	for _, p := range []vec{va, vb, o0, o1} {
		m.Vertices = append(m.Vertices, p[:]...)
	}
	m.Faces = []int32{0, 1, 2, 1, 0, 3}
	states, report := build(t, m).dfrStates(scene.DfrStateOptions{})
	require.Equal(t, scene.DfrStateReport{Edges: 5, States: 5, Boundary: 4}, report)
	assert.Equal(t, int32(0), states.EdgeIndex[0])
	assert.InDelta(t, 4.433490715, states.ExteriorAngle[0], 5e-7)
	assert.Equal(t, [2]int32{0, 1}, [2]int32{states.Prim0[0], states.Prim1[0]})
}

// The exterior bisector of a box's edge leads out of the box, and the order of the faces
// only exchanges the two sides of a wedge.
func TestDfrStatesOfRandomBoxes(t *testing.T) {
	const boxes = 30
	rng := rand.New(rand.NewPCG(3, 41))
	var halves []vec64
	var motions []motion
	var orders [][]int
	var plain, shuffled []scene.Mesh
	for range boxes {
		half, m, order := vec64{.2 + rng.Float64(), .2 + rng.Float64(), .2 + rng.Float64()}, randomMotion(rng), rng.Perm(12)
		halves, motions, orders = append(halves, half), append(motions, m), append(orders, order)
		plain, shuffled = append(plain, boxMesh(half, m, inOrder(12))), append(shuffled, boxMesh(half, m, order))
	}
	a, report := build(t, plain...).dfrStates(scene.DfrStateOptions{})
	require.Equal(t, scene.DfrStateReport{Edges: 18 * boxes, States: 12 * boxes, Flat: 6 * boxes}, report)
	b, _ := build(t, shuffled...).dfrStates(scene.DfrStateOptions{})
	exchanged := 0
	for i := range a.Count {
		half, m, order := halves[i/12], motions[i/12], orders[i/12]
		outside := func(p vec64) float64 {
			p = minus(p, m.to)
			far := math.Inf(-1)
			for k := range 3 {
				far = max(far, math.Abs(product(p, m.axes[k]))-half[k])
			}
			return far
		}
		require.InDelta(t, 1.5*math.Pi, a.ExteriorAngle[i], 1e-5)
		e, n0 := wide(a.EdgeDir, i), wide(a.N0, i)
		sin, cos := math.Sincos(float64(a.ExteriorAngle[i]) / 2)
		out := plus(along(vectorProduct(n0, e), cos), along(n0, sin))
		middle := plus(wide(a.EdgePos, i), along(e, float64(a.TMax[i])/2))
		require.InDelta(t, .1/math.Sqrt2, outside(plus(middle, along(out, .1))), 1e-5)
		require.InDelta(t, -.1/math.Sqrt2, outside(minus(middle, along(out, .1))), 1e-5)

		require.Equal(t, a.EdgeIndex[i], b.EdgeIndex[i])
		base := int32(i / 12 * 12)
		prims := [2]int32{base + int32(order[b.Prim0[i]-base]), base + int32(order[b.Prim1[i]-base])}
		e, n0, n1, p := wide(b.EdgeDir, i), wide(b.N0, i), wide(b.N1, i), wide(b.EdgePos, i)
		if prims[0] != a.Prim0[i] {
			exchanged++
			p = plus(p, along(e, float64(b.TMax[i])))
			prims[0], prims[1], n0, n1, e = prims[1], prims[0], n1, n0, along(e, -1)
		}
		require.Equal(t, [2]int32{a.Prim0[i], a.Prim1[i]}, prims)
		require.True(t, near(e, wide(a.EdgeDir, i), 1e-5) && near(p, wide(a.EdgePos, i), 1e-5))
		require.True(t, near(n0, wide(a.N0, i), 1e-5) && near(n1, wide(a.N1, i), 1e-5))
	}
	require.Greater(t, exchanged, boxes)
}

// Faces around one edge at known angles and with known orientation: what is emitted
// follows from the gaps between them as seen from the face with the smallest id.
func TestDfrStatesOfRandomFans(t *testing.T) {
	const delta = 1e-3
	rng := rand.New(rand.NewPCG(5, 43))
	var met [4]int
	r := open(t)
	type fan struct {
		angles []float64
		up     []bool
	}
	var fans []fan
	for range 400 {
		n := 1 + rng.IntN(6)
		f := fan{}
		// Within a random sector, so that wide gaps are common.
		sector := rng.Float64() * 2 * math.Pi
		for range n {
			f.angles = append(f.angles, rng.Float64()*sector)
			f.up = append(f.up, rng.IntN(2) == 0)
		}
		fans = append(fans, f)
		m := randomMotion(rng)
		mesh := scene.Mesh{}
		add := func(p vec64) { q := narrow(m.move(p)); mesh.Vertices = append(mesh.Vertices, q[:]...) }
		add(vec64{0, 0, 0})
		add(vec64{0, 0, 1})
		for i, a := range f.angles {
			sin, cos := math.Sincos(a)
			d := .5 + rng.Float64()
			add(vec64{d * cos, d * sin, rng.Float64()})
			if f.up[i] { // the normal points to larger angles
				mesh.Faces = append(mesh.Faces, 0, 1, int32(2+i))
			} else {
				mesh.Faces = append(mesh.Faces, 1, 0, int32(2+i))
			}
		}
		r.add(mesh)
	}
	require.NoError(t, r.Build(background))
	records, err := r.EdgeRecords(background)
	require.NoError(t, err)
	mask := make([]bool, r.NumEdges())
	first := map[int32]int32{}
	base := map[int32]int32{}
	for i := range mask {
		shape := records.ShapeID[i]
		if _, known := first[shape]; !known {
			first[shape], base[shape] = int32(i), records.Face0[i]
		}
		mask[i] = records.V0[i] == records.V0[first[shape]] && records.V1[i] == records.V1[first[shape]]
	}
	states, _ := r.dfrStates(scene.DfrStateOptions{EdgeMask: mask, Delta: delta})
	byEdge := map[int32]int{}
	for i := range states.Count {
		byEdge[states.EdgeIndex[i]] = i
	}
	for k, f := range fans {
		prim0, prim1, angle := expectedOfFan(f.angles, f.up, delta)
		i, have := byEdge[first[int32(k)]]
		about := fmt.Sprint("fan ", k, " of ", f)
		require.Equal(t, prim0 >= 0, have, about)
		met[min(len(f.angles), 3)]++
		if !have {
			continue
		}
		if len(f.angles) >= 3 {
			met[0]++
		}
		b := base[int32(k)]
		require.Equal(t, [2]int32{prim0, prim1}, [2]int32{states.Prim0[i] - b, states.Prim1[i] - b}, about)
		require.InDelta(t, angle, states.ExteriorAngle[i], 2e-5, about)
	}
	for i, n := range met {
		require.Greater(t, n, 20, "kind %d of a fan", i)
	}
}

// expectedOfFan is the wedge of faces at these angles, or -1.
func expectedOfFan(angles []float64, up []bool, delta float64) (prim0, prim1 int32, angle float64) {
	n := len(angles)
	if n == 1 {
		return 0, 0, 2 * math.Pi
	}
	if n == 2 && up[0] == up[1] {
		return -1, -1, 0
	}
	sign := 1.
	if !up[0] {
		sign = -1
	}
	turn := func(from, to int) float64 { // from one face to another, towards the front of face 0
		a := math.Mod(sign*(angles[to]-angles[from]), 2*math.Pi)
		if a < 0 {
			a += 2 * math.Pi
		}
		return a
	}
	for i := range n {
		next := -1
		for j := range n {
			if j != i && (next < 0 || turn(i, j) < turn(i, next)) {
				next = j
			}
		}
		gap := turn(i, next)
		if gap > math.Pi+delta && (n == 2 && i == 0 || n > 2 && up[i] == up[0]) {
			return int32(i), int32(next), gap
		}
	}
	return -1, -1, 0
}

func TestDfrStatesMask(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 47))
	// A box and a half plane, whose edges the mask of the scene leaves out.
	r := build(t, boxMesh(vec64{1, 1, 1}, randomMotion(rng), inOrder(12)), moved(meshT(), vec{9, 0, 0}))
	all, _ := r.dfrStates(scene.DfrStateOptions{})
	require.Equal(t, 15, all.Count)
	mask := make([]bool, r.NumEdges())
	for i := range mask {
		mask[i] = rng.IntN(2) == 0
	}
	given, _ := r.dfrStates(scene.DfrStateOptions{EdgeMask: mask})
	require.NoError(t, r.SetEdgeMask(mask))
	own, report := r.dfrStates(scene.DfrStateOptions{})
	assert.Equal(t, given, own)
	var want []int32
	for _, id := range all.EdgeIndex {
		if mask[id] {
			want = append(want, id)
		}
	}
	assert.Equal(t, want, own.EdgeIndex)
	on := 0
	for _, m := range mask {
		if m {
			on++
		}
	}
	assert.Equal(t, on, report.Edges)

	none, report := r.dfrStates(scene.DfrStateOptions{EdgeMask: make([]bool, len(mask))})
	assert.Zero(t, none.Count)
	assert.Zero(t, report)
}

// Of an edge of several faces, the records that the mask leaves decide about its faces.
func TestDfrStatesMaskOfASharedSide(t *testing.T) {
	mesh := scene.Mesh{
		Vertices: []float32{0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 1, 0, -1, 0, 0},
		Faces:    []int32{1, 0, 2, 0, 1, 3, 0, 1, 4},
	}
	r := build(t, mesh)
	for record := range 2 { // of faces 0 and 1, and of faces 0 and 2
		mask := make([]bool, r.NumEdges())
		mask[record] = true
		_, report := r.dfrStates(scene.DfrStateOptions{EdgeMask: mask})
		require.Equal(t, 1, report.Edges)
		// From face 0 outwards face 1 is three right angles away, and face 2 two.
		assert.Equal(t, [2]int{1 - record, record}, [2]int{report.States, report.Flat})
	}
}

func TestDfrStatesOfChangedGeometry(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 53))
	half := vec64{1, 2, 3}
	mesh := dynamic(boxMesh(half, still, inOrder(12)))
	r := build(t, mesh)
	m := randomMotion(rng)
	require.NoError(t, r.UpdateMeshVertices(0, boxMesh(half, m, inOrder(12)).Vertices))
	require.NoError(t, r.Sync(background))
	states, _ := r.dfrStates(scene.DfrStateOptions{})
	want, _ := build(t, boxMesh(half, m, inOrder(12))).dfrStates(scene.DfrStateOptions{})
	assert.Equal(t, want, states)
}

func TestDfrStatesRefuses(t *testing.T) {
	r := open(t)
	_, _, err := r.DfrStates(background, scene.DfrStateOptions{})
	require.ErrorIs(t, err, scene.ErrNotReady)
	r.add(meshT())
	require.NoError(t, r.Build(background))
	for arg, opts := range map[string]scene.DfrStateOptions{
		"EdgeMask": {EdgeMask: make([]bool, 4)},
		"Delta":    {Delta: math.NaN()},
	} {
		_, _, err := r.DfrStates(background, opts)
		var wrong *scene.ArgumentError
		require.ErrorAs(t, err, &wrong)
		assert.Equal(t, arg, wrong.Arg)
	}
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for arg, list := range map[string][]scene.DfrStateOptions{
		"Src":      {{Src: vec{0, nan, 0}}, {Src: vec{0, 0, -inf}}},
		"SrcPower": {{SrcPower: -1}, {SrcPower: nan}, {SrcPower: inf}},
	} {
		for _, opts := range list {
			_, _, err := r.DfrStates(background, opts)
			var wrong *scene.ArgumentError
			require.ErrorAs(t, err, &wrong, "%+v", opts)
			assert.Equal(t, arg, wrong.Arg)
		}
	}
	for _, delta := range []float64{-1e-9, math.Pi, math.Inf(1)} {
		_, _, err := r.DfrStates(background, scene.DfrStateOptions{Delta: delta})
		require.ErrorContains(t, err, "Delta", "%v", delta)
	}
}
