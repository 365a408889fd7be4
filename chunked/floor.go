package chunked

// floorWidth is the row width, in bytes over the link, for which floors are
// stated: an intersection sends 24 bytes and gets 4 back.
const floorWidth = 28

// FloorReport is the fewest rows that a remote shard must have, and the shard
// that decides.
type FloorReport struct {
	Rows     int64 `json:"rows"`
	Width    int64 `json:"width"`    // bytes of one row over the link, both ways
	Position int   `json:"position"` // of the smallest remote shard that has rows; 0: there is none
	Shard    int64 `json:"shard"`    // its rows
}

// OK reports whether there are remote shards and none is below the floor.
func (f FloorReport) OK() bool { return f.Position > 0 && f.Shard >= f.Rows }

// report compares the remote shards with the floor.
func (in *Input) report(shards []Range) FloorReport {
	f := FloorReport{Rows: in.floor(), Width: in.Op.Width()}
	for k, s := range shards[1:] {
		if n := s.Len(); n > 0 && (f.Position == 0 || n < f.Shard) {
			f.Position, f.Shard = k+1, n
		}
	}
	return f
}

// floor is the fewest rows of a remote shard.
func (in *Input) floor() int64 {
	if in.Op.Class == GridReduce {
		return in.laneFloor()
	}
	f := in.Options.MinRaysPerDevice
	switch f {
	case 0:
		f = DefaultMinRows
	case 1:
		return 1 // disabled, also for wide rows
	}
	return scale(f, max(in.Op.Width(), floorWidth)) // narrow rows do not lower it
}

// floorOption is the option that sets the floor.
func (o Op) floorOption() string {
	if o.Class == GridReduce {
		return "MinLanesPerDevice"
	}
	return "MinRaysPerDevice"
}

// laneFloor counts what is always returned of an accumulator for rays as so many rows of
// an intersection more. Lanes read no rows of their own: their floor is as given,
// by the options or else by the operation, of whose lanes some are a hundred times
// as much work as others.
func (in *Input) laneFloor() int64 {
	f := in.Options.MinLanesPerDevice
	switch f {
	case 0:
		f = in.Op.MinLanes
		if f == 0 {
			f = DefaultMinLanes
		}
	case 1:
		return 1
	}
	if in.Op.In > 0 {
		sent := in.Op.Grid.Accumulator
		if least := in.Op.Grid.Least; least > 0 && in.Transport == Direct {
			sent = least
		}
		f = add(f, ceilDiv(sent, floorWidth))
	}
	return f
}
