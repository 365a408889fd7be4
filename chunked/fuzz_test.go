package chunked_test

import (
	"testing"

	"github.com/raymux/raymux/chunked"
)

// FuzzBuildPlan gives the planner numbers of any size. It returns one of its
// errors, or a plan that keeps every invariant; and the numbers in an error
// for lack of memory are those of the model.
func FuzzBuildPlan(f *testing.F) {
	f.Add(uint8(2), uint8(2), uint16(0), int64(4194304), int64(24), int64(4), int64(76), int64(0), int64(0), int64(0), int64(1<<30), int64(0), 0, 1.0, 1.0)
	f.Add(uint8(8), uint8(1), uint16(1), int64(33), int64(25), int64(8), int64(18), int64(5), int64(32), int64(7), int64(0), int64(1), 2, 1e-9, 1.0)
	f.Add(uint8(2), uint8(3), uint16(4), int64(1024), int64(24), int64(10000), int64(4000), int64(209), int64(1), int64(100), int64(5248), int64(1), 4, 0.0, 3.0)
	f.Add(uint8(3), uint8(2), uint16(10), int64(20), int64(0), int64(41), int64(53), int64(0), int64(0), int64(0), int64(0), int64(0), 0, 5e-324, 1e308)
	f.Add(uint8(3), uint8(2), uint16(3), int64(1)<<50, int64(1)<<62, int64(1)<<62, int64(1)<<62, int64(1)<<62, int64(1)<<62, int64(0), int64(1)<<62, int64(1)<<62, 9, 8e307, 8e307)
	f.Fuzz(func(t *testing.T, n, transport uint8, flags uint16, rows, in, wire, record, scratch, tape, size, budget, least int64, pieces int, first, last float64) {
		call := chunked.Input{
			Op: perRay(in, wire, record), Rows: rows, Devices: ordinals(int(n % 9)),
			Transport: chunked.Transport(transport), Hook: flags&1 != 0, Tape: flags&2 != 0,
			Options: chunked.Options{ChunkRays: size, MemoryBudget: budget, MinRaysPerDevice: least, MinLanesPerDevice: least,
				PipelineChunks: pieces, NoPipeline: flags&16 != 0},
		}
		call.Op.Scratch, call.Op.TapeBits = scratch, tape
		switch flags >> 2 & 3 {
		case 1:
			call.Op.Class, call.Op.Wire, call.Op.Record = chunked.GridReduce, 0, 0
			call.Op.Grid = chunked.Grid{Accumulator: wire, ReadOut: record, Replicated: scratch, Copies: int64(flags >> 8 & 7), Events: tape}
		case 2:
			call.Op.Class, call.Op.Block = chunked.SourceLane, int64(flags>>8&15)
		}
		if flags&32 != 0 {
			call.Begin = rows / 2
		}
		if k := len(call.Devices); k > 1 && flags&64 != 0 {
			call.Options.Weights = ones(k)
			call.Options.Weights[0], call.Options.Weights[k-1] = first, last
		}
		p, err := chunked.BuildPlan(call)
		switch {
		case err != nil && !typed(err):
			t.Fatalf("not an error of the planner: %v", err)
		case err != nil && sized(err):
			err = refusal(call, err)
		case err == nil:
			err = violation(call, p)
			if err == nil && len(p.Chunks) < 1000 {
				err = sameJSON(call, p)
			}
		default:
			err = nil
		}
		if err != nil {
			t.Fatalf("%v\ninput %+v\n%v", err, call, p)
		}
	})
}
