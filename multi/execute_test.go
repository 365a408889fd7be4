package multi

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/offload"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tests/gputest"
)

// question is one query of any operation about inputs on device 0.
type question struct {
	name     string
	op       chunked.Op
	rows     int64
	whole    func(s *Scene, opts ...scene.CallOption) (scene.Reusable, error)
	streamed func(s *Scene, take func(start int64, r scene.Reusable) error, opts ...scene.CallOption) error
}

func newQuestion[R scene.Reusable](name string, op chunked.Op, rows int, ask func(*Scene, ...scene.CallOption) (R, error)) question {
	return question{name, op, int64(rows),
		func(s *Scene, opts ...scene.CallOption) (scene.Reusable, error) { return ask(s, opts...) },
		func(s *Scene, take func(int64, scene.Reusable) error, opts ...scene.CallOption) error {
			_, err := ask(s, append(opts, Offload(func(_ context.Context, start int64, c offload.Chunk[R]) error {
				return take(start, c.Result)
			}))...)
			return err
		}}
}

// questions are one of every operation, with random inputs of n rows and optional
// columns at random.
func questions(t testing.TB, rng *rand.Rand, st *cuda.Stream, n, faces int) []question {
	t.Helper()
	b, v := randomBatch(rng, n), randomSights(rng, n, faces)
	var frees []func() error
	t.Cleanup(func() {
		for _, free := range frees {
			require.NoError(t, free())
		}
	})
	in := uploads{t, st, &frees}
	rays := scene.Rays{O: column(in, b.o), D: column(in, b.d), TMax: column(in, b.tmax), Active: column(in, b.active)}
	var points [4]cuda.Slice[float32]
	for i, p := range v.points {
		points[i] = column(in, p)
	}
	ignore, active := column(in, v.ignore), column(in, v.active)
	tMin, tMax := column(in, v.tMin), column(in, v.tMax)
	line, length, lineIgnore := column(in, v.line), column(in, v.length), column(in, v.lineIgnore)
	require.NoError(t, st.Synchronize(bg))
	ids, lineIDs := int64(0), int64(0)
	if n > 0 {
		ids, lineIDs = int64(len(v.ignore)/n), int64(len(v.lineIgnore)/(n*v.segments))
	}
	flags, fields, bounces := scene.Flags(rng.IntN(8)), scene.ChainFields(rng.IntN(16)), 1+rng.IntN(4)
	masked := v.active != nil
	return []question{
		newQuestion("Intersect", IntersectOp(flags, rays.BytesPerRow()), n, func(s *Scene, opts ...scene.CallOption) (*scene.Hits, error) {
			return s.Intersect(bg, rays, flags, opts...)
		}),
		newQuestion("TraceReflections", ReflectionsOp(bounces, fields, rays.BytesPerRow()), n, func(s *Scene, opts ...scene.CallOption) (*scene.Chains, error) {
			return s.TraceReflections(bg, rays, bounces, fields, opts...)
		}),
		newQuestion("Visible", VisibleOp(ids, masked), n, func(s *Scene, opts ...scene.CallOption) (*scene.Visibility, error) {
			return s.Visible(bg, scene.Segments{Start: points[0], End: points[1], Ignore: ignore, Active: active}, opts...)
		}),
		newQuestion("VisiblePair", VisiblePairOp(ids, masked), n, func(s *Scene, opts ...scene.CallOption) (*scene.PairVisibility, error) {
			return s.VisiblePair(bg, scene.SegmentPairs{Start: points[0], EndA: points[1], EndB: points[2], Ignore: ignore, Active: active}, opts...)
		}),
		newQuestion("VisibleEdge", VisibleEdgeOp(masked), n, func(s *Scene, opts ...scene.CallOption) (*scene.EdgeVisibility, error) {
			return s.VisibleEdge(bg, scene.EdgeSamples{
				Source: points[0], Position: points[1], Direction: points[3], TMin: tMin, TMax: tMax, Active: active, Fractions: v.fractions,
			}, opts...)
		}),
		newQuestion("VisibleChain", VisibleChainOp(int64(v.segments), lineIDs, masked), n, func(s *Scene, opts ...scene.CallOption) (*scene.ChainVisibility, error) {
			return s.VisibleChain(bg, scene.Polylines{Points: line, Length: length, Segments: v.segments, Ignore: lineIgnore, Active: active}, opts...)
		}),
	}
}

// contents are the columns of any result, by name, as bytes.
func contents(t testing.TB, st *cuda.Stream, r scene.Reusable) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	v := reflect.ValueOf(r).Elem()
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		if !v.Type().Field(i).IsExported() {
			continue
		}
		switch c := v.Field(i).Interface().(type) {
		case cuda.Slice[float32]:
			out[name] = little(raw(t, st, c))
		case cuda.Slice[int32]:
			out[name] = little(raw(t, st, c))
		case cuda.Slice[uint8]:
			if c.Len() > 0 {
				host, err := cuda.Download(bg, st, c)
				require.NoError(t, err)
				out[name] = host
			}
		}
	}
	return out
}

func little(words []uint32) (out []byte) {
	for _, w := range words {
		out = binary.LittleEndian.AppendUint32(out, w)
	}
	return out
}

// answerOf is the whole result of a question.
func (q question) answerOf(t testing.TB, s *Scene, opts ...scene.CallOption) map[string][]byte {
	t.Helper()
	r, err := q.whole(s, opts...)
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	require.Equal(t, int(q.rows), r.Rows())
	return contents(t, s.Stream(), r)
}

// gathered puts the chunks of a streamed question together, and lists where they start.
func (q question) gathered(t testing.TB, s *Scene, opts ...scene.CallOption) (all map[string][]byte, starts []int64) {
	t.Helper()
	seen := int64(0)
	err := q.streamed(s, func(start int64, r scene.Reusable) error {
		starts = append(starts, start)
		for name, part := range contents(t, s.Stream(), r) {
			if all == nil {
				all = map[string][]byte{}
			}
			if part == nil {
				all[name] = nil
				continue
			}
			width := int64(len(part) / r.Rows())
			if all[name] == nil {
				all[name] = make([]byte, q.rows*width)
			}
			copy(all[name][start*width:], part)
		}
		seen += int64(r.Rows())
		return nil
	}, opts...)
	require.NoError(t, err)
	require.Equal(t, q.rows, seen, "rows delivered")
	return all, starts
}

// fleet is sets over 1, 2, 3 and 8 devices, or as many as there are, of one scene.
func fleet(t testing.TB, rng *rand.Rand) (rig *gputest.Rig, sets []*Scene, faces int) {
	t.Helper()
	counts, most := []int{1, 2, 3, 8}, gputest.UpTo(8)
	counts = slices.DeleteFunc(counts, func(n int) bool { return n > most })
	rig = gputest.Open(t, slices.Max(counts), nil)
	m := room(rng)
	for _, n := range counts {
		sets = append(sets, quick(t, rig.Driver, ordinals(rig, n), anyFloor()))
		build(t, sets[len(sets)-1], m)
	}
	return rig, sets, len(m.Faces) / 3
}

// quick is newScene with a short self-test.
func quick(t testing.TB, drv *cuda.Driver, devices []int, opts Options) *Scene {
	t.Helper()
	s, err := create(drv, devices, opts, 64)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// shuffle gives a set random options.
func shuffle(rng *rand.Rand, s *Scene) {
	s.opts.Weights = randomWeights(rng, len(s.devices))
	s.transport = []chunked.Transport{chunked.Direct, chunked.Copy, chunked.Host}[rng.IntN(3)]
	s.opts.NoPipeline = rng.IntN(4) == 0
	s.opts.PipelineChunks = []int{0, 2, 3, 32}[rng.IntN(4)]
	s.opts.ChunkRays = []int64{0, 0, 1, 7, 11, 64}[rng.IntN(6)]
	s.opts.MemoryBudget = 0
	if rng.IntN(3) == 0 {
		s.opts.MemoryBudget = 1 << (5 + rng.IntN(12))
	}
}

// Whatever the plan, the bits are those of one device: random weights, transports,
// pipelines, chunks and budgets, whole and streamed, for every operation.
func TestMultiSceneExecutesAnyPlan(t *testing.T) {
	rng := rand.New(rand.NewPCG(71, 1))
	rig, sets, faces := fleet(t, rng)
	st, err := rig.Context(t, 0).NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, st.Close()) })
	rounds := 20
	if testing.Short() {
		rounds = 6
	}
	kinds := map[string]int{}
	for range rounds {
		n := []int{0, 1, 33, 2 + rng.IntN(80)}[rng.IntN(4)]
		for _, q := range questions(t, rng, st, n, faces) {
			sets[0].opts.Options = chunked.Options{MinRaysPerDevice: 1}
			want := q.answerOf(t, sets[0])
			for _, s := range sets {
				shuffle(rng, s)
				what := fmt.Sprintf("%s, %d rows, %d devices, %v, %+v", q.name, n, len(s.devices), s.transport, s.opts.Options)
				plan, refused := s.Plan(q.op, q.rows)
				if refused != nil {
					_, err := q.whole(s)
					require.Equal(t, refused, err, what)
				} else {
					require.Equal(t, want, q.answerOf(t, s), what)
					kinds[fmt.Sprint(plan.Kind, " ", plan.Transport)]++
				}
				if plan, refused = s.PlanStream(q.op, q.rows); refused != nil {
					require.Equal(t, refused, q.streamed(s, nil), what)
					continue
				}
				got, starts := q.gathered(t, s)
				var order []int64
				for _, c := range plan.Retirement() {
					order = append(order, c.Begin)
				}
				require.Equal(t, order, starts, what)
				if n == 0 {
					require.Nil(t, got)
					continue
				}
				require.Equal(t, want, got, what)
				kinds["streamed "+fmt.Sprint(plan.Transport)]++
			}
		}
	}
	t.Log(kinds)
	if !testing.Short() {
		for _, k := range []string{
			"master direct", "direct direct", "pipelined copy", "pipelined host", "sharded copy", "sharded host",
			"chunked direct", "chunked copy", "chunked host", "streamed direct", "streamed copy", "streamed host",
		} {
			require.Contains(t, slices.Collect(maps.Keys(kinds)), k)
		}
	}
}

// No call holds more memory on any device than its plan says, up to the alignment of
// columns, and gives all of it back.
func TestMultiSceneKeepsItsBudget(t *testing.T) {
	if gputest.Native() {
		t.Skip("sizes of a GPU's allocator are rounded; the emulator's are exact")
	}
	rng := rand.New(rand.NewPCG(72, 1))
	rig, sets, faces := fleet(t, rng)
	st, err := rig.Context(t, 0).NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, st.Close()) })
	const n, columns, align = 600, 10, 256
	checked := 0
	for _, q := range questions(t, rng, st, n, faces) {
		for _, s := range sets {
			for _, tr := range []chunked.Transport{chunked.Direct, chunked.Copy, chunked.Host} {
				s.opts.Options = chunked.Options{MinRaysPerDevice: 1, MemoryBudget: 4096}
				s.transport = tr
				for _, stream := range []bool{true, false} {
					if !stream {
						s.opts.MemoryBudget = q.op.Record*n + 2048
					}
					before := poolUse(s)
					var info CallInfo
					if stream {
						q.gathered(t, s, Info(&info))
					} else {
						q.answerOf(t, s, Info(&info))
					}
					for k, r := range s.replicas {
						stats := r.ctx.Pool().Stats()
						used := int64(stats.HighWater - before[k])
						e := info.Plan.PerDevice[k]
						what := fmt.Sprintf("%s on %d devices, %v, streamed %v, device %d", q.name, len(s.devices), tr, stream, k)
						require.LessOrEqual(t, used, e.Peak+int64(columns*align*max(e.Resident, 1)), what)
						require.LessOrEqual(t, e.Peak, s.opts.MemoryBudget, what)
						if k > 0 || stream {
							require.Equal(t, info.HighWater[k], used, what)
						}
						require.Equal(t, before[k], stats.BytesInUse, what)
						checked++
					}
				}
			}
		}
	}
	require.Positive(t, checked)
}

// poolUse starts a measurement and returns what is in use by device.
func poolUse(s *Scene) (use []uint64) {
	for _, r := range s.replicas {
		r.ctx.Pool().ResetHighWater()
		use = append(use, r.ctx.Pool().Stats().BytesInUse)
	}
	return use
}
