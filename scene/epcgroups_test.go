package scene_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tests/gputest"
	"github.com/raymux/raymux/tests/oracle"
)

// A face that stands in the way blocks a path unless it is in the group of a surface at
// an end of the segment, and groups are passed through.
func TestEPCPassesThroughGroups(t *testing.T) {
	m := meshBlocked(0)
	model := oracle.NewCanonical(m.Vertices, m.Faces)
	onBackends(t, func(t *testing.T, open func(...scene.Mesh) *rig) {
		r := open(m)
		for _, c := range []struct {
			name    string
			id      []int32
			members [][]int32
			through bool
			fail    scene.EPCFail
		}{
			{"one group, passed through", []int32{0, 0, 0, 0}, [][]int32{{0, 1, 2, 3}}, true, scene.EPCOK},
			{"one group, faces alone", []int32{0, 0, 0, 0}, [][]int32{{0, 1, 2, 3}}, false, scene.EPCBlocked},
			{"another group", []int32{0, 0, 1, 1}, [][]int32{{0, 1}, {2, 3}}, true, scene.EPCBlocked},
			{"no group of the floor", []int32{-1, -1, 0, 0}, [][]int32{{2, 3}}, true, scene.EPCBlocked},
			{"blocker beyond the table", []int32{0, 0}, [][]int32{{0, 1}}, true, scene.EPCBlocked},
			{"no groups", nil, nil, true, scene.EPCBlocked},
		} {
			b := newEPCBatch(2, epcRow(vec{0, 0, 1}, vec{3, 0, 2}, 0))
			b.rules.ID, b.rules.Members, b.rules.IgnoreGroups = c.id, c.members, c.through
			got := r.paths(b)
			require.Equal(t, c.fail, scene.EPCFail(got.fail[0]), c.name)
			requireCanonical(t, model, b, got)
		}
	})
}

// A point on the edge of two faces is on the one that the sequence names, or that is the
// first of the group. Without a list, faces of a group are in ascending order.
func TestEPCSharedEdge(t *testing.T) {
	r := build(t, meshFloor())
	for _, c := range []struct {
		named   int32
		id      []int32
		members [][]int32
		want    int32
	}{
		{0, nil, nil, 0}, {1, nil, nil, 1},
		{0, []int32{0, 0}, [][]int32{{1, 0}}, 1}, {1, []int32{0, 0}, [][]int32{{0, 1}}, 0},
	} {
		b := newEPCBatch(1, epcRow(vec{0, 0, 1}, vec{0, 0, 2}, c.named))
		b.rules.ID, b.rules.Members = c.id, c.members
		require.Equal(t, []int32{c.want}, r.paths(b).resolved, "%+v", c)
	}
	ascending, err := r.UploadSurfaceGroups(background, scene.SurfaceGroups{ID: []int32{3, 3}})
	require.NoError(t, err)
	defer func() { require.NoError(t, ascending.Close()) }()
	require.Equal(t, 4, ascending.Count())
	b := newEPCBatch(1, epcRow(vec{0, 0, 1}, vec{0, 0, 2}, 1))
	p, err := r.TraceReflEPC(background, b.upload(r), scene.EPCOptions{Groups: ascending})
	require.NoError(t, err)
	got := r.readPaths(p)
	require.Equal(t, [2][]int32{{0}, {3}}, [2][]int32{got.resolved, got.group})
}

func TestSurfaceGroupsRefused(t *testing.T) {
	r := build(t, meshTwo())
	for _, c := range []struct {
		arg    string
		groups scene.SurfaceGroups
	}{
		{"ID", scene.SurfaceGroups{ID: make([]int32, 5)}},
		{"ID[1]", scene.SurfaceGroups{ID: []int32{0, -2}}},
		{"ID[0]", scene.SurfaceGroups{ID: []int32{1<<31 - 1}}},
		{"ID[1]", scene.SurfaceGroups{ID: []int32{0, 1}, Offsets: []int32{0, 1}, Members: []int32{0}}},
		{"ID[1]", scene.SurfaceGroups{ID: []int32{0, 0}, Offsets: []int32{0, 1}, Members: []int32{0}}},
		{"Offsets", scene.SurfaceGroups{ID: []int32{0}, Members: []int32{0}}},
		{"Offsets", scene.SurfaceGroups{ID: []int32{0}, Offsets: []int32{1, 1}, Members: []int32{0}}},
		{"Offsets", scene.SurfaceGroups{ID: []int32{0}, Offsets: []int32{0, 2}, Members: []int32{0}}},
		{"Offsets[2]", scene.SurfaceGroups{ID: []int32{0, 1}, Offsets: []int32{0, 3, 2}, Members: []int32{0, 1}}},
		{"Members[0]", scene.SurfaceGroups{ID: []int32{0}, Offsets: []int32{0, 1}, Members: []int32{-1}}},
		{"Members[0]", scene.SurfaceGroups{ID: []int32{0}, Offsets: []int32{0, 1}, Members: []int32{1}}},
		{"Members[1]", scene.SurfaceGroups{ID: []int32{0, 1}, Offsets: []int32{0, 2, 2}, Members: []int32{0, 1}}},
		{"Members[1]", scene.SurfaceGroups{ID: []int32{0, -1}, Offsets: []int32{0, 2}, Members: []int32{0, 0}}},
	} {
		table, err := r.UploadSurfaceGroups(background, c.groups)
		requireArgument(t, err, "UploadSurfaceGroups", c.arg)
		require.Nil(t, table)
		require.NoError(t, table.Close())
	}
	_, err := open(t).UploadSurfaceGroups(background, scene.SurfaceGroups{})
	require.ErrorIs(t, err, scene.ErrNotReady)
}

func TestMaterialsRefused(t *testing.T) {
	r := build(t, meshFloor())
	good := func() scene.Materials {
		return scene.Materials{
			EtaR: []float32{2, 3}, Sigma: []float32{0, inf}, MuR: []float32{1, 1}, Gain: []float32{1, 0}, Valid: []bool{true, false},
		}
	}
	for _, c := range []struct {
		arg    string
		change func(m *scene.Materials)
	}{
		{"Sigma", func(m *scene.Materials) { m.Sigma = m.Sigma[:1] }},
		{"MuR", func(m *scene.Materials) { m.MuR = append(m.MuR, 1) }},
		{"Gain", func(m *scene.Materials) { m.Gain = nil }},
		{"Valid", func(m *scene.Materials) { m.Valid = []bool{} }},
		{"EtaR", func(m *scene.Materials) { *m = scene.Materials{} }},
		{"Index", func(m *scene.Materials) { m.Index = []int32{0} }},
		{"Index[1]", func(m *scene.Materials) { m.Index = []int32{0, 2} }},
		{"Index[0]", func(m *scene.Materials) { m.Index = []int32{-1, 0} }},
		{"EtaR[1]", func(m *scene.Materials) { m.EtaR[1] = 0 }},
		{"EtaR[0]", func(m *scene.Materials) { m.EtaR[0] = inf }},
		{"Sigma[0]", func(m *scene.Materials) { m.Sigma[0] = -1 }},
		{"Sigma[1]", func(m *scene.Materials) { m.Sigma[1] = nan }},
		{"MuR[0]", func(m *scene.Materials) { m.MuR[0] = -1 }},
		{"Gain[1]", func(m *scene.Materials) { m.Gain[1] = inf }},
		{"Gain[0]", func(m *scene.Materials) { m.Gain[0] = -.5 }},
	} {
		m := good()
		c.change(&m)
		table, err := r.UploadMaterials(background, m)
		requireArgument(t, err, "UploadMaterials", c.arg)
		require.Nil(t, table)
		require.NoError(t, table.Close())
	}
	table, err := r.UploadMaterials(background, good())
	require.NoError(t, err)
	require.Equal(t, 2, table.Count())
	require.NoError(t, table.Close())
	require.NoError(t, table.Close(), "again")
	_, err = open(t).UploadMaterials(background, good())
	require.ErrorIs(t, err, scene.ErrNotReady)
}

// requireArgument is a refusal of an argument.
func requireArgument(t testing.TB, err error, op, arg string) {
	t.Helper()
	var bad *scene.ArgumentError
	require.ErrorAs(t, err, &bad, "%s", arg)
	require.Equal(t, [2]string{op, arg}, [2]string{bad.Op, bad.Arg}, "%v", err)
}

// What is refused, before any driver call.
func TestEPCRefused(t *testing.T) {
	r, calls := traced(t, meshFloor())
	b := newEPCBatch(2, epcRow(vec{0, 0, 1}, vec{3, 0, 2}, 0), epcRow(vec{0, 0, 1}, vec{3, 0, 2}, 1))
	good := b.upload(r)
	table := r.materials(mediumOfAll(4, 0, 2))
	groups := r.groups([]int32{0, 0}, [][]int32{{0, 1}})
	closed, err := r.UploadMaterials(background, mediumOfAll(4, 0, 2))
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	short := toDevice(r, make([]float32, 7))
	larger := openOn(t, r.Context())
	larger.add(meshFloor(), meshFloor())
	require.NoError(t, larger.Build(background))
	negative, bad := float32(-1), nan
	for _, c := range []struct {
		arg    string
		change func(rows *scene.EPCRows, o *scene.EPCFieldOptions)
	}{
		{"Bounces", func(v *scene.EPCRows, _ *scene.EPCFieldOptions) { v.Bounces = 0 }},
		{"Bounces", func(v *scene.EPCRows, _ *scene.EPCFieldOptions) { v.Bounces = 9 }},
		{"Source", func(v *scene.EPCRows, _ *scene.EPCFieldOptions) { v.Source = short }},
		{"Receiver", func(v *scene.EPCRows, _ *scene.EPCFieldOptions) { v.Receiver = short }},
		{"Receiver", func(v *scene.EPCRows, _ *scene.EPCFieldOptions) { v.Receiver = cuda.Slice[float32]{} }},
		{"Seq", func(v *scene.EPCRows, _ *scene.EPCFieldOptions) { v.Bounces = 3 }},
		{"PlanePoints", func(v *scene.EPCRows, _ *scene.EPCFieldOptions) { v.PlanePoints = short }},
		{"PlaneNormals", func(v *scene.EPCRows, _ *scene.EPCFieldOptions) { v.PlaneNormals = v.Source }},
		{"Active", func(v *scene.EPCRows, _ *scene.EPCFieldOptions) { v.Active = toDevice(r, []uint8{1}) }},
		{"IgnoreMode", func(_ *scene.EPCRows, o *scene.EPCFieldOptions) { o.IgnoreMode = 2 }},
		{"PlaneTolerance", func(_ *scene.EPCRows, o *scene.EPCFieldOptions) { o.PlaneTolerance = &negative }},
		{"PlaneTolerance", func(_ *scene.EPCRows, o *scene.EPCFieldOptions) { o.PlaneTolerance = &bad }},
		{"PlaneTolerance", func(_ *scene.EPCRows, o *scene.EPCFieldOptions) { o.PlaneTolerance = &inf }},
		{"Groups", func(_ *scene.EPCRows, o *scene.EPCFieldOptions) { o.Groups = larger.groups(nil, nil) }},
		{"Materials", func(_ *scene.EPCRows, o *scene.EPCFieldOptions) { o.Materials = nil }},
		{"Materials", func(_ *scene.EPCRows, o *scene.EPCFieldOptions) { o.Materials = closed }},
		{"Materials", func(_ *scene.EPCRows, o *scene.EPCFieldOptions) { o.Materials = larger.materials(mediumOfAll(4, 0, 4)) }},
		{"Wavelength", func(_ *scene.EPCRows, o *scene.EPCFieldOptions) { o.Wavelength = 0 }},
		{"Wavelength", func(_ *scene.EPCRows, o *scene.EPCFieldOptions) { o.Wavelength = float64(inf) }},
		{"Wavelength", func(_ *scene.EPCRows, o *scene.EPCFieldOptions) { o.Wavelength = float64(nan) }},
		{"Polarization", func(_ *scene.EPCRows, o *scene.EPCFieldOptions) { o.Polarization = short }},
	} {
		rows := good
		o := scene.EPCFieldOptions{EPCOptions: scene.EPCOptions{Groups: groups}, Materials: table, Wavelength: 1}
		c.change(&rows, &o)
		calls.Reset()
		f, err := r.TraceReflEPCField(background, rows, o)
		requireArgument(t, err, "TraceReflEPCField", c.arg)
		require.Nil(t, f)
		if c.arg != "Materials" && c.arg != "Wavelength" && c.arg != "Polarization" {
			p, err := r.TraceReflEPC(background, rows, o.EPCOptions)
			requireArgument(t, err, "TraceReflEPC", c.arg)
			require.Nil(t, p)
		}
		require.Empty(t, calls.Counts(), c.arg)
	}
	// Options of a scheduler, also without rows.
	for _, rows := range []scene.EPCRows{good, {Bounces: 1}} {
		for _, o := range []scene.CallOption{scene.Carry(1), scene.Unallocated()} {
			calls.Reset()
			p, err := r.TraceReflEPC(background, rows, scene.EPCOptions{}, o)
			requireArgument(t, err, "TraceReflEPC", "opts")
			require.Nil(t, p)
			require.Empty(t, calls.Counts())
		}
	}
	_, err = open(t).TraceReflEPC(background, good, scene.EPCOptions{})
	require.ErrorIs(t, err, scene.ErrNotReady)
	p, err := r.TraceReflEPC(background, scene.EPCRows{Bounces: 1}, scene.EPCOptions{})
	require.NoError(t, err)
	require.Zero(t, p.Rows())
	require.NoError(t, p.Close())
}

// Columns of another device are refused.
func TestEPCWrongDevice(t *testing.T) {
	gputest.Need(t, 2)
	g := gputest.Open(t, 2, nil)
	r, other := openOn(t, g.Context(t, 0)), openOn(t, g.Context(t, 1))
	for _, s := range []*rig{r, other} {
		s.add(meshFloor())
		require.NoError(t, s.Build(background))
	}
	b := newEPCBatch(1, epcRow(vec{0, 0, 1}, vec{3, 0, 2}, 0))
	rows := b.upload(r)
	rows.Seq = b.upload(other).Seq
	_, err := r.TraceReflEPC(background, rows, scene.EPCOptions{})
	var wrong *cuda.WrongDeviceError
	require.ErrorAs(t, err, &wrong)
	require.Equal(t, "Seq", wrong.Arg)
	_, err = r.TraceReflEPCField(background, b.upload(r), scene.EPCFieldOptions{Materials: other.materials(mediumOfAll(4, 0, 2)), Wavelength: 1})
	requireArgument(t, err, "TraceReflEPCField", "Materials")
}

func TestEPCNoticesFailingCalls(t *testing.T) {
	requireFailingCallsToBeNoticed(t, meshFloor(), func(r *rig) func(scene.CallOption) (scene.Reusable, error) {
		b := newEPCBatch(2, epcRow(vec{0, 0, 1}, vec{3, 0, 2}, 0))
		rows, table := b.upload(r), r.materials(mediumOfAll(4, 0, 2))
		return func(o scene.CallOption) (scene.Reusable, error) {
			f, err := r.TraceReflEPCField(background, rows, scene.EPCFieldOptions{Materials: table, Wavelength: 1}, o)
			if err != nil {
				return nil, err
			}
			return f, nil
		}
	})
}
