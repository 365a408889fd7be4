package oracle

import (
	"fmt"
	"math"
)

// Answer is what the library said about one ray.
type Answer struct {
	Prim   int
	T      float32
	B1, B2 float32
	N      [3]float32
}

// Check compares an answer with the oracle's. It returns nil when they agree:
// on unambiguous rows the winner must be equal, t within H, barycentrics
// within BTol and the normal within 1e-5. On ambiguous rows the answer must
// still be one of the triangles in reach, or a miss.
func (h *Hit) Check(a Answer) error {
	if h.Ambiguous {
		if a.Prim == h.Prim || a.Prim < 0 {
			return nil
		}
		for _, p := range h.Near {
			if p == a.Prim {
				return nil
			}
		}
		return fmt.Errorf("ambiguous row (%s): triangle %d is not in reach of the ray (float64 winner %d, candidates %v)", h.Why, a.Prim, h.Prim, h.Near)
	}
	if a.Prim != h.Prim {
		return fmt.Errorf("winner %d, float64 says %d at t = %g", a.Prim, h.Prim, h.T)
	}
	if h.Prim < 0 {
		if !math.IsInf(float64(a.T), 1) {
			return fmt.Errorf("t = %g on a miss", a.T)
		}
		return nil
	}
	if d := math.Abs(float64(a.T) - h.T); !(d <= h.H) {
		return fmt.Errorf("t = %.9g, float64 says %.17g (off by %.3g, margin %.3g)", a.T, h.T, d, h.H)
	}
	if d := math.Max(math.Abs(float64(a.B1)-h.B1), math.Abs(float64(a.B2)-h.B2)); !(d <= h.BTol) {
		return fmt.Errorf("barycentrics (%.9g, %.9g), float64 says (%.17g, %.17g)", a.B1, a.B2, h.B1, h.B2)
	}
	for k := range a.N {
		if d := math.Abs(float64(a.N[k]) - h.N[k]); !(d <= 1e-5) {
			return fmt.Errorf("normal %v, float64 says %v", a.N, h.N)
		}
	}
	return nil
}
