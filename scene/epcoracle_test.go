package scene_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tests/gputest"
	"github.com/raymux/raymux/tests/oracle"
)

// corridor is a box of walls of n by n quads, turned so that nothing is along an axis,
// with some quads in it. Its groups are the walls, in a random order of their faces; faces
// of the quads are in none.
func corridor(rng *rand.Rand, n, obstacles int) (m scene.Mesh, id []int32, members [][]int32) {
	m = latticeBox(n)
	perWall := 2 * n * n
	for wall := range 6 {
		list := make([]int32, perWall)
		for i, k := range rng.Perm(perWall) {
			list[i] = int32(wall*perWall + k)
			id = append(id, int32(wall))
		}
		members = append(members, list)
	}
	for range obstacles {
		c := vec{.1 + .8*rng.Float32(), .1 + .8*rng.Float32(), .1 + .8*rng.Float32()}
		e, f := randomDirection(rng), randomDirection(rng)
		corner := func(a, b float32) vec {
			a, b = .08*a, .08*b
			return vec{c[0] + a*e[0] + b*f[0], c[1] + a*e[1] + b*f[1], c[2] + a*e[2] + b*f[2]}
		}
		m = join(m, quads(corner(-1, -1), corner(1, -1), corner(1, 1), corner(-1, 1)))
	}
	return corridorPlace(m), id, members
}

// corridorPlace stretches and turns points of the unit cube.
func corridorPlace(m scene.Mesh) scene.Mesh {
	const sin, cos = .28, .96
	for i := 0; i < len(m.Vertices); i += 3 {
		x, y, z := 12*m.Vertices[i]-5, 4*m.Vertices[i+1]-2, 3*m.Vertices[i+2]
		m.Vertices[i], m.Vertices[i+1], m.Vertices[i+2] = cos*x-sin*y, cos*(sin*x+cos*y)-sin*z, sin*(sin*x+cos*y)+cos*z
	}
	return m
}

// corridorPoint is a point inside.
func corridorPoint(rng *rand.Rand) vec {
	p := corridorPlace(scene.Mesh{Vertices: []float32{.05 + .9*rng.Float32(), .05 + .9*rng.Float32(), .05 + .9*rng.Float32()}})
	return vec(p.Vertices)
}

// epcRows is how many rows the random tests have.
func epcRows() int {
	if gputest.Native() {
		return 200_000 // more than run at the same time
	}
	return 500
}

// randomEPC is rows of which half follow the reflections of a ray and end on it, and the
// others go over random faces; some are not as they should be.
func randomEPC(rng *rand.Rand, model *oracle.Canonical, faces, bounces, n int) epcBatch {
	b := newEPCBatch(bounces)
	b.active = true
	b.rows = make([]oracle.EPCRow, n)
	rays := make([]vec, n)
	for i := range b.rows {
		row := epcRow(corridorPoint(rng), corridorPoint(rng))
		for range rng.IntN(bounces + 1) {
			row.Seq = append(row.Seq, int32(rng.IntN(faces)))
		}
		rays[i] = randomDirection(rng)
		b.rows[i] = row
	}
	oracle.Each(n, func(i int) {
		row := &b.rows[i]
		if i%2 != 0 || len(row.Seq) == 0 {
			return
		}
		chain := model.Reflect(row.Source, rays[i], inf, len(row.Seq))
		if len(chain) == 0 {
			return
		}
		row.Seq = nil
		for _, c := range chain {
			row.Seq = append(row.Seq, int32(c.Prim))
		}
		// Behind the last reflection, on the line from its image.
		last := chain[len(chain)-1]
		for k := range 3 {
			row.Receiver[k] = last.P[k] + .05*(last.P[k]-last.Image[k])
		}
	})
	for range n / 20 {
		row := &b.rows[rng.IntN(n)]
		switch rng.IntN(4) {
		case 0:
			row.Inactive = true
		case 1:
			row.Source[rng.IntN(3)] = nan
		case 2:
			row.Receiver[rng.IntN(3)] = -inf
		case 3:
			row.Seq = append(row.Seq[:len(row.Seq):len(row.Seq)], int32(faces))[:min(len(row.Seq)+1, bounces)]
		}
	}
	return b
}

// withPlanes gives every row the planes of its faces, but for a few: points elsewhere on
// them, and normals of any length and side.
func withPlanes(rng *rand.Rand, b epcBatch, m scene.Mesh) epcBatch {
	rows := make([]oracle.EPCRow, len(b.rows))
	at := func(corner int32) vec { return vec(m.Vertices[3*m.Faces[corner]:]) }
	for i, row := range b.rows {
		row.PlanePoints, row.PlaneNormals = make([][3]float32, b.bounces), make([][3]float32, b.bounces)
		for k, f := range row.Seq {
			if f < 0 || int(f) >= len(m.Faces)/3 {
				continue
			}
			a, c, d := at(3*f), at(3*f+1), at(3*f+2)
			u, v := vec{c[0] - a[0], c[1] - a[1], c[2] - a[2]}, vec{d[0] - a[0], d[1] - a[1], d[2] - a[2]}
			s := 4*rng.Float32() - 2
			row.PlanePoints[k] = c
			row.PlaneNormals[k] = vec{s * (u[1]*v[2] - u[2]*v[1]), s * (u[2]*v[0] - u[0]*v[2]), s * (u[0]*v[1] - u[1]*v[0])}
		}
		if rng.IntN(20) == 0 {
			row.PlaneNormals[0] = []vec{{}, {nan, 0, 0}, {0, inf, 1}}[rng.IntN(3)]
		}
		if rng.IntN(20) == 0 {
			row.PlanePoints[b.bounces-1][1] = nan // matters where the row is that long
		}
		rows[i] = row
	}
	b.rows = rows
	return b
}

// Every bit of every row is that of a brute force in single precision, and float64 agrees
// where it is sure.
func TestEPCOracle(t *testing.T) {
	rng := rand.New(rand.NewPCG(81, 1))
	m, id, members := corridor(rng, 2, 4)
	faces := len(m.Faces) / 3
	canonical, exact := oracle.NewCanonical(m.Vertices, m.Faces), oracle.New(m.Vertices, m.Faces)
	plain := randomEPC(rng, canonical, faces, 4, epcRows())
	grouped := plain
	grouped.rules.ID, grouped.rules.Members = id, members
	through := grouped
	through.rules.IgnoreGroups = true
	tolerant := plain
	tolerant.rules.PlaneTolerance = 0
	batches := map[string]epcBatch{
		"faces": plain, "groups": grouped, "through groups": through, "planes": withPlanes(rng, grouped, m), "no tolerance": tolerant,
	}
	onBackends(t, func(t *testing.T, open func(...scene.Mesh) *rig) {
		r := open(m)
		for name, b := range batches {
			t.Run(name, func(t *testing.T) {
				got := r.paths(b)
				requireCanonical(t, canonical, b, got)
				var sure, fails [8]int
				for i, w := range requireExact(t, exact, b, got) {
					fails[got.fail[i]]++
					if !w.Ambiguous {
						sure[w.Fail]++
					}
				}
				t.Logf("rows by fail %v, of which float64 is sure %v", fails, sure)
				if name == "no tolerance" {
					require.Greater(t, fails[scene.EPCOutside], len(b.rows)/4)
					return
				}
				require.Greater(t, sure[0], len(b.rows)/10, "paths")
				for _, f := range []int{1, 2, 5, 6, 7} {
					require.NotZero(t, fails[f], "fail %d", f)
				}
				require.Greater(t, totalOf(sure), len(b.rows)*9/10)
			})
		}
	})
}

func totalOf(v [8]int) (n int) {
	for _, x := range v {
		n += x
	}
	return n
}

// Fields are those of float64 for paths of which it is sure, up to what the path is off.
func TestEPCFieldOracle(t *testing.T) {
	rng := rand.New(rand.NewPCG(82, 1))
	m, id, members := corridor(rng, 2, 4)
	faces := len(m.Faces) / 3
	canonical, exact := oracle.NewCanonical(m.Vertices, m.Faces), oracle.New(m.Vertices, m.Faces)
	b := randomEPC(rng, canonical, faces, 4, epcRows())
	b.rules.ID, b.rules.Members = id, members
	media := scene.Materials{Valid: []bool{true, true, true, false}, Index: make([]int32, faces)}
	for range media.Valid {
		media.EtaR, media.Sigma = append(media.EtaR, 1+6*rng.Float32()), append(media.Sigma, .1*rng.Float32())
		media.MuR, media.Gain = append(media.MuR, 1+.2*rng.Float32()), append(media.Gain, .5+.5*rng.Float32())
	}
	media.Sigma[1] = inf
	for f := range media.Index {
		media.Index[f] = int32(min(rng.IntN(16), 15) % 5 % 4)
	}
	medium := func(prim int32) oracle.Medium {
		i := media.Index[prim]
		return oracle.Medium{
			EtaR: float64(media.EtaR[i]), Sigma: float64(media.Sigma[i]), MuR: float64(media.MuR[i]), Gain: float64(media.Gain[i]),
			Absorbs: !media.Valid[i],
		}
	}
	var polarization []float32
	for range b.rows {
		p := randomDirection(rng)
		polarization = append(polarization, p[:]...)
	}
	const wavelength = 1.25
	onBackends(t, func(t *testing.T, open func(...scene.Mesh) *rig) {
		r := open(m)
		table := r.materials(media)
		got := r.fields(b, table, wavelength, polarization)
		paths := r.paths(b)
		sure, absorbed := 0, 0
		for i, w := range requireExact(t, exact, b, got) {
			if got.valid[i] == 0 {
				require.Equal(t, oracle.Field{}, got.fieldOf(i), "row %d", i)
			}
			if w.Ambiguous || w.Fail != 0 || !hasField(&w) {
				continue
			}
			row := &b.rows[i]
			want := oracle.EPCField(&w, row.Source, row.Receiver, vec(polarization[3*i:]), medium, wavelength)
			have := got.fieldOf(i)
			free := wavelength / (4 * math.Pi * w.Length)
			// A point that is off turns the segments, and coefficients follow the angles.
			turned := 20 * float64(w.Bounces) * w.PTol / w.Shortest
			within := free * (2*math.Pi*w.LengthTol/wavelength + turned + 1e-4)
			diff := oracle.Field{have[0] - want[0], have[1] - want[1], have[2] - want[2]}
			require.LessOrEqual(t, math.Sqrt(diff.Power()), within, "row %d: %v, float64 says %v", i, have, want)
			require.EqualValues(t, 1, got.valid[i], "row %d", i)
			if within < .01*free {
				sure++
			}
			if want.Power() == 0 {
				absorbed++
			}
		}
		t.Logf("%d fields of %d rows, %d absorbed", sure, len(b.rows), absorbed)
		require.Greater(t, sure, len(b.rows)/20)
		require.NotZero(t, absorbed)

		// What both operations tell about a path is the same, and fields do not depend on
		// what else is asked for.
		for i := range b.rows {
			if got.valid[i] != 0 {
				require.Equal(t, math.Float32bits(paths.length[i]), math.Float32bits(got.length[i]), "row %d", i)
			}
		}
		require.Equal(t, [5]any{paths.fail, paths.count, paths.resolved, paths.group, bits(paths.points)},
			[5]any{got.fail, got.count, got.resolved, got.group, bits(got.points)})
		f, err := r.TraceReflEPCField(background, b.upload(r), scene.EPCFieldOptions{
			EPCOptions: b.options(r), Materials: table, Wavelength: wavelength, Polarization: toDevice(r, polarization),
		})
		require.NoError(t, err)
		require.True(t, f.HitPoints.IsNil() && f.Normals.IsNil() && f.SurfaceGroupIDs.IsNil() && f.BounceCount.IsNil())
		alone := r.readFields(f)
		require.Equal(t, [5]any{bits(got.field), got.valid, bits(got.length), got.fail, got.resolved},
			[5]any{bits(alone.field), alone.valid, bits(alone.length), alone.fail, alone.resolved})
	})
}

// However a batch is divided, also over devices, rows are the same.
func TestEPCPieces(t *testing.T) {
	rng := rand.New(rand.NewPCG(83, 1))
	m, id, members := corridor(rng, 1, 2)
	b := randomEPC(rng, oracle.NewCanonical(m.Vertices, m.Faces), len(m.Faces)/3, 3, 300)
	b.rules.ID, b.rules.Members = id, members
	var polarization []float32
	for range b.rows {
		p := randomDirection(rng)
		polarization = append(polarization, p[:]...)
	}
	g := gputest.Open(t, min(2, gputest.Count()), nil)
	last := openOn(t, g.Context(t, len(g.Devices)-1)) // which outlives its copies of tables
	r := openOn(t, g.Context(t, 0))
	r.add(m)
	require.NoError(t, r.Build(background))
	table := r.materials(mediumOfAll(4, .01, len(m.Faces)/3))
	want := r.fields(b, table, 1, polarization)
	options := scene.EPCFieldOptions{
		EPCOptions: b.options(r), Materials: table, Wavelength: 1, Polarization: toDevice(r, polarization), IncludePaths: true,
	}
	f, call, err := r.PrepareReflEPCField(background, b.upload(r), options)
	require.NoError(t, err)
	poisonFields(r, f)
	in, out := call.Columns()
	for _, cut := range [][2]int64{{250, 50}, {0, 1}, {1, 96}, {97, 153}} {
		require.NoError(t, call.Search(r.Scene, call.Stream, in, out, cut[0], cut[1]))
		require.NoError(t, call.Finalize(cut[0], cut[1]))
	}
	require.Equal(t, want.exact(), r.readFields(f).exact())

	// As a part, in memory of somebody else.
	f, call, err = r.PrepareReflEPCField(background, b.upload(r), options, scene.Unallocated())
	require.NoError(t, err)
	require.Zero(t, f.Field.Len())
	memory := toDevice(r, make([]uint8, call.PartBytes(100)))
	part, err := call.Part(memory, 60, 100)
	require.NoError(t, err)
	require.NoError(t, part.Run())
	detached, err := part.Detach()
	require.NoError(t, err)
	got := r.readFields(detached.(*scene.EPCFields))
	require.Equal(t, bits(want.field[6*60:6*160]), bits(got.field))
	require.Equal(t, want.fail[60:160], got.fail)

	if len(g.Devices) < 2 {
		return
	}
	// By a replica, which needs the groups; media are for the device of the caller.
	other := last
	require.NoError(t, other.Replicate(background, r.Scene))
	f, call, err = r.PrepareReflEPCField(background, b.upload(r), options)
	require.NoError(t, err)
	poisonFields(r, f)
	_, out = call.Columns()
	there := b.upload(other)
	local := []scene.RowColumn{
		column(r, there.Source, 12), column(r, there.Receiver, 12), column(r, there.Seq, 12), {Width: 36}, {Width: 36},
		column(r, there.Active, 1), {Width: 12},
	}
	fail, resolved := toDevice(other, make([]uint8, 300)), toDevice(other, make([]uint8, 3600))
	winners := []scene.RowColumn{{Data: fail, Width: 1}, {Data: resolved, Width: 12}}
	poisonColumns(other, winners)
	require.ErrorContains(t, call.Search(other.Scene, other.Stream(), local, winners, 0, 300), "upload it with this scene")
	require.NoError(t, options.Groups.CopyTo(background, other.Scene))
	require.NoError(t, call.Search(other.Scene, other.Stream(), local, winners, 0, 300))
	require.NoError(t, other.Stream().Synchronize(background))
	for i := range out {
		require.NoError(t, cuda.CopyAsync(call.Stream, out[i].Data, winners[i].Data))
	}
	require.NoError(t, call.Finalize(0, 300))
	require.Equal(t, want.exact(), r.readFields(f).exact())
}

// Paths follow the vertices.
func TestEPCFollowsChanges(t *testing.T) {
	row := epcRow(vec{0, 0, 1}, vec{3, 0, 2}, 0)
	onBackends(t, func(t *testing.T, open func(...scene.Mesh) *rig) {
		r := open(dynamic(meshFloor()), meshBlocked(5))
		require.EqualValues(t, scene.EPCOK, r.paths(newEPCBatch(1, row)).fail[0])
		for _, z := range []float32{-1, .2, -3} {
			floor := moved(meshFloor(), vec{0, 0, z})
			r.update(0, floor)
			r.sync()
			b := newEPCBatch(1, row)
			m := join(floor, meshBlocked(5))
			requireCanonical(t, oracle.NewCanonical(m.Vertices, m.Faces), b, r.paths(b))
		}
	})
}
