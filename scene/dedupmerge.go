package scene

import (
	"cmp"
	"context"
	"encoding/binary"
	"math"
	"slices"

	"github.com/raymux/raymux/cuda"
)

// MergeUnique merges the groups of several batches: it returns what DedupReflections
// returns for all of their rows at once, in the order of RowBase. canonical must be the
// table that the parts were made with. The parts may be on any device and stay as they
// are; their rows must not overlap. Merging is associative and commutative.
//
// MergeUnique copies the parts to the host, on the streams of the calls that made them,
// waits for that, and merges there. Close the result to reuse its memory.
//
// Errors: ErrNotReady, *FailedError, *ArgumentError, *cuda.WrongDeviceError, the error of
// ctx, and errors of the device.
func (s *Scene) MergeUnique(ctx context.Context, canonical cuda.Slice[int32], parts ...*UniqueChains) (*UniqueChains, error) {
	const op = "MergeUnique"
	if err := s.shareReady(ctx); err != nil {
		return nil, err
	}
	defer s.turns.done(false)
	shape, err := checkParts(op, parts)
	if err != nil {
		return nil, err
	}
	if err := checkMemory(s, op, "canonical", canonical); err != nil {
		return nil, err
	}
	table, err := fetch(ctx, s.stream, canonical)
	if err != nil {
		return nil, err
	}
	var all []hostPath
	local := make([][]int32, len(parts)) // GroupOfRow of each part
	base := make([]int32, len(parts))    // where its groups are in all
	for i, p := range parts {
		base[i] = int32(len(all))
		groups, err := p.fetchGroups(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, groups...)
		if local[i], err = p.fetchRows(ctx); err != nil {
			return nil, err
		}
	}
	groups, groupOf := groupPaths(all, table)
	rows := make([]int32, 0, shape.rows())
	for _, span := range shape.spans {
		part, at := locate(parts, span)
		for _, g := range local[part][at : at+span.Count] {
			if g >= 0 {
				g = groupOf[base[part]+g]
			}
			rows = append(rows, g)
		}
	}
	return s.uploadUnique(ctx, s.stream, shape, groups, rows)
}

// checkParts compares the parts with each other and returns the shape of their merger,
// but for the number of groups.
func checkParts(op string, parts []*UniqueChains) (shape uniqueShape, err error) {
	if len(parts) == 0 {
		return shape, badArg(op, "parts", "are none, want at least one")
	}
	for i, p := range parts {
		if p == nil || p.memory.IsNil() {
			return shape, badArg(op, "parts", "number %d is nil or closed", i)
		}
		if p.Bounces != parts[0].Bounces {
			return shape, badArg(op, "parts", "number %d has %d slots per path, number 0 has %d", i, p.Bounces, parts[0].Bounces)
		}
		if p.keyed != parts[0].keyed {
			return shape, badArg(op, "parts", "number %d and number 0 tell sources apart in different ways; use SourceKey, or RayO, for all", i)
		}
		shape.spans = append(shape.spans, p.Spans...)
	}
	// A batch of no rows holds none twice, whatever its RowBase.
	shape.spans = slices.DeleteFunc(shape.spans, func(s RowSpan) bool { return s.Count == 0 })
	slices.SortFunc(shape.spans, func(a, b RowSpan) int { return cmp.Compare(a.Base, b.Base) })
	for i, span := range shape.spans {
		if i > 0 && shape.spans[i-1].Base+shape.spans[i-1].Count > span.Base {
			return shape, badArg(op, "parts", "hold row %d twice; give every batch its RowBase", span.Base)
		}
	}
	if n := shape.rows(); n > math.MaxInt32 {
		return shape, badArg(op, "parts", "have %d rows, want at most %d", n, math.MaxInt32)
	}
	shape.bounces, shape.keyed = parts[0].Bounces, parts[0].keyed
	return shape, nil
}

// locate finds the part of a span, and where its rows begin among those of the part.
func locate(parts []*UniqueChains, span RowSpan) (part int, at int64) {
	for i, p := range parts {
		at = 0
		for _, own := range p.Spans {
			if own == span {
				return i, at
			}
			at += own.Count
		}
	}
	return -1, 0 // spans are those of the parts
}

// hostPath is a path on the host: a row, or a group of rows.
type hostPath struct {
	row, rows int64 // first row, number of rows
	source    [3]uint32
	prims     []int32
}

// groupPaths groups paths exactly. Groups are ordered by their first rows; groupOf is the
// group of each path.
func groupPaths(all []hostPath, canonical []int32) (groups []hostPath, groupOf []int32) {
	groupOf = make([]int32, len(all))
	seen := map[string]int32{}
	var key []byte
	for i, p := range all {
		key = key[:0]
		for _, w := range p.source {
			key = binary.LittleEndian.AppendUint32(key, w)
		}
		for _, id := range p.prims {
			if int(id) < len(canonical) && canonical[id] >= 0 {
				id = canonical[id]
			}
			key = binary.LittleEndian.AppendUint32(key, uint32(id))
		}
		g, ok := seen[string(key)]
		if !ok {
			g = int32(len(groups))
			seen[string(key)] = g
			groups = append(groups, p)
		} else {
			known := &groups[g]
			rows := known.rows + p.rows
			if p.row < known.row {
				*known = p
			}
			known.rows = rows
		}
		groupOf[i] = g
	}
	order := make([]int32, len(groups))
	for g := range order {
		order[g] = int32(g)
	}
	slices.SortFunc(order, func(a, b int32) int { return cmp.Compare(groups[a].row, groups[b].row) })
	sorted, place := make([]hostPath, len(groups)), make([]int32, len(groups))
	for to, from := range order {
		sorted[to], place[from] = groups[from], int32(to)
	}
	for i, g := range groupOf {
		groupOf[i] = place[g]
	}
	return sorted, groupOf
}

// onHost groups the rows of the call on the host.
func (d *dedup) onHost(ctx context.Context) (*UniqueChains, error) {
	ids, err := fetch(ctx, d.st, d.in.PrimIDs)
	if err != nil {
		return nil, err
	}
	canonical, err := fetch(ctx, d.st, d.in.Canonical)
	if err != nil {
		return nil, err
	}
	source, err := fetchSources(ctx, d.st, d.in.SourceKey, d.in.RayO)
	if err != nil {
		return nil, err
	}
	var all []hostPath
	rows := make([]int32, d.n)
	for i := range rows {
		p := hostPath{row: d.in.RowBase + int64(i), rows: 1, source: source(i), prims: leading(ids, i, d.in.Bounces)}
		rows[i] = -1
		if len(p.prims) > 0 {
			rows[i] = int32(len(all))
			all = append(all, p)
		}
	}
	groups, groupOf := groupPaths(all, canonical)
	for i, k := range rows {
		if k >= 0 {
			rows[i] = groupOf[k]
		}
	}
	return d.s.uploadUnique(ctx, d.st, uniqueShape{
		bounces: d.in.Bounces, keyed: !d.in.SourceKey.IsNil(), spans: []RowSpan{{d.in.RowBase, d.n}},
	}, groups, rows)
}

// leading is the primitives of a row before the first negative one.
func leading(ids []int32, row, bounces int) []int32 {
	own := ids[row*bounces : (row+1)*bounces]
	if end := slices.IndexFunc(own, func(id int32) bool { return id < 0 }); end >= 0 {
		own = own[:end]
	}
	return own
}
