package oracle

// EPCAnswer is the answer for one row in single precision.
type EPCAnswer struct {
	Fail     int
	Bounces  int
	Length   float32
	Points   [][3]float32
	Normals  [][3]float32
	Resolved []int32
}

// EPC computes the path of a row bit by bit as the library must. Order of the operations,
// each rounded once, dot and cross as in the search:
//
//	I'  = I - (2*dot(I-P, n))*n         product and difference rounded separately
//	w   = E - I', den = dot(w, n), s = dot(P-I', n)/den
//	X   = fma(s, w, I') per component
//	D   = dop(a, f, c, c), u = dop(f, dot(g, e1), c, dot(g, e2))/D, v likewise
//
// with dop the compensated difference of products.
func (c *Canonical) EPC(row EPCRow, rules EPCRules) EPCAnswer {
	a := EPCAnswer{Length: inf32}
	for a.Bounces < len(row.Seq) && row.Seq[a.Bounces] != -1 {
		a.Bounces++
	}
	a.Fail = c.fold(&a, &row)
	for b := a.Bounces - 1; b >= 0 && a.Fail == 0; b-- {
		a.Resolved[b] = -1
		for _, f := range rules.candidates(row.Seq[b]) {
			if holds32(&c.v[f], a.Points[b], rules.PlaneTolerance) {
				a.Resolved[b] = f
				break
			}
		}
		if a.Resolved[b] < 0 {
			a.Fail = 6
		}
	}
	for i := 0; i <= a.Bounces && a.Fail == 0; i++ {
		if visible, _ := c.block(a.corner(&row, i), a.corner(&row, i+1), rules.passes(row.Seq, a.Resolved, i)); !visible {
			a.Fail = 7
		}
	}
	if a.Fail == 0 {
		a.Length = 0
		for i := range a.Bounces + 1 {
			w := sub32(a.corner(&row, i+1), a.corner(&row, i))
			a.Length += sqrt32(dot32(w, w))
		}
	}
	return a
}

func (a *EPCAnswer) corner(row *EPCRow, k int) [3]float32 {
	switch {
	case k == 0:
		return row.Source
	case k > len(a.Points):
		return row.Receiver
	}
	return a.Points[k-1]
}

// fold finds the points, or why there are none.
func (c *Canonical) fold(a *EPCAnswer, row *EPCRow) int {
	m := a.Bounces
	if row.Inactive || !finite(wide(row.Source)) || !finite(wide(row.Receiver)) {
		return 1
	}
	for b := 0; b < m && row.PlanePoints != nil; b++ {
		if !finite(wide(row.PlanePoints[b])) {
			return 1
		}
	}
	if m == 0 {
		return 2
	}
	for _, f := range row.Seq[:m] {
		if f < 0 || int(f) >= len(c.v) {
			return 2
		}
	}
	planes := make([][3]float32, m)
	a.Points, a.Normals, a.Resolved = make([][3]float32, m), make([][3]float32, m), make([]int32, m)
	image := row.Source
	for b := range m {
		v := &c.v[row.Seq[b]]
		planes[b], a.Normals[b] = v[0], cross32(sub32(v[1], v[0]), sub32(v[2], v[0]))
		if row.PlanePoints != nil {
			planes[b] = row.PlanePoints[b]
		}
		if row.PlaneNormals != nil {
			a.Normals[b] = row.PlaneNormals[b]
		}
		a.Normals[b] = unit32(a.Normals[b])
		if a.Normals[b] == [3]float32{} {
			return 3
		}
		image = mirrored(image, dot32(sub32(image, planes[b]), a.Normals[b]), a.Normals[b])
		a.Points[b] = image
	}
	end := row.Receiver
	for b := m - 1; b >= 0; b-- {
		image, n := a.Points[b], a.Normals[b]
		w := sub32(end, image)
		den := dot32(w, n)
		least := max(sqrt32(dot32(w, w)), eps32(inf32of(image)), eps32(inf32of(end)))
		if !(abs32(den) > float32(1e-7*least)) {
			return 4
		}
		s := dot32(sub32(planes[b], image), n) / den
		if !(s >= -1e-4 && s <= 1+1e-4) {
			return 5
		}
		for k := range end {
			end[k] = fma32(s, w[k], image[k])
		}
		a.Points[b] = end
	}
	return 0
}

func holds32(t *[3][3]float32, x [3]float32, tolerance float32) bool {
	e1, e2 := sub32(t[1], t[0]), sub32(t[2], t[0])
	a, c, f := dot32(e1, e1), dot32(e1, e2), dot32(e2, e2)
	d := dop(a, f, c, c)
	if !(d > float32(1e-14*float32(a*f))) {
		return false
	}
	g := sub32(x, t[0])
	reach := float32(float32(tolerance*max(1, sqrt32(max(a, f)))) * sqrt32(d))
	if !(abs32(dot32(g, cross32(e1, e2))) <= reach) {
		return false
	}
	g1, g2 := dot32(g, e1), dot32(g, e2)
	u, v := dop(f, g1, c, g2)/d, dop(a, g2, c, g1)/d
	return u >= -1e-4 && v >= -1e-4 && u+v <= 1+1e-4
}
