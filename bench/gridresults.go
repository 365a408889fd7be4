package main

import (
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
)

// columnList collects the columns of a result that are there.
type columnList struct {
	list []column
	err  error
}

func addColumn[T cuda.Scalar](l *columnList, name string, size int, data cuda.Slice[T]) {
	if l.err != nil || data.IsNil() || data.Len() == 0 {
		return
	}
	var c column
	if c, l.err = columnOf(name, size, data); l.err == nil {
		l.list = append(l.list, c)
	}
}

func addFloats(l *columnList, names []string, data ...cuda.Slice[float32]) {
	for i, d := range data {
		addColumn(l, names[i], 4, d)
	}
}

var fieldNames = []string{"x_re", "x_im", "y_re", "y_im", "z_re", "z_im"}

func directOutcome(r *scene.DfrAccum) gridOutcome {
	return gridOutcome{
		outcome: outcome{r, func() ([]column, error) {
			var l columnList
			addColumn(&l, "power", 4, r.Power)
			addColumn(&l, "counters", 8, r.Counts)
			addColumn(&l, "words", 8, r.Words)
			return l.list, l.err
		}, r.Close},
		tally: func() (tally, error) {
			n, err := r.ReadCounters(background)
			return tally{counted: n.Direct + n.Keller, hidden: n.VisRejects, rejected: n.UTDRejects + n.InactiveLanes}, err
		},
	}
}

func coherentOutcome(r *scene.DfrCoherentAccum) gridOutcome {
	return gridOutcome{
		outcome: outcome{r, func() ([]column, error) {
			var l columnList
			addFloats(&l, fieldNames, r.FieldXRe, r.FieldXIm, r.FieldYRe, r.FieldYIm, r.FieldZRe, r.FieldZIm)
			addColumn(&l, "count", 4, r.Count)
			addColumn(&l, "vis_rejects", 4, r.VisRejects)
			addColumn(&l, "utd_rejects", 4, r.UTDRejects)
			addColumn(&l, "words", 8, r.Words)
			return l.list, l.err
		}, r.Close},
		tally: func() (tally, error) {
			n, err := r.ReadCounters(background)
			return tally{counted: n.Count, hidden: n.VisRejects, rejected: n.UTDRejects}, err
		},
	}
}

// pathsOutcome has its counts from the statuses, so that Count is compared with them.
func pathsOutcome(st *cuda.Stream, r *scene.DfrPaths) gridOutcome {
	return gridOutcome{
		outcome: outcome{r, func() ([]column, error) {
			var l columnList
			addColumn(&l, "status", 1, r.Status)
			addFloats(&l, []string{"delay", "field", "p0"}, r.Delay, r.Field, r.P0)
			addColumn(&l, "tx", 4, r.TxID)
			addColumn(&l, "rx", 4, r.RxID)
			addColumn(&l, "edge", 4, r.EdgeID)
			addColumn(&l, "count", 8, r.Count)
			return l.list, l.err
		}, r.Close},
		tally: func() (t tally, err error) {
			status, err := cuda.Download(background, st, r.Status)
			if err != nil {
				return t, err
			}
			for _, s := range status {
				switch scene.DfrPathStatus(s) {
				case scene.DfrValid:
					t.counted++
				case scene.DfrSourceOccluded, scene.DfrTargetOccluded:
					t.hidden++
				default:
					t.rejected++
				}
			}
			n, err := r.ReadCount(background)
			if err == nil && n != t.counted {
				t.counted = -1 // which no expectation accepts
			}
			return t, err
		},
	}
}

func tubesOutcome(r *scene.ReflGrids) gridOutcome {
	return gridOutcome{
		outcome: outcome{r, func() ([]column, error) {
			var l columnList
			addColumn(&l, "power", 4, r.Power)
			addFloats(&l, fieldNames, r.FieldXRe, r.FieldXIm, r.FieldYRe, r.FieldYIm, r.FieldZRe, r.FieldZIm)
			addColumn(&l, "count", 8, r.Count)
			addColumn(&l, "status", 4, r.Status)
			addColumn(&l, "words", 8, r.Words)
			addColumn(&l, "word_counts", 4, r.WordCounts)
			addColumn(&l, "word_maxima", 4, r.WordMaxima)
			w := &r.Wedges
			addColumn(&l, "events", 8, w.Count)
			addColumn(&l, "event_ray", 8, w.RayIndex)
			addColumn(&l, "event_prim", 4, w.PrimID)
			addColumn(&l, "event_depth", 4, w.BounceDepth)
			addFloats(&l, []string{"event_p", "event_n", "event_d", "event_source", "event_power", "event_initial"},
				w.HitPoints, w.Normals, w.Directions, w.SourcePoints, w.SrcPower, w.InitialDirections)
			return l.list, l.err
		}, r.Close},
		tally: func() (tally, error) {
			n, err := r.ReadCounters(background)
			return tally{counted: n.Count, events: n.Wedges, status: n.Status}, err
		},
	}
}

// chainsOutcome counts first bounces.
func chainsOutcome(st *cuda.Stream, r *scene.Chains) gridOutcome {
	return gridOutcome{
		outcome: outcome{r, func() ([]column, error) { return chainColumns(r) }, r.Close},
		tally: func() (t tally, err error) {
			valid, err := cuda.Download(background, st, r.Valid)
			for i := 0; i < len(valid); i += r.Bounces {
				t.counted += int64(valid[i])
			}
			return t, err
		},
	}
}

func equivalentPathsOutcome(st *cuda.Stream, r *scene.EPCPaths) gridOutcome {
	return gridOutcome{
		outcome: outcome{r, func() ([]column, error) {
			var l columnList
			addColumn(&l, "valid", 1, r.Valid)
			addColumn(&l, "bounce_count", 1, r.BounceCount)
			addColumn(&l, "fail", 1, r.Fail)
			addFloats(&l, []string{"path_length", "hit_points", "normals"}, r.PathLength, r.HitPoints, r.Normals)
			addColumn(&l, "resolved", 4, r.ResolvedPrimIDs)
			addColumn(&l, "groups", 4, r.SurfaceGroupIDs)
			return l.list, l.err
		}, r.Close},
		tally: func() (tally, error) { return equivalentTally(st, r.Valid, r.Fail) },
	}
}

func equivalentFieldsOutcome(st *cuda.Stream, r *scene.EPCFields) gridOutcome {
	return gridOutcome{
		outcome: outcome{r, func() ([]column, error) {
			var l columnList
			addColumn(&l, "valid", 1, r.Valid)
			addColumn(&l, "fail", 1, r.Fail)
			addFloats(&l, []string{"field", "path_length"}, r.Field, r.PathLength)
			addColumn(&l, "resolved", 4, r.ResolvedPrimIDs)
			return l.list, l.err
		}, r.Close},
		tally: func() (tally, error) { return equivalentTally(st, r.Valid, r.Fail) },
	}
}

func equivalentTally(st *cuda.Stream, valid, fail cuda.Slice[uint8]) (t tally, err error) {
	v, err := cuda.Download(background, st, valid)
	if err != nil {
		return t, err
	}
	why, err := cuda.Download(background, st, fail)
	for i := range why {
		switch {
		case v[i] == 1:
			t.counted++
		case scene.EPCFail(why[i]) == scene.EPCBlocked:
			t.hidden++
		default:
			t.rejected++
		}
	}
	return t, err
}
