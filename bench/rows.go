package main

import (
	"github.com/raymux/raymux/bench/record"
	"github.com/raymux/raymux/bench/workload"
	"github.com/raymux/raymux/chunked"
)

// rows makes the record's rows of an operation: one for each mode of the set, or one for the single device.
func (s *task) rows(times []samples, c checked) []record.Row {
	if len(s.sides) == 0 {
		row := s.row(record.Forced, times[0], c)
		row.Dispatch = "single"
		row.Plan = recordPlan(wholePlan(s.host.devices[0], s.rowCount()))
		row.Flags = []string{record.FlagSingleDeviceOnly}
		return []record.Row{row}
	}
	var rows []record.Row
	at := 0
	for _, side := range s.sides {
		row := s.row(side.mode, times[0], c)
		row.TimingSource = record.TimingForcedRow
		if !side.reused {
			at++
			row.TimingSource = record.TimingMeasured
		}
		multi := times[at].timing()
		speedup := float64(row.Single.MinNS) / float64(multi.MinNS)
		row.Multi, row.Speedup, row.SpeedupSource = &multi, &speedup, record.SpeedupComputed
		row.Dispatch = string(side.plan.Kind)
		row.Transport = side.plan.Transport.String()
		row.Weights = side.plan.Weights
		row.Plan = recordPlan(side.plan)
		if !side.plan.Kind.Whole() {
			row.RowBytes.MeasuredWireOut = record.Number(c.wireBytes)
		}
		differ, fraction := c.differ[at], record.Fraction(c.elements, c.differ[at])
		row.Agreement = &record.Agreement{
			Status: record.StatusMeasured, Scope: record.ScopeAllFields,
			Elements: &c.elements, Mismatches: &differ, Fraction: &fraction,
		}
		row.Overlap = s.overlap(side.plan, row)
		row.Calibration = side.calibration
		row.Flags = s.flags(side, row)
		rows = append(rows, row)
	}
	return rows
}

// row is what every row of the operation has in common.
func (s *task) row(mode record.Mode, single samples, c checked) record.Row {
	op := s.op.plan
	in, wire, hits, measured := int(op.In), int(op.Wire), c.hits, c.rowBytes
	return record.Row{
		Operation: s.op.name, Mode: mode, Backend: s.single.Backend().String(),
		Batch:  record.Batch{Count: s.rowCount(), Unit: record.UnitRays},
		Rounds: len(single.ns), Calls: single.calls, Single: single.timing(),
		RowBytes: &record.RowBytes{
			DeclaredIn: in, DeclaredOut: int(op.Record), MeasuredOut: &measured,
			WireIn: &in, WireOut: &wire, MeasuredWireOut: record.Null(),
		},
		Hits: &hits, Columns: c.digests.all,
	}
}

// wholePlan is that of a scene on one device: one launch.
func wholePlan(device int, rows int64) chunked.Plan {
	return chunked.Plan{
		Devices: []int{device}, Shards: []chunked.Range{{Begin: 0, End: rows}},
		Chunks: []chunked.Chunk{{Begin: 0, End: rows}}, Source: chunked.SourceShard,
	}
}

// recordPlan describes a plan.
func recordPlan(plan chunked.Plan) *record.Plan {
	p := &record.Plan{Source: string(plan.Source), ChunkCount: len(plan.Chunks)}
	for i, shard := range plan.Shards {
		p.PerDevice = append(p.PerDevice, record.DevicePlan{Device: plan.Devices[i], Rows: shard.Len()})
	}
	for _, c := range plan.Chunks {
		d := &p.PerDevice[c.Position]
		d.Chunks++
		d.ChunkRows = max(d.ChunkRows, c.Len())
		p.ChunkRows = max(p.ChunkRows, c.Len())
	}
	return p
}

// describe adds the configuration to the record, as yet without rows.
func (s *trial) describe(found workload.Digests) {
	vertices, triangles := 0, 0
	for _, m := range s.meshes {
		vertices += m.NumVertices()
		triangles += m.NumTriangles()
	}
	s.described = record.Config{
		Note: s.config.Note, MaxBounces: s.config.MaxBounces,
		AccumSamples: s.samples(), StreamChunkRows: int64(s.config.ChunkRows),
		Geometry: &record.Geometry{
			Kind: string(s.config.Kind), Vertices: int64(vertices), Triangles: int64(triangles),
			VerticesSHA256: found.Vertices, FacesSHA256: found.Faces,
		},
		Rays: &record.Rays{Count: s.rowCount(), OriginsSHA256: found.Origins, DirectionsSHA256: found.Directions},
	}
}

// storeRows adds rows to the record, with what the trial knows so far.
func (s *trial) storeRows(rows []record.Row) {
	if len(s.described.Rows) == 0 {
		s.record.Parameters.SelectedConfigs = append(s.record.Parameters.SelectedConfigs, s.config.Name)
	}
	s.described.Rows = append(s.described.Rows, rows...)
	s.record.Configs[s.config.Name] = s.described
}

// store adds the rows of an operation to the record.
func (s *task) store(rows []record.Row, tracers []record.Tracer) {
	s.described.Tracers = append(s.described.Tracers, tracers...)
	s.storeRows(rows)
}
