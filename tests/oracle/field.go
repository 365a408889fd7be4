package oracle

import (
	"math"
	"math/cmplx"
)

// Constants of the field model, in SI units.
const (
	lightSpeed         = 299792458
	vacuumPermittivity = 8.8541878128e-12
)

// LossPerSigma is 1/(w eps0) at a wavelength in metres: the imaginary part of -eta per
// S/m.
func LossPerSigma(wavelength float64) float64 {
	return wavelength / (2 * math.Pi * lightSpeed * vacuumPermittivity)
}

// Medium is a row of materials.
type Medium struct {
	EtaR, Sigma, MuR, Gain float64
	Absorbs                bool
}

// Reflectance is the Fresnel coefficients at the cosine c of the angle of incidence,
// perpendicular to the plane of incidence and in it, by textbook formulas.
func (m Medium) Reflectance(wavelength, c float64) (te, tm complex128) {
	gain := complex(m.Gain, 0)
	loss := m.Sigma * LossPerSigma(wavelength)
	if loss > 1e30 {
		return -gain, gain
	}
	c = math.Max(math.Min(c, 1), 1e-6)
	eta, mu := complex(m.EtaR, -loss), complex(m.MuR, 0)
	root := cmplx.Sqrt(mu*eta - 1 + complex(c*c, 0))
	if imag(root) > 0 || imag(root) == 0 && real(root) < 0 {
		root = -root
	}
	k := complex(c, 0)
	te = gain * (mu*k - root) / (mu*k + root)
	tm = gain * (eta*k - root) / (eta*k + root)
	if cmplx.IsNaN(te) || cmplx.IsInf(te) {
		te = 0
	}
	if cmplx.IsNaN(tm) || cmplx.IsInf(tm) {
		tm = 0
	}
	return te, tm
}

// Field is a complex vector.
type Field [3]complex128

// Transverse is the unit vector across k next to a, or across k alone where a has no
// such part.
func Transverse(a, k [3]float64) [3]float64 {
	return direction(sub(a, scaled(k, dot(a, k))), k)
}

// direction is the unit vector of a, or a fixed one across k where a is next to nothing.
func direction(a, k [3]float64) [3]float64 {
	if dot(a, a) <= 1e-12 {
		axis := [3]float64{0, 0, 1}
		if math.Abs(k[2]) >= 0.9 {
			axis = [3]float64{0, 1, 0}
		}
		a = sub(axis, scaled(k, dot(axis, k)))
	}
	return scaled(a, 1/math.Sqrt(dot(a, a)))
}

// Reflect is the field f of a wave along k after a reflection off a plane with unit
// normal n.
func (f Field) Reflect(k, n [3]float64, m Medium, wavelength float64) Field {
	if dot(k, n) > 0 {
		n = scaled(n, -1)
	}
	next := mirror(k, dot(k, n), n)
	s := direction(cross(n, k), k)
	p, q := cross(s, k), cross(s, next)
	te, tm := m.Reflectance(wavelength, -dot(k, n))
	a, b := te*f.along(s), tm*f.along(p)
	var out Field
	for i := range out {
		out[i] = a*complex(s[i], 0) + b*complex(q[i], 0)
	}
	return out
}

func (f Field) along(a [3]float64) (sum complex128) {
	for i := range f {
		sum += f[i] * complex(a[i], 0)
	}
	return sum
}

// Power is the sum of the squared magnitudes.
func (f Field) Power() (sum float64) {
	for _, c := range f {
		sum += real(c)*real(c) + imag(c)*imag(c)
	}
	return sum
}
