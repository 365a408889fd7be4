package oracle

import "math"

// Single-precision arithmetic of which every operation rounds once, in the order
// that the kernels must follow. Conversions that look redundant keep the compiler
// from fusing a product with a sum.

var inf32 = float32(math.Inf(1))

func sub32(a, b [3]float32) [3]float32 { return [3]float32{a[0] - b[0], a[1] - b[1], a[2] - b[2]} }

func dot32(a, b [3]float32) float32 {
	return fma32(a[0], b[0], fma32(a[1], b[1], float32(a[2]*b[2])))
}

func cross32(a, b [3]float32) [3]float32 {
	return [3]float32{dop(a[1], b[2], a[2], b[1]), dop(a[2], b[0], a[0], b[2]), dop(a[0], b[1], a[1], b[0])}
}

// shifted is a + s*b, product and sum rounded one after the other.
func shifted(a [3]float32, s float32, b [3]float32) [3]float32 {
	for k := range a {
		a[k] += float32(s * b[k])
	}
	return a
}

// mirrored is a - 2 h b, likewise.
func mirrored(a [3]float32, h float32, b [3]float32) [3]float32 {
	for k := range a {
		a[k] -= float32(2 * h * b[k])
	}
	return a
}

func inf32of(a [3]float32) float32 {
	return max(abs32(a[0]), abs32(a[1]), abs32(a[2]))
}

func abs32(a float32) float32 { return float32(math.Abs(float64(a))) }

// The square root in float64 of a float32, rounded again, is the correctly rounded
// one.
func sqrt32(a float32) float32 { return float32(math.Sqrt(float64(a))) }

// unit32 is the unit vector of n, or zero where n is zero or not finite.
func unit32(n [3]float32) [3]float32 {
	m := inf32of(n)
	if m == 0 || !finite(wide(n)) {
		return [3]float32{}
	}
	for k := range n {
		n[k] /= m
	}
	length := sqrt32(dot32(n, n))
	for k := range n {
		n[k] /= length
	}
	return n
}

// eps32 is the offset rule: how far from a surface a ray starts or ends, by the
// largest coordinate of the points involved.
func eps32(m float32) float32 { return max(2e-5, float32(1e-6*m)) }

func dop(a, b, c, d float32) float32 {
	w := float32(c * d)
	return fma32(a, b, -w) + fma32(-c, d, w)
}

// fma32 is a*b + c rounded once. The product is exact in float64; the sum is
// rounded to odd there, so that the final rounding cannot round twice.
func fma32(a, b, c float32) float32 {
	p, q := float64(a)*float64(b), float64(c)
	s := p + q
	if math.IsInf(s, 0) || math.IsNaN(s) {
		return float32(s)
	}
	// The error of the sum (Knuth).
	t := s - p
	err := (p - (s - t)) + (q - t)
	if err != 0 && math.Float64bits(s)&1 == 0 {
		toward := math.Inf(1)
		if err < 0 {
			toward = math.Inf(-1)
		}
		s = math.Nextafter(s, toward)
	}
	return float32(s)
}
