package multi

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
)

// HostSink is a consumer that copies the result of a streamed query to host memory, for
// results that are larger than the memory of the device. Copies go through two page-locked
// buffers: while the device fills one, the host empties the other, and meanwhile the next
// chunks are computed.
//
//	sink, err := multi.NewHostSink[*scene.Hits](s, n)
//	defer sink.Close()
//	_, err = s.Intersect(ctx, rays, scene.All, sink.Offload())
//	err = sink.Finish(ctx)
//	t := sink.Floats("T")
//
// A sink serves one call after the other, not several at once. Its columns are of the last
// one: they are nil from Offload until Finish has returned nil.
type HostSink[R scene.Reusable] struct {
	rows    int64
	stream  *cuda.Stream
	ready   *cuda.Event
	buffers [2]hostBuffer
	next    int
	closed  bool
	missing error // why there is no result; nil: all of its rows are here or on their way

	floats map[string]*sinkColumn[float32]
	ints   map[string]*sinkColumn[int32]
	bytes  map[string]*sinkColumn[uint8]
}

// sinkColumn is the memory of a column, which the next call uses again: fresh memory costs the
// host more than the copy to it.
type sinkColumn[T cuda.Scalar] struct {
	data []T
	part bool // of the result of the last call
}

// hostBuffer is page-locked memory for one chunk, and where its contents belong.
type hostBuffer struct {
	done    *cuda.Event
	floats  *cuda.Pinned[float32]
	ints    *cuda.Pinned[int32]
	bytes   *cuda.Pinned[uint8]
	filling bool     // copies to it may be in progress
	pending []func() // moves what has arrived to the columns
}

// NewHostSink makes a sink for the results of batches of so many rows, which the calls must
// have. Cost: a stream and three events; buffers are allocated by the first chunks.
func NewHostSink[R scene.Reusable](s *Scene, rows int64) (_ *HostSink[R], err error) {
	switch {
	case s == nil:
		return nil, badArg("NewHostSink", "s", "is nil, want a scene")
	case rows < 0:
		return nil, badArg("NewHostSink", "rows", "is %d, want 0 or more", rows)
	}
	h := &HostSink[R]{
		rows: rows, missing: ErrNotStreamed,
		floats: map[string]*sinkColumn[float32]{}, ints: map[string]*sinkColumn[int32]{}, bytes: map[string]*sinkColumn[uint8]{},
	}
	c := s.Context()
	err = firstError([]error{
		stream(c, &h.stream), one(c, &h.ready), one(c, &h.buffers[0].done), one(c, &h.buffers[1].done),
	})
	if err != nil {
		return nil, attach(err, h.Close())
	}
	return h, nil
}

// Offload makes the query stream its result to the sink, in place of the last one.
func (h *HostSink[R]) Offload() scene.CallOption {
	h.forget(ErrNotStreamed)
	return scene.Carry(&consumer{
		kind:    reflect.TypeFor[R](),
		accepts: func(r scene.Reusable) bool { _, ok := r.(R); return ok },
		begin:   h.begin,
		consume: h.take,
		end:     func(err error) { h.missing = err },
		reader:  h.stream,
	})
}

// begin refuses a call that the sink cannot serve, and forgets the result before it.
func (h *HostSink[R]) begin(call *scene.Call) error {
	if h.closed {
		return ErrSinkClosed
	}
	if call.Rows != h.rows {
		return badArg("NewHostSink", "rows", "was %d, the call has %d: make a sink for as many", h.rows, call.Rows)
	}
	if have, want := h.stream.Context().Device(), call.Stream.Context().Device(); have != want {
		return badArg("NewHostSink", "s", "has another master (device %d) than the scene of the call (device %d)", have.Ordinal(), want.Ordinal())
	}
	h.forget(ErrNotStreamed)
	return nil
}

// forget drops the result, whose absence has a reason then.
func (h *HostSink[R]) forget(why error) {
	h.missing = why
	for i := range h.buffers {
		h.buffers[i].pending = h.buffers[i].pending[:0]
	}
	forgetColumns(h.floats)
	forgetColumns(h.ints)
	forgetColumns(h.bytes)
}

func forgetColumns[T cuda.Scalar](columns map[string]*sinkColumn[T]) {
	for _, c := range columns {
		c.part = false
	}
}

// take enqueues the copies of a chunk, on a stream of the sink, so that the caller's stream
// goes on with the next one.
func (h *HostSink[R]) take(ctx context.Context, rows chunked.Range, part *scene.Call) error {
	b := &h.buffers[h.next]
	h.next = 1 - h.next
	if err := b.settle(ctx); err != nil {
		return err
	}
	if err := part.Stream.Record(h.ready); err != nil {
		return err
	}
	if err := h.stream.Wait(h.ready); err != nil {
		return err
	}
	b.filling = true
	c := columnsOf(part.Result())
	err := copyOut(h, b, rows, &b.floats, h.floats, c.floats)
	if err == nil {
		err = copyOut(h, b, rows, &b.ints, h.ints, c.ints)
	}
	if err == nil {
		err = copyOut(h, b, rows, &b.bytes, h.bytes, c.bytes)
	}
	return firstError([]error{err, h.stream.Record(b.done)})
}

// copyOut enqueues copies of the columns of one type to the buffer.
func copyOut[R scene.Reusable, T cuda.Scalar](h *HostSink[R], b *hostBuffer, rows chunked.Range,
	pinned **cuda.Pinned[T], columns map[string]*sinkColumn[T], chunk map[string]cuda.Slice[T]) error {
	total := 0
	for _, c := range chunk {
		total += c.Len()
	}
	if total > 0 && (*pinned == nil || (*pinned).Len() < total) {
		if err := (*pinned).Close(); err != nil {
			return err
		}
		fresh, err := cuda.AllocPinned[T](h.stream.Context(), total)
		if *pinned = fresh; err != nil {
			return err
		}
	}
	at := 0
	for name, c := range chunk {
		if c.Len() == 0 {
			continue
		}
		width := int64(c.Len()) / rows.Len()
		column := columns[name]
		if column == nil || int64(len(column.data)) != h.rows*width {
			column = &sinkColumn[T]{data: make([]T, h.rows*width)}
			columns[name] = column
		}
		column.part = true
		if err := cuda.CopyOutPinned(h.stream, *pinned, at, c); err != nil {
			return err
		}
		to, from := column.data[rows.Begin*width:rows.End*width], (*pinned).Slice()[at:at+c.Len()]
		b.pending = append(b.pending, func() { copy(to, from) })
		at += c.Len()
	}
	return nil
}

// settle waits for the buffer and empties it.
func (b *hostBuffer) settle(ctx context.Context) error {
	if !b.filling {
		return nil
	}
	if err := b.done.Synchronize(ctx); err != nil {
		return err
	}
	b.filling = false
	for _, move := range b.pending {
		move()
	}
	b.pending = b.pending[:0]
	return nil
}

// Finish waits for the last chunks. The columns are complete when it returns nil. When the call
// has failed it returns the error of the call; ErrNotStreamed when none has come to stream since
// Offload; and ErrSinkClosed after a Close that came first.
func (h *HostSink[R]) Finish(ctx context.Context) error {
	if h.missing != nil {
		return h.missing
	}
	return firstError([]error{h.buffers[h.next].settle(ctx), h.buffers[1-h.next].settle(ctx)})
}

// Floats is a column of float32 of the result, by the name of its field ("T"); nil when the
// call did not ask for it, and until Finish has returned nil. The memory is the sink's: it holds
// this result until the next Offload, slices.Clone keeps it for longer. A name that is none of
// such a column, which is a mistake in the program, panics with the names that are.
func (h *HostSink[R]) Floats(field string) []float32 {
	return columnOf(h, "Floats", field, h.floats, func(f columnsByType) map[string]cuda.Slice[float32] { return f.floats })
}

// Ints is a column of int32, such as ids; otherwise as Floats.
func (h *HostSink[R]) Ints(field string) []int32 {
	return columnOf(h, "Ints", field, h.ints, func(f columnsByType) map[string]cuda.Slice[int32] { return f.ints })
}

// Bytes is a column of flags of one byte ("Visible"); otherwise as Floats.
func (h *HostSink[R]) Bytes(field string) []uint8 {
	return columnOf(h, "Bytes", field, h.bytes, func(f columnsByType) map[string]cuda.Slice[uint8] { return f.bytes })
}

// columnOf is a column of a result that is complete.
func columnOf[R scene.Reusable, T cuda.Scalar](h *HostSink[R], method, field string, have map[string]*sinkColumn[T],
	of func(columnsByType) map[string]cuda.Slice[T]) []T {
	if kind := reflect.TypeFor[R](); kind.Kind() == reflect.Pointer {
		names := of(columnsOf(reflect.New(kind.Elem()).Interface().(scene.Reusable)))
		if _, ok := names[field]; !ok {
			panic(fmt.Sprintf("multi: HostSink.%s(%q) of %v: such columns are %v", method, field, kind, slices.Sorted(maps.Keys(names))))
		}
	}
	c := have[field]
	if c == nil || !c.part || h.missing != nil || h.buffers[0].filling || h.buffers[1].filling {
		return nil
	}
	return c.data
}

// Close waits for copies in progress and releases stream and buffers. Columns that are complete
// stay.
func (h *HostSink[R]) Close() error {
	if h == nil || h.closed {
		return nil
	}
	h.closed = true
	if h.missing == nil && (h.buffers[0].filling || h.buffers[1].filling) {
		h.forget(ErrSinkClosed)
	}
	var errs []error
	if h.stream != nil {
		errs = append(errs, h.stream.Synchronize(context.Background()), h.stream.Close())
	}
	errs = append(errs, h.ready.Close())
	for i := range h.buffers {
		b := &h.buffers[i]
		errs = append(errs, b.done.Close(), b.floats.Close(), b.ints.Close(), b.bytes.Close())
	}
	return firstError(errs)
}

// columnsByType are the columns of a result by the names of its fields.
type columnsByType struct {
	floats map[string]cuda.Slice[float32]
	ints   map[string]cuda.Slice[int32]
	bytes  map[string]cuda.Slice[uint8]
}

func columnsOf(r scene.Reusable) columnsByType {
	var (
		f map[string]cuda.Slice[float32]
		i map[string]cuda.Slice[int32]
		u map[string]cuda.Slice[uint8]
	)
	switch r := r.(type) {
	case *scene.Hits:
		f = map[string]cuda.Slice[float32]{"T": r.T, "P": r.P, "N": r.N, "GeoN": r.GeoN, "UV": r.UV, "Barycentric": r.Barycentric}
		i = map[string]cuda.Slice[int32]{"ShapeID": r.ShapeID, "PrimID": r.PrimID, "LocalPrimID": r.LocalPrimID, "GlobalPrimID": r.GlobalPrimID}
	case *scene.Chains:
		u = map[string]cuda.Slice[uint8]{"Valid": r.Valid}
		f = map[string]cuda.Slice[float32]{
			"T": r.T, "ImageSources": r.ImageSources, "HitPoints": r.HitPoints, "Normals": r.Normals, "Barycentric": r.Barycentric,
		}
		i = map[string]cuda.Slice[int32]{"PrimIDs": r.PrimIDs}
	case *scene.Visibility:
		u = map[string]cuda.Slice[uint8]{"Visible": r.Visible}
	case *scene.PairVisibility:
		u = map[string]cuda.Slice[uint8]{"VisibleA": r.VisibleA, "VisibleB": r.VisibleB}
	case *scene.EdgeVisibility:
		u = map[string]cuda.Slice[uint8]{"AnyVisible": r.AnyVisible}
	case *scene.ChainVisibility:
		u = map[string]cuda.Slice[uint8]{"AllVisible": r.AllVisible}
		i = map[string]cuda.Slice[int32]{"FirstBlockedSegment": r.FirstBlockedSegment, "FirstBlockedPrim": r.FirstBlockedPrim}
	case *scene.EPCPaths:
		u = map[string]cuda.Slice[uint8]{"Valid": r.Valid, "BounceCount": r.BounceCount, "Fail": r.Fail}
		f = map[string]cuda.Slice[float32]{"PathLength": r.PathLength, "HitPoints": r.HitPoints, "Normals": r.Normals}
		i = map[string]cuda.Slice[int32]{"ResolvedPrimIDs": r.ResolvedPrimIDs, "SurfaceGroupIDs": r.SurfaceGroupIDs}
	case *scene.EPCFields:
		u = map[string]cuda.Slice[uint8]{"Valid": r.Valid, "BounceCount": r.BounceCount, "Fail": r.Fail}
		f = map[string]cuda.Slice[float32]{"Field": r.Field, "PathLength": r.PathLength, "HitPoints": r.HitPoints, "Normals": r.Normals}
		i = map[string]cuda.Slice[int32]{"ResolvedPrimIDs": r.ResolvedPrimIDs, "SurfaceGroupIDs": r.SurfaceGroupIDs}
	case *scene.DfrPaths:
		u = map[string]cuda.Slice[uint8]{"Status": r.Status}
		f = map[string]cuda.Slice[float32]{"Delay": r.Delay, "Field": r.Field, "P0": r.P0}
		i = map[string]cuda.Slice[int32]{"TxID": r.TxID, "RxID": r.RxID, "EdgeID": r.EdgeID}
	}
	return columnsByType{f, i, u}
}
