package multi

import (
	"context"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
)

// TraceDfrPaths finds the paths from every transmitter over every wedge state to every
// receiver, as scene.TraceDfrPaths does, with whole transmitters divided among the devices
// of the set (chunked.SplitBlocks): the paths of one transmitter alone are the master's. All
// arrays are on the master. Rows are those of one device: a remote sends status, delay, field
// and point, ids follow from the number of the row, and Count stays on the device. With the
// Direct transport the master fills the rows of remotes first, which send the status alone where
// there is no path. The layout Compact is one pass over all rows on the master, and cannot be
// streamed.
//
// Cost, per remote device with rows: the launches of scene.TraceDfrPaths and five event
// operations; with the Copy transport also one copy per column, with Direct three fills for all
// of them. No wait, and no driver allocation once the pools are warm.
func (s *Scene) TraceDfrPaths(ctx context.Context, tx, rx cuda.Slice[float32], states *scene.StateTable, opt scene.DfrPathOptions, opts ...scene.CallOption) (*scene.DfrPaths, error) {
	return ask(ctx, s, dfrPathOperation(int64(tx.Len()/3), opt), opts, func(m *scene.Scene, opts []scene.CallOption) (*scene.DfrPaths, *scene.Call, error) {
		return m.PrepareDfrPaths(ctx, tx, rx, states, opt, opts...)
	})
}

func dfrPathOperation(transmitters int64, opt scene.DfrPathOptions) operation {
	o := operation{key: OpDfrPaths, family: OpDfrPaths, record: dfrPathRecord, transmitters: transmitters}
	if opt.Layout == scene.Compact {
		o.unstreamed = "the layout Compact orders the rows of all chunks; use SourceLane, whose rows say which they are"
	}
	return o
}

// Sizes of a row of TraceDfrPaths: the whole of it, and what is not known from its number.
const (
	dfrPathRecord = 53
	dfrPathWire   = 41
)

// DfrPathsOp describes TraceDfrPaths to the planner, with so many rows for each transmitter:
// receivers times states.
func DfrPathsOp(rowsPerTransmitter int64) chunked.Op {
	return chunked.Op{
		Key: OpDfrPaths, Family: OpDfrPaths, Class: chunked.SourceLane,
		Wire: dfrPathWire, Record: dfrPathRecord, Block: max(rowsPerTransmitter, 1),
	}
}
