package chunked_test

import (
	"fmt"
	"math/big"
	"slices"

	"github.com/raymux/raymux/chunked"
)

// violation says which invariant a plan breaks. It knows the rules of
// dispatch, chunks and memory by itself; it takes from the planner only the
// split, which has tests of its own.
func violation(in chunked.Input, p chunked.Plan) error {
	for _, check := range []func(chunked.Input, chunked.Plan) error{partition, kind, sizes, order, slots, memory} {
		if err := check(in, p); err != nil {
			return err
		}
	}
	return nil
}

// natural are the shards by weight.
func natural(in chunked.Input, weights []float64) []chunked.Range {
	if in.Op.Class != chunked.SourceLane {
		return chunked.Split(in.Begin, in.Rows, weights)
	}
	return chunked.SplitBlocks(in.Begin, in.Rows, in.Op.Block, weights)
}

// partition: the chunks cover the batch once, inside the shard of their
// device and ascending there; no weight, no chunk.
func partition(in chunked.Input, p chunked.Plan) error {
	if !slices.Equal(p.Devices, in.Devices) {
		return fmt.Errorf("devices %v", p.Devices)
	}
	_, shards := dispatch(in, p.Weights)
	if !slices.Equal(p.Shards, shards) {
		return fmt.Errorf("shards %v, want %v", p.Shards, shards)
	}
	at, next := make([]int64, len(shards)), in.Begin
	for k, s := range shards {
		at[k] = s.Begin
		if s.Len() > 0 && s.Begin != next {
			return fmt.Errorf("shard %d starts at %d, not %d", k, s.Begin, next)
		}
		next += s.Len()
	}
	if next != in.Begin+in.Rows {
		return fmt.Errorf("the shards end at %d", next)
	}
	for _, c := range p.Chunks {
		if c.Begin != at[c.Position] || c.End <= c.Begin || c.End > shards[c.Position].End {
			return fmt.Errorf("chunk %+v does not continue its shard", c)
		}
		if p.Weights[c.Position] == 0 && shards[0].Len() < in.Rows {
			return fmt.Errorf("chunk %+v has no weight", c)
		}
		at[c.Position] = c.End
	}
	for k, s := range shards {
		if at[k] != s.End {
			return fmt.Errorf("the chunks of shard %d end at %d", k, at[k])
		}
	}
	return nil
}

// reference is the floor, without limits of range.
func reference(in chunked.Input) *big.Int {
	f, option := big.NewInt(1048576), in.Options.MinRaysPerDevice
	if in.Op.Class == chunked.GridReduce {
		f, option = big.NewInt(262144), in.Options.MinLanesPerDevice
		if in.Op.MinLanes > 0 {
			f.SetInt64(in.Op.MinLanes)
		}
	}
	if option > 0 {
		f.SetInt64(option)
	}
	up := func(n *big.Int) *big.Int { return n.Add(n, big.NewInt(27)).Div(n, big.NewInt(28)) }
	switch {
	case option == 1:
	case in.Op.Class != chunked.GridReduce:
		width := new(big.Int).Add(big.NewInt(in.Op.In), big.NewInt(in.Op.Wire))
		if width.Cmp(big.NewInt(28)) > 0 {
			up(f.Mul(f, width))
		}
	case in.Op.In > 0:
		sent := big.NewInt(in.Op.Grid.Accumulator)
		if in.Op.Grid.Least > 0 && in.Transport == chunked.Direct {
			sent.SetInt64(in.Op.Grid.Least)
		}
		f.Add(f, up(sent))
	}
	return f
}

// dispatch is the table of kinds, and who gets which rows.
func dispatch(in chunked.Input, weights []float64) (chunked.Kind, []chunked.Range) {
	n, lanes := len(in.Devices), in.Op.Class == chunked.GridReduce
	sized := in.Options.ChunkRays > 0 || in.Options.MemoryBudget > 0
	shards := natural(in, weights)
	remotes, worth, floor := false, n > 1, reference(in)
	for k, s := range shards {
		if k > 0 && s.Len() > 0 {
			remotes = true
			worth = worth && big.NewInt(s.Len()).Cmp(floor) >= 0
		}
	}
	worth = worth && remotes
	if !lanes && (sized || in.Hook) {
		return chunked.KindChunked, shards
	}
	if !worth {
		shards = make([]chunked.Range, n)
		shards[0] = chunked.Range{Begin: in.Begin, End: in.Begin + in.Rows}
	}
	switch {
	case lanes && (sized || !worth && in.Rows > chunked.MaxLaunchRows):
		return chunked.KindLaneChunked, shards
	case !worth && in.Rows > chunked.MaxLaunchRows:
		return chunked.KindChunked, shards
	case n == 1:
		return chunked.KindSingle, shards
	case !worth:
		return chunked.KindMaster, shards
	case lanes:
		return chunked.KindLaneSharded, shards
	case in.Transport == chunked.Direct:
		return chunked.KindDirect, shards
	case in.Options.NoPipeline:
		return chunked.KindSharded, shards
	}
	return chunked.KindPipelined, shards
}

// kind: the plan has the kind of the table, and the single-device call is one
// launch of all rows.
func kind(in chunked.Input, p chunked.Plan) error {
	if want, _ := dispatch(in, p.Weights); p.Kind != want {
		return fmt.Errorf("kind %s, want %s", p.Kind, want)
	}
	if p.Kind.Whole() && in.Rows > 0 && (len(p.Chunks) != 1 || p.Chunks[0].Position != 0 || p.Chunks[0].Len() != in.Rows) {
		return fmt.Errorf("kind %s is one launch on the master", p.Kind)
	}
	return nil
}

// sizes: all chunks of a device but its last have the size of the plan, which
// is as large as the options allow.
func sizes(in chunked.Input, p chunked.Plan) error {
	counts := perDevice(p)
	for _, c := range p.Chunks {
		want := p.ChunkRows[c.Position]
		if last := c.Seq == counts[c.Position]-1; c.Len() > want || c.Len() != want && !last || want > chunked.MaxLaunchRows {
			return fmt.Errorf("chunk %+v of %d rows", c, want)
		}
	}
	for k, s := range p.Shards {
		want := s.Len()
		switch pieces := int64(in.Options.PipelineChunks); {
		case s.Len() == 0:
		case p.Kind == chunked.KindPipelined && k > 0:
			if pieces == 0 {
				pieces = 4
			}
			want = (s.Len() + pieces - 1) / pieces
			if count := (s.Len() + want - 1) / want; want <= chunked.MaxLaunchRows && int64(counts[k]) != count {
				return fmt.Errorf("%d chunks of remote %d, want %d", counts[k], k, count)
			}
		case in.Options.ChunkRays > 0:
			want = min(in.Options.ChunkRays, in.Rows)
		case in.Options.MemoryBudget > 0:
			want = slices.Max(p.ChunkRows) // memory compares it
		case p.Kind == chunked.KindChunked:
			want = in.Rows
		}
		if want = min(want, chunked.MaxLaunchRows); p.ChunkRows[k] != want {
			return fmt.Errorf("chunks of %d rows on %d, want %d", p.ChunkRows[k], k, want)
		}
	}
	return nil
}

// order: chunks are submitted by number, the master's after those of the
// remotes, and retired by number, then position.
func order(in chunked.Input, p chunked.Plan) error {
	turn := func(c chunked.Chunk) int { return (c.Position + len(in.Devices) - 1) % len(in.Devices) }
	for i, c := range p.Chunks {
		if i == 0 {
			continue
		}
		if b := p.Chunks[i-1]; c.Seq < b.Seq || c.Seq == b.Seq && turn(c) <= turn(b) {
			return fmt.Errorf("%+v is submitted after %+v", c, b)
		}
	}
	if len(p.Chunks) == 0 {
		return nil
	}
	numbers := make([]bool, len(p.Chunks))
	for _, c := range p.Chunks {
		if c.Retire < 0 || c.Retire >= len(numbers) || numbers[c.Retire] {
			return fmt.Errorf("%+v is retired out of order", c)
		}
		numbers[c.Retire] = true
	}
	seen := make([]int, len(in.Devices))
	retired := p.Retirement()
	for i, c := range retired {
		if c.Retire != i || c.Seq != seen[c.Position] {
			return fmt.Errorf("%+v is retired as number %d", c, i)
		}
		seen[c.Position]++
		if i == 0 {
			continue
		}
		if b := retired[i-1]; c.Seq < b.Seq || c.Seq == b.Seq && c.Position <= b.Position {
			return fmt.Errorf("%+v is retired after %+v", c, b)
		}
	}
	return nil
}

// slots: no two chunks of a device that may be in flight together share one, and before
// a chunk needs the slot of an earlier one, all up to that have been submitted, so
// that they can be retired. A remote needs a record when it is retired only, if not all
// chunks have one.
func slots(in chunked.Input, p chunked.Plan) error {
	want := 0
	if in.Hook {
		want = max(3, len(in.Devices)+1)
	}
	if p.RecordSlots != want {
		return fmt.Errorf("%d record slots, want %d", p.RecordSlots, want)
	}
	users := make([]int, want) // of each record so far, the number of retirement after the last one
	before := make([]int, len(p.Chunks))
	for i, c := range p.Retirement() {
		switch {
		case !in.Hook && c.Record != 0, in.Hook && (c.Record < 0 || c.Record >= want):
			return fmt.Errorf("record slot of %+v", c)
		case in.Hook:
			before[i], users[c.Record] = users[c.Record], i+1
		}
	}
	submitted := make([]bool, len(p.Chunks))
	done := 0 // chunks that could have been retired
	sent := make([][]int, len(p.Devices))
	for _, c := range p.Chunks {
		if c.Position > 0 && c.Slot != c.Seq%3 || c.Position == 0 && c.Slot != 0 {
			return fmt.Errorf("slot of %+v", c)
		}
		for done < len(submitted) && submitted[done] {
			done++
		}
		if c.Seq >= 3 && done <= sent[c.Position][c.Seq-3] {
			return fmt.Errorf("slot of %+v, %d retired", c, done)
		}
		sent[c.Position] = append(sent[c.Position], c.Retire)
		own := before[c.Retire]
		switch record := c.Seq % 3; {
		case !in.Hook:
		case len(p.Chunks) <= want:
			if own > 0 || c.Record != c.Retire {
				return fmt.Errorf("%+v shares a record slot, although there are enough", c)
			}
		case c.Position == 0 || want == 3:
			if c.Record != record || c.Position == 0 && done < own {
				return fmt.Errorf("record slot of %+v, %d retired", c, done)
			}
		case c.Record != 3+(c.Position-1)%(want-3):
			return fmt.Errorf("record slot of %+v", c)
		}
		submitted[c.Retire] = true
	}
	return nil
}

// memory: what the model says for the plan's chunks is within the budget, and
// larger chunks would not be.
func memory(in chunked.Input, p chunked.Plan) error {
	if in.Options.MemoryBudget == 0 || in.Rows == 0 {
		return nil
	}
	budget := big.NewInt(in.Options.MemoryBudget)
	size := slices.Max(p.ChunkRows)
	fits := func(rows int64) bool {
		for k := range p.Shards {
			if (k == 0 || p.Shards[k].Len() > 0) && model(in, p.Shards, k).bytes(rows).Cmp(budget) > 0 {
				return false
			}
		}
		return true
	}
	if !fits(size) {
		return fmt.Errorf("chunks of %d rows exceed the budget", size)
	}
	if p.Source == chunked.SourceBudget && size < min(in.Rows, chunked.MaxLaunchRows) && fits(size+1) {
		return fmt.Errorf("chunks of %d rows fit, too", size+1)
	}
	for k, m := range p.PerDevice {
		if m.Peak > in.Options.MemoryBudget {
			return fmt.Errorf("peak of %d B on %d", m.Peak, k)
		}
	}
	return nil
}

// need is the memory of a device in bits: fixed, and of a row of every chunk that
// it holds.
type need struct{ fixed, row, resident *big.Int }

func (n need) bytes(rows int64) *big.Int {
	bits := new(big.Int).Mul(big.NewInt(rows), n.row)
	bits.Mul(bits, n.resident).Add(bits, n.fixed).Add(bits, big.NewInt(7))
	return bits.Rsh(bits, 3)
}

// chunkOf is the most lanes of a launch without a budget.
func chunkOf(in chunked.Input) int64 {
	if in.Options.ChunkRays > 0 {
		return min(in.Options.ChunkRays, chunked.MaxLaunchRows)
	}
	return chunked.MaxLaunchRows
}

// model is the memory model, in bits.
func model(in chunked.Input, shards []chunked.Range, k int) need {
	b := func(bytes ...int64) *big.Int {
		n := new(big.Int)
		for _, v := range bytes {
			n.Add(n, big.NewInt(v))
		}
		return n.Lsh(n, 3)
	}
	op, g := in.Op, in.Op.Grid
	tape := new(big.Int)
	if in.Tape {
		tape.SetInt64(op.TapeBits)
	}
	if op.Class == chunked.GridReduce {
		launches := int64(0)
		for _, s := range shards {
			for n, at := s.Len(), int64(0); at < n; at += chunkOf(in) {
				launches++
			}
		}
		sums := new(big.Int).Mul(b(g.Cut), big.NewInt(max(min(launches-3, g.Cuts), 0)))
		sums.Add(sums, b(g.Accumulator))
		copies := new(big.Int).Mul(b(g.Copy), big.NewInt(max(g.Copies-1, 0)))
		n := need{fixed: new(big.Int), row: tape, resident: big.NewInt(1)}
		if op.In > 0 {
			n.resident.SetInt64(3)
		}
		if k > 0 {
			n.row.Add(n.row, b(op.In, op.Scratch))
			n.fixed.Add(sums, b(g.Replicated)).Add(n.fixed, copies)
			return n
		}
		n.fixed.Mul(b(op.Scratch), big.NewInt(in.Rows)).Add(n.fixed, copies)
		n.fixed.Add(n.fixed, sums).Add(n.fixed, b(g.ReadOut, g.Events))
		if shards[0].Len() < in.Rows {
			n.fixed.Add(n.fixed, sums)
		}
		return n
	}
	n := need{fixed: new(big.Int), row: b(op.Scratch), resident: big.NewInt(3)}
	if k > 0 {
		n.row.Add(n.row, b(op.In, op.Wire))
		return n
	}
	n.resident.SetInt64(int64(max(3, len(in.Devices)+1)))
	record := tape.Add(tape, b(op.Record))
	if in.Hook {
		n.row.Add(n.row, record)
	} else {
		n.fixed.Mul(record, big.NewInt(in.Rows))
	}
	return n
}
