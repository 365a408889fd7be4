package scene

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/tests/gputest"
)

// hostRows is a batch of paths on the host.
type hostRows struct {
	bounces   int
	ids       []int32
	keys      []int32
	origins   []float32
	canonical []int32
	base      int64
}

// rowsOf pads lists of primitives to two bounces, of one source.
func rowsOf(lists ...[]int32) hostRows {
	r := hostRows{bounces: 2, keys: make([]int32, len(lists))}
	for _, l := range lists {
		r.ids = append(r.ids, l...)
		for range r.bounces - len(l) {
			r.ids = append(r.ids, -1)
		}
	}
	return r
}

func (r hostRows) count() int { return len(r.ids) / r.bounces }

// part is rows [i, j).
func (r hostRows) part(i, j int) hostRows {
	p := hostRows{bounces: r.bounces, ids: r.ids[i*r.bounces : j*r.bounces], canonical: r.canonical, base: r.base + int64(i)}
	if r.keys != nil {
		p.keys = r.keys[i:j]
	} else {
		p.origins = r.origins[3*i : 3*j]
	}
	return p
}

// unique is a result on the host.
type unique struct {
	count           int64
	spans           []RowSpan
	first, rows     []int64
	length          []int32
	ids, groups     []int32
	keys, originBit []int32
}

func readUnique(t *testing.T, s *Scene, u *UniqueChains) unique {
	t.Helper()
	out := unique{count: u.Count, spans: u.Spans}
	get := func(v cuda.Slice[int32]) []int32 {
		if v.Len() == 0 {
			return nil
		}
		return download(t, s, v)
	}
	if u.Count > 0 {
		out.first, out.rows = download(t, s, u.Representative), download(t, s, u.DiscoveryCount)
	}
	out.length, out.ids, out.groups, out.keys = get(u.BounceCount), get(u.PrimIDs), get(u.GroupOfRow), get(u.SourceKey)
	if !u.RayO.IsNil() {
		bits, err := cuda.Reinterpret[int32](u.RayO)
		require.NoError(t, err)
		out.originBit = get(bits)
	}
	return out
}

func (r hostRows) upload(t *testing.T, s *Scene) Paths {
	t.Helper()
	in := Paths{Bounces: r.bounces, RowBase: r.base}
	ctx := context.Background()
	put := func(dst *cuda.Slice[int32], src []int32) {
		if src != nil {
			require.NoError(t, upload(ctx, s, dst, src))
			t.Cleanup(func() { require.NoError(t, cuda.Free(*dst)) })
		}
	}
	held := new([3]cuda.Slice[int32])
	put(&held[0], r.ids)
	put(&held[1], r.keys)
	put(&held[2], r.canonical)
	in.PrimIDs, in.SourceKey, in.Canonical = held[0], held[1], held[2]
	if r.origins != nil {
		require.NoError(t, upload(ctx, s, &in.RayO, r.origins))
		o := in.RayO
		t.Cleanup(func() { require.NoError(t, cuda.Free(o)) })
	}
	return in
}

func dedupOf(t *testing.T, s *Scene, r hostRows) *UniqueChains {
	t.Helper()
	u, err := s.DedupReflections(context.Background(), r.upload(t, s))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, u.Close()) })
	return u
}

// expected groups rows by comparing each with all groups before it.
func expected(r hostRows) unique {
	out := unique{spans: []RowSpan{{r.base, int64(r.count())}}}
	var tuples [][]int32
	for i := range r.count() {
		var tuple, own []int32
		if r.keys != nil {
			tuple = append(tuple, r.keys[i])
		} else {
			for _, x := range r.origins[3*i : 3*i+3] {
				tuple = append(tuple, int32(math.Float32bits(x)))
			}
		}
		source := slices.Clone(tuple)
		for _, id := range r.ids[i*r.bounces : (i+1)*r.bounces] {
			if id < 0 {
				break
			}
			own = append(own, id)
			if int(id) < len(r.canonical) && r.canonical[id] >= 0 {
				id = r.canonical[id]
			}
			tuple = append(tuple, id)
		}
		if len(own) == 0 {
			out.groups = append(out.groups, -1)
			continue
		}
		g := slices.IndexFunc(tuples, func(v []int32) bool { return slices.Equal(v, tuple) })
		if g < 0 {
			g = len(tuples)
			tuples = append(tuples, tuple)
			out.first, out.rows = append(out.first, r.base+int64(i)), append(out.rows, 0)
			out.length = append(out.length, int32(len(own)))
			for len(own) < r.bounces {
				own = append(own, -1)
			}
			out.ids = append(out.ids, own...)
			if r.keys != nil {
				out.keys = append(out.keys, source...)
			} else {
				out.originBit = append(out.originBit, source...)
			}
		}
		out.rows[g]++
		out.groups = append(out.groups, int32(g))
	}
	out.count = int64(len(tuples))
	return out
}

// eachHash runs a test with hashes that tell paths apart, and with so few bits of them
// that most paths collide and are grouped on the host.
func eachHash(t *testing.T, test func(t *testing.T, s *Scene)) {
	for _, mask := range []uint64{pathHashBits, 1} {
		t.Run(fmt.Sprintf("mask %x", mask), func(t *testing.T) {
			c := gputest.Open(t, 1, nil).Context(t, 0)
			s, _ := treeOf(t, c, []float32{0, 0, 0, 1, 0, 0, 0, 1, 0}, []int32{0, 1, 2})
			s.pathHash = mask
			test(t, s)
		})
	}
}

func TestDedupClosedForms(t *testing.T) {
	d1 := rowsOf([]int32{5, 7}, []int32{5, 7}, []int32{7, 5}, []int32{5}, nil, []int32{5, 7})
	d2 := d1
	d2.keys = []int32{0, 0, 0, 0, 0, 1}
	d3 := rowsOf([]int32{0}, []int32{1}, []int32{0})
	d4 := d3
	d4.canonical = []int32{0, 0}
	beyond := rowsOf([]int32{3}, []int32{1}, []int32{0}, []int32{3})
	beyond.canonical = []int32{0, -1}
	gap := rowsOf([]int32{-1, 4}, []int32{6, -5}, []int32{6})
	for name, c := range map[string]struct {
		rows hostRows
		want unique
	}{
		"D1": {d1, unique{
			first: []int64{0, 2, 3}, rows: []int64{3, 1, 1}, length: []int32{2, 2, 1},
			groups: []int32{0, 0, 1, 2, -1, 0}, ids: []int32{5, 7, 7, 5, 5, -1}, keys: []int32{0, 0, 0},
		}},
		"D2": {d2, unique{
			first: []int64{0, 2, 3, 5}, rows: []int64{2, 1, 1, 1}, length: []int32{2, 2, 1, 2},
			groups: []int32{0, 0, 1, 2, -1, 3}, ids: []int32{5, 7, 7, 5, 5, -1, 5, 7}, keys: []int32{0, 0, 0, 1},
		}},
		"D3": {d3, unique{
			first: []int64{0, 1}, rows: []int64{2, 1}, length: []int32{1, 1},
			groups: []int32{0, 1, 0}, ids: []int32{0, -1, 1, -1}, keys: []int32{0, 0},
		}},
		"D4": {d4, unique{
			first: []int64{0}, rows: []int64{3}, length: []int32{1}, groups: []int32{0, 0, 0}, ids: []int32{0, -1}, keys: []int32{0},
		}},
		"D5":      {rowsOf(nil, nil, nil), unique{groups: []int32{-1, -1, -1}}},
		"no rows": {rowsOf(), unique{}},
		"ids beyond the table, and none of it": {beyond, unique{
			first: []int64{0, 1, 2}, rows: []int64{2, 1, 1}, length: []int32{1, 1, 1},
			groups: []int32{0, 1, 2, 0}, ids: []int32{3, -1, 1, -1, 0, -1}, keys: []int32{0, 0, 0},
		}},
		"what follows the end does not count": {gap, unique{
			first: []int64{1}, rows: []int64{2}, length: []int32{1}, groups: []int32{-1, 0, 0}, ids: []int32{6, -1}, keys: []int32{0},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c.want.count, c.want.spans = int64(len(c.want.first)), []RowSpan{{0, int64(c.rows.count())}}
			eachHash(t, func(t *testing.T, s *Scene) {
				require.Equal(t, c.want, readUnique(t, s, dedupOf(t, s, c.rows)))
			})
		})
	}
}

// manyRows is random rows with many repetitions.
func manyRows(rng *rand.Rand, n int, keyed bool) hostRows {
	r := hostRows{bounces: 3, base: 1000}
	for range n {
		ended := false
		for range r.bounces {
			ended = ended || rng.IntN(4) == 0
			id := int32(rng.IntN(5))
			if ended {
				id = -1
			}
			r.ids = append(r.ids, id)
		}
		if keyed {
			r.keys = append(r.keys, int32(rng.IntN(3))-1)
			continue
		}
		for range 3 {
			r.origins = append(r.origins, []float32{0, float32(math.Copysign(0, -1)), 1}[rng.IntN(3)])
		}
	}
	if rng.IntN(2) == 0 {
		r.canonical = []int32{0, 0, -1, 2}
	}
	return r
}

func TestDedupRandomRows(t *testing.T) {
	rng := rand.New(rand.NewPCG(61, 1))
	eachHash(t, func(t *testing.T, s *Scene) {
		for _, n := range []int{1, 2049, 5000} {
			for _, keyed := range []bool{true, false} {
				r := manyRows(rng, n, keyed)
				want := expected(r)
				require.Equal(t, want, readUnique(t, s, dedupOf(t, s, r)), "%d rows, keyed %v", n, keyed)
			}
		}
	})
}

// D6: any cut into shards, merged in any order and in steps, gives the groups of all
// rows.
func TestD6ShardsMerge(t *testing.T) {
	n := 20000
	if gputest.Native() {
		n = 1000000
	}
	ctx := context.Background()
	c := gputest.Open(t, 1, nil).Context(t, 0)
	s, _ := treeOf(t, c, []float32{0, 0, 0, 1, 0, 0, 0, 1, 0}, []int32{0, 1, 2})
	rng := rand.New(rand.NewPCG(62, 1))
	for _, keyed := range []bool{true, false} {
		r := manyRows(rng, n, keyed)
		whole := readUnique(t, s, dedupOf(t, s, r))
		require.Greater(t, whole.count, int64(50))
		var canonical cuda.Slice[int32]
		if r.canonical != nil {
			require.NoError(t, upload(ctx, s, &canonical, r.canonical))
		}
		merge := func(parts ...*UniqueChains) *UniqueChains {
			u, err := s.MergeUnique(ctx, canonical, parts...)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, u.Close()) })
			return u
		}
		for _, shards := range []int{1, 2, 7} {
			cuts := []int{0, n}
			for range shards - 1 {
				cuts = append(cuts, rng.IntN(n+1))
			}
			slices.Sort(cuts)
			var parts []*UniqueChains
			for i := range shards {
				parts = append(parts, dedupOf(t, s, r.part(cuts[i], cuts[i+1])))
			}
			rng.Shuffle(shards, func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
			got := readUnique(t, s, merge(parts...))
			got.spans = whole.spans // several, one after the other
			require.Equal(t, whole, got, "%d shards", shards)
			step := parts[0]
			for _, p := range parts[1:] {
				step = merge(step, p)
			}
			got = readUnique(t, s, step)
			got.spans = whole.spans
			require.Equal(t, whole, got, "%d shards one by one", shards)
		}
		if !canonical.IsNil() {
			require.NoError(t, cuda.Free(canonical))
		}
	}
}

// D7: rays from one point between two mirrors find the floor and the ceiling.
func TestD7FloorAndCeiling(t *testing.T) {
	n := 2000
	if gputest.Native() {
		n = 100000
	}
	ctx := context.Background()
	c := gputest.Open(t, 1, nil).Context(t, 0)
	quad := []float32{-10, -10, 0, 10, -10, 0, 10, 10, 0, -10, 10, 0}
	v := slices.Concat(quad, quad)
	for i := 14; i < len(v); i += 3 {
		v[i] = 2
	}
	s, err := New(c, Options{Backend: CUDA})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	_, err = s.AddMesh(Mesh{Vertices: v, Faces: []int32{0, 1, 2, 0, 2, 3, 4, 5, 6, 4, 6, 7}})
	require.NoError(t, err)
	require.NoError(t, s.Build(ctx))
	table, err := s.PlanarSurfaces(ctx)
	require.NoError(t, err)
	require.Equal(t, []int32{0, 0, 2, 2}, table)

	rng := rand.New(rand.NewPCG(63, 1))
	var o, d []float32
	for range n {
		o = append(o, .5, -.25, .75)
		d = append(d, float32(rng.NormFloat64()), float32(rng.NormFloat64()), float32(rng.NormFloat64()))
	}
	var rays Rays
	var canonical cuda.Slice[int32]
	require.NoError(t, firstError(upload(ctx, s, &rays.O, o), upload(ctx, s, &rays.D, d), upload(ctx, s, &canonical, table)))
	chains, err := s.TraceReflections(ctx, rays, 1, ChainCore)
	require.NoError(t, err)
	u, err := s.DedupReflections(ctx, Paths{PrimIDs: chains.PrimIDs, Bounces: 1, RayO: rays.O, Canonical: canonical})
	require.NoError(t, err)
	got := readUnique(t, s, u)
	hits := 0
	for _, valid := range download(t, s, chains.Valid) {
		hits += int(valid)
	}
	require.Greater(t, hits, n/2)
	require.EqualValues(t, 2, got.count)
	require.EqualValues(t, hits, got.rows[0]+got.rows[1])
	require.NoError(t, firstError(u.Close(), chains.Close()))
	require.NoError(t, firstError(cuda.Free(rays.O), cuda.Free(rays.D), cuda.Free(canonical)))
}

func TestDedupRefusals(t *testing.T) {
	ctx := context.Background()
	rig := gputest.Open(t, 2, nil)
	triangle := []float32{0, 0, 0, 1, 0, 0, 0, 1, 0}
	s, _ := treeOf(t, rig.Context(t, 0), triangle, []int32{0, 1, 2})
	other, _ := treeOf(t, rig.Context(t, 1), triangle, []int32{0, 1, 2})
	good := rowsOf([]int32{1, 2}, []int32{1}, nil).upload(t, s)
	origins := hostRows{bounces: 2, ids: []int32{1, 2}, origins: []float32{0, 0, 0}, base: 3}.upload(t, s)
	for name, c := range map[string]struct {
		spoil func(in *Paths)
		arg   string
	}{
		"no bounce":        {func(in *Paths) { in.Bounces = 0 }, "Bounces"},
		"too many bounces": {func(in *Paths) { in.Bounces = 65 }, "Bounces"},
		"shape":            {func(in *Paths) { in.Bounces = 4 }, "PrimIDs"},
		"no source":        {func(in *Paths) { in.SourceKey = cuda.Slice[int32]{} }, "RayO"},
		"short keys":       {func(in *Paths) { in.SourceKey, _ = in.SourceKey.Sub(0, 2) }, "SourceKey"},
		"row base":         {func(in *Paths) { in.RowBase = -1 }, "RowBase"},
		"row base too far": {func(in *Paths) { in.RowBase = math.MaxInt64 - 2 }, "RowBase"},
	} {
		in := good
		c.spoil(&in)
		_, err := s.DedupReflections(ctx, in)
		var bad *ArgumentError
		require.ErrorAs(t, err, &bad, name)
		assert.Equal(t, [2]string{"DedupReflections", c.arg}, [2]string{bad.Op, bad.Arg}, name)
	}
	_, err := other.DedupReflections(ctx, good)
	var wrong *cuda.WrongDeviceError
	require.ErrorAs(t, err, &wrong)
	hits := &Hits{}
	_, err = s.DedupReflections(ctx, good, Into(hits))
	var bad *ArgumentError
	require.ErrorAs(t, err, &bad)
	assert.Equal(t, "Into", bad.Arg)

	a, err := s.DedupReflections(ctx, good)
	require.NoError(t, err)
	b, err := s.DedupReflections(ctx, origins)
	require.NoError(t, err)
	closed, err := s.DedupReflections(ctx, origins)
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	for name, parts := range map[string][]*UniqueChains{
		"none": {}, "nil": {a, nil}, "closed": {closed}, "the same rows": {a, a}, "keys and origins": {a, b},
	} {
		_, err := s.MergeUnique(ctx, cuda.Slice[int32]{}, parts...)
		require.ErrorAs(t, err, &bad, name)
		assert.Equal(t, "parts", bad.Arg, name)
	}
	// Parts of another device are merged like others.
	there := rowsOf([]int32{1, 2})
	there.base = 3
	far, err := other.DedupReflections(ctx, there.upload(t, other))
	require.NoError(t, err)
	both, err := s.MergeUnique(ctx, cuda.Slice[int32]{}, far, a)
	require.NoError(t, err)
	got := readUnique(t, s, both)
	assert.Equal(t, []int32{0, 1, -1, 0}, got.groups)
	assert.Equal(t, []int64{2, 1}, got.rows)
	for _, u := range []*UniqueChains{a, b, far, both, nil} {
		require.NoError(t, u.Close())
	}
}

// Batches of no rows merge with any others, in any order; rows may have the last numbers
// that there are.
func TestMergeOfEmptyAndOfLastRows(t *testing.T) {
	ctx := context.Background()
	c := gputest.Open(t, 1, nil).Context(t, 0)
	s, _ := treeOf(t, c, []float32{0, 0, 0, 1, 0, 0, 0, 1, 0}, []int32{0, 1, 2})
	at := func(base int64, lists ...[]int32) *UniqueChains {
		r := rowsOf(lists...)
		r.base = base
		return dedupOf(t, s, r)
	}
	three := [][]int32{{1, 2}, {1}, {1, 2}}
	const last = math.MaxInt64 - 3
	low, high, none, within := at(0, three...), at(last, three...), at(0), at(1)
	merge := func(parts ...*UniqueChains) unique {
		u, err := s.MergeUnique(ctx, cuda.Slice[int32]{}, parts...)
		require.NoError(t, err)
		defer func() { require.NoError(t, u.Close()) }()
		return readUnique(t, s, u)
	}
	alone := readUnique(t, s, low)
	for _, parts := range [][]*UniqueChains{{none, low}, {low, none}, {within, low, none}, {low, within}} {
		require.Equal(t, alone, merge(parts...))
	}
	require.Zero(t, merge(none, within).count)
	both := merge(high, low, none)
	require.Equal(t, []RowSpan{{0, 3}, {last, 3}}, both.spans)
	require.Equal(t, []int64{0, 1}, both.first)
	require.Equal(t, []int64{4, 2}, both.rows)
	require.Equal(t, []int64{last, last + 1}, readUnique(t, s, high).first)
	_, err := s.MergeUnique(ctx, cuda.Slice[int32]{}, high, at(last+2, []int32{7}))
	var bad *ArgumentError
	require.ErrorAs(t, err, &bad)
	require.Equal(t, "parts", bad.Arg)
}
