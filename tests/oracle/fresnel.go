package oracle

import (
	"math"
	"math/cmplx"
)

// FresnelAuxiliary is f(t) + j g(t), t >= 0, to about 1e-15:
//
//	1/2 - C(t) + j (1/2 - S(t)) = (g + j f) exp(j pi t^2/2)
//
// The left side is erfc(z) (1 + j)/2 with z = sqrt(pi) (1 - j) t/2. Small arguments take
// the power series of exp(z^2) erf(z), large ones the continued fraction of
// exp(z^2) erfc(z).
func FresnelAuxiliary(t float64) complex128 {
	z := complex(math.Sqrt(math.Pi)/2*t, -math.Sqrt(math.Pi)/2*t)
	var scaled complex128 // exp(z^2) erfc(z)
	if t < 1.5 {
		term := z
		sum := term
		for n := 1; cmplx.Abs(term) > 1e-18*cmplx.Abs(sum); n++ {
			term *= 2 * z * z / complex(float64(2*n+1), 0)
			sum += term
		}
		sin, cos := math.Sincos(math.Pi / 2 * t * t)
		scaled = complex(cos, -sin) - complex(2/math.Sqrt(math.Pi), 0)*sum
	} else {
		tail := z
		for n := 400; n > 0; n-- {
			tail = z + complex(float64(n)/2, 0)/tail
		}
		scaled = 1 / (complex(math.Sqrt(math.Pi), 0) * tail)
	}
	w := scaled * (0.5 + 0.5i)
	return complex(imag(w), real(w))
}

// FresnelTransition is the transition function
// F(x) = 2j sqrt(x) exp(jx) (integral from sqrt(x) to infinity of exp(-j tau^2)).
func FresnelTransition(x float64) complex128 {
	return complex(math.Sqrt(2*math.Pi*x), 0) * FresnelAuxiliary(math.Sqrt(2*x/math.Pi))
}

// fresnelTail is the integral from x to infinity of exp(-j tau^2), for either sign of x.
func fresnelTail(x float64) complex128 {
	if x < 0 {
		return complex(math.Sqrt(math.Pi), 0)*cmplx.Exp(-0.25i*math.Pi) - fresnelTail(-x)
	}
	a := FresnelAuxiliary(x * math.Sqrt(2/math.Pi))
	sin, cos := math.Sincos(x * x)
	return complex(math.Sqrt(math.Pi/2), 0) * complex(imag(a), -real(a)) * complex(cos, -sin)
}

// FresnelIntegral is C(t) + j S(t), for either sign of t and +Inf.
func FresnelIntegral(t float64) complex128 {
	if t < 0 {
		return -FresnelIntegral(-t)
	}
	if math.IsInf(t, 1) {
		return 0.5 + 0.5i
	}
	a := FresnelAuxiliary(t)
	sin, cos := math.Sincos(math.Pi / 2 * t * t)
	return 0.5 + 0.5i - complex(imag(a), real(a))*complex(cos, sin)
}

// BesselJ is the Bessel function of the first kind of any order >= 0 at x > 0: backward
// recurrence, scaled by
//
//	(x/2)^v = sum over k of (v + 2k) Gamma(v + k)/k! J_{v+2k}(x)
//
// with v the fractional part of the order.
func BesselJ(order, x float64) float64 {
	whole := math.Floor(order)
	v := order - whole
	last := 2 * (int(math.Max(whole, x))/2 + 40)
	values := make([]float64, last+2)
	values[last] = 1e-280
	for m := last; m > 0; m-- {
		values[m-1] = 2*(v+float64(m))/x*values[m] - values[m+1]
		if math.Abs(values[m-1]) > 1e200 {
			for i := m - 1; i <= last; i++ {
				values[i] *= 1e-200
			}
		}
	}
	gamma := math.Gamma(v + 1) // Gamma(v + k)/k!, k = 1
	sum := gamma * values[0]
	for k := 1; 2*k <= last; k++ {
		sum += (v + float64(2*k)) * gamma * values[2*k]
		gamma *= (v + float64(k)) / float64(k+1)
	}
	return values[int(whole)] * math.Pow(x/2, v) / sum
}

// HalfPlane is Sommerfeld's exact total field of a plane wave exp(j k rho cos(phi - from))
// at a conducting half plane of the angles 0 and 2 pi, with the field zero on it (soft) or
// its normal derivative (hard).
func HalfPlane(krho, phi, from float64, soft bool) complex128 {
	part := func(beta float64) complex128 {
		sin, cos := math.Sincos(krho * math.Cos(beta))
		return complex(cos, sin) * fresnelTail(-math.Sqrt(2*krho)*math.Cos(beta/2))
	}
	total := part(phi - from)
	if soft {
		total -= part(phi + from)
	} else {
		total += part(phi + from)
	}
	return cmplx.Exp(0.25i*math.Pi) / complex(math.Sqrt(math.Pi), 0) * total
}

// ConductingWedge is the exact total field of the same wave at a conducting wedge whose
// free region has the angle n pi: the series of its eigenfunctions.
func ConductingWedge(n, krho, phi, from float64, soft bool) complex128 {
	var sum complex128
	for m := 0; float64(m)/n < krho+40; m++ {
		order := float64(m) / n
		sin, cos := math.Sincos(math.Pi / 2 * order)
		term := complex(cos, sin) * complex(BesselJ(order, krho), 0)
		switch {
		case soft:
			sum += 4 * term * complex(math.Sin(order*phi)*math.Sin(order*from), 0)
		case m == 0:
			sum += 2 * term
		default:
			sum += 4 * term * complex(math.Cos(order*phi)*math.Cos(order*from), 0)
		}
	}
	return sum / complex(n, 0)
}
