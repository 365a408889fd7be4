package oracle_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/raymux/raymux/tests/oracle"
	"github.com/stretchr/testify/require"
)

type bounce struct {
	t     float64
	prim  int
	p     [3]float64
	n     [3]float64
	image [3]float64
	b1    float64
	b2    float64
}

// Closed forms, in float64 and in single precision.
func TestReflectClosedForms(t *testing.T) {
	const none = 9 // where the table gives no value
	up := [3]float64{0, 0, 1}
	down := [3]float64{0, 0, -1}
	tiny := floor.moved(func(p [3]float32) [3]float32 { return [3]float32{3e-5 * p[0], 3e-5 * p[1], 3e-5 * p[2]} })
	mirrors := []bounce{
		{.5, 0, [3]float64{.425, -.2, 0}, up, [3]float64{.3, -.2, -.5}, none, none},
		{2, 2, [3]float64{.925, -.2, 2}, down, [3]float64{.3, -.2, 4.5}, none, none},
		{2, 0, [3]float64{1.425, -.2, 0}, up, [3]float64{.3, -.2, -4.5}, none, none},
		{2, 2, [3]float64{1.925, -.2, 2}, down, [3]float64{.3, -.2, 8.5}, none, none},
	}
	r1 := bounce{3, 0, [3]float64{1, -2, 0}, up, [3]float64{1, -2, -3}, .15, .4}
	for name, c := range map[string]struct {
		on      shape
		o, d    [3]float32
		tmax    float32
		bounces int
		want    []bounce
	}{
		"R1": {floor, [3]float32{1, -2, 3}, [3]float32{0, 0, -1}, inf32, 2, []bounce{r1}},
		"R2": {floor, [3]float32{1, -2, 3}, [3]float32{2, 1, -3}, inf32, 1, []bounce{{1, 0, [3]float64{3, -1, 0}, up, [3]float64{1, -2, -3}, .2, .45}}},
		"R3": {floor, [3]float32{1, -2, 3}, [3]float32{20, 10, -30}, inf32, 1, []bounce{{.1, 0, [3]float64{3, -1, 0}, up, [3]float64{1, -2, -3}, .2, .45}}},
		"R4": {floor, [3]float32{1, -2, -3}, [3]float32{0, 0, 1}, inf32, 1, []bounce{{3, 0, [3]float64{1, -2, 0}, down, [3]float64{1, -2, 3}, none, none}}},
		"R5": {two, [3]float32{.3, -.2, .5}, [3]float32{.25, 0, -1}, inf32, 4, mirrors},
		"R6": {corner, [3]float32{3, 2, 1.5}, [3]float32{-1, -1, -1}, inf32, 5, []bounce{
			{1.5, 0, [3]float64{1.5, .5, 0}, up, [3]float64{3, 2, -1.5}, none, none},
			{.5, 2, [3]float64{1, 0, .5}, [3]float64{0, 1, 0}, [3]float64{3, -2, -1.5}, none, none},
			{1, 5, [3]float64{0, 1, 1.5}, [3]float64{1, 0, 0}, [3]float64{-3, -2, -1.5}, none, none},
		}},
		"R7 2.5":   {floor, [3]float32{1, -2, 3}, [3]float32{0, 0, -1}, 2.5, 2, nil},
		"R7 3.5":   {floor, [3]float32{1, -2, 3}, [3]float32{0, 0, -1}, 3.5, 2, []bounce{r1}},
		"R7 +inf":  {floor, [3]float32{1, -2, 3}, [3]float32{0, 0, -1}, inf32, 2, []bounce{r1}},
		"R7 NaN":   {floor, [3]float32{1, -2, 3}, [3]float32{0, 0, -1}, float32(math.NaN()), 2, nil},
		"R7 -inf":  {floor, [3]float32{1, -2, 3}, [3]float32{0, 0, -1}, -inf32, 2, nil},
		"R7 0":     {floor, [3]float32{1, -2, 3}, [3]float32{0, 0, -1}, 0, 2, nil},
		"R8 .6":    {two, [3]float32{.3, -.2, .5}, [3]float32{.25, 0, -1}, .6, 4, mirrors},
		"R8 .4":    {two, [3]float32{.3, -.2, .5}, [3]float32{.25, 0, -1}, .4, 4, nil},
		"R9":       {floor, [3]float32{.5, -.25, 1e-3}, [3]float32{1, 0, -1e-3}, inf32, 3, []bounce{{1, 0, [3]float64{1.5, -.25, 0}, up, [3]float64{.5, -.25, -1e-3}, none, none}}},
		"R11":      {tiny, [3]float32{3e-5, -6e-5, 9e-5}, [3]float32{0, 0, -1}, inf32, 1, []bounce{{9e-5, 0, [3]float64{3e-5, -6e-5, 0}, up, [3]float64{3e-5, -6e-5, -9e-5}, .15, .4}}},
		"R13 d":    {floor, [3]float32{1, -2, 3}, [3]float32{}, inf32, 2, nil},
		"R13 o":    {floor, [3]float32{float32(math.NaN()), -2, 3}, [3]float32{0, 0, -1}, inf32, 2, nil},
		"R13 flat": {shape{[]float32{0, 0, 0, 1, 0, 0, 2, 0, 0}, []int32{0, 1, 2}}, [3]float32{1, 0, 1}, [3]float32{0, 0, -1}, inf32, 2, nil},
	} {
		t.Run(name, func(t *testing.T) {
			o, canonical := c.on.oracles()
			wide, single := o.Reflect(c.o, c.d, c.tmax, c.bounces), canonical.Reflect(c.o, c.d, c.tmax, c.bounces)
			hits := len(wide)
			if hits > 0 && wide[hits-1].Prim < 0 {
				hits--
			}
			require.Equal(t, len(c.want), hits)
			require.Len(t, single, len(c.want))
			near := func(want, got, atLeast float64) {
				require.InDelta(t, want, got, 1e-5*math.Max(atLeast, math.Abs(want)))
			}
			size := 1.0
			if name == "R11" { // everything is of the size of the scene
				size = 3e-5
			}
			for i, w := range c.want {
				b, s := wide[i], single[i]
				require.Equal(t, w.prim, b.Prim)
				require.Equal(t, w.prim, s.Prim)
				near(w.t, b.T, size)
				near(w.t, float64(s.T), size)
				for k := range 3 {
					near(w.p[k], b.P[k], size)
					near(w.p[k], float64(s.P[k]), size)
					near(w.image[k], b.Image[k], size)
					near(w.image[k], float64(s.Image[k]), size)
					near(w.n[k], b.N[k], 1)
					near(w.n[k], float64(s.N[k]), 1)
				}
				if w.b1 != none {
					near(w.b1, b.B1, 1)
					near(w.b1, float64(s.B1), 1)
					near(w.b2, b.B2, 1)
					near(w.b2, float64(s.B2), 1)
				}
			}
		})
	}
}

// R10: the grazing reflection at large coordinates, rotated, does not meet its own
// plane again.
func TestReflectGrazingFarOff(t *testing.T) {
	axis, angle := [3]float64{1, 2, 3}, 1.0
	length := math.Sqrt(14)
	for k := range axis {
		axis[k] /= length
	}
	rotate := func(p [3]float32) (q [3]float64) {
		x := [3]float64{float64(p[0]), float64(p[1]), float64(p[2])}
		along := 0.0
		for k := range x {
			along += x[k] * axis[k]
		}
		for k := range x {
			cross := axis[(k+1)%3]*x[(k+2)%3] - axis[(k+2)%3]*x[(k+1)%3]
			q[k] = x[k]*math.Cos(angle) + cross*math.Sin(angle) + axis[k]*along*(1-math.Cos(angle))
		}
		return q
	}
	place := func(p [3]float32) (q [3]float32) {
		for k, x := range rotate(p) {
			q[k] = float32(x + [3]float64{300, -200, 500}[k])
		}
		return q
	}
	_, canonical := floor.moved(place).oracles()
	d := rotate([3]float32{1, 0, -1e-3})
	chain := canonical.Reflect(place([3]float32{.5, -.25, 1e-3}), [3]float32{float32(d[0]), float32(d[1]), float32(d[2])}, inf32, 3)
	require.Len(t, chain, 1)
}

// Random chains: the single-precision model agrees with float64 on every certain
// bounce, its first bounce is the closest hit, and both keep the invariants of
// reflections.
func TestReflectAgreement(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	for name, on := range map[string]struct {
		shape
		spread     float32
		bounces    int
		atLeast    float64 // share of bounces that are certain
		longChains int
	}{
		"soup":  {soup(rng, 400, .6), 1, 4, .99, 50},
		"rooms": {two.with(quad(-10, -10, 0, -10, 10, 0, -10, 10, 2, -10, -10, 2)), 9, 8, .99, 300},
	} {
		t.Run(name, func(t *testing.T) {
			o, canonical := on.oracles()
			bounces, certain, long := 0, 0, 0
			for range 3000 {
				from, d := point(rng), point(rng)
				from[0], from[1] = from[0]*on.spread, from[1]*on.spread
				want, got := o.Reflect(from, d, inf32, on.bounces), canonical.Reflect(from, d, inf32, on.bounces)
				n, err := oracle.CheckChain(want, got)
				require.NoError(t, err)
				bounces, certain = bounces+len(want), certain+n
				if len(got) == on.bounces {
					long++
				}
				prim, tt := canonical.Winner(from, d, inf32)
				if len(got) == 0 {
					require.Negative(t, prim)
					continue
				}
				require.Equal(t, prim, got[0].Prim)
				require.Equal(t, tt, got[0].T)
				travelled := 0.0
				size := norm(d)
				for _, b := range got {
					travelled += float64(b.T) * size
					require.InDelta(t, travelled, apart(b.Image, b.P), 2e-5*math.Max(1, travelled))
					require.InDelta(t, 1, norm(b.N), 1e-6)
				}
			}
			require.Greater(t, float64(certain)/float64(bounces), on.atLeast, "%d of %d", certain, bounces)
			require.Greater(t, long, on.longChains)
		})
	}
}

// The comparison must notice every kind of wrong answer.
func TestCheckChainRefuses(t *testing.T) {
	o, canonical := corner.oracles()
	from, d := [3]float32{3, 2.1, 1.5}, [3]float32{-1, -1, -1}
	want := o.Reflect(from, d, inf32, 5)
	good := canonical.Reflect(from, d, inf32, 5)
	n, err := oracle.CheckChain(want, good)
	require.NoError(t, err)
	require.Equal(t, 4, n, "three hits and the miss are certain")
	for name, spoil := range map[string]func(r []oracle.Reflection) []oracle.Reflection{
		"short":  func(r []oracle.Reflection) []oracle.Reflection { return r[:2] },
		"long":   func(r []oracle.Reflection) []oracle.Reflection { return append(r, r[0]) },
		"id":     func(r []oracle.Reflection) []oracle.Reflection { r[2].Prim = 4; return r },
		"t":      func(r []oracle.Reflection) []oracle.Reflection { r[1].T += 1e-3; return r },
		"b1":     func(r []oracle.Reflection) []oracle.Reflection { r[1].B1 += 1e-3; return r },
		"point":  func(r []oracle.Reflection) []oracle.Reflection { r[1].P[2] += 1e-3; return r },
		"normal": func(r []oracle.Reflection) []oracle.Reflection { r[0].N[2] = -r[0].N[2]; return r },
		"image":  func(r []oracle.Reflection) []oracle.Reflection { r[2].Image[0] += 1e-3; return r },
	} {
		_, err := oracle.CheckChain(want, spoil(append([]oracle.Reflection{}, good...)))
		require.Error(t, err, name)
	}
}

func norm(a [3]float32) float64 { return apart(a, [3]float32{}) }

func apart(a, b [3]float32) float64 {
	sum := 0.0
	for k := range a {
		d := float64(a[k]) - float64(b[k])
		sum += d * d
	}
	return math.Sqrt(sum)
}
