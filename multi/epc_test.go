package multi

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
)

// epcBatchRows is how many rows the tests of equivalent paths have.
const epcBatchRows = 60

// wallGroups are the groups of the faces of a room: its six walls, behind those of the
// soup, which are in none.
func wallGroups(faces int) (g scene.SurfaceGroups) {
	for f := range faces {
		id := int32(-1)
		if f >= faces-12 {
			id = int32(f-(faces-12)) / 2
		}
		g.ID = append(g.ID, id)
	}
	return g
}

// newEPCRows is rows between points beside the soup of a room, over one or two of its
// walls or none, with planes or without; and a polarization for each.
func newEPCRows(t testing.TB, rng *rand.Rand, st *cuda.Stream, faces int, planes bool) (in scene.EPCRows, polarization cuda.Slice[float32], free func()) {
	t.Helper()
	var source, receiver, normals, random []float32
	var seq []int32
	var active []uint8
	for i := range epcBatchRows {
		for range 3 {
			source, receiver = append(source, 1.2+1.6*rng.Float32()), append(receiver, 3.8*rng.Float32()-1.2)
			random = append(random, rng.Float32()-.5)
		}
		ids := []int32{-1, -1}
		for k := range rng.IntN(3) {
			ids[k] = int32(faces - 1 - rng.IntN(12))
		}
		seq = append(seq, ids...)
		active = append(active, uint8(i%13))
	}
	for range epcBatchRows * 2 {
		n := []float32{0, 0, 0}
		n[rng.IntN(3)] = 1
		normals = append(normals, n...)
	}
	if !planes {
		normals = nil
	}
	var frees []func() error
	up := uploads{t, st, &frees}
	in = scene.EPCRows{
		Source: column(up, source), Receiver: column(up, receiver), Seq: column(up, seq), Bounces: 2,
		PlaneNormals: column(up, normals), Active: column(up, active),
	}
	polarization = column(up, random)
	require.NoError(t, st.Synchronize(bg))
	return in, polarization, func() {
		for _, f := range frees {
			require.NoError(t, f())
		}
	}
}

// Equivalent paths and their fields are those of one device for every division, whole and
// streamed, with one polarization and with one for every row.
func TestMultiEPC(t *testing.T) {
	rng := rngOf(101)
	_, sets, faces := fleet(t, rng)
	most := sets[len(sets)-1]
	groups, err := most.UploadSurfaceGroups(bg, wallGroups(faces))
	require.NoError(t, err)
	defer func() { require.NoError(t, groups.Close()) }()
	materials, err := most.UploadMaterials(bg, glass(faces))
	require.NoError(t, err)
	defer func() { require.NoError(t, materials.Close()) }()
	valid := 0
	for round := range 2 {
		in, polarization, free := newEPCRows(t, rng, sets[0].Stream(), faces, round%2 == 1)
		one, err := polarization.Sub(0, 3)
		require.NoError(t, err)
		options := scene.EPCOptions{Groups: groups, IgnoreMode: scene.IgnoreMode(round % 2)}
		fields := scene.EPCFieldOptions{EPCOptions: options, Materials: materials, Wavelength: .5, Polarization: polarization}
		if round%2 == 0 {
			fields.Polarization, fields.IncludePaths = one, true
		}
		planes := !in.PlaneNormals.IsNil()
		for _, q := range []question{
			newQuestion("TraceReflEPC", ReflEPCOp(2, planes, true), epcBatchRows, func(s *Scene, opts ...scene.CallOption) (*scene.EPCPaths, error) {
				return s.TraceReflEPC(bg, in, options, opts...)
			}),
			newQuestion("TraceReflEPCField", ReflEPCFieldOp(2, planes, true), epcBatchRows, func(s *Scene, opts ...scene.CallOption) (*scene.EPCFields, error) {
				return s.TraceReflEPCField(bg, in, fields, opts...)
			}),
		} {
			answer := func(s *Scene) map[string][]byte {
				got, err := q.whole(s)
				require.NoError(t, err)
				defer func() { require.NoError(t, got.Close()) }()
				return bytesOf(t, s.Stream(), got)
			}
			want := answer(sets[0])
			for _, v := range want["Valid"] {
				valid += int(v)
			}
			for _, s := range sets {
				for range 3 {
					shuffle(rng, s)
					s.opts.MemoryBudget = 0
					what := fmt.Sprintf("%s, %d devices, %v, %+v", q.name, len(s.devices), s.transport, s.opts.Options)
					require.Equal(t, want, answer(s), what)
					got, _ := q.gathered(t, s)
					for name, column := range got {
						require.Equal(t, want[name], column, "%s of %s", name, what)
					}
				}
			}
		}
		free()
	}
	require.Greater(t, valid, epcBatchRows/2, "next to no path is valid")
}

// Groups that are not on every device of a set are refused where they are missing.
func TestMultiEPCWantsGroupsEverywhere(t *testing.T) {
	rng := rngOf(102)
	drv, _, _ := emulator(t, 2)
	m := room(rng)
	faces := len(m.Faces) / 3
	one, two := quick(t, drv, []int{0}, anyFloor()), quick(t, drv, []int{0, 1}, anyFloor())
	build(t, one, m)
	build(t, two, m)
	groups, err := one.UploadSurfaceGroups(bg, wallGroups(faces))
	require.NoError(t, err)
	defer func() { require.NoError(t, groups.Close()) }()
	in, _, free := newEPCRows(t, rng, two.Stream(), faces, false)
	defer free()
	_, err = two.TraceReflEPC(bg, in, scene.EPCOptions{Groups: groups})
	require.ErrorContains(t, err, "Groups: is on devices [0], want it on device 1")
	p, err := one.TraceReflEPC(bg, in, scene.EPCOptions{Groups: groups})
	require.NoError(t, err)
	require.NoError(t, p.Close())
}
