package oracle

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestConeArea compares the weight of a ray off an edge with the area of the plane that
// rays of neighbouring positions and azimuths meet.
func TestConeArea(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 9))
	tested := 0
	for tested < 300 {
		w := DfrWedge{TMin: -1, TMax: 1}
		for k := range 3 {
			w.Pos[k], w.Dir[k], w.Src[k] = rng.Float32()-.5, rng.Float32()-.5, 3*(rng.Float32()-.5)
		}
		w.N0, w.Theta = [3]float32{0, 0, 1}, math.Pi
		d := DfrCall{States: []DfrWedge{w}, Wavelength: 1, Grid: DfrGrid{
			Axis: rng.IntN(3), Position: rng.Float32() - .5, Min0: -9, Max0: 9, Min1: -9, Max1: 9, Res0: 1, Res1: 1,
		}}
		leg, along, turns := d.leg(0), float64(rng.Float32()-.5), rng.Uint32()>>8
		x, cell, weight := d.keller(&w, &leg, shifted(w.Pos, float32(along), leg.e), turns)
		if cell < 0 {
			continue
		}
		e, axis := wide(leg.e), d.Grid.Axis
		// A unit vector in float64, too.
		for k, size := 0, math.Sqrt(e[0]*e[0]+e[1]*e[1]+e[2]*e[2]); k < 3; k++ {
			e[k] /= size
		}
		var exact float64 // 2 pi J
		// Where the ray of a position and an azimuth meets the plane, in float64.
		meet := func(along, psi float64) (p [3]float64) {
			q, i, dot := p, p, 0.0
			for k := range p {
				q[k] = float64(w.Pos[k]) + along*e[k]
				i[k] = q[k] - float64(w.Src[k])
				dot += e[k] * i[k]
			}
			around := [3]float64{e[1]*i[2] - e[2]*i[1], e[2]*i[0] - e[0]*i[2], e[0]*i[1] - e[1]*i[0]}
			var r [3]float64
			for k := range r {
				r[k] = (1-math.Cos(psi))*dot*e[k] + math.Cos(psi)*i[k] + math.Sin(psi)*around[k]
			}
			way, length := (float64(d.Grid.Position)-q[axis])/r[axis], math.Sqrt(i[0]*i[0]+i[1]*i[1]+i[2]*i[2])
			for k := range p {
				p[k] = q[k] + way*r[k]
			}
			sin2, ell := 1-dot*dot/(length*length), way*length
			exact = 2 * math.Pi * sin2 * ell * (ell + length) / math.Abs(r[axis])
			return p
		}
		psi, h := 2*math.Pi*float64(turns)/(1<<24), 1e-5
		a, b := d.Grid.others()
		slope := func(k int) (by [2]float64) {
			by[0] = (meet(along+h, psi)[k] - meet(along-h, psi)[k]) / (2 * h)
			by[1] = (meet(along, psi+h)[k] - meet(along, psi-h)[k]) / (2 * h)
			return by
		}
		u, v, at := slope(a), slope(b), meet(along, psi)
		area := 2 * math.Pi * math.Abs(u[0]*v[1]-u[1]*v[0])
		if math.Abs(float64(x[a]))+math.Abs(float64(x[b])) > 3 {
			continue // rays nearly along the plane, of which single precision knows little
		}
		tested++
		require.InDelta(t, at[a], x[a], 1e-4)
		require.InDelta(t, at[b], x[b], 1e-4)
		require.InEpsilon(t, area, exact, 1e-6)
		require.InEpsilon(t, exact, weight, 1e-3)
	}
}

func TestSinCos24(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 8))
	for i := range 20000 {
		turns := rng.Uint32() >> 8
		if i < 64 {
			turns = uint32(i) << 18 // quarters and eighths among them
		}
		s, c := SinCos24(turns)
		sin, cos := math.Sincos(2 * math.Pi * float64(turns) / (1 << 24))
		require.InDelta(t, sin, s, 1.2e-7)
		require.InDelta(t, cos, c, 1.2e-7)
	}
}
