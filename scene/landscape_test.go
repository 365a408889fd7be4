package scene_test

import (
	"math"
	"math/rand/v2"

	"github.com/raymux/raymux/bench/workload"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tests/gputest"
)

// landscape is a surface, a little change of its vertices that a tree is refitted for,
// and rays of which half aim at its vertices and edges.
type landscape struct {
	name  string
	mesh  scene.Mesh
	moved []float32
	aim   func(rng *rand.Rand, m scene.Mesh, n int) targeted
	// flat surfaces are hit at the target itself.
	flat bool
}

// targeted is rays that reach their targets at t = 1. Those that are certain to hit the
// surface there or before are marked.
type targeted struct {
	batch
	targets []vec
	certain []bool
}

func (a *targeted) at(o, target vec, certain bool) {
	a.add(o, vec{target[0] - o[0], target[1] - o[1], target[2] - o[2]})
	a.targets, a.certain = append(a.targets, target), append(a.certain, certain)
}

// landscapes are small on emulated devices.
func landscapes() []landscape {
	cells, blades := 12, 64
	if gputest.Native() {
		cells, blades = 191, 1024
	}
	return []landscape{plane(cells), fan(blades)}
}

// plane is the grid of the benchmark. It becomes a little uneven.
func plane(cells int) landscape {
	g := workload.Grid(cells, workload.Span)
	l := landscape{name: "plane", mesh: dynamic(scene.Mesh{Vertices: g.Vertices, Faces: g.Faces, NoEdges: true}), flat: true}
	rng := rand.New(rand.NewPCG(70, 1))
	l.moved = append(l.moved, g.Vertices...)
	cell := float32(workload.Span / float64(cells))
	for i := 2; i < len(l.moved); i += 3 {
		l.moved[i] = .1 * cell * (rng.Float32() - .5)
	}
	half := float32(workload.Span / 2)
	l.aim = func(rng *rand.Rand, m scene.Mesh, n int) (a targeted) {
		for i := range n {
			target := cornerOrEdge(rng, m, i)
			if i%4 >= 2 {
				target = vec{1.1 * half * (2*rng.Float32() - 1), 1.1 * half * (2*rng.Float32() - 1), 0}
			}
			o := vec{.9 * half * (2*rng.Float32() - 1), .9 * half * (2*rng.Float32() - 1), 1}
			if i%8 < 2 { // along z
				o = vec{target[0], target[1], 1}
			}
			if rng.IntN(2) == 0 {
				o[2] = -1
			}
			certain := max(abs(target[0]), abs(target[1])) < half*(1-1e-5)
			if i%4 >= 2 && m.Vertices[2] != 0 {
				certain = false // the target is beside the surface
			}
			a.at(o, target, certain)
		}
		return a
	}
	return l
}

// fan is triangles of a thousand metres around one corner. Origins are a metre from
// their long edges.
func fan(blades int) landscape {
	rng := rand.New(rand.NewPCG(71, 1))
	spacing := 1000 / float32(blades)
	rim := func(phase float64) []float32 {
		v := []float32{0, 0, 0}
		for i := range blades + 1 {
			a := float64(i) / float64(blades)
			z := 1.5 + 1.5*math.Sin(8*math.Pi*a+phase)
			v = append(v, 1000, float32(1000*a), float32(z)+.2*spacing*rng.Float32())
		}
		return v
	}
	m := scene.Mesh{Vertices: rim(0), NoEdges: true, Dynamic: true}
	for i := range int32(blades) {
		m.Faces = append(m.Faces, 0, i+1, i+2)
	}
	aim := func(rng *rand.Rand, m scene.Mesh, n int) (a targeted) {
		for i := range n {
			k := rng.IntN(blades + 1)
			edge := vec(m.Vertices[3*(k+1):])
			along := func(x float32) vec { return vec{x * edge[0], x * edge[1], x * edge[2]} }
			x := rng.Float32()
			away := across(rng, edge)
			from := along(x)
			o := vec{from[0] + away[0], from[1] + away[1], from[2] + away[2]}
			switch i % 4 {
			case 0:
				a.at(o, cornerOrEdge(rng, m, 0), false)
			case 1:
				// Steep enough to go through the surface, and not at its border.
				to := x + .0015*(2*rng.Float32()-1)
				border := 1000 * x * min(float32(k), float32(blades-k)) / float32(blades)
				a.at(o, along(to), abs(away[2]) > .8 && border > 3 && x > .01 && x < .99)
			default:
				d := randomDirection(rng)
				a.at(o, vec{o[0] + d[0], o[1] + d[1], o[2] + d[2]}, false)
			}
		}
		return a
	}
	return landscape{name: "fan", mesh: m, moved: rim(.3), aim: aim}
}

// cornerOrEdge is a vertex of a random face, or for odd numbers a point on an edge.
func cornerOrEdge(rng *rand.Rand, m scene.Mesh, i int) vec {
	f := 3 * rng.IntN(len(m.Faces)/3)
	k := rng.IntN(3)
	a, b := vec(m.Vertices[3*m.Faces[f+k]:]), vec(m.Vertices[3*m.Faces[f+(k+1)%3]:])
	if i%2 == 0 {
		return a
	}
	u := rng.Float32()
	return vec{a[0] + u*(b[0]-a[0]), a[1] + u*(b[1]-a[1]), a[2] + u*(b[2]-a[2])}
}

// across is a random unit vector at right angles to v.
func across(rng *rand.Rand, v vec) vec {
	for {
		d := randomDirection(rng)
		n := [3]float64{}
		length := 0.0
		for k := range n {
			i, j := (k+1)%3, (k+2)%3
			n[k] = float64(v[i])*float64(d[j]) - float64(v[j])*float64(d[i])
			length += n[k] * n[k]
		}
		if length = math.Sqrt(length); length > 0 {
			return vec{float32(n[0] / length), float32(n[1] / length), float32(n[2] / length)}
		}
	}
}
