package multi

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
)

// gridRoom is a built set of two devices that divides every accumulation, and tables for it.
func gridRoom(t *testing.T) (*Scene, radioTables) {
	t.Helper()
	drv, _, _ := emulator(t, 2)
	s := quickScene(t, drv, 2, Options{Options: chunked.Options{MinLanesPerDevice: 1}})
	m := room(rngOf(120))
	faces := len(m.Faces) / 3
	build(t, s, m)
	r := newTables(t, s, cornerStates(faces), faces)
	t.Cleanup(func() { r.close(t) })
	return s, r
}

// Calls run the plan that Plan says, private copies of the sums included, and it says what
// crosses the link: one copy of the sums, whatever their number.
func TestMultiGridCallsRunTheirPlan(t *testing.T) {
	s, r := gridRoom(t)
	const rays, keller = 1 << 17, 8192
	o, err := cuda.Upload(bg, s.Stream(), make([]float32, 3*rays))
	require.NoError(t, err)
	defer func() { require.NoError(t, cuda.Free(o)) }()
	nothing := scene.ReflGridOptions{Wavelength: .1, SolidAnglePerRay: .01, Materials: r.materials, TxPosition: o}
	azimuths := scene.DfrDirectOptions{Wavelength: .1, KellerSamples: keller, Materials: r.materials}
	for _, c := range []struct {
		op     chunked.Op
		rows   int64
		copies int64 // beside the sums
		extra  int64 // bytes that the link moves beside those of the description
		ask    func(info *CallInfo) (scene.Reusable, error)
	}{
		{AccumulateReflectionsOp(floorPlan, 24+12, r.materials.Bytes(), nothing), rays, 8, 4, func(info *CallInfo) (scene.Reusable, error) {
			return result(s.AccumulateReflections(bg, scene.Rays{O: o, D: o}, floorPlan, nothing, Info(info)))
		}},
		{AccumDfrDirectOp(floorPlan, tableBytes(r.states, r.materials), azimuths), keller, 8, 0, func(info *CallInfo) (scene.Reusable, error) {
			return result(s.AccumDfrDirect(bg, r.states, floorPlan, azimuths, Info(info)))
		}},
		{AccumDfrCoherentDirectOp(floorPlan, tableBytes(r.states, r.materials)), pathStates * floorPlan.Cells(), 0, 0, func(info *CallInfo) (scene.Reusable, error) {
			return result(s.AccumDfrCoherentDirect(bg, r.states, floorPlan, scene.DfrCoherentOptions{Wavelength: .1, Materials: r.materials}, Info(info)))
		}},
	} {
		want, err := s.Plan(c.op, c.rows)
		require.NoError(t, err)
		var info CallInfo
		got, err := c.ask(&info)
		require.NoError(t, err)
		require.NoError(t, got.Close())
		ran := info.Plan
		if c.op.Key == keyDfrDirect { // words, counters, and what warps have taken of each state
			require.Equal(t, 48*floorPlan.Cells()+40+4*pathStates, ran.Op.Grid.Accumulator)
			ran.Op.Grid.Accumulator, ran.PerDevice = want.Op.Grid.Accumulator, want.PerDevice
		}
		require.Equal(t, want, ran, c.op.Key)
		require.Equal(t, c.copies+min(c.copies, 1), ran.Op.Grid.Copies, c.op.Key)
		if c.op.Key != keyDfrCoherent { // whose cells are seldom cut
			require.Equal(t, info.Plan.Op.Grid.Accumulator+c.extra, info.ToMaster, c.op.Key)
		}
	}
}

// The plan of a call counts all of an accumulator.
func TestMultiPlansCountAccumulators(t *testing.T) {
	s, r := gridRoom(t)
	for _, opt := range []scene.DfrDirectOptions{{DirectSamples: 200}, {KellerSamples: 200}, {DirectSamples: 1 << 20}} {
		opt.Wavelength = .1
		for _, res := range []int32{1, 15, 40} {
			grid := floorPlan
			grid.Res0, grid.Res1 = res, res
			opt.AllowPartialCoverage = true
			got, call, err := s.Master().PrepareAccumDfrDirect(bg, r.states, grid, opt)
			require.NoError(t, err)
			op := s.gridOp(dfrDirectOperation(grid.Cells(), tableBytes(r.states, nil), &opt), call)
			require.Equal(t, call.AccumulatorBytes(), op.Grid.Accumulator)
			require.NoError(t, got.Close())
		}
	}
}
