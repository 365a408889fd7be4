package chunked

import (
	"fmt"
	"strings"
)

// String prints the plan: the decision, what it rests on, and one line per
// device.
func (p Plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s=%d  kind=%s  transport=%s  weights=%v (%s)\n", p.Op.Key, p.Op.rows(), p.Rows, p.Kind, p.Transport, p.Weights, p.WeightSource)
	fmt.Fprintf(&b, "  %s\n", p.why())
	width := 0
	for _, s := range p.Shards {
		width = max(width, len(s.String()))
	}
	for k, s := range p.Shards {
		fmt.Fprintf(&b, "  dev%d  ", p.Devices[k])
		if s.Len() == 0 {
			fmt.Fprintf(&b, "no %s", p.Op.rows())
		} else {
			fmt.Fprintf(&b, "%-*s  %s, %s", width, s, p.launches(k), p.traffic(k))
		}
		if p.Budget > 0 && p.PerDevice[k].Peak > 0 {
			fmt.Fprintf(&b, "; peak %d of %d B", p.PerDevice[k].Peak, p.Budget)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// String is the range as [begin,end).
func (r Range) String() string { return fmt.Sprintf("[%d,%d)", r.Begin, r.End) }

// why is the reason, beside the floor where that has decided for remotes.
func (p *Plan) why() string {
	if f := p.Floor; !p.Kind.Whole() && !p.Kind.Chunked() && p.Source != SourceLaunch {
		width := ""
		if f.Width > 0 { // lanes have none
			width = fmt.Sprintf(" (width %d B)", f.Width)
		}
		return fmt.Sprintf("floor %d %s%s: remote shard %d has %d, ok", f.Rows, p.Op.rows(), width, f.Position, f.Shard)
	}
	return p.Reason
}

// launches says how often a device is launched, for how many rows.
func (p *Plan) launches(k int) string {
	rows, size := p.Shards[k].Len(), p.ChunkRows[k]
	n := ceilDiv(rows, size)
	if n == 1 {
		return "1 launch"
	}
	text := fmt.Sprintf("%d launches of %d %s", n, size, p.Op.rows())
	if last := rows - (n-1)*size; last != size {
		text += fmt.Sprintf(" (last %d)", last)
	}
	return text
}

// traffic says what a device moves over its link to the master.
func (p *Plan) traffic(k int) string {
	switch {
	case p.Op.Class == GridReduce:
		return p.sums(k)
	case k == 0 && p.RecordSlots > 0:
		return fmt.Sprintf("into %d slots; record %d B", p.RecordSlots, p.Op.Record)
	case k == 0:
		return "in place"
	}
	return fmt.Sprintf("%d B in, %d B out per row; record %d B", p.Op.In, p.Op.Wire, p.Op.Record)
}

// sums says what a device of an accumulation reads and sends: the sums of all its private
// copies are one.
func (p *Plan) sums(k int) string {
	text := fmt.Sprintf("sums of %d B", p.Op.accumulator(int64(len(p.Chunks))))
	if k > 0 {
		text += " out"
	}
	if p.Op.Grid.Copies > 1 {
		text += fmt.Sprintf(" of %d copies", p.Op.Grid.Copies)
	}
	if k > 0 && p.Op.In > 0 {
		text = fmt.Sprintf("%d B in per row, %s", p.Op.In, text)
	}
	return text
}
