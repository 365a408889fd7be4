package multi

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/scene"
)

// deviceInputs are the same arrays on every device of a set, by ordinal.
type deviceInputs struct {
	radio map[int]radioInputs
	path  map[int]pathInputs
	epc   map[int]scene.EPCRows
}

func newDeviceInputs(t testing.TB, s *Scene, rows, states, faces int) (in deviceInputs) {
	t.Helper()
	in = deviceInputs{map[int]radioInputs{}, map[int]pathInputs{}, map[int]scene.EPCRows{}}
	for _, r := range s.replicas {
		st, frees := r.scene.Stream(), [3]func(){}
		in.radio[r.ordinal], frees[0] = newRadioInputs(t, rngOf(111), st, rows, states)
		in.path[r.ordinal], frees[1] = newPathInputs(t, rngOf(112), st)
		in.epc[r.ordinal], _, frees[2] = newEPCRows(t, rngOf(113), st, faces, false)
		for _, free := range frees {
			t.Cleanup(free)
		}
	}
	return in
}

// saysSomething reports a column that is not all zero.
func saysSomething(columns map[string][]byte) bool {
	for _, c := range columns {
		if !bytes.Equal(c, make([]byte, len(c))) {
			return true
		}
	}
	return false
}

// Every operation on grids and paths is calibrated by a probe of one's own: with the same answer from every replica and
// from every split of the set, and without consequences for the others.
func TestMultiSceneProbesOfGridsAndPaths(t *testing.T) {
	const rows = 24
	drv, _, _ := emulator(t, 2)
	s := quickScene(t, drv, 2, Options{Options: chunked.Options{MinRaysPerDevice: 1 << 40, MinLanesPerDevice: 1 << 40}})
	m := room(rngOf(114))
	faces := len(m.Faces) / 3
	build(t, s, m)
	tables := newTables(t, s, cornerStates(faces), faces)
	t.Cleanup(func() { tables.close(t) })
	groups, err := s.UploadSurfaceGroups(bg, wallGroups(faces))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, groups.Close()) })
	in := newDeviceInputs(t, s, rows, pathStates, faces)
	epc := scene.EPCOptions{Groups: groups}
	for _, c := range []struct {
		key  string
		rows int64
		ask  func(ctx context.Context, on Target, device int) (scene.Reusable, error)
	}{
		{"accumulate_reflections", rows, func(ctx context.Context, on Target, device int) (scene.Reusable, error) {
			return result(on.AccumulateReflections(ctx, in.radio[device].rays, floorPlan, scene.ReflGridOptions{
				Wavelength: .1, SolidAnglePerRay: .01, MaxBounces: 2, Materials: tables.materials, TxPosition: in.radio[device].tx, KeepWords: true,
			}))
		}},
		{"accum_dfr_direct", 200, func(ctx context.Context, on Target, device int) (scene.Reusable, error) {
			return result(on.AccumDfrDirect(ctx, tables.states, floorPlan, scene.DfrDirectOptions{
				Wavelength: .1, DirectSamples: 200, Materials: tables.materials, Active: in.radio[device].active, KeepWords: true,
			}))
		}},
		{"accum_dfr_coherent_direct", pathStates * floorPlan.Cells(), func(ctx context.Context, on Target, device int) (scene.Reusable, error) {
			return result(on.AccumDfrCoherentDirect(ctx, tables.states, floorPlan, scene.DfrCoherentOptions{
				Wavelength: .1, Materials: tables.materials, KeepWords: true,
			}))
		}},
		{"trace_dfr_paths", pathRows, func(ctx context.Context, on Target, device int) (scene.Reusable, error) {
			p := in.path[device]
			return result(on.TraceDfrPaths(ctx, p.tx, p.rx, tables.states, scene.DfrPathOptions{Wavelength: .1, Materials: tables.materials, Active: p.active}))
		}},
		{"trace_refl_epc:2", epcBatchRows, func(ctx context.Context, on Target, device int) (scene.Reusable, error) {
			return result(on.TraceReflEPC(ctx, in.epc[device], epc))
		}},
		{"trace_refl_epc_field:2", epcBatchRows, func(ctx context.Context, on Target, device int) (scene.Reusable, error) {
			return result(on.TraceReflEPCField(ctx, in.epc[device], scene.EPCFieldOptions{EPCOptions: epc, Materials: tables.materials, Wavelength: .1}))
		}},
	} {
		var want map[string][]byte
		targets := map[Target]int{}
		probe := Probe{Operation: c.key, Repeats: 1, Run: func(ctx context.Context, on Target, device int) error {
			targets[on]++
			r, err := c.ask(ctx, on, device)
			if err != nil {
				return err
			}
			have := bytesOf(t, on.Stream(), r)
			if want == nil {
				want = have
				require.True(t, saysSomething(have), c.key)
			}
			require.Equal(t, want, have, "%s on device %d", c.key, device)
			return r.Close()
		}}
		machine := machine{alone: []time.Duration{20 * msec, 20 * msec}}
		r, err := s.calibrate(bg, probe, machine.meter(t, s, c.key))
		require.NoError(t, err, c.key)
		require.Equal(t, c.rows, r.Rows, c.key)
		require.Equal(t, VerdictShard, r.Verdict, r.Describe())
		require.Len(t, targets, 3, c.key)
		if c.key == OpDfrPaths { // five transmitters: 2 3, 3 2, 4 1, 5 0, and not twice the same
			require.Len(t, r.Ladder, 4, r.Describe())
			require.Zero(t, r.Ladder[3].Share)
		}
		for _, other := range []string{c.key, "visible"} {
			w, err := s.DeviceWeightsFor(other)
			require.NoError(t, err)
			if other == c.key {
				require.Equal(t, r.Weights, w, c.key)
			} else {
				require.Equal(t, []float64{1, 1}, w)
			}
		}
	}
}
