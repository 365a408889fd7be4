package chunked

import (
	"fmt"
	"strings"
)

// MaxLaunchRows is the largest number of rows of one launch.
const MaxLaunchRows = 1 << 30

// Kind says how a call is dispatched.
type Kind string

// Kinds of dispatch.
const (
	KindMaster  Kind = "master"  // the single-device call, on the master
	KindDirect  Kind = "direct"  // one launch per device on the master's buffers
	KindSharded Kind = "sharded" // inputs copied to each remote, winners copied back
)

// Op describes one operation to the planner: its weight key, the family that
// the key belongs to, and the bytes of one row.
type Op struct {
	Key    string `json:"key"`
	Family string `json:"family"`
	In     int64  `json:"in"`     // input bytes per row, optional columns included
	Wire   int64  `json:"wire"`   // bytes that a remote row sends back
	Record int64  `json:"record"` // bytes of the public result row
}

// Width is what one remote row moves over the link, both ways.
func (o Op) Width() int64 { return o.In + o.Wire }

// Input is everything a plan depends on.
type Input struct {
	Op        Op        `json:"op"`
	Rows      int64     `json:"rows"`
	Devices   []int     `json:"devices"` // ordinals, the master first
	Options   Options   `json:"options"`
	Transport Transport `json:"transport"` // resolved: Direct or Copy
}

// Plan is the decision: who computes which rows, by which transport, and why.
type Plan struct {
	Op           Op        `json:"op"`
	Rows         int64     `json:"rows"`
	Devices      []int     `json:"devices"`
	Kind         Kind      `json:"kind"`
	Reason       string    `json:"reason"`
	Transport    Transport `json:"transport"`
	Weights      []float64 `json:"weights"`
	WeightSource string    `json:"weight_source"`
	Shards       []Range   `json:"shards"` // by position; empty ranges are not launched
	Floor        int64     `json:"floor"`  // fewest rows of an active remote shard
}

// BuildPlan decides how in.Rows rows run on in.Devices. It is pure: equal
// inputs give equal plans, and nothing is launched, timed or looked up.
func BuildPlan(in Input) (Plan, error) {
	n := len(in.Devices)
	if n == 0 {
		return Plan{}, &OptionError{"Devices", "the list is empty: give at least one device"}
	}
	if in.Rows < 0 {
		return Plan{}, &OptionError{"Rows", fmt.Sprintf("%d rows: a batch has 0 or more", in.Rows)}
	}
	if err := in.Options.Check(n); err != nil {
		return Plan{}, err
	}
	w, source := in.Options.weights(in.Op, n)
	p := Plan{Op: in.Op, Rows: in.Rows, Devices: in.Devices, Weights: w, WeightSource: source,
		Transport: in.Transport, Floor: in.Options.floor(in.Op)}
	p.Shards = Split(0, in.Rows, w)
	p.Kind, p.Reason = decide(&p)
	if p.Kind == KindMaster {
		p.Shards = make([]Range, n)
		p.Shards[0] = Range{0, in.Rows}
	}
	return p, nil
}

// decide applies the floor: a batch goes to remotes only when every one of
// them gets enough rows to be worth a launch and two event edges. Otherwise
// the call is the single-device call, not a smaller multi-device one.
func decide(p *Plan) (Kind, string) {
	if len(p.Devices) < 2 {
		return KindMaster, "one device"
	}
	if p.Rows == 0 {
		return KindMaster, "empty batch"
	}
	remote := false
	for k, s := range p.Shards[1:] {
		if s.Len() == 0 {
			continue
		}
		remote = true
		if s.Len() < p.Floor {
			return KindMaster, fmt.Sprintf("remote shard %d has %d rows < floor %d", k+1, s.Len(), p.Floor)
		}
	}
	if !remote {
		return KindMaster, "the weights give no row to a remote device"
	}
	if p.Transport == Direct {
		return KindDirect, fmt.Sprintf("every remote shard has at least %d rows (floor)", p.Floor)
	}
	return KindSharded, fmt.Sprintf("every remote shard has at least %d rows (floor)", p.Floor)
}

// String prints the plan, one line per device.
func (p Plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  rows=%d  kind=%s  transport=%s  weights=%v (%s)\n", p.Op.Key, p.Rows, p.Kind, p.Transport, p.Weights, p.WeightSource)
	fmt.Fprintf(&b, "  %s\n", p.Reason)
	for k, s := range p.Shards {
		if s.Len() == 0 {
			fmt.Fprintf(&b, "  dev%d  no rows\n", p.Devices[k])
			continue
		}
		fmt.Fprintf(&b, "  dev%d  [%d,%d)", p.Devices[k], s.Begin, s.End)
		switch {
		case k == 0:
			b.WriteString("  in place")
		case p.Kind == KindDirect:
			fmt.Fprintf(&b, "  reads %d B and writes %d B per row on the master", p.Op.In, p.Op.Wire)
		default:
			fmt.Fprintf(&b, "  copies %d B in and %d B out per row", p.Op.In, p.Op.Wire)
		}
		fmt.Fprintf(&b, "; record %d B\n", p.Op.Record)
	}
	return b.String()
}
