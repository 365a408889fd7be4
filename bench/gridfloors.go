package main

import "github.com/raymux/raymux/scene"

// work is what a call cannot do without: bytes from and to memory, each once, and arithmetic, in single-precision
// operations. An operation in double precision counts as two; docs/grids.md has the counts.
type work struct{ bytes, operations float64 }

func (w work) plus(lanes int64, operations float64) work {
	w.operations += float64(lanes) * operations
	return w
}

// rate is what a device can do in a second at most.
type rate struct{ bytes, operations float64 }

// rates of the devices for which floors are stated: 4.8 TB/s, and 132 multiprocessors of 128 lanes at 1.98 GHz.
var rates = map[string]rate{"NVIDIA H200": {4.8e12, 132 * 128 * 1.98e9}}

// floors are the two floors of a case on the master in ms, or nothing where they are not stated.
func (f *field) floors(c gridCase, t tally) (bytes, operations any) {
	most, known := rates[f.host.contexts[0].Device().Name()]
	if c.least == nil || !known {
		return nil, nil
	}
	w := c.least(t)
	return 1e3 * w.bytes / most.bytes, 1e3 * w.operations / most.operations
}

// Operations of the parts of a lane, counted in docs/grids.md.
const (
	segmentOperations  = 93 // a segment as a ray, and a triangle
	sampleOperations   = 30 // a random point of an edge
	directOperations   = 40 // the contribution of a direct sample, and its sum
	azimuthOperations  = 118
	landedOperations   = 91 // the cell and the contribution of a Keller sample
	pathOperations     = 230
	besideOperations   = 100 // where the legs of a path end at the wedge
	fieldOperations    = 1800
	crossingOperations = 44  // a leg and the plane of a grid
	depositOperations  = 150 // a contribution
	mirrorOperations   = 200 // a field at a surface, and the next leg
	searchOperations   = 200 // a search that begins, and one node
	triangleOperations = 46
	imageOperations    = 90 // a bounce of an equivalent path, from the source and back
	holdsOperations    = 90 // whether it lies on its face
)

// Bytes of the state of a wedge, and of a row of its paths.
const (
	stateBytes   = 160
	pathRowBytes = 53
)

// directWork is that of AccumDfrDirect: a sample asks for two segments unless the first is hidden. The sums of a cell
// are set to zero and read.
func directWork(s *scene.DfrStates, cells int64, t tally) work {
	w := work{bytes: float64(stateBytes*int64(len(s.EdgeIndex)) + (2*48+4)*cells)}
	return w.plus(t.counted+t.hidden, sampleOperations+segmentOperations).plus(t.counted, directOperations+segmentOperations)
}

func kellerWork(s *scene.DfrStates, cells, lanes int64, t tally) work {
	w := work{bytes: float64(stateBytes*int64(len(s.EdgeIndex)) + (2*48+4)*cells)}
	return w.plus(lanes, sampleOperations+segmentOperations+azimuthOperations).
		plus(t.counted+t.hidden, landedOperations+segmentOperations)
}

// laneWork is that of lanes of wedges: a path each, two segments where there is one, a field where nothing hides it.
func laneWork(bytes, lanes int64, t tally) work {
	w := work{bytes: float64(bytes)}
	return w.plus(lanes, pathOperations).plus(t.counted+t.hidden, besideOperations+segmentOperations).
		plus(t.counted, segmentOperations+fieldOperations)
}

// tubeWork is that of AccumulateReflections, with the legs and reflections of chains. Of every cell 68 bytes are cleared, the
// count is read and 28 bytes are the result; words are read only where there are contributions, which any cell may lack. Events
// beyond the capacity leave nothing.
func tubeWork(rays, cells, capacity int64, legs legCounts, t tally) work {
	w := work{bytes: float64(24*rays + (68+4+28)*cells + 80*min(t.events, capacity))}
	return w.plus(legs.legs, crossingOperations+searchOperations).plus(legs.hits, triangleOperations).
		plus(legs.reflections, mirrorOperations).plus(t.counted, depositOperations)
}

// equivalentWork is that of equivalent paths: images of all, and the rest of those that are known.
func equivalentWork(e *equivalentRows, perRow int64, field bool) work {
	rows, b := int64(len(e.source)/3), int64(e.bounces)
	reflections := e.segments - e.known
	w := work{bytes: float64(rows * (24 + 4*b + perRow))}
	w = w.plus(e.reflections, imageOperations).plus(reflections, holdsOperations).plus(e.segments, segmentOperations+searchOperations)
	if field {
		w = w.plus(reflections, mirrorOperations)
	}
	return w
}
