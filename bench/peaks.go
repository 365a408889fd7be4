package main

import (
	"fmt"
	"slices"

	"github.com/raymux/raymux/bench/record"
	"github.com/raymux/raymux/cuda"
)

// peakTolerance is how much more memory than planned a call may hold, and a pool may hand out for it.
const peakTolerance = 1.02

// peak is the memory in use on every device before a call, and at most during it, by position.
type peak struct{ before, high []int64 }

// grown is what the call added.
func (p peak) grown(position int) int64 { return p.high[position] - p.before[position] }

// peak takes it of a call, with idle devices before and after. The memory is that of the pools of contexts, one for each
// device.
func (s *trial) peak(contexts []*cuda.Context, call func() error) (p peak, err error) {
	sync := idle(s.host.contexts)
	if err := sync(); err != nil {
		return p, err
	}
	for _, c := range contexts {
		c.Pool().ResetHighWater()
		p.before = append(p.before, int64(c.Pool().Stats().BytesInUse))
	}
	if err := call(); err != nil {
		return p, err
	}
	if err := sync(); err != nil {
		return p, err
	}
	for _, c := range contexts {
		p.high = append(p.high, int64(c.Pool().Stats().HighWater))
	}
	return p, nil
}

// peaks are those of the call that streams, and of those that return the whole result. The three scenes have pools of
// their own, so that calls are compared by what they add.
type peaks struct {
	streamed, multi, single peak
	rays                    int64 // in use on the master outside the scenes' own pools
}

// record adds what the calls add to what the streamed scene had before.
func (p peaks) record(devices []int, saving int64) *record.PeakMemory {
	baseline := p.rays + p.streamed.before[0]
	streamed, several, single := baseline+p.streamed.grown(0), baseline+p.multi.grown(0), baseline+p.single.grown(0)
	m := &record.PeakMemory{
		Status: record.StatusMeasured, MasterDevice: &devices[0],
		BaselineBytes: &baseline, StreamedBytes: &streamed,
		ConcatenatedMultiBytes: &several, ConcatenatedSingleBytes: &single,
		PredictedSavingBytes: &saving,
	}
	for k, d := range devices {
		bytes := p.streamed.high[k]
		if k == 0 {
			bytes = streamed
		}
		m.PerDeviceStreamed = append(m.PerDeviceStreamed, record.DeviceBytes{Device: d, Bytes: bytes})
	}
	return m
}

// report prints and records the streamed row beside the call that returns its result whole.
func (s *streamedTask) report(row record.Row, whole samples) {
	(&task{trial: s.trial, op: s.op}).store([]record.Row{row}, nil)
	fmt.Fprint(s.out, tableLine(s.config.Name, row))
	fmt.Fprintf(s.out, "agreement, %s: %s (%d of %d values differ)\n", s.where, agreementText(*row.Agreement.Fraction), s.found.of(0), s.found.elements)
	if row.Overlap != nil {
		fmt.Fprint(s.out, overlapLine(s.config.Name, row))
	}
	unstreamed := float64(slices.Min(whole.ns))
	slower := 100 * (float64(row.Multi.MinNS)/unstreamed - 1)
	fmt.Fprintf(s.out, "streamed, %s %s: %d chunks, %s ms against %.2f ms for the whole result at once (%+.1f %%)\n",
		s.config.Name, s.op.name, row.Plan.ChunkCount, milliseconds(row.Multi.MinNS), unstreamed/1e6, slower)
	table := record.Study{
		ID: "streaming", SourceSection: "bench",
		Description: "the streamed row beside the call of the set that returns the whole result, in the same rounds; memory that the call adds on a device: by the plan at most, as the pool handed it out, and as it did for the whole result",
		Columns: columns("config", "-", "chunks", "-", "chunk_rows", "-", "whole", "ms", "streamed", "ms", "slower", "%",
			"device", "-", "planned", "B", "added", "B", "added_whole", "B"),
	}
	for k, d := range s.plan.Devices {
		planned, added, concatenated := s.plan.PerDevice[k].Peak, s.peaks.streamed.grown(k), s.peaks.multi.grown(k)
		fmt.Fprintf(s.out, "peak, %s %s, device %d: streamed +%d B (plan %d B), whole result +%d B\n", s.config.Name, s.op.name, d, added, planned, concatenated)
		table.Rows = append(table.Rows, []any{s.config.Name, float64(row.Plan.ChunkCount), float64(row.Plan.ChunkRows),
			unstreamed / 1e6, float64(row.Multi.MinNS) / 1e6, slower, float64(d), float64(planned), float64(added), float64(concatenated)})
	}
	s.record.AddStudy(table)
}
