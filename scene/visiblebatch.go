package scene

import (
	"fmt"
	"math"

	"github.com/raymux/raymux/cuda"
)

// Columns of a visibleQuery, in the order of columns().
const (
	startColumn = iota
	endColumn
	otherEndColumn
	directionColumn
	tMinColumn
	tMaxColumn
	lengthColumn
	ignoreColumn
	activeColumn
	visibleInputs
)

// visibleQuery is a batch of any of the visibility operations. Its search stores the
// result itself, so there is nothing to finalize.
type visibleQuery struct {
	rows visibleRows // without addresses
	in   [visibleInputs]RowColumn
	out  [visibleOutputs]RowColumn // visible, other visible, segment, prim
	to   visibleResult
}

const visibleOutputs = 4

// visibleLayouts are the bytes per row of the outputs of each kind.
var visibleLayouts = [visibleKinds][visibleOutputs]int{
	visibleSegment: {1}, visiblePair: {1, 1}, visibleEdge: {1}, visibleChain: {1, 0, 4, 4},
}

// visibleResult is a result of a visibility operation.
type visibleResult interface {
	Reusable
	place(starts []int64) error
	fresh() visibleResult
}

func (q *visibleQuery) columns() (in, out []RowColumn) { return q.in[:], q.out[:] }

func (q *visibleQuery) result() Reusable { return q.to }

func (q *visibleQuery) layout() []int { return visibleLayouts[q.rows.Kind][:] }

func (q *visibleQuery) place(starts []int64) error {
	b := q.to.memory()
	for i, w := range q.layout() {
		q.out[i] = RowColumn{Width: w}
		if w == 0 {
			continue
		}
		data, err := b.memory.Sub(int(starts[i]), int(starts[i]+b.rows*int64(w)))
		if err != nil {
			return err
		}
		q.out[i].Data = data
	}
	return q.to.place(starts)
}

func (q *visibleQuery) over(in []RowColumn) query {
	return &visibleQuery{rows: q.rows, in: [visibleInputs]RowColumn(in), to: q.to.fresh()}
}

func (q *visibleQuery) search(on *Scene, at site, st *cuda.Stream, in, out []RowColumn, begin, count int64) error {
	r := q.rows
	for i, a := range []*uint64{&r.Start, &r.End, &r.OtherEnd, &r.Direction, &r.TMin, &r.TMax, &r.Length, &r.Ignore, &r.Active} {
		*a = in[i].Data.Addr()
	}
	for i, a := range []*uint64{&r.Visible, &r.OtherVisible, &r.Segment, &r.Prim} {
		*a = out[i].Data.Addr()
	}
	return on.tables.search.visible(at, st, r, begin, count)
}

func (q *visibleQuery) finalize(*Scene, cuda.Scope, *cuda.Stream, int64, int64) error { return nil }

// visibleBatch checks the inputs of a query, without a driver call. It remembers the
// first that is refused.
type visibleBatch struct {
	s    *Scene
	op   string
	q    *visibleQuery
	n    int64  // rows
	from string // the column that says so
	err  error
}

func (s *Scene) newVisibleBatch(op string, kind visibleKind) *visibleBatch {
	return &visibleBatch{s: s, op: op, q: &visibleQuery{rows: visibleRows{Kind: kind}}}
}

func (b *visibleBatch) refuse(arg, format string, args ...any) {
	if b.err == nil {
		b.err = badArg(b.op, arg, format, args...)
	}
}

// count takes the number of rows from a column of width values per row.
func (b *visibleBatch) count(arg string, values, width int) {
	if values%width != 0 {
		b.refuse(arg, "has %d values, want %d per row", values, width)
	}
	b.n, b.from = int64(values/width), arg
}

// addColumn takes a column of width values per row.
func addColumn[T cuda.Scalar](b *visibleBatch, at int, arg string, v cuda.Slice[T], width int64) {
	if int64(v.Len()) != b.n*width {
		b.refuse(arg, "has %d values, want %d for the %d rows of %s", v.Len(), b.n*width, b.n, b.from)
	}
	placeColumn(b, at, arg, v, width)
}

// addActive takes the mask, which may be absent.
func (b *visibleBatch) addActive(v cuda.Slice[uint8]) {
	if !v.IsNil() && int64(v.Len()) != b.n {
		b.refuse("Active", "has %d values, want %d or none", v.Len(), b.n)
	}
	placeColumn(b, activeColumn, "Active", v, 1)
}

// addIgnored takes the ignore lists, which may be absent: as many ids for each of the
// lists, of which a row has several.
func (b *visibleBatch) addIgnored(v cuda.Slice[int32], perRow int64, what string) {
	lists, ids := b.n*perRow, int64(v.Len())
	if ids == 0 {
		// Of no ids there is nothing to read.
		v = cuda.Slice[int32]{}
	} else if lists == 0 || ids%lists != 0 {
		b.refuse("Ignore", "has %d ids, want the same number for each of the %d %s", ids, lists, what)
	} else if width := ids / lists; width > math.MaxInt32 {
		b.refuse("Ignore", "has %d ids for each of the %d %s, want at most %d", width, lists, what, math.MaxInt32)
	} else {
		b.q.rows.IgnoreWidth = int32(width)
	}
	placeColumn(b, ignoreColumn, "Ignore", v, perRow*int64(b.q.rows.IgnoreWidth))
}

func placeColumn[T cuda.Scalar](b *visibleBatch, at int, arg string, v cuda.Slice[T], width int64) {
	if err := checkMemory(b.s, b.op, arg, v); err != nil && b.err == nil {
		b.err = err
	}
	bytes := width
	if v.Len() > 0 {
		bytes = width * int64(v.Bytes()) / int64(v.Len())
	}
	b.q.in[at] = rowColumn(v, int(bytes))
}

// addFractions takes where on an edge the samples are.
func (b *visibleBatch) addFractions(f []float32) {
	if f == nil {
		f = defaultFractions[:]
	}
	if len(f) < 1 || len(f) > maxFractions {
		b.refuse("Fractions", "has %d values, want 1 to %d, or nil for %v", len(f), maxFractions, defaultFractions)
		return
	}
	for i, x := range f {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			b.refuse(fmt.Sprintf("Fractions[%d]", i), "is %v, want a finite number", x)
		}
	}
	b.q.rows.FractionCount = uint32(copy(b.q.rows.Fractions[:], f))
}

// prepareBatch turns a checked batch into a call.
func prepareBatch[R any, P interface {
	*R
	visibleResult
}](b *visibleBatch, opts []CallOption) (P, *Call, error) {
	if b.err != nil {
		return nil, nil, b.err
	}
	c, o, err := b.s.begin(b.op, b.n, opts)
	if err != nil {
		return nil, nil, err
	}
	out, err := resultFor[R, P](b.op, c, o, b.q.in[:])
	if err != nil {
		return nil, nil, err
	}
	b.q.to = out
	for i, w := range b.q.layout() {
		b.q.out[i].Width = w
	}
	c.query = b.q
	return out, c, nil
}
