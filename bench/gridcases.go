package main

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/raymux/raymux/bench/record"
	"github.com/raymux/raymux/bench/workload"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
)

// Operations of the study that are in no row.
const (
	operationCoherent         = "accum_dfr_coherent_direct"
	operationDfrPaths         = "trace_dfr_paths"
	operationTubes            = "accumulate_reflections"
	operationEquivalents      = "trace_refl_epc"
	operationEquivalentFields = "trace_refl_epc_field"
)

// gridExtent is the size of the study's workloads.
type gridExtent struct {
	samples int64
	fine    int32 // side of the large grid of the fixture
	roof    int32 // and of that below the roof

	boxes                   int
	boxSide, boxRx, boxTx   int
	townLots, townSide      int
	townRx, townTx          int
	cityLots, rays, tubeRes int
	rows                    int // of equivalent paths
}

func gridExtentOn(emulated bool) gridExtent {
	if emulated {
		return gridExtent{
			samples: 256, fine: 8, roof: 4,
			boxes: 2, boxSide: 4, boxRx: 3, boxTx: 2, townLots: 1, townSide: 2, townRx: 2, townTx: 2,
			cityLots: 2, rays: 128, tubeRes: 8, rows: 64,
		}
	}
	return gridExtent{
		samples: 1 << 26, fine: 512, roof: 64,
		boxes: 8, boxSide: 512, boxRx: 256, boxTx: 4, townLots: 12, townSide: 16, townRx: 8, townTx: 2,
		cityLots: workload.CityLots, rays: 1 << 22, tubeRes: 256, rows: 1 << 20,
	}
}

// direct is a case of AccumDfrDirect.
func direct(config string, states *scene.DfrStates, g scene.Grid, o scene.DfrDirectOptions, expect func(tally) string) gridCase {
	o.KeepWords = true // which costs nothing
	o.AllowPartialCoverage = o.DirectSamples > 0
	lanes := o.DirectSamples + o.KellerSamples
	return gridCase{
		operation: record.OperationAccumDirect, config: config, lanes: lanes, cells: g.Cells(), expect: expect,
		call: func(s *stage, opts ...scene.CallOption) (gridOutcome, error) {
			r, err := s.AccumDfrDirect(background, s.states, g, o, opts...)
			if err != nil {
				return gridOutcome{}, err
			}
			return directOutcome(r), nil
		},
		least: func(t tally) work {
			if o.KellerSamples > 0 {
				return kellerWork(states, g.Cells(), lanes, t)
			}
			return directWork(states, g.Cells(), t)
		},
	}
}

// fixtureCases are those of the accumulation fixture.
func fixtureCases(r *run, e gridExtent) (*field, []gridCase, error) {
	f, err := r.openField(fixtureMesh(), fixtureMaterials())
	if err != nil {
		return nil, nil, err
	}
	states := fixtureStates()
	if err := f.use(states); err != nil {
		return nil, nil, errors.Join(err, f.close())
	}
	coarse, fine, below := fixtureGrid(), fixtureGrid(), fixtureGrid()
	fine.Res0, fine.Res1 = e.fine, e.fine
	below.Position = -1
	keller := fixtureOptions(e.samples)
	keller.DirectSamples, keller.KellerSamples = 0, e.samples
	return f, []gridCase{
		direct("fixture", &states, coarse, fixtureOptions(e.samples), expectAll(e.samples)),
		direct("fixture", &states, fine, fixtureOptions(e.samples), expectAll(e.samples)),
		direct("fixture, Keller", &states, below, keller, expectKeller(e.samples)),
	}, nil
}

// openWedges makes a field of which every wedge is a state.
func (r *run) openWedges(mesh workload.Mesh, media scene.Materials, source [3]float32) (*field, *scene.DfrStates, error) {
	f, err := r.openField(scene.Mesh{Vertices: mesh.Vertices, Faces: mesh.Faces}, media)
	if err != nil {
		return nil, nil, err
	}
	states, _, err := f.plain.DfrStates(background, scene.DfrStateOptions{Src: source, SrcPower: 1})
	if err == nil {
		err = f.use(*states)
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.close())
	}
	return f, states, nil
}

// level is a horizontal grid over a box, at a fraction of its height.
func level(lo, hi [3]float32, height float64, res int) scene.Grid {
	at := workload.Middle(lo, hi, 0, 0, height)
	return scene.Grid{Axis: scene.AxisZ, Position: at[2], Min0: lo[0], Max0: hi[0], Min1: lo[1], Max1: hi[1], Res0: int32(res), Res1: int32(res)}
}

// centres are those of the cells of a horizontal grid, as its definition says.
func centres(g scene.Grid) []float32 {
	middle := func(lo, hi float32, res, i int32) float32 {
		return lo + float32((float32(i)+.5)*float32((hi-lo)/float32(res)))
	}
	points := make([]float32, 0, 3*g.Cells())
	for j := range g.Res1 {
		for i := range g.Res0 {
			points = append(points, middle(g.Min0, g.Max0, g.Res0, i), middle(g.Min1, g.Max1, g.Res1, j), g.Position)
		}
	}
	return points
}

// media are concrete and glass, of faces in turn.
func media(faces int) scene.Materials {
	m := scene.Materials{
		EtaR: []float32{5.24, 6.31}, Sigma: []float32{.12, .036}, MuR: []float32{1, 1}, Gain: []float32{1, 1}, Valid: []bool{true, true},
		Index: make([]int32, faces),
	}
	for i := range m.Index {
		m.Index[i] = int32(i % 2)
	}
	return m
}

// wavelength of the studies on fields, in metres.
const wavelength = .1

// coherent is a case of AccumDfrCoherentDirect.
func coherent(config string, states *scene.DfrStates, g scene.Grid, paths int64, words bool) gridCase {
	lanes := int64(len(states.EdgeIndex)) * g.Cells()
	return gridCase{
		operation: operationCoherent, config: config, lanes: lanes, cells: g.Cells(), expect: expectPaths(lanes, paths),
		call: func(s *stage, opts ...scene.CallOption) (gridOutcome, error) {
			o := scene.DfrCoherentOptions{Wavelength: wavelength, Materials: s.materials, KeepWords: words}
			r, err := s.AccumDfrCoherentDirect(background, s.states, g, o, opts...)
			if err != nil {
				return gridOutcome{}, err
			}
			return coherentOutcome(r), nil
		},
		least: func(t tally) work {
			return laneWork(stateBytes*int64(len(states.EdgeIndex))+36*g.Cells(), lanes, t)
		},
	}
}

// paths are the cases of TraceDfrPaths from so many transmitters above a box to receivers on a grid, in both layouts.
// Transmitters are what is divided: every device has one.
func (f *field) paths(config string, states *scene.DfrStates, g scene.Grid, transmitters int) ([]gridCase, error) {
	transmitters = max(transmitters, len(f.host.devices))
	lo, hi := workload.Mesh{Vertices: f.mesh.Vertices}.Box()
	var from []float32
	for k := range transmitters {
		p := workload.Middle(lo, hi, (float64(k)+.5)/float64(transmitters), .5, 1.2)
		from = append(from, p[:]...)
	}
	to := centres(g)
	count := len(states.EdgeIndex)
	lanes := int64(transmitters) * g.Cells() * int64(count)
	expect := expectPaths(lanes, pathsOverEdges(states, from, to))
	tx, err := uploaded(f, from)
	if err != nil {
		return nil, err
	}
	rx, err := uploaded(f, to)
	if err != nil {
		return nil, err
	}
	active, err := uploaded(f, slices.Repeat([]uint8{1}, count))
	if err != nil {
		return nil, err
	}
	var cases []gridCase
	for _, layout := range []scene.DfrPathLayout{scene.SourceLane, scene.Compact} {
		cases = append(cases, gridCase{
			operation: operationDfrPaths, config: fmt.Sprintf("%s, %s", config, layout), lanes: lanes, cells: g.Cells(), expect: expect,
			call: func(s *stage, opts ...scene.CallOption) (gridOutcome, error) {
				o := scene.DfrPathOptions{Wavelength: wavelength, Materials: s.materials, Active: active, Layout: layout}
				r, err := s.TraceDfrPaths(background, tx, rx, s.states, o, opts...)
				if err != nil {
					return gridOutcome{}, err
				}
				return pathsOutcome(s.Stream(), r), nil
			},
			least: func(t tally) work { return laneWork(stateBytes*int64(count)+pathRowBytes*lanes, lanes, t) },
		})
	}
	return cases, nil
}

// wedgeCases are fields and paths over the wedges of a geometry.
func (r *run) wedgeCases(config string, mesh workload.Mesh, side, receivers, transmitters int) (*field, []gridCase, error) {
	lo, hi := mesh.Box()
	f, states, err := r.openWedges(mesh, media(mesh.NumTriangles()), workload.Middle(lo, hi, .5, .5, 1.2))
	if err != nil {
		return nil, nil, err
	}
	const height = .3
	g := level(lo, hi, height, side)
	over := pathsOverEdges(states, states.Src[:3], centres(g))
	cases := []gridCase{coherent(config, states, g, over, false), coherent(config+", words", states, g, over, true)}
	paths, err := f.paths(config, states, level(lo, hi, height, receivers), transmitters)
	if err != nil {
		return nil, nil, errors.Join(err, f.close())
	}
	return f, append(cases, paths...), nil
}

// boxCases have few states, many of which have a path to a cell.
func boxCases(r *run, e gridExtent) (*field, []gridCase, error) {
	return r.wedgeCases("boxes", workload.Boxes(workload.SceneSeed, e.boxes, 3), e.boxSide, e.boxRx, e.boxTx)
}

// townCases have many states, few of which have a path to a cell.
func townCases(r *run, e gridExtent) (*field, []gridCase, error) {
	return r.wedgeCases("town", workload.City(workload.SceneSeed, e.townLots), e.townSide, e.townRx, e.townTx)
}

// roofState is an edge of two metres above the roofs of a city, with a source above its corner.
func roofState(lo, hi [3]float32) scene.DfrStates {
	at, from := workload.Middle(lo, hi, .5, .5, 1.001), workload.Middle(lo, hi, 0, 0, 2)
	return scene.DfrStates{
		EdgeIndex: []int32{0}, EdgePos: at[:], EdgeDir: []float32{1, 0, 0}, TMin: []float32{-1}, TMax: []float32{1},
		N0: []float32{0, 0, 1}, N1: []float32{0, 0, -1}, Prim0: []int32{0}, Prim1: []int32{0}, ExteriorAngle: []float32{math.Pi},
		Src: from[:], SrcPower: []float32{1}, Count: 1,
	}
}

// Bounces of the cases of the city, and of its equivalent paths.
var tubeBounces = []int{0, 1, 4}

const equivalentBounces = 3

// cityCases are samples over a roof, tubes and equivalent paths in a city.
func cityCases(r *run, e gridExtent) (*field, []gridCase, error) {
	mesh := workload.City(workload.SceneSeed, e.cityLots)
	f, err := r.openField(scene.Mesh{Vertices: mesh.Vertices, Faces: mesh.Faces, NoEdges: true}, media(mesh.NumTriangles()))
	if err != nil {
		return nil, nil, err
	}
	cases, err := f.city(mesh, e)
	if err != nil {
		return nil, nil, errors.Join(err, f.close())
	}
	return f, cases, nil
}

func (f *field) city(mesh workload.Mesh, e gridExtent) ([]gridCase, error) {
	lo, hi := mesh.Box()
	states := roofState(lo, hi)
	if err := f.use(states); err != nil {
		return nil, err
	}
	const street = .02
	cases := []gridCase{direct("city", &states, level(lo, hi, street, int(e.roof)), fixtureOptions(e.samples), expectSum(e.samples))}

	tx := workload.Middle(lo, hi, .5, .5, .3)
	fan := workload.FanRays(workload.VolumeSeed, tx, e.rays)
	rays, err := f.rays(fan)
	if err != nil {
		return nil, err
	}
	from, err := uploaded(f, tx[:])
	if err != nil {
		return nil, err
	}
	chains, err := f.chains(fan, rays, slices.Max(tubeBounces)+1)
	if err != nil {
		return nil, err
	}
	g := level(lo, hi, street, e.tubeRes)
	for _, bounces := range tubeBounces {
		cases = append(cases, tubes("city", rays, from, g, chains, bounces, 0))
	}
	for _, bounces := range tubeBounces[1:] {
		cases = append(cases, tubes("city", rays, from, g, chains, bounces, e.rays/16))
	}
	for _, bounces := range tubeBounces {
		cases = append(cases, search("city", rays, chains, bounces+1))
	}
	equivalents, err := f.equivalents("city", chains.equivalents(e.rows, equivalentBounces))
	return append(cases, equivalents...), err
}

// chains brings the chains of a batch to the host.
func (f *field) chains(rays workload.Rays, batch scene.Rays, bounces int) (c *hostChains, err error) {
	r, err := f.single.TraceReflections(background, batch, bounces, scene.ChainHits|scene.ChainNormals)
	if err != nil {
		return nil, err
	}
	defer closing(r.Close, &err)
	st := f.single.Stream()
	c = &hostChains{rays: rays, bounces: bounces}
	if c.valid, err = cuda.Download(background, st, r.Valid); err != nil {
		return nil, err
	}
	if c.prims, err = cuda.Download(background, st, r.PrimIDs); err != nil {
		return nil, err
	}
	if c.p, err = cuda.Download(background, st, r.HitPoints); err != nil {
		return nil, err
	}
	c.n, err = cuda.Download(background, st, r.Normals)
	return c, err
}

// tubes is a case of AccumulateReflections, with wedge events if there is room for some.
func tubes(config string, rays scene.Rays, tx cuda.Slice[float32], g scene.Grid, chains *hostChains, bounces, capacity int) gridCase {
	legs := chains.tubes(g, bounces)
	n := int64(chains.rays.Len())
	config = fmt.Sprintf("%s, %d bounces", config, bounces)
	if capacity > 0 {
		config += ", events"
	}
	return gridCase{
		operation: operationTubes, config: config, lanes: n, cells: g.Cells(), expect: expectTubes(legs, capacity > 0),
		call: func(s *stage, opts ...scene.CallOption) (gridOutcome, error) {
			o := scene.ReflGridOptions{
				Wavelength: wavelength, SolidAnglePerRay: 4 * math.Pi / float64(n), MaxBounces: bounces, Materials: s.materials, TxPosition: tx,
				IncludeLOS: true, CollectWedges: capacity > 0, CollectWedgePrefixes: capacity > 0, WedgeCapacity: capacity, KeepWords: true,
			}
			r, err := s.AccumulateReflections(background, rays, g, o, opts...)
			if err != nil {
				return gridOutcome{}, err
			}
			return tubesOutcome(r), nil
		},
		least: func(t tally) work { return tubeWork(n, g.Cells(), int64(capacity), legs, t) },
	}
}

// search is as many legs without fields and sums, for comparison.
func search(config string, rays scene.Rays, chains *hostChains, bounces int) gridCase {
	want := int64(0)
	for i := 0; i < len(chains.valid); i += chains.bounces {
		want += int64(chains.valid[i])
	}
	n := int64(chains.rays.Len())
	return gridCase{
		operation: record.OperationReflections, config: fmt.Sprintf("%s, %d bounces", config, bounces), lanes: n,
		expect: func(t tally) string { return within("first bounces", t.counted, want, 0) },
		call: func(s *stage, opts ...scene.CallOption) (gridOutcome, error) {
			r, err := s.TraceReflections(background, rays, bounces, scene.ChainCore, opts...)
			if err != nil {
				return gridOutcome{}, err
			}
			return chainsOutcome(s.Stream(), r), nil
		},
	}
}

// equivalents are the cases of TraceReflEPC and TraceReflEPCField.
func (f *field) equivalents(config string, e equivalentRows) ([]gridCase, error) {
	rows := scene.EPCRows{Bounces: e.bounces}
	var err error
	if rows.Source, err = uploaded(f, e.source); err != nil {
		return nil, err
	}
	if rows.Receiver, err = uploaded(f, e.receiver); err != nil {
		return nil, err
	}
	if rows.Seq, err = uploaded(f, e.seq); err != nil {
		return nil, err
	}
	n, b := int64(len(e.source)/3), int64(e.bounces)
	config = fmt.Sprintf("%s, %d bounces", config, b)
	return []gridCase{
		{
			operation: operationEquivalents, config: config, lanes: n, expect: expectEquivalents(e),
			call: func(s *stage, opts ...scene.CallOption) (gridOutcome, error) {
				r, err := s.TraceReflEPC(background, rows, scene.EPCOptions{}, opts...)
				if err != nil {
					return gridOutcome{}, err
				}
				return equivalentPathsOutcome(s.Stream(), r), nil
			},
			least: func(tally) work { return equivalentWork(&e, 7+32*b, false) },
		},
		{
			operation: operationEquivalentFields, config: config, lanes: n, expect: expectEquivalents(e),
			call: func(s *stage, opts ...scene.CallOption) (gridOutcome, error) {
				o := scene.EPCFieldOptions{Materials: s.materials, Wavelength: wavelength}
				r, err := s.TraceReflEPCField(background, rows, o, opts...)
				if err != nil {
					return gridOutcome{}, err
				}
				return equivalentFieldsOutcome(s.Stream(), r), nil
			},
			least: func(tally) work { return equivalentWork(&e, 30+4*b, true) },
		},
	}, nil
}
