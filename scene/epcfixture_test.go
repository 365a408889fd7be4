package scene_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tests/oracle"
)

// epcBatch is rows of equivalent paths on the host, and the rules for them.
type epcBatch struct {
	bounces int
	rows    []oracle.EPCRow
	rules   oracle.EPCRules
	active  bool // there is a mask
}

func newEPCBatch(bounces int, rows ...oracle.EPCRow) epcBatch {
	return epcBatch{bounces: bounces, rows: rows, rules: oracle.EPCRules{PlaneTolerance: 1e-5}}
}

func epcRow(s, e vec, seq ...int32) oracle.EPCRow {
	return oracle.EPCRow{Source: s, Receiver: e, Seq: seq}
}

// upload copies the batch to the scene's device.
func (b *epcBatch) upload(r *rig) scene.EPCRows {
	r.Helper()
	var source, receiver, points, normals []float32
	var seq []int32
	var active []uint8
	for i := range b.rows {
		row := &b.rows[i]
		source, receiver = append(source, row.Source[:]...), append(receiver, row.Receiver[:]...)
		for k := range b.bounces {
			id := int32(-1)
			if k < len(row.Seq) {
				id = row.Seq[k]
			}
			seq = append(seq, id)
			if row.PlanePoints != nil {
				points = append(points, row.PlanePoints[k][:]...)
			}
			if row.PlaneNormals != nil {
				normals = append(normals, row.PlaneNormals[k][:]...)
			}
		}
		on := uint8(1 + i%255)
		if row.Inactive {
			on = 0
		}
		active = append(active, on)
	}
	if !b.active {
		active = nil
	}
	return scene.EPCRows{
		Source: toDevice(r, source), Receiver: toDevice(r, receiver), Seq: toDevice(r, seq), Bounces: b.bounces,
		PlanePoints: absent(r, points), PlaneNormals: absent(r, normals), Active: absent(r, active),
	}
}

// options are the rules on the scene's device.
func (b *epcBatch) options(r *rig) scene.EPCOptions {
	r.Helper()
	o := scene.EPCOptions{PlaneTolerance: &b.rules.PlaneTolerance}
	if b.rules.IgnoreGroups {
		o.IgnoreMode = scene.IgnoreSurfaceGroup
	}
	if b.rules.ID != nil {
		o.Groups = r.groups(b.rules.ID, b.rules.Members)
	}
	return o
}

// groups uploads surface groups until the test ends.
func (r *rig) groups(id []int32, members [][]int32) *scene.SurfaceGroupTable {
	r.Helper()
	g := scene.SurfaceGroups{ID: id, Offsets: []int32{0}, Members: []int32{}}
	for _, m := range members {
		g.Members = append(g.Members, m...)
		g.Offsets = append(g.Offsets, int32(len(g.Members)))
	}
	t, err := r.UploadSurfaceGroups(background, g)
	require.NoError(r, err)
	r.Cleanup(func() { require.NoError(r, t.Close()) })
	return t
}

// materials uploads media until the test ends.
func (r *rig) materials(m scene.Materials) *scene.MaterialTable {
	r.Helper()
	t, err := r.UploadMaterials(background, m)
	require.NoError(r, err)
	r.Cleanup(func() { require.NoError(r, t.Close()) })
	return t
}

// mediumOfAll is a material for all faces of a scene.
func mediumOfAll(etaR, sigma float32, faces int) scene.Materials {
	return scene.Materials{
		EtaR: []float32{etaR}, Sigma: []float32{sigma}, MuR: []float32{1}, Gain: []float32{1}, Index: make([]int32, faces),
	}
}

// epcTable is a result on the host; field is absent without fields.
type epcTable struct {
	bounces                        int
	valid, count, fail             []uint8
	length, points, normals, field []float32
	resolved, group                []int32
}

func (r *rig) readPaths(p *scene.EPCPaths) epcTable {
	r.Helper()
	t := epcTable{
		bounces: p.Bounces, valid: toHost(r, p.Valid), count: toHost(r, p.BounceCount), fail: toHost(r, p.Fail),
		length: toHost(r, p.PathLength), points: toHost(r, p.HitPoints), normals: toHost(r, p.Normals),
		resolved: toHost(r, p.ResolvedPrimIDs), group: toHost(r, p.SurfaceGroupIDs),
	}
	require.NoError(r, p.Close())
	return t
}

func (r *rig) readFields(f *scene.EPCFields) epcTable {
	r.Helper()
	t := epcTable{
		bounces: f.Bounces, valid: toHost(r, f.Valid), count: toHost(r, f.BounceCount), fail: toHost(r, f.Fail),
		length: toHost(r, f.PathLength), points: toHost(r, f.HitPoints), normals: toHost(r, f.Normals),
		field: toHost(r, f.Field), resolved: toHost(r, f.ResolvedPrimIDs), group: toHost(r, f.SurfaceGroupIDs),
	}
	require.NoError(r, f.Close())
	return t
}

// exact is the table with all floats as bits.
func (t epcTable) exact() [9]any {
	return [9]any{
		t.valid, t.count, t.fail, bits(t.length), bits(t.points), bits(t.normals), bits(t.field), t.resolved, t.group,
	}
}

func (t epcTable) fieldOf(row int) (f oracle.Field) {
	for k := range f {
		f[k] = complex(float64(t.field[6*row+2*k]), float64(t.field[6*row+2*k+1]))
	}
	return f
}

// poisonPaths fills the columns of a result.
func poisonPaths(r *rig, p *scene.EPCPaths) {
	poisonEach(r, p.Valid, p.BounceCount, p.Fail)
	poisonEach(r, p.PathLength, p.HitPoints, p.Normals)
	poisonEach(r, p.ResolvedPrimIDs, p.SurfaceGroupIDs)
}

func poisonFields(r *rig, f *scene.EPCFields) {
	poisonEach(r, f.Valid, f.BounceCount, f.Fail)
	poisonEach(r, f.PathLength, f.HitPoints, f.Normals, f.Field)
	poisonEach(r, f.ResolvedPrimIDs, f.SurfaceGroupIDs)
}

// paths answers a batch in memory full of other values.
func (r *rig) paths(b epcBatch) epcTable {
	r.Helper()
	rows, options := b.upload(r), b.options(r)
	dirty, err := r.TraceReflEPC(background, rows, options)
	require.NoError(r, err)
	poisonPaths(r, dirty)
	p, err := r.TraceReflEPC(background, rows, options, scene.Into(dirty))
	require.NoError(r, err)
	require.Equal(r, [2]int{len(b.rows), b.bounces}, [2]int{p.Rows(), p.Bounces})
	return r.readPaths(p)
}

// fields is paths with fields, of the polarization of each row or of all.
func (r *rig) fields(b epcBatch, m *scene.MaterialTable, wavelength float64, polarization []float32) epcTable {
	r.Helper()
	rows := b.upload(r)
	o := scene.EPCFieldOptions{
		EPCOptions: b.options(r), Materials: m, Wavelength: wavelength, Polarization: absent(r, polarization), IncludePaths: true,
	}
	dirty, err := r.TraceReflEPCField(background, rows, o)
	require.NoError(r, err)
	poisonFields(r, dirty)
	f, err := r.TraceReflEPCField(background, rows, o, scene.Into(dirty))
	require.NoError(r, err)
	require.Equal(r, [2]int{len(b.rows), b.bounces}, [2]int{f.Rows(), f.Bounces})
	return r.readFields(f)
}

// requireCanonical compares every bit of every row with the brute force in single
// precision.
func requireCanonical(t testing.TB, model *oracle.Canonical, b epcBatch, got epcTable) []oracle.EPCAnswer {
	t.Helper()
	want := make([]oracle.EPCAnswer, len(b.rows))
	oracle.Each(len(want), func(i int) { want[i] = model.EPC(b.rows[i], b.rules) })
	for i, w := range want {
		require.EqualValues(t, [2]int{w.Fail, w.Bounces}, [2]int{int(got.fail[i]), int(got.count[i])}, "row %d: %+v", i, b.rows[i])
		require.Equal(t, flag(w.Fail == 0), got.valid[i], "row %d", i)
		require.Equal(t, math.Float32bits(w.Length), math.Float32bits(got.length[i]), "row %d: length %v, want %v", i, got.length[i], w.Length)
		for k := range b.bounces {
			at := i*b.bounces + k
			resolved, group, point, normal := int32(-1), int32(-1), vec{}, vec{}
			if w.Fail == 0 && k < w.Bounces {
				resolved, point, normal = w.Resolved[k], w.Points[k], w.Normals[k]
				if id := b.rows[i].Seq[k]; int(id) < len(b.rules.ID) {
					group = b.rules.ID[id]
				}
			}
			require.Equal(t, [2]int32{resolved, group}, [2]int32{got.resolved[at], got.group[at]}, "row %d, slot %d", i, k)
			for c := range 3 { // zeros are +0
				point[c], normal[c] = point[c]+0, normal[c]+0
			}
			require.Equal(t, bits(point[:]), bits(got.points[3*at:3*at+3]), "row %d, slot %d: point %v", i, k, point)
			require.Equal(t, bits(normal[:]), bits(got.normals[3*at:3*at+3]), "row %d, slot %d: normal %v", i, k, normal)
		}
	}
	return want
}

// requireExact compares the rows of which float64 is sure, and returns them with the rest.
func requireExact(t testing.TB, model *oracle.Oracle, b epcBatch, got epcTable) []oracle.EPCPath {
	t.Helper()
	want := make([]oracle.EPCPath, len(b.rows))
	oracle.Each(len(want), func(i int) { want[i] = model.EPC(b.rows[i], b.rules) })
	for i, w := range want {
		if w.Ambiguous {
			continue
		}
		require.EqualValues(t, w.Fail, got.fail[i], "row %d in float64: %+v", i, b.rows[i])
		if w.Fail != 0 {
			continue
		}
		// A path with a segment of no length has no field, and with that no length.
		if got.field == nil || hasField(&w) {
			require.InDelta(t, w.Length, got.length[i], w.LengthTol, "row %d", i)
		}
		for k, p := range w.Points {
			at := i*b.bounces + k
			require.Equal(t, w.Resolved[k], got.resolved[at], "row %d, slot %d", i, k)
			for c := range 3 {
				require.InDelta(t, p[c], got.points[3*at+c], w.PTol, "row %d, slot %d", i, k)
				require.InDelta(t, w.Normals[k][c], got.normals[3*at+c], 1e-5, "row %d, slot %d", i, k)
			}
		}
	}
	return want
}

// hasField is certain where all segments of a path have a length.
func hasField(p *oracle.EPCPath) bool { return p.Shortest > 4*p.PTol }

// poisonColumns fills columns as a scheduler sees them.
func poisonColumns(r *rig, columns []scene.RowColumn) {
	r.Helper()
	for _, c := range columns {
		require.NoError(r, cuda.Fill8(r.Stream(), c.Data, 0x5a))
	}
}

func poisonEach[T cuda.Scalar](r *rig, columns ...cuda.Slice[T]) {
	r.Helper()
	for _, c := range columns {
		poison(r, c)
	}
}
