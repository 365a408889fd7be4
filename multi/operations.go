package multi

import (
	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/scene"
)

// operation names a call to the planner.
type operation struct {
	key, family string
	record      int64 // bytes of a row of the result; 0: those of its columns
	// transmitters, if there are any, each have a block of rows that stays together.
	transmitters int64
	// unstreamed is why the result cannot be streamed; "": it can.
	unstreamed string
}

func intersectOperation(flags scene.Flags) operation {
	key := "intersect_full"
	if flags == scene.None {
		key = "intersect_reduced"
	}
	return operation{key: key, family: "intersect", record: scene.RowBytes(flags)}
}

// of describes a prepared call: what a remote row reads and sends back is what its
// columns hold.
func (o operation) of(call *scene.Call) chunked.Op {
	in, out := call.Columns()
	op := chunked.Op{Key: o.key, Family: o.family, In: rowBytes(in), Wire: widths(out), Record: o.record}
	if o.record == 0 {
		op.Record = call.RowBytes()
	}
	if o.transmitters > 0 {
		op.Class, op.Block = chunked.SourceLane, max(call.Rows/o.transmitters, 1)
	}
	return op
}

func rowBytes(columns []scene.RowColumn) (n int64) {
	for _, c := range columns {
		if !c.Data.IsNil() {
			n += int64(c.Width)
		}
	}
	return n
}

// widths is the bytes of a row of outputs, which may have no memory yet.
func widths(columns []scene.RowColumn) (n int64) {
	for _, c := range columns {
		n += int64(c.Width)
	}
	return n
}

// winnerBytes is the size of a primitive id, which a remote row sends back.
const winnerBytes = 4

// IntersectOp describes Intersect with these columns to the planner.
// rayBytes is 24, plus 4 with TMax, plus 1 with Active, as
// scene.Rays.BytesPerRow says.
func IntersectOp(flags scene.Flags, rayBytes int64) chunked.Op {
	o := intersectOperation(flags)
	return chunked.Op{Key: o.key, Family: o.family, In: rayBytes, Wire: winnerBytes, Record: o.record}
}
