package chunked

// Chunk is a contiguous part of a shard that one launch computes.
type Chunk struct {
	Seq      int   `json:"seq"`      // number of the chunk on its device, from 0
	Position int   `json:"position"` // of its device
	Begin    int64 `json:"begin"`
	End      int64 `json:"end"`
	// Slot is where a remote keeps the chunk's inputs and winners, one of
	// RemoteSlots; 0 on the master, whose rows are in place.
	Slot int `json:"slot"`
	// Retire is the number of the chunk in the order in which the master
	// completes chunks and a hook gets them.
	Retire int `json:"retire"`
	// Record is where the master keeps the chunk's result for a hook, one of
	// Plan.RecordSlots; 0 without one.
	Record int `json:"record,omitempty"`
}

// Len is the number of rows.
func (c Chunk) Len() int64 { return c.End - c.Begin }

// Range is the rows.
func (c Chunk) Range() Range { return Range{c.Begin, c.End} }

// cut lists the chunks in the order of their submission: the first of every
// device, then the second of every device, and so on, each time the remotes
// before the master, whose launch would otherwise delay theirs. Results are
// retired by the same numbers, but in the order of the devices.
func (p *Plan) cut(counts []int64) []Chunk {
	total := 0
	for _, n := range counts {
		total += int(n)
	}
	out := make([]Chunk, 0, total)
	for seq := 0; len(out) < total; seq++ {
		round := len(out) // all earlier chunks are retired before those of this round
		retire := round
		if counts[0] > int64(seq) {
			retire++ // the master's comes first
		}
		for k := 1; k < len(counts); k++ {
			if counts[k] > int64(seq) {
				out = append(out, p.chunk(k, seq, retire))
				retire++
			}
		}
		if counts[0] > int64(seq) {
			out = append(out, p.chunk(0, seq, round))
		}
	}
	for i := range out {
		out[i].Record = p.record(out[i], total)
	}
	return out
}

// record is the slot for the result of a chunk, one of a total, for a hook. If there are not
// enough for all, three are the master's, which searches into them: one chunk runs, one runs
// out and one is ready to follow. Remotes keep their winners until they are retired: slots
// that are left serve them in turn, or else that of the master in the same round, whose
// result was consumed by then.
func (p *Plan) record(c Chunk, total int) int {
	spare := p.RecordSlots - RemoteSlots
	switch {
	case p.RecordSlots == 0:
		return 0
	case total <= p.RecordSlots:
		return c.Retire
	case c.Position == 0 || spare == 0:
		return c.Seq % RemoteSlots
	}
	return RemoteSlots + (c.Position-1)%spare
}

func (p *Plan) chunk(position, seq, retire int) Chunk {
	s, rows := p.Shards[position], p.ChunkRows[position]
	begin := s.Begin + int64(seq)*rows
	c := Chunk{Seq: seq, Position: position, Begin: begin, End: min(begin+rows, s.End), Retire: retire}
	if position > 0 {
		c.Slot = seq % RemoteSlots
	}
	return c
}

// Retirement lists the chunks in the order in which the master completes them,
// which is that of the calls of a hook. Begins ascend within a device; devices
// alternate.
func (p Plan) Retirement() []Chunk {
	out := make([]Chunk, len(p.Chunks))
	for _, c := range p.Chunks {
		out[c.Retire] = c
	}
	return out
}
