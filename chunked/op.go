package chunked

import (
	"fmt"
	"slices"
)

// Class says along what an operation is divided, and how its parts become one
// result.
type Class int

// Classes of operations.
const (
	// PerRay operations are divided along the rows of the batch. A remote
	// sends the winner of each row back, and the master completes the record.
	PerRay Class = iota
	// SourceLane operations have a fixed block of rows per transmitter, and
	// shards are whole transmitters.
	SourceLane
	// GridReduce operations are divided along rays or lanes. Each device has
	// an accumulator of exact integers, and the accumulators are added.
	GridReduce
)

var classNames = [...]string{"per_ray", "source_lane", "grid_reduce"}

func (c Class) String() string {
	if c < 0 || int(c) >= len(classNames) {
		return fmt.Sprintf("class(%d)", int(c))
	}
	return classNames[c]
}

// MarshalText is the name of the class.
func (c Class) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText accepts the names that String gives.
func (c *Class) UnmarshalText(b []byte) error {
	i := slices.Index(classNames[:], string(b))
	if i < 0 {
		return &OptionError{"Op.Class", fmt.Sprintf("%q: the classes are %v", b, classNames)}
	}
	*c = Class(i)
	return nil
}

// Op describes one operation to the planner. A row is an element of the batch,
// or one lane of an accumulation.
type Op struct {
	Key    string `json:"key"`    // of its weights, see Keys
	Family string `json:"family"` // that the key belongs to
	Class  Class  `json:"class"`
	In     int64  `json:"in"`     // input bytes per row, optional columns included
	Wire   int64  `json:"wire"`   // bytes that a remote row sends back
	Record int64  `json:"record"` // bytes of the public result row
	// Scratch is working memory in bytes for each row that a device holds.
	Scratch int64 `json:"scratch,omitempty"`
	// TapeBits is what a tape keeps of each row beside the record. It is 0
	// where the record has the winner anyway.
	TapeBits int64 `json:"tape_bits,omitempty"`
	// Block is the number of rows of a transmitter of a SourceLane operation,
	// that is, receivers times states.
	Block int64 `json:"block,omitempty"`
	// MinLanes is the fewest lanes of a remote shard of a GridReduce operation that are worth
	// dispatching, where the options do not say. 0: 262144.
	MinLanes int64 `json:"min_lanes,omitempty"`
	// Grid is what a GridReduce operation holds beside its rows.
	Grid Grid `json:"grid,omitzero"`
}

// Grid is the memory of an accumulation that does not depend on the number of
// rows, in bytes.
type Grid struct {
	Accumulator int64 `json:"accumulator"`      // one copy of the sums
	Least       int64 `json:"least,omitempty"`  // what a direct link moves of it always, the rest only where there is something; 0 means all
	Copies      int64 `json:"copies,omitempty"` // of the sums on each device, the one that is sent included; 0 means 1
	Copy        int64 `json:"copy,omitempty"`   // each of the others
	ReadOut     int64 `json:"read_out"`         // the finished grid, on the master
	Events      int64 `json:"events,omitempty"` // slots of events, on the master
	Replicated  int64 `json:"replicated"`       // inputs that each remote gets whole
	// Cut is what every launch beyond three adds to one copy of the sums, Cuts times at most:
	// for what launches divide between them. It is for operations without memory for each row,
	// whose launches no budget makes more.
	Cut  int64 `json:"cut,omitempty"`
	Cuts int64 `json:"cuts,omitempty"`
}

// Width is what one remote row moves over the link, both ways.
func (o Op) Width() int64 { return o.In + o.Wire }

// accumulator is one copy of the sums of a call of so many launches.
func (o Op) accumulator(launches int64) int64 {
	return o.Grid.Accumulator + o.Grid.Cut*min(max(launches-3, 0), o.Grid.Cuts)
}

// copies is the memory of the other copies.
func (o Op) copies() int64 { return o.Grid.Copy * max(o.Grid.Copies-1, 0) }

// rows is what the rows are called.
func (o Op) rows() string {
	if o.Class == GridReduce && o.In == 0 {
		return "lanes"
	}
	return "rows"
}

// Limits that keep sums of sizes in range. No device has a terabyte.
const (
	maxBytes  = 1 << 40
	maxCopies = 1 << 20
)

func (o Op) check(rows int64) error {
	if o.Class < PerRay || o.Class > GridReduce {
		return &OptionError{"Op.Class", fmt.Sprintf("%v: the classes are %v", o.Class, classNames)}
	}
	for _, f := range [...]struct {
		name  string
		value int64
		most  int64
	}{
		{"In", o.In, maxBytes}, {"Wire", o.Wire, maxBytes}, {"Record", o.Record, maxBytes}, {"Scratch", o.Scratch, maxBytes},
		{"TapeBits", o.TapeBits, maxBytes}, {"Block", o.Block, MaxRows}, {"MinLanes", o.MinLanes, MaxRows}, {"Grid.Accumulator", o.Grid.Accumulator, maxBytes},
		{"Grid.Least", o.Grid.Least, o.Grid.Accumulator}, {"Grid.Copies", o.Grid.Copies, maxCopies}, {"Grid.Copy", o.Grid.Copy, maxBytes},
		{"Grid.Cut", o.Grid.Cut, maxBytes}, {"Grid.Cuts", o.Grid.Cuts, maxCopies}, {"Grid.ReadOut", o.Grid.ReadOut, maxBytes},
		{"Grid.Events", o.Grid.Events, maxBytes}, {"Grid.Replicated", o.Grid.Replicated, maxBytes},
	} {
		if f.value < 0 || f.value > f.most {
			return &OptionError{"Op." + f.name, fmt.Sprintf("%d: from 0 to %d", f.value, f.most)}
		}
	}
	switch {
	case o.Class != SourceLane && o.Block != 0:
		return &OptionError{"Op.Block", fmt.Sprintf("%d for a %v operation: only source_lane operations have blocks", o.Block, o.Class)}
	case o.Class == SourceLane && o.Block == 0:
		return &OptionError{"Op.Block", "0: give the rows of one transmitter"}
	case o.Class == SourceLane && rows%o.Block != 0:
		return &OptionError{"Rows", fmt.Sprintf("%d: not a whole number of blocks of %d rows", rows, o.Block)}
	case o.Grid.Cut != 0 && (o.In != 0 || o.Scratch != 0 || o.TapeBits != 0):
		return &OptionError{"Op.Grid.Cut", fmt.Sprintf("%d for an operation with memory for each row", o.Grid.Cut)}
	case o.Class != GridReduce && o.MinLanes != 0:
		return &OptionError{"Op.MinLanes", fmt.Sprintf("%d for a %v operation: only grid_reduce operations have lanes", o.MinLanes, o.Class)}
	case o.Class != GridReduce && o.Grid != Grid{}:
		return &OptionError{"Op.Grid", fmt.Sprintf("set for a %v operation: only grid_reduce operations have grids", o.Class)}
	}
	return nil
}
