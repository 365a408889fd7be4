package chunked

import "math"

// RemoteSlots is the number of chunks that a remote device holds at once: one
// arrives, one is computed, one leaves.
const RemoteSlots = 3

// recordSlots is the number of results of chunks that the master holds for a
// hook. One more than there are devices lets every device work while a hook
// has a result.
func recordSlots(devices int) int { return max(3, devices+1) }

// MemoryEstimate is what a call adds to the memory in use on one device:
// inputs that are copied, winners, results, accumulators and tapes, not what
// an allocator rounds up nor what a hook allocates. It is the same for every
// transport; one that copies nothing needs less.
type MemoryEstimate struct {
	Fixed    int64 `json:"fixed"`    // bytes that do not depend on the size of chunks
	RowBits  int64 `json:"row_bits"` // for each row of a chunk that is held
	Resident int   `json:"resident"` // chunks that are held at once, at most
	// Bound is the largest chunk that the budget allows on this device; 0
	// where it sets no limit.
	Bound int64 `json:"bound,omitempty"`
	// Peak is an upper bound of the bytes of this plan.
	Peak int64 `json:"peak"`
}

// need is the memory for chunks of so many rows, of which held exist.
func (m *MemoryEstimate) need(rows int64, held int) int64 {
	return add(m.Fixed, inBytes(rows, m.RowBits*int64(held)))
}

// bound is the largest chunk within a budget that covers the fixed part.
func (m *MemoryEstimate) bound(budget int64) int64 {
	if m.RowBits == 0 {
		return math.MaxInt64
	}
	return perBits(budget-m.Fixed, m.RowBits*int64(m.Resident))
}

// memory is the model of each device, without peaks. Devices that take no part
// need nothing.
func (in *Input) memory(p *Plan) []MemoryEstimate {
	out := make([]MemoryEstimate, len(p.Devices))
	remotes, sums := false, in.Op.accumulator(in.launches(p))
	for k, s := range p.Shards {
		switch {
		case k == 0 || s.Len() == 0:
		case in.Op.Class == GridReduce:
			remotes = true
			out[k] = in.gridRemote(sums)
		default:
			out[k] = MemoryEstimate{RowBits: 8 * (in.Op.Width() + in.Op.Scratch), Resident: RemoteSlots}
		}
	}
	if in.Op.Class == GridReduce {
		out[0] = in.gridMaster(sums, remotes)
	} else {
		out[0] = in.perRayMaster(p.RecordSlots)
	}
	return out
}

// perRayMaster holds the result whole, or the slots of a hook. A tape keeps
// the winners beside it; that of a chunk lives as long as its slot.
func (in *Input) perRayMaster(slots int) MemoryEstimate {
	record, scratch := 8*in.Op.Record, 8*in.Op.Scratch
	if in.Tape {
		record += in.Op.TapeBits
	}
	if slots > 0 {
		return MemoryEstimate{RowBits: record + scratch, Resident: slots}
	}
	return MemoryEstimate{Fixed: inBytes(in.Rows, record), RowBits: scratch, Resident: recordSlots(len(in.Devices))}
}

// launches is how many there are if no budget makes them more.
func (in *Input) launches(p *Plan) (n int64) {
	size := int64(MaxLaunchRows)
	if in.Options.ChunkRays > 0 {
		size = min(size, in.Options.ChunkRays)
	}
	for _, s := range p.Shards {
		n += ceilDiv(s.Len(), size)
	}
	return n
}

// gridMaster holds the sums and their copies, those of a remote that are being
// added, the finished grid, the slots of events and what every row sends back.
func (in *Input) gridMaster(sums int64, remotes bool) MemoryEstimate {
	if remotes {
		sums *= 2
	}
	return MemoryEstimate{
		Fixed:   add(sums+in.Op.copies()+in.Op.Grid.ReadOut+in.Op.Grid.Events, inBytes(in.Rows, 8*in.Op.Scratch)),
		RowBits: in.tapeBits(), Resident: in.gridResident(),
	}
}

func (in *Input) gridRemote(sums int64) MemoryEstimate {
	return MemoryEstimate{
		Fixed:   sums + in.Op.copies() + in.Op.Grid.Replicated,
		RowBits: 8*(in.Op.In+in.Op.Scratch) + in.tapeBits(), Resident: in.gridResident(),
	}
}

// tapeBits is the tape of a lane, which stays on the device that ran the lane.
func (in *Input) tapeBits() int64 {
	if in.Tape {
		return in.Op.TapeBits
	}
	return 0
}

// gridResident is 1 for lanes, whose chunks follow each other in place, and
// RemoteSlots for rays, which are copied ahead.
func (in *Input) gridResident() int {
	if in.Op.In > 0 {
		return RemoteSlots
	}
	return 1
}

// estimate adds the peak of each device: no more chunks are held than exist.
// The slots of a hook hold the chunks of every device.
func (p *Plan) estimate(counts []int64) {
	total, widest := int64(0), int64(0)
	for k, n := range counts {
		total, widest = total+n, max(widest, min(p.ChunkRows[k], p.Shards[k].Len()))
	}
	for k := range p.PerDevice {
		m := &p.PerDevice[k]
		rows, held := min(p.ChunkRows[k], p.Shards[k].Len()), counts[k]
		if k == 0 && p.Op.Class != GridReduce {
			rows, held = widest, total
		}
		m.Peak = m.need(rows, int(min(held, int64(m.Resident))))
	}
}
