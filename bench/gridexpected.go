package main

import (
	"fmt"
	"math"
	"runtime"
	"sync"

	"github.com/raymux/raymux/bench/workload"
	"github.com/raymux/raymux/scene"
)

// within says whether a count is the expected one but for a few.
func within(what string, got, want, few int64) string {
	if d := got - want; d > few || d < -few {
		return fmt.Sprintf("%s: %d, expected %d and at most %d more or less", what, got, want, few)
	}
	return ""
}

// rounding is how many of so many decisions may depend on it.
func rounding(n int64) int64 { return n/100_000 + 2 }

// kellerShare is the part of the Keller samples of the fixture that meets the grid at z = -1, by quadrature in float64:
// from the point (x, 0, 0) of the edge to the cone of the source (0, -1, 1/4) about the edge. Its triangle hides the one
// half, that of negative x.
func kellerShare() float64 {
	const steps = 1 << 16
	rho := math.Sqrt(1 + .0625)
	sum := 0.0
	for i := range steps { // the quarter of all azimuths that lead to |y| < 1
		down := math.Cos(math.Pi / 4 * (2*(float64(i)+.5)/steps - 1))
		sum += 1 / (1 + 1/(rho*down)) // the largest |x| that ends within 1
	}
	return sum / steps / 4
}

func expectKeller(lanes int64) func(tally) string {
	half := kellerShare() / 2 * float64(lanes)
	few := int64(6*math.Sqrt(half)) + 2
	return func(t tally) string {
		if wrong := within("Keller samples that meet the grid in sight", t.counted, int64(half), few); wrong != "" {
			return wrong
		}
		return within("Keller samples that the triangle hides", t.hidden, int64(half), few)
	}
}

func expectAll(lanes int64) func(tally) string {
	return func(t tally) string { return within("samples that count", t.counted, lanes, 0) }
}

func expectSum(lanes int64) func(tally) string {
	return func(t tally) string {
		return within("samples that count or are hidden", t.counted+t.hidden, lanes, 0)
	}
}

// expectPaths requires as many lanes to have a path, free or hidden, as geometry says.
func expectPaths(lanes, paths int64) func(tally) string {
	return func(t tally) string {
		if wrong := within("lanes", t.counted+t.hidden+t.rejected, lanes, 0); wrong != "" {
			return wrong
		}
		return within("paths over an edge, free or hidden", t.counted+t.hidden, paths, rounding(lanes))
	}
}

// each divides n items among the processors and adds up what they come to.
func each(n int, count func(i int) int64) int64 {
	workers := runtime.GOMAXPROCS(0)
	sums := make([]int64, workers)
	var wait sync.WaitGroup
	for w := range workers {
		wait.Go(func() {
			for i := w; i < n; i += workers {
				sums[w] += count(i)
			}
		})
	}
	wait.Wait()
	total := int64(0)
	for _, s := range sums {
		total += s
	}
	return total
}

type point [3]float64

func pointAt(a []float32, i int) point {
	return point{float64(a[3*i]), float64(a[3*i+1]), float64(a[3*i+2])}
}

func (a point) minus(b point) point { return point{a[0] - b[0], a[1] - b[1], a[2] - b[2]} }

func (a point) along(t float64, d point) point {
	return point{a[0] + t*d[0], a[1] + t*d[1], a[2] + t*d[2]}
}

func (a point) dot(b point) float64 { return a[0]*b[0] + a[1]*b[1] + a[2]*b[2] }

func (a point) length() float64 { return math.Sqrt(a.dot(a)) }

// pathsOverEdges counts the triples of a source, a state and a target that have a path over the edge, by geometry alone:
// unfolded into one plane it is a straight line, which meets the line of the edge between its ends, and the source is not
// inside the wedge.
func pathsOverEdges(d *scene.DfrStates, sources, targets []float32) int64 {
	return each(len(d.EdgeIndex), func(s int) (n int64) {
		edge, n0, n1 := pointAt(d.EdgeDir, s), pointAt(d.N0, s), pointAt(d.N1, s)
		edge = point{}.along(1/edge.length(), edge)
		at := pointAt(d.EdgePos, s)
		lo, hi := float64(d.TMin[s]), float64(d.TMax[s])
		for tx := range len(sources) / 3 {
			from := pointAt(sources, tx).minus(at)
			z := from.dot(edge)
			near := from.along(-z, edge).length()
			for rx := range len(targets) / 3 {
				to := pointAt(targets, rx).minus(at)
				end := to.dot(edge)
				far := to.along(-end, edge).length()
				t := z + (end-z)*near/(near+far)
				if !(lo < t && t < hi) || near < 1e-4 || far < 1e-4 {
					continue
				}
				if out := from.along(-t, edge); out.dot(n0) >= -1e-6 || out.dot(n1) >= -1e-6 {
					n++
				}
			}
		}
		return n
	})
}

// hostChains are chains of reflections on the host, with one bounce more than is asked about.
type hostChains struct {
	rays    workload.Rays
	bounces int
	valid   []uint8
	prims   []int32
	p, n    []float32
}

// legCounts are what the legs of tubes come to.
type legCounts struct{ legs, hits, reflections, crossings int64 }

// after is the direction of a ray behind bounce b.
func (c *hostChains) after(row, b int, d point) point {
	n := pointAt(c.n, row*c.bounces+b)
	return d.along(-2*d.dot(n), n)
}

// tubes counts the legs of the rays up to a bounce, and those that cross a horizontal grid.
func (c *hostChains) tubes(g scene.Grid, bounces int) legCounts {
	var total legCounts
	var mu sync.Mutex
	workers := runtime.GOMAXPROCS(0)
	var wait sync.WaitGroup
	for w := range workers {
		wait.Go(func() {
			var own legCounts
			for i := w; i < c.rays.Len(); i += workers {
				c.follow(i, g, bounces, &own)
			}
			mu.Lock()
			defer mu.Unlock()
			total.legs += own.legs
			total.hits += own.hits
			total.reflections += own.reflections
			total.crossings += own.crossings
		})
	}
	wait.Wait()
	return total
}

func (c *hostChains) follow(row int, g scene.Grid, bounces int, to *legCounts) {
	q, d := pointAt(c.rays.Origins, row), pointAt(c.rays.Directions, row)
	for b := 0; b <= bounces; b++ {
		to.legs++
		slot := row*c.bounces + b
		hit := c.valid[slot] != 0
		end := math.Inf(1)
		if hit {
			end = pointAt(c.p, slot).minus(q).dot(d)
		}
		if t := (float64(g.Position) - q[2]) / d[2]; t > 0 && t < end {
			x := q.along(t, d)
			if x[0] >= float64(g.Min0) && x[0] < float64(g.Max0) && x[1] >= float64(g.Min1) && x[1] < float64(g.Max1) {
				to.crossings++
			}
		}
		if !hit {
			return
		}
		to.hits++
		if b < bounces {
			to.reflections++
			q, d = pointAt(c.p, slot), c.after(row, b, d)
		}
	}
}

// expectTubes requires the contributions and events that follow from chains.
func expectTubes(legs legCounts, events bool) func(tally) string {
	return func(t tally) string {
		if t.status != 0 {
			return fmt.Sprintf("the status is %v", t.status)
		}
		if wrong := within("contributions", t.counted, legs.crossings, rounding(10*legs.legs)); wrong != "" || !events {
			return wrong
		}
		return within("wedge events", t.events, legs.reflections, rounding(10*legs.legs))
	}
}

// equivalentRows are rows for equivalent paths: of every second one the path is known, because it is that of a ray.
type equivalentRows struct {
	source, receiver []float32
	seq              []int32
	bounces          int
	known            int64 // rows with a path
	reflections      int64 // of all sequences
	segments         int64 // of the known paths
}

// openEnd is how far from its last reflection a receiver is that nothing stands behind, in metres.
const openEnd = 10

// equivalents makes rows of at most so many bounces from chains: the receiver lies on the ray behind its last
// reflection, half way to what it hits next. Odd rows have the receiver of another row, as most candidates of a
// search do.
func (c *hostChains) equivalents(rows, bounces int) equivalentRows {
	e := equivalentRows{bounces: bounces}
	var receivers []float32
	for i := 0; i < c.rays.Len() && len(e.source) < 3*rows; i++ {
		q, d := pointAt(c.rays.Origins, i), pointAt(c.rays.Directions, i)
		m := 0
		for ; m < bounces && c.valid[i*c.bounces+m] != 0; m++ {
			e.seq = append(e.seq, c.prims[i*c.bounces+m])
			q, d = pointAt(c.p, i*c.bounces+m), c.after(i, m, d)
		}
		if m == 0 {
			continue
		}
		e.reflections += int64(m)
		if len(e.source)/3%2 == 0 {
			e.known++
			e.segments += int64(m + 1)
		}
		for range bounces - m {
			e.seq = append(e.seq, -1)
		}
		far := float64(openEnd)
		if c.valid[i*c.bounces+m] != 0 {
			far = pointAt(c.p, i*c.bounces+m).minus(q).length() / 2
		}
		x := q.along(far, d)
		e.source = append(e.source, c.rays.Origins[3*i:3*i+3]...)
		receivers = append(receivers, float32(x[0]), float32(x[1]), float32(x[2]))
	}
	n := len(receivers) / 3
	for i := range n {
		k := i
		if i%2 == 1 {
			k = (i + n/2) % n
		}
		e.receiver = append(e.receiver, receivers[3*k:3*k+3]...)
	}
	return e
}

// expectEquivalents requires a path in the rows of which it is known, but for a hundredth: a point close to the edge of
// its face, as float32 images see it, may lie beside it.
func expectEquivalents(e equivalentRows) func(tally) string {
	return func(t tally) string {
		if t.counted < e.known-e.known/100-2 || t.counted > int64(len(e.source)/3) {
			return fmt.Sprintf("%d rows have a path, at least %d are known", t.counted, e.known)
		}
		return ""
	}
}
