package oracle_test

import (
	"math/rand/v2"

	"github.com/raymux/raymux/tests/oracle"
)

// shape is a mesh of the closed-form tests.
type shape struct {
	v []float32
	f []int32
}

func (s shape) oracles() (*oracle.Oracle, *oracle.Canonical) {
	return oracle.New(s.v, s.f), oracle.NewCanonical(s.v, s.f)
}

// with appends another mesh.
func (s shape) with(t shape) shape {
	n := int32(len(s.v) / 3)
	out := shape{append([]float32{}, s.v...), append([]int32{}, s.f...)}
	out.v = append(out.v, t.v...)
	for _, i := range t.f {
		out.f = append(out.f, i+n)
	}
	return out
}

// moved applies a map to every vertex.
func (s shape) moved(to func(p [3]float32) [3]float32) shape {
	out := shape{append([]float32{}, s.v...), s.f}
	for i := 0; i < len(out.v); i += 3 {
		p := to([3]float32(out.v[i:]))
		copy(out.v[i:], p[:])
	}
	return out
}

func raised(z float32) func([3]float32) [3]float32 {
	return func(p [3]float32) [3]float32 { return [3]float32{p[0], p[1], p[2] + z} }
}

func quad(corners ...float32) shape { return shape{corners, []int32{0, 1, 2, 0, 2, 3}} }

var (
	meshT  = shape{[]float32{0, 0, 0, 1, 0, 0, 0, 1, 0}, []int32{0, 1, 2}}
	meshS  = meshT.with(meshT.moved(raised(.5)))
	floor  = quad(-10, -10, 0, 10, -10, 0, 10, 10, 0, -10, 10, 0)
	two    = floor.with(floor.moved(raised(2)))
	corner = quad(0, 0, 0, 4, 0, 0, 4, 4, 0, 0, 4, 0).
		with(quad(0, 0, 0, 4, 0, 0, 4, 0, 4, 0, 0, 4)).
		with(quad(0, 0, 0, 0, 4, 0, 0, 4, 4, 0, 0, 4))
)

// soup is a cloud of n random triangles in [-1, 1]^3, thin ones among them.
func soup(rng *rand.Rand, n int, size float32) shape {
	var s shape
	for i := range n {
		var c [3]float32
		for k := range c {
			c[k] = rng.Float32()*2 - 1
		}
		for range 3 {
			for k := range c {
				s.v = append(s.v, c[k]+(rng.Float32()-.5)*size)
			}
		}
		s.f = append(s.f, int32(3*i), int32(3*i+1), int32(3*i+2))
	}
	return s
}

func point(rng *rand.Rand) (p [3]float32) {
	for k := range p {
		p[k] = rng.Float32()*2 - 1
	}
	return p
}
