package scene

import (
	"context"
	"math"

	"github.com/raymux/raymux/cuda"
)

// uniqueShape is what the columns of a UniqueChains are sized by.
type uniqueShape struct {
	groups  int64
	bounces int
	keyed   bool // sources are told apart by keys
	spans   []RowSpan
}

func (u uniqueShape) rows() (n int64) {
	for _, s := range u.spans {
		n += s.Count
	}
	return n
}

// newUnique allocates a result.
func (s *Scene) newUnique(st *cuda.Stream, shape uniqueShape) (*UniqueChains, error) {
	u := &UniqueChains{Count: shape.groups, Bounces: shape.bounces, Spans: shape.spans, keyed: shape.keyed}
	g := int(shape.groups)
	widths := []int{8 * g, 8 * g, 4 * g, 4 * g * shape.bounces, 4 * int(shape.rows()), 4 * g, 0}
	if !shape.keyed {
		widths[5], widths[6] = 0, 12*g
	}
	// One row of columns of different lengths.
	starts, err := u.reserve(s, st, 1, widths)
	if err != nil {
		return nil, err
	}
	cut := func(i int) (start, bytes int64) { return starts[i], int64(widths[i]) }
	err = firstError(
		columnInto(&u.block, &u.Representative, cut, 0), columnInto(&u.block, &u.DiscoveryCount, cut, 1),
		columnInto(&u.block, &u.BounceCount, cut, 2), columnInto(&u.block, &u.PrimIDs, cut, 3),
		columnInto(&u.block, &u.GroupOfRow, cut, 4), columnInto(&u.block, &u.SourceKey, cut, 5),
		columnInto(&u.block, &u.RayO, cut, 6))
	if err != nil {
		return nil, firstError(err, u.Close())
	}
	return u, nil
}

func columnInto[T cuda.Scalar](b *block, dst *cuda.Slice[T], cut func(int) (start, bytes int64), i int) (err error) {
	start, bytes := cut(i)
	*dst, err = column[T](b, start, bytes)
	return err
}

// uploadUnique makes a result of groups on the host. It waits.
func (s *Scene) uploadUnique(ctx context.Context, st *cuda.Stream, shape uniqueShape, groups []hostPath, rows []int32) (_ *UniqueChains, err error) {
	shape.groups = int64(len(groups))
	u, err := s.newUnique(st, shape)
	if err != nil {
		return nil, err
	}
	var first, count []int64
	var length, ids, keys []int32
	var origins []float32
	for _, g := range groups {
		first, count = append(first, g.row), append(count, g.rows)
		length = append(length, int32(len(g.prims)))
		ids = append(ids, g.prims...)
		for range shape.bounces - len(g.prims) {
			ids = append(ids, -1)
		}
		if shape.keyed {
			keys = append(keys, int32(g.source[0]))
			continue
		}
		for _, w := range g.source {
			origins = append(origins, math.Float32frombits(w))
		}
	}
	err = firstError(
		send(ctx, st, u.Representative, first), send(ctx, st, u.DiscoveryCount, count),
		send(ctx, st, u.BounceCount, length), send(ctx, st, u.PrimIDs, ids),
		send(ctx, st, u.GroupOfRow, rows), send(ctx, st, u.SourceKey, keys), send(ctx, st, u.RayO, origins))
	if err != nil {
		return nil, firstError(err, u.Close())
	}
	return u, nil
}

// send fills dst, which is absent when there is nothing to send.
func send[T cuda.Scalar](ctx context.Context, st *cuda.Stream, dst cuda.Slice[T], src []T) error {
	if len(src) == 0 {
		return nil
	}
	return cuda.CopyIn(ctx, st, dst, src)
}

// fetch copies an array that may be absent.
func fetch[T cuda.Scalar](ctx context.Context, st *cuda.Stream, v cuda.Slice[T]) ([]T, error) {
	if v.Len() == 0 {
		return nil, nil
	}
	return cuda.Download(ctx, st, v)
}

// fetchSources copies what tells sources apart and returns it for each row.
func fetchSources(ctx context.Context, st *cuda.Stream, keys cuda.Slice[int32], origins cuda.Slice[float32]) (func(i int) [3]uint32, error) {
	if !keys.IsNil() {
		k, err := fetch(ctx, st, keys)
		return func(i int) [3]uint32 { return [3]uint32{uint32(k[i])} }, err
	}
	o, err := fetch(ctx, st, origins)
	return func(i int) (bits [3]uint32) {
		for k := range bits {
			bits[k] = math.Float32bits(o[3*i+k])
		}
		return bits
	}, err
}

// fetchGroups copies the groups to the host, on the stream of the call that made them.
func (u *UniqueChains) fetchGroups(ctx context.Context) ([]hostPath, error) {
	first, err := fetch(ctx, u.stream, u.Representative)
	if err != nil {
		return nil, err
	}
	count, err := fetch(ctx, u.stream, u.DiscoveryCount)
	if err != nil {
		return nil, err
	}
	ids, err := fetch(ctx, u.stream, u.PrimIDs)
	if err != nil {
		return nil, err
	}
	source, err := fetchSources(ctx, u.stream, u.SourceKey, u.RayO)
	if err != nil {
		return nil, err
	}
	groups := make([]hostPath, u.Count)
	for i := range groups {
		groups[i] = hostPath{row: first[i], rows: count[i], source: source(i), prims: leading(ids, i, u.Bounces)}
	}
	return groups, nil
}

func (u *UniqueChains) fetchRows(ctx context.Context) ([]int32, error) {
	return fetch(ctx, u.stream, u.GroupOfRow)
}
