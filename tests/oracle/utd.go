package oracle

import (
	"math"
	"math/cmplx"
)

// Wedge is an edge with two faces. The free region reaches by the angle Theta from face 0,
// the half plane from the edge along N0 X E, to face n.
type Wedge struct {
	P, E       [3]float64 // the edge is P + t E, E of length 1
	N0, N1     [3]float64 // outward normals of face 0 and face n, units across the edge but for rounding
	TMin, TMax float64
	Theta      float64
}

// WedgeStatus says why a path over a wedge has no field.
type WedgeStatus int

// Statuses of paths, by the numbers that rows of path exports carry.
const (
	WedgeValid      WedgeStatus = 0
	WedgeNotFinite  WedgeStatus = 2
	WedgeDegenerate WedgeStatus = 3
	WedgeOffEdge    WedgeStatus = 4
	WedgeInside     WedgeStatus = 5
)

// WedgePath is the path from a source over the edge to a target. The angles are those
// from the face that the wedge calls face 0.
type WedgePath struct {
	Q           [3]float64 // point of diffraction
	T           float64    // its parameter on the edge
	Source      float64    // s', length of the source's leg
	Target      float64    // s, length of the target's leg
	SinBeta     float64
	SourceAngle float64
	TargetAngle float64
	// What a finite edge lets through, in parameters of its Fresnel integral.
	V1, V2 float64
}

// WedgeField is what a wedge makes of a path. The coefficients and operators belong to
// face 0 (the face nearer to the source, whichever of the two it is) and face n.
type WedgeField struct {
	Incident, D0, DN complex128       // coefficients
	M0, MN           [2][2]complex128 // zero for a face without medium
	E                [3]complex128    // for unit source power and an infinite edge
	Truncation       complex128       // factor of a finite edge
	// Magnitudes of what E and Truncation are made of, which may cancel. Terms of E have a
	// Fresnel integral each, as the tails have that Truncation cuts off at the two ends.
	// Faces is the terms that reflect as if all was reflected.
	Terms, Faces, Tails float64
}

// Path finds the stationary path and whether it has a field. Fresnel says that rows end
// three Fresnel parameters beyond the ends of the edge instead of at them.
func (w Wedge) Path(source, target [3]float64, lambda float64, fresnel bool) (p WedgePath, status WedgeStatus) {
	for _, v := range [][3]float64{source, target, w.P, w.N0, w.N1, {w.TMin, w.TMax, w.Theta}} {
		for _, x := range v {
			if math.IsNaN(x) || math.IsInf(x, 0) {
				return p, WedgeNotFinite
			}
		}
	}
	n := w.Theta / math.Pi
	square := dot(w.E, w.E)
	if !(math.Abs(square-1) < 1e-6) || math.Abs(math.Sqrt(dot(w.N0, w.N0))-1) > 1e-3 ||
		math.Abs(dot(w.N0, w.E)) > 1e-3 || n <= 1 || n > 2+1e-6 || w.TMax-w.TMin <= 1e-6 {
		return p, WedgeDegenerate
	}
	across := func(x [3]float64) (z, rho float64) {
		from := sub(x, w.P)
		z = dot(from, w.E)
		r := sub(from, scaled(w.E, z))
		return z, math.Sqrt(dot(r, r))
	}
	zs, rs := across(source)
	zt, rt := across(target)
	if rs+rt == 0 {
		return p, WedgeDegenerate
	}
	p.T = (zs*rt + zt*rs) / (rs + rt)
	p.Q = sub(w.P, scaled(w.E, -p.T))
	in, out := sub(p.Q, source), sub(target, p.Q)
	p.Source, p.Target = math.Sqrt(dot(in, in)), math.Sqrt(dot(out, out))
	p.SinBeta = rs / p.Source
	if !(p.SinBeta >= 1e-6) || p.Source <= 1e-4 || p.Target <= 1e-4 {
		return p, WedgeDegenerate
	}
	kappa := p.SinBeta * p.SinBeta * (1/p.Source + 1/p.Target)
	perMetre := math.Sqrt(2 * kappa / lambda)
	p.V1, p.V2 = (w.TMin-p.T)*perMetre, (w.TMax-p.T)*perMetre
	if fresnel && !(p.V1 < 3 && p.V2 > -3) || !fresnel && !(w.TMin < p.T && p.T < w.TMax) {
		return p, WedgeOffEdge
	}
	from := sub(source, p.Q)
	if dot(from, w.N0) < -1e-6 && dot(from, w.N1) < -1e-6 {
		return p, WedgeInside
	}
	w = w.exact()
	p.SourceAngle, p.TargetAngle = w.angle(from), w.angle(out)
	return p, WedgeValid
}

// exact takes the rounding of the normals off. Reflections at a normal that is no unit do
// not keep lengths, and where terms cancel that shows.
func (w Wedge) exact() Wedge {
	across := func(n [3]float64) [3]float64 { return unit64(sub(n, scaled(w.E, dot(n, w.E)))) }
	w.N0, w.N1 = across(w.N0), across(w.N1)
	return w
}

// angle is that of a direction from face 0; inside of the wedge, that of the nearer face.
func (w Wedge) angle(q [3]float64) float64 {
	a := math.Atan2(dot(q, w.N0), dot(q, cross(w.N0, w.E)))
	if a < 0 {
		a += 2 * math.Pi
	}
	switch {
	case a <= w.Theta:
		return a
	case a-w.Theta < 2*math.Pi-a:
		return w.Theta
	}
	return 0
}

// Field is the field of a valid path for a transmit polarization, step by step as the
// uniform theory of diffraction is written down, with exact Fresnel integrals. A face of
// no medium is nil.
func (w Wedge) Field(p WedgePath, source, target, polarization [3]float64, lambda float64, face0, faceN *Medium) WedgeField {
	w = w.exact()
	k := 2 * math.Pi / lambda
	n := w.Theta / math.Pi
	phi, from := p.TargetAngle, p.SourceAngle
	if from > w.Theta/2 {
		w.N0, w.N1, w.E = w.N1, w.N0, scaled(w.E, -1)
		face0, faceN = faceN, face0
		phi, from = w.Theta-phi, w.Theta-from
	}
	ki := scaled(sub(p.Q, source), 1/p.Source)
	ko := scaled(sub(target, p.Q), 1/p.Target)

	kl := k * p.Source * p.Target / (p.Source + p.Target) * p.SinBeta * p.SinBeta
	k0 := -cmplx.Exp(-0.25i*math.Pi) / complex(2*n*math.Sqrt(2*math.Pi*k)*p.SinBeta, 0)
	t1, t2 := k0*WedgeTerm(math.Pi+phi-from, n, kl), k0*WedgeTerm(math.Pi-phi+from, n, kl)
	f := WedgeField{
		Incident: t1 + t2,
		DN:       k0 * WedgeTerm(math.Pi+phi+from, n, kl),
		D0:       k0 * WedgeTerm(math.Pi-phi-from, n, kl),
	}
	u := Transverse(polarization, ki)

	phiIn, betaIn := w.incidentBasis(ki)
	phiOut, betaOut := w.departingBasis(ko)
	if face0 != nil {
		f.M0 = w.operator(*face0, w.N0, ki, lambda)
		f.Faces += cmplx.Abs(f.D0) * face0.Gain
	}
	if faceN != nil {
		f.MN = w.operator(*faceN, w.N1, mirror(ko, dot(ko, w.N1), w.N1), lambda)
		f.Faces += cmplx.Abs(f.DN) * faceN.Gain
	}
	incident := [2]complex128{complex(dot(u, phiIn), 0), complex(dot(u, betaIn), 0)}
	amplitude := complex(lambda/(4*math.Pi*p.Source)*math.Sqrt(p.Source/(p.Target*(p.Source+p.Target))), 0) *
		cmplx.Exp(complex(0, -2*math.Pi*math.Mod(p.Source/lambda, 1))) *
		cmplx.Exp(complex(0, -2*math.Pi*math.Mod(p.Target/lambda, 1)))
	for i, basis := range [2][3]float64{phiOut, betaOut} {
		e := -f.Incident * incident[i]
		for j := range incident {
			e += (f.D0*f.M0[i][j] + f.DN*f.MN[i][j]) * incident[j]
		}
		for c := range basis {
			f.E[c] += amplitude * e * complex(basis[c], 0)
		}
	}
	f.Terms = (cmplx.Abs(t1) + cmplx.Abs(t2) + cmplx.Abs(f.D0)*size(f.M0, incident) + cmplx.Abs(f.DN)*size(f.MN, incident)) * cmplx.Abs(amplitude)
	f.Faces *= cmplx.Abs(amplitude)
	f.Truncation = EdgeTruncation(p.V1, p.V2)
	f.Tails = (cmplx.Abs(FresnelAuxiliary(math.Abs(p.V1))) + cmplx.Abs(FresnelAuxiliary(math.Abs(p.V2)))) / math.Sqrt2
	return f
}

// EdgeTruncation is the factor of an edge that ends at v1 and v2.
func EdgeTruncation(v1, v2 float64) complex128 {
	return (0.5 + 0.5i) * cmplx.Conj(FresnelIntegral(v2)-FresnelIntegral(v1))
}

// WedgeTerm is cot(psi/(2n)) F(k L a), with a = 2 sin^2 of half the angle from psi to the
// nearest multiple of 2 n pi. There, where the cotangent has its pole, the limit takes its
// place.
func WedgeTerm(psi, n, kl float64) complex128 {
	eps := psi - 2*n*math.Pi*math.Round(psi/(2*n*math.Pi))
	if math.Abs(eps) > 1e-5 {
		s := math.Sin(eps / 2)
		return complex(1/math.Tan(eps/(2*n)), 0) * FresnelTransition(2*kl*s*s)
	}
	limit := complex(2*n*math.Sqrt(math.Pi*kl), 0) * FresnelAuxiliary(math.Sqrt(kl/math.Pi)*math.Abs(eps))
	if eps < 0 {
		return -limit
	}
	return limit
}

func (w Wedge) incidentBasis(k [3]float64) (phi, beta [3]float64) {
	phi = scaled(unit64(cross(w.E, k)), -1)
	return phi, cross(k, phi)
}

func (w Wedge) departingBasis(k [3]float64) (phi, beta [3]float64) {
	phi = unit64(cross(w.E, k))
	return phi, cross(k, phi)
}

// operator is the specular reflection at a face of a wave along k, in the bases of the
// edge.
func (w Wedge) operator(medium Medium, n, k [3]float64, lambda float64) (m [2][2]complex128) {
	var in, out [2][3]float64
	in[0], in[1] = w.incidentBasis(k)
	out[0], out[1] = w.departingBasis(mirror(k, dot(k, n), n))
	for j, v := range in {
		reflected := Field{complex(v[0], 0), complex(v[1], 0), complex(v[2], 0)}.Reflect(k, n, medium, lambda)
		for i := range out {
			m[i][j] = reflected.along(out[i])
		}
	}
	return m
}

// size is the length of m v.
func size(m [2][2]complex128, v [2]complex128) float64 {
	return math.Hypot(cmplx.Abs(m[0][0]*v[0]+m[0][1]*v[1]), cmplx.Abs(m[1][0]*v[0]+m[1][1]*v[1]))
}

func unit64(a [3]float64) [3]float64 { return scaled(a, 1/math.Sqrt(dot(a, a))) }
