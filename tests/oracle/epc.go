package oracle

import (
	"fmt"
	"math"
)

// EPCRow is a source, a receiver and the triangles that reflect between them.
type EPCRow struct {
	Source, Receiver [3]float32
	Seq              []int32 // ends at the first -1
	// Planes that take the place of the triangles' own; nil: those.
	PlanePoints, PlaneNormals [][3]float32
	Inactive                  bool
}

// EPCRules are the rules for all rows. ID is the group of each triangle, or -1, and
// Members the triangles of each group in search order; without groups both are nil.
type EPCRules struct {
	ID             []int32
	Members        [][]int32
	IgnoreGroups   bool // segments pass through all of the group at their ends
	PlaneTolerance float32
}

// group is the group of a triangle, -1 for none.
func (r *EPCRules) group(prim int32) int32 {
	if int(prim) >= len(r.ID) {
		return -1
	}
	return r.ID[prim]
}

// candidates are the triangles that may hold the reflection off prim, in search order.
func (r *EPCRules) candidates(prim int32) []int32 {
	if g := r.group(prim); g >= 0 {
		return r.Members[g]
	}
	return []int32{prim}
}

// passes tells what the segment from point k to the next passes through. Point 0 is the
// source, resolved holds the triangle of each reflection.
func (r *EPCRules) passes(seq, resolved []int32, k int) func(prim int) bool {
	return func(prim int) bool {
		for _, b := range []int{k - 1, k} {
			if b < 0 || b >= len(resolved) {
				continue
			}
			if g := r.group(seq[b]); r.IgnoreGroups && g >= 0 {
				if r.group(int32(prim)) == g {
					return true
				}
			} else if int(resolved[b]) == prim {
				return true
			}
		}
		return false
	}
}

// EPCPath is the answer for one row in float64.
type EPCPath struct {
	Fail     int // 0, or the number of the reason
	Bounces  int
	Length   float64
	Shortest float64      // length of the shortest segment
	Points   [][3]float64 // reflections
	Normals  [][3]float64
	Resolved []int32
	// PTol is how far the points of single precision may be off, PlaneTol how far from their
	// planes, and LengthTol how far off the length may be.
	PTol, PlaneTol, LengthTol float64
	// Ambiguous rows may be answered otherwise in single precision; Why says which margin
	// is small.
	Ambiguous bool
	Why       string
}

func (p *EPCPath) doubt(format string, args ...any) {
	if !p.Ambiguous {
		p.Ambiguous, p.Why = true, fmt.Sprintf(format, args...)
	}
}

// epcPlane is a plane and what single precision makes of it.
type epcPlane struct {
	p, n [3]float64
	size float64 // largest coordinate
	nTol float64
}

// EPC computes the path of a row by images. Rounding errors grow from image to image and
// from point to point, the faster the flatter the incidence; the margins grow with them.
func (o *Oracle) EPC(row EPCRow, rules EPCRules) EPCPath {
	path := EPCPath{}
	for path.Bounces < len(row.Seq) && row.Seq[path.Bounces] != -1 {
		path.Bounces++
	}
	planes := make([]epcPlane, path.Bounces)
	path.Fail = o.epcPlanes(planes, &row)
	if path.Fail == 0 {
		path.Fail = path.fold(planes, &row)
	}
	if path.Fail == 0 {
		path.Fail = o.locate(&path, row.Seq, &rules)
	}
	if path.Fail == 0 {
		path.Fail = o.look(&path, &row, &rules)
	}
	return path
}

func (o *Oracle) epcPlanes(planes []epcPlane, row *EPCRow) int {
	if row.Inactive || !finite(wide(row.Source)) || !finite(wide(row.Receiver)) {
		return 1
	}
	if row.PlanePoints != nil {
		for b := range planes {
			if !finite(wide(row.PlanePoints[b])) {
				return 1
			}
		}
	}
	if len(planes) == 0 {
		return 2
	}
	for b := range planes {
		if f := row.Seq[b]; f < 0 || int(f) >= len(o.tri) {
			return 2
		}
	}
	for b := range planes {
		t := &o.tri[row.Seq[b]]
		q := epcPlane{p: t.v0, n: t.n, size: t.size}
		if row.PlanePoints != nil {
			q.p = wide(row.PlanePoints[b])
			q.size = math.Max(q.size, inf(q.p))
		}
		thin := 0.0
		if row.PlaneNormals != nil {
			q.n = wide(row.PlaneNormals[b])
		} else {
			thin = math.Sqrt(dot(t.e1, t.e1)*dot(t.e2, t.e2)) / math.Sqrt(dot(t.n, t.n))
		}
		if !finite(q.n) || q.n == [3]float64{} {
			return 3
		}
		q.n = scaled(q.n, 1/math.Sqrt(dot(q.n, q.n)))
		q.nTol = 4 * ulp * (1 + thin)
		planes[b] = q
	}
	return 0
}

// fold finds the points of the path from the receiver backwards.
func (path *EPCPath) fold(planes []epcPlane, row *EPCRow) int {
	images := [][3]float64{wide(row.Source)}
	tols := []float64{0}
	for _, q := range planes {
		from := sub(images[len(images)-1], q.p)
		image := mirror(images[len(images)-1], dot(from, q.n), q.n)
		images = append(images, image)
		tols = append(tols, tols[len(tols)-1]+2*q.nTol*math.Sqrt(dot(from, from))+6*ulp*(inf(image)+q.size))
		path.Normals = append(path.Normals, q.n)
	}
	path.Points = make([][3]float64, len(planes))
	end, endTol := wide(row.Receiver), 0.0
	for b := len(planes) - 1; b >= 0; b-- {
		q, image, imageTol := &planes[b], images[b+1], tols[b+1]
		w := sub(end, image)
		length := math.Sqrt(dot(w, w))
		den := dot(w, q.n)
		least := math.Max(length, math.Max(epsilon(inf(image)), epsilon(inf(end))))
		rounding := 6*ulp*(inf(image)+inf(end)+q.size) + q.nTol*length
		off := imageTol + endTol + rounding
		if math.Abs(math.Abs(den)-1e-7*least) <= 2*off {
			path.doubt("bounce %d: nearly parallel", b)
		}
		if math.Abs(den) <= 1e-7*least {
			return 4
		}
		// A shift along the normal moves the point by the shift over the cosine, but not out
		// of its plane.
		off *= length / math.Abs(den)
		path.PlaneTol = math.Max(path.PlaneTol, rounding)
		s := dot(sub(q.p, image), q.n) / den
		if margin := 2*off/length + 1e-6; math.Abs(s+1e-4) <= margin || math.Abs(s-1-1e-4) <= margin {
			path.doubt("bounce %d: at an end of its segment", b)
		}
		if s < -1e-4 || s > 1+1e-4 {
			return 5
		}
		for k := range end {
			end[k] = image[k] + s*w[k]
		}
		endTol = off
		path.Points[b] = end
		path.PTol = math.Max(path.PTol, off)
	}
	path.Shortest = math.Inf(1)
	for i := range len(planes) + 1 {
		d := sub(path.corner(row, i+1), path.corner(row, i))
		length := math.Sqrt(dot(d, d))
		path.Length += length
		path.Shortest = math.Min(path.Shortest, length)
	}
	path.LengthTol = float64(len(planes)+1) * (2*path.PTol + 8*ulp*path.Length)
	return 0
}

// corner is point k of the path: the source, a reflection or the receiver.
func (path *EPCPath) corner(row *EPCRow, k int) [3]float64 {
	switch {
	case k == 0:
		return wide(row.Source)
	case k > len(path.Points):
		return wide(row.Receiver)
	}
	return path.Points[k-1]
}

// locate finds the triangles of the points.
func (o *Oracle) locate(path *EPCPath, seq []int32, rules *EPCRules) int {
	path.Resolved = make([]int32, path.Bounces)
	for b := path.Bounces - 1; b >= 0; b-- {
		path.Resolved[b] = -1
		for _, f := range rules.candidates(seq[b]) {
			inside, certain := o.tri[f].holds(path.Points[b], path.PTol, path.PlaneTol, float64(rules.PlaneTolerance))
			if !certain {
				path.doubt("bounce %d: at a border of triangle %d", b, f)
			}
			if inside {
				path.Resolved[b] = f
				break
			}
		}
		if path.Resolved[b] < 0 {
			return 6
		}
	}
	return 0
}

// holds reports whether a point that may be off, and off its plane, lies on the triangle.
func (t *triangle) holds(x [3]float64, off, planeOff, tolerance float64) (inside, certain bool) {
	a, c, f := dot(t.e1, t.e1), dot(t.e1, t.e2), dot(t.e2, t.e2)
	d := a*f - c*c
	if d <= 1e-14*a*f {
		return false, d < 1e-15*a*f
	}
	g := sub(x, t.v0)
	thin := math.Sqrt(a * f / d)
	rounding := 4 * ulp * (inf(x) + t.size + thin*math.Sqrt(dot(g, g)))
	off += rounding
	planeOff += rounding
	distance := math.Abs(dot(g, t.n)) / math.Sqrt(d)
	reach := tolerance * math.Max(1, math.Sqrt(math.Max(a, f)))
	u, v := (f*dot(g, t.e1)-c*dot(g, t.e2))/d, (a*dot(g, t.e2)-c*dot(g, t.e1))/d
	// A length over the smallest altitude is a barycentric.
	slack := off*math.Sqrt(math.Max(math.Max(a, f), a+f-2*c)/d) + 1e-6
	least := math.Min(math.Min(u, v), 1-u-v) + 1e-4
	inside = distance <= reach && least >= 0
	switch {
	case distance > reach+planeOff || least < -slack:
		return inside, true
	case distance >= reach-planeOff || least <= slack:
		return inside, false
	}
	return inside, true
}

// look tests the segments.
func (o *Oracle) look(path *EPCPath, row *EPCRow, rules *EPCRules) int {
	for i := range path.Bounces + 1 {
		off := drift{origin: path.PTol + 4*ulp*o.vmax}
		s := o.segment(path.corner(row, i), path.corner(row, i+1), off, rules.passes(row.Seq, path.Resolved, i))
		if s.Ambiguous {
			path.doubt("segment %d: %s", i, s.Why)
		}
		if !s.Visible {
			return 7
		}
	}
	return 0
}

// EPCField is the field at the end of a path that exists.
func EPCField(path *EPCPath, source, receiver, polarization [3]float32, medium func(prim int32) Medium, wavelength float64) Field {
	points := append(append([][3]float64{wide(source)}, path.Points...), wide(receiver))
	leg := func(i int) [3]float64 {
		d := sub(points[i+1], points[i])
		return scaled(d, 1/math.Sqrt(dot(d, d)))
	}
	var f Field
	for k, v := range Transverse(wide(polarization), leg(0)) {
		f[k] = complex(v, 0)
	}
	for b, n := range path.Normals {
		m := medium(path.Resolved[b])
		if m.Absorbs {
			return Field{}
		}
		f = f.Reflect(leg(b), n, m, wavelength)
	}
	sin, cos := math.Sincos(-2 * math.Pi * path.Length / wavelength)
	amplitude := wavelength / (4 * math.Pi * path.Length)
	for k := range f {
		f[k] *= complex(amplitude*cos, amplitude*sin)
	}
	return f
}
