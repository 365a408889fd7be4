package multi

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/emu"
	"github.com/raymux/raymux/cuda/wrap"
	"github.com/raymux/raymux/offload"
	"github.com/raymux/raymux/scene"
)

// Counts of the tests of path export.
const (
	pathTx     = 5
	pathRx     = 2
	pathStates = 2
	pathRows   = pathTx * pathRx * pathStates
)

// pathInputs are transmitters and receivers on device 0.
type pathInputs struct {
	tx, rx, power, polarization cuda.Slice[float32]
	active                      cuda.Slice[uint8]
}

func newPathInputs(t testing.TB, rng *rand.Rand, st *cuda.Stream) (in pathInputs, free func()) {
	t.Helper()
	var frees []func() error
	up := uploads{t, st, &frees}
	points := func(n int) []float32 {
		out := make([]float32, 3*n)
		for i := range out {
			out[i] = -1.3 - rng.Float32() // in a corner of the room
		}
		return out
	}
	in = pathInputs{
		tx: column(up, points(pathTx)), rx: column(up, points(pathRx)), power: column(up, []float32{1, 4, 0, 2, 1}),
		polarization: column(up, points(pathTx)), active: column(up, []uint8{1, 1}),
	}
	require.NoError(t, st.Synchronize(bg))
	return in, func() {
		for _, f := range frees {
			require.NoError(t, f())
		}
	}
}

// cornerStates are vertical edges on the way between points of the corner.
func cornerStates(faces int) scene.DfrStates {
	d := wedgeStates(rngOf(7), pathStates, faces)
	for i := range pathStates {
		copy(d.EdgePos[3*i:], []float32{-1.6 - .2*float32(i), -1.7, -1.8})
		d.TMin[i], d.TMax[i] = -2, 2
		copy(d.N0[3*i:], []float32{1, 0, 0})
		copy(d.N1[3*i:], []float32{0, 1, 0})
		d.EdgeIndex[i] = int32(100 + i)
	}
	return d
}

func pathQuestion(in pathInputs, r radioTables, layout scene.DfrPathLayout) question {
	opt := scene.DfrPathOptions{
		Wavelength: .1, Materials: r.materials, Active: in.active, TxPower: in.power, TxPolarization: in.polarization,
		Layout: layout, EdgeMode: scene.EdgeFresnel,
	}
	return newQuestion("TraceDfrPaths", DfrPathsOp(pathRx*pathStates), pathRows, func(s *Scene, opts ...scene.CallOption) (*scene.DfrPaths, error) {
		return s.TraceDfrPaths(bg, in.tx, in.rx, r.states, opt, opts...)
	})
}

// Rows of a path export are those of one device for every division, row by row, with the
// ids of the row formula, and so is the count, which is on the device.
func TestMultiPaths(t *testing.T) {
	rng := rngOf(97)
	_, sets, faces := fleet(t, rng)
	most := sets[len(sets)-1]
	r := newTables(t, most, cornerStates(faces), faces) // on all devices of all sets
	defer r.close(t)
	in, free := newPathInputs(t, rng, sets[0].Stream())
	defer free()
	lane, compact := pathQuestion(in, r, scene.SourceLane), pathQuestion(in, r, scene.Compact)
	answer := func(q question, s *Scene, opts ...scene.CallOption) map[string][]byte {
		got, err := q.whole(s, opts...)
		require.NoError(t, err)
		defer func() { require.NoError(t, got.Close()) }()
		return bytesOf(t, s.Stream(), got)
	}
	want, wantCompact := answer(lane, sets[0]), answer(compact, sets[0])
	requireRowFormula(t, want)
	require.Equal(t, compaction(want), wantCompact)
	for _, s := range sets {
		for range 8 {
			shuffle(rng, s)
			s.opts.MemoryBudget = 0
			what := fmt.Sprintf("%d devices, %v, %+v", len(s.devices), s.transport, s.opts.Options)
			var info CallInfo
			require.Equal(t, want, answer(lane, s, Info(&info)), what)
			require.Equal(t, wantCompact, answer(compact, s), what)
			for _, shard := range info.Plan.Shards {
				require.Zero(t, shard.Begin%(pathRx*pathStates), "whole transmitters")
			}
			got, _ := lane.gathered(t, s)
			for name, column := range got {
				if name != "Count" { // each chunk has its own
					require.Equal(t, want[name], column, "%s, %s", name, what)
				}
			}
			err := compact.streamed(s, func(int64, scene.Reusable) error { t.Error("called"); return nil })
			var refused *chunked.UnsupportedError
			require.ErrorAs(t, err, &refused, what)
		}
	}
}

// requireRowFormula checks ids against the number of the row, and the count.
func requireRowFormula(t testing.TB, rows map[string][]byte) {
	t.Helper()
	id := func(name string, row int) int32 { return int32(binary.LittleEndian.Uint32(rows[name][4*row:])) }
	valid := uint64(0)
	for row, status := range rows["Status"] {
		want := [3]int32{-1, -1, -1}
		if status == 0 {
			valid++
			want = [3]int32{int32(row / (pathRx * pathStates)), int32(row / pathStates % pathRx), int32(100 + row%pathStates)}
		}
		require.Equal(t, want, [3]int32{id("TxID", row), id("RxID", row), id("EdgeID", row)}, "row %d", row)
	}
	require.Equal(t, valid, binary.LittleEndian.Uint64(rows["Count"]))
	require.Positive(t, valid, "no path is valid")
	require.Less(t, int(valid), pathRows, "every path is valid")
}

// compaction moves the rows with a path to the front.
func compaction(rows map[string][]byte) map[string][]byte {
	n := len(rows["Status"])
	var order []int
	for _, valid := range []bool{true, false} {
		for row, status := range rows["Status"] {
			if (status == 0) == valid {
				order = append(order, row)
			}
		}
	}
	out := map[string][]byte{}
	for name, column := range rows {
		if name == "Count" {
			out[name] = column
			continue
		}
		w := len(column) / n
		for _, row := range order {
			out[name] = append(out[name], column[w*row:w*(row+1)]...)
		}
	}
	return out
}

// A path export reads nothing back to the host, whatever its layout, and refuses a mask of
// another length before anything is enqueued.
func TestMultiPathsStayOnTheDevice(t *testing.T) {
	e, err := emu.New(2)
	require.NoError(t, err)
	trace := wrap.NewTrace(e)
	drv, err := cuda.OpenAPI(trace)
	require.NoError(t, err)
	s := quick(t, drv, []int{0, 1}, anyFloor())
	rng := rngOf(98)
	m := room(rng)
	build(t, s, m)
	r := newTables(t, s, cornerStates(len(m.Faces)/3), len(m.Faces)/3)
	defer r.close(t)
	in, free := newPathInputs(t, rng, s.Stream())
	defer free()
	for _, layout := range []scene.DfrPathLayout{scene.SourceLane, scene.Compact} {
		q := pathQuestion(in, r, layout)
		got, err := q.whole(s)
		require.NoError(t, err)
		require.NoError(t, got.Close())
		trace.Reset()
		got, err = q.whole(s)
		require.NoError(t, err)
		for name, n := range trace.Counts() {
			require.False(t, n > 0 && slices.Contains([]string{
				"MemcpyDtoH", "MemcpyDtoHAsync", "StreamSynchronize", "EventSynchronize", "CtxSynchronize", "MemAlloc",
			}, name), "%v: %d calls of %s", layout, n, name)
		}
		require.Positive(t, trace.Count("LaunchKernel"))
		require.NoError(t, got.Close())
	}
	trace.Reset()
	_, err = s.TraceDfrPaths(bg, in.tx, in.rx, r.states, scene.DfrPathOptions{Wavelength: .1})
	var wrong *scene.ArgumentError
	require.ErrorAs(t, err, &wrong)
	require.Equal(t, "Active", wrong.Arg)
	require.Zero(t, trace.Count("LaunchKernel"))
}

// Transmitters and receivers may be none.
func TestMultiPathsOfNothing(t *testing.T) {
	rng := rngOf(99)
	drv, _, _ := emulator(t, 2)
	s := quick(t, drv, []int{0, 1}, anyFloor())
	m := room(rng)
	build(t, s, m)
	r := newTables(t, s, cornerStates(len(m.Faces)/3), len(m.Faces)/3)
	defer r.close(t)
	in, free := newPathInputs(t, rng, s.Stream())
	defer free()
	none := cuda.Slice[float32]{}
	for _, points := range [][2]cuda.Slice[float32]{{none, in.rx}, {in.tx, none}, {none, none}} {
		p, err := s.TraceDfrPaths(bg, points[0], points[1], r.states, scene.DfrPathOptions{Wavelength: .1, Active: in.active})
		require.NoError(t, err)
		require.Zero(t, p.Rows())
		n, err := p.ReadCount(bg)
		require.NoError(t, err)
		require.Zero(t, n)
		require.NoError(t, p.Close())
		_, err = s.TraceDfrPaths(bg, points[0], points[1], r.states, scene.DfrPathOptions{Wavelength: .1, Active: in.active},
			Offload(func(context.Context, int64, offload.Chunk[*scene.DfrPaths]) error { t.Error("called"); return nil }))
		require.NoError(t, err)
	}
}
