package scene

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/tests/gputest"
)

// What exact sums are compared with in benchmarks computes the same quantity.
func TestAccumDfrFloat(t *testing.T) {
	rig := gputest.Open(t, 1, nil)
	s, err := New(rig.Context(t, 0), Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	_, err = s.AddMesh(Mesh{Vertices: []float32{-1, -1, -.1, .2, -1, -.1, -1, .1, -.1}, Faces: []int32{0, 1, 2}}) // hides some cells
	require.NoError(t, err)
	require.NoError(t, s.Build(t.Context()))
	states := DfrStates{
		EdgeIndex: []int32{0, 1}, EdgePos: []float32{0, 0, 0, .25, 0, 0}, EdgeDir: []float32{1, 0, 0, 1, 0, 0},
		TMin: []float32{-1, -1}, TMax: []float32{1, 1}, N0: []float32{0, 0, 1, 0, 0, 1}, N1: []float32{0, 1, 0, 0, 1, 0},
		Prim0: []int32{-1, -1}, Prim1: []int32{-1, -1}, ExteriorAngle: []float32{4.7, 4.7},
		Src: []float32{0, -1, .25, 0, -1, .25}, SrcPower: []float32{1, 2}, Count: 2,
	}
	table, err := s.UploadStates(t.Context(), states)
	require.NoError(t, err)
	defer func() { require.NoError(t, table.Close()) }()
	g := Grid{Axis: AxisZ, Position: -.5, Min0: -1, Max0: 1, Min1: -1, Max1: 1, Res0: 4, Res1: 3}
	o := DfrDirectOptions{Wavelength: 1, DirectSamples: 1003, Seed: 5}
	want, err := s.AccumDfrDirect(t.Context(), table, g, o)
	require.NoError(t, err)
	defer func() { require.NoError(t, want.Close()) }()
	power, err := cuda.Upload(t.Context(), s.Stream(), make([]float32, g.Cells()))
	require.NoError(t, err)
	defer func() { require.NoError(t, cuda.Free(power)) }()
	require.NoError(t, s.AccumDfrFloat(s.Stream(), table, g, o, power))
	exact, err := cuda.Download(t.Context(), s.Stream(), want.Power)
	require.NoError(t, err)
	got, err := cuda.Download(t.Context(), s.Stream(), power)
	require.NoError(t, err)
	for c := range exact {
		require.InEpsilon(t, exact[c], got[c], 1e-4, "cell %d", c) // of 80 additions
	}

	var refused *ArgumentError
	require.ErrorAs(t, s.AccumDfrFloat(s.Stream(), nil, g, o, power), &refused)
	require.ErrorAs(t, s.AccumDfrFloat(s.Stream(), table, Grid{}, o, power), &refused)
	part, err := power.Sub(0, 5)
	require.NoError(t, err)
	require.ErrorAs(t, s.AccumDfrFloat(s.Stream(), table, g, o, part), &refused)
	require.Equal(t, "power", refused.Arg)
	o.DirectSamples, o.KellerSamples = 0, 64
	require.ErrorAs(t, s.AccumDfrFloat(s.Stream(), table, g, o, power), &refused)
}
