package main

import (
	"fmt"
	"math"

	"github.com/raymux/raymux/bench/record"
	"github.com/raymux/raymux/chunked"
)

// share is what one remote device does in a call.
type share struct {
	chunkRows    int64 // of the largest chunk
	chunks       int
	toward, back float64 // link rates from and to the master, bytes per second
}

// overlapModel places a call between no overlap and perfect overlap of its transfers and its computation. It is
// arithmetic on the plan, the measured links and the time of one device, and predicts nothing.
type overlapModel struct {
	rows, masterRows int64
	in, out          int     // wire bytes per remote row
	oneDevice        float64 // ns for all rows on one device
	finalize         float64 // ns of it that only the master spends, 0 where unknown
	direct           bool    // one launch that reads and writes across the link, instead of chunks through three stages
	remotes          []share
}

// stages of one chunk of a remote, in ns.
func (m overlapModel) stages(s share) (scatter, compute, gather float64) {
	r := float64(s.chunkRows)
	return r * float64(m.in) / s.toward * 1e9,
		(m.oneDevice - m.finalize) * r / float64(m.rows),
		r * float64(m.out) / s.back * 1e9
}

// bounds returns the times without any overlap and with perfect overlap, in ns.
func (m overlapModel) bounds() (none, perfect float64) {
	none = (m.oneDevice-m.finalize)*float64(m.masterRows)/float64(m.rows) + m.finalize
	perfect = none
	for _, s := range m.remotes {
		scatter, compute, gather := m.stages(s)
		sum, slowest := scatter+compute+gather, max(scatter, compute, gather)
		none = max(none, float64(s.chunks)*sum)
		if m.direct {
			perfect = max(perfect, slowest)
		} else {
			perfect = max(perfect, sum+float64(s.chunks-1)*slowest)
		}
	}
	return none, perfect
}

// record compares the bounds with a measured time.
func (m overlapModel) record(measured int64) *record.Overlap {
	none, perfect := m.bounds()
	o := &record.Overlap{
		Model: "flow_shop", RowInBytes: m.in, RowOutBytes: m.out,
		NoOverlapNS: int64(math.Round(none)), PerfectOverlapNS: int64(math.Round(perfect)), MeasuredNS: measured,
	}
	if m.direct {
		o.Model = "direct_peer"
	}
	for _, s := range m.remotes {
		if slow := min(s.toward, s.back); o.LinkBytesPerSecond == 0 || slow < o.LinkBytesPerSecond {
			o.LinkBytesPerSecond = slow
		}
	}
	o.ResidualNS = o.MeasuredNS - o.PerfectOverlapNS
	return o
}

// overlap returns the comparison for a row that used remote devices, nil where no link was measured.
func (r *run) overlap(plan chunked.Plan, row record.Row) *record.Overlap {
	if plan.Kind.Whole() {
		return nil
	}
	m := r.modelOf(plan, float64(row.Single.MinNS))
	for _, remote := range m.remotes {
		if remote.toward == 0 || remote.back == 0 {
			return nil
		}
	}
	return m.record(row.Multi.MinNS)
}

// modelOf is the model of a plan for a time that one device takes for all rows. Rates of links that were not measured
// are 0. Kernels that read across the link need no stages, into however many launches a shard is cut.
func (r *run) modelOf(plan chunked.Plan, oneDevice float64) overlapModel {
	m := overlapModel{
		rows: plan.Rows, masterRows: plan.Shards[0].Len(), in: int(plan.Op.In), out: int(plan.Op.Wire),
		oneDevice: oneDevice, direct: plan.Transport == chunked.Direct,
	}
	cut := recordPlan(plan).PerDevice
	for k, d := range cut {
		if k == 0 || d.Rows == 0 {
			continue
		}
		remote := share{chunkRows: d.ChunkRows, chunks: d.Chunks}
		if m.direct {
			remote.chunkRows, remote.chunks = d.Rows, 1
		}
		remote.toward = linkRate(r.record.Machine.Links, cut[0].Device, d.Device)
		remote.back = linkRate(r.record.Machine.Links, d.Device, cut[0].Device)
		m.remotes = append(m.remotes, remote)
	}
	return m
}

// linkRate returns the measured one-way rate of a pair, 0 where there is none.
func linkRate(links []record.Link, from, to int) float64 {
	for _, l := range links {
		if l.Direction == record.OneWay && l.Source == from && l.Destination == to {
			return l.BytesPerSecond
		}
	}
	return 0
}

// overlapLine is the printed form.
func overlapLine(config string, row record.Row) string {
	o := row.Overlap
	return fmt.Sprintf("overlap, %s %s %s: %s, %d chunks, %d+%d B per row (record %d B); no overlap %s ms, perfect overlap %s ms, measured %s ms (residual %+.2f ms)\n",
		config, row.Operation, row.Mode, row.Transport, row.Plan.ChunkCount, o.RowInBytes, o.RowOutBytes, row.RowBytes.DeclaredOut,
		milliseconds(o.NoOverlapNS), milliseconds(o.PerfectOverlapNS), milliseconds(o.MeasuredNS), float64(o.ResidualNS)/1e6)
}
