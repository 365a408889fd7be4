package scene

import (
	"context"

	"github.com/raymux/raymux/cuda"
)

// Columns of an epcQuery, in the order of columns().
const (
	epcSource = iota
	epcReceiver
	epcSeq
	epcPlanePoints
	epcPlaneNormals
	epcActive
	epcPolarization
	epcInputs
)

// epcResult is a result of an operation on equivalent paths.
type epcResult interface {
	Reusable
	take(bounces int, c *epcColumns)
	fresh() epcResult
}

// epcField is what an epcQuery needs to know about fields.
type epcField struct {
	media      media
	wavelength float64
	paths      bool // IncludePaths
}

// epcQuery is a batch of equivalent paths. Its search stores fail and resolved ids.
type epcQuery struct {
	op           string
	bounces      int
	groups       *SurfaceGroupTable
	tolerance    float32
	ignoreGroups bool
	field        *epcField // nil: paths alone

	in      [epcInputs]RowColumn
	out     [2]RowColumn // fail, resolved
	to      epcResult
	results epcColumns
}

func (q *epcQuery) columns() (in, out []RowColumn) { return q.in[:], q.out[:] }

func (q *epcQuery) result() Reusable { return q.to }

func (q *epcQuery) layout() []int {
	return epcLayout(q.bounces, q.field != nil, q.field == nil || q.field.paths)
}

func (q *epcQuery) place(starts []int64) error {
	if err := q.results.cut(q.to.memory(), starts, q.layout()); err != nil {
		return err
	}
	q.to.take(q.bounces, &q.results)
	q.out = [2]RowColumn{rowColumn(q.results.fail, 1), rowColumn(q.results.resolved, 4*q.bounces)}
	return nil
}

func (q *epcQuery) over(in []RowColumn) query {
	part := *q
	part.in, part.to, part.results = [epcInputs]RowColumn(in), q.to.fresh(), epcColumns{}
	return &part
}

func (q *epcQuery) rows(in []RowColumn) epcRows {
	return epcRows{
		Source: in[epcSource].Data.Addr(), Receiver: in[epcReceiver].Data.Addr(), Seq: in[epcSeq].Data.Addr(),
		PlanePoints: in[epcPlanePoints].Data.Addr(), PlaneNormals: in[epcPlaneNormals].Data.Addr(),
		Active: in[epcActive].Data.Addr(), Bounces: int32(q.bounces),
	}
}

// reflectors are the faces of t, in the slots of a tree where there is one.
func (t *tables) reflectors(pool, slots uint64) reflectors {
	return reflectors{Surfaces: t.surfaces(), Pool: pool, Slots: slots, Count: int32(t.faceCount)}
}

// Finding the points of a row takes as many instructions as searching its segments, and many
// rows fail there: nearly all lanes do it together.
const epcBusyLanes, epcIdleLanes = 6, 26

func (q *epcQuery) search(on *Scene, at site, st *cuda.Stream, in, out []RowColumn, begin, count int64) error {
	x, err := on.tracer(context.Background())
	if err != nil {
		return err
	}
	k, err := on.epcKernels()
	if err != nil {
		return err
	}
	p := searchEpcParams{
		Search: searchParams{BusyLanes: epcBusyLanes, IdleLanes: epcIdleLanes},
		Rows:   q.rows(in), Reflectors: on.tables.reflectors(x.mirrors()),
		Fail: out[0].Data.Addr(), Resolved: out[1].Data.Addr(), Tolerance: q.tolerance,
	}
	if q.ignoreGroups {
		p.IgnoreGroups = 1
	}
	if p.Groups, err = q.groups.columns(q.op, on); err != nil {
		return err
	}
	return x.searchRows(at, st, k.search, &p.Search, cuda.ParamBytes(&p), begin, count)
}

func (q *epcQuery) finalize(s *Scene, sc cuda.Scope, st *cuda.Stream, begin, count int64) error {
	k, err := s.epcKernels()
	if err != nil {
		return err
	}
	r := &q.results
	p := finalizeEpcParams{
		Rows: q.rows(q.in[:]), Reflectors: s.tables.reflectors(s.tables.search.mirrors()),
		Fail: r.fail.Addr(), Resolved: r.resolved.Addr(),
		Valid: r.valid.Addr(), PathLength: r.pathLength.Addr(), BounceCount: r.bounceCount.Addr(),
		GroupIDs: r.groups.Addr(), HitPoints: r.hitPoints.Addr(), Normals: r.normals.Addr(), Field: r.field.Addr(),
	}
	if p.Groups, err = q.groups.columns(q.op, s); err != nil {
		return err
	}
	if f := q.field; f != nil {
		polarization := q.in[epcPolarization]
		p.Media, p.Lambda, p.LossPerSigma = f.media, f.wavelength, lossPerSigma(f.wavelength)
		p.Polarization = polarization.Data.Addr()
		if polarization.Width > 0 {
			p.PolarizationRows = 1
		}
	}
	return s.eachLaunch(begin, count, func(begin, count int64) error {
		p.RowBegin, p.Count = begin, count
		return launchRows(sc, k.finalize, st, count, &p)
	})
}
