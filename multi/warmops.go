package multi

import (
	"context"
	"io"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
)

// Names of operations, for WarmUp. Those of visibility, OpDfrPaths and the accumulations are also
// their keys for plans and weights, the others families of keys.
const (
	OpIntersect              = "intersect"
	OpTraceReflections       = "trace_reflections"
	OpVisible                = "visible"
	OpVisiblePair            = "visible_pair"
	OpVisibleEdge            = "visible_edge"
	OpVisibleChain           = "visible_chain"
	OpTraceReflEPC           = "trace_refl_epc"
	OpTraceReflEPCField      = "trace_refl_epc_field"
	OpDedupReflections       = "dedup_reflections"
	OpDfrPaths               = "trace_dfr_paths"
	OpAccumulateReflections  = "accumulate_reflections"
	OpAccumDfrDirect         = "accum_dfr_direct"
	OpAccumDfrCoherentDirect = "accum_dfr_coherent_direct"
)

// warmOps run operations on one row each.
var warmOps = map[string]func(context.Context, *warming) (io.Closer, error){
	OpIntersect: func(ctx context.Context, w *warming) (io.Closer, error) {
		return w.Intersect(ctx, w.rays(), scene.All)
	},
	OpTraceReflections: func(ctx context.Context, w *warming) (io.Closer, error) {
		return w.TraceReflections(ctx, w.rays(), 2, scene.ChainAll)
	},
	OpVisible: warmVisible, OpVisiblePair: warmVisible, OpVisibleEdge: warmVisible, OpVisibleChain: warmVisible,
	OpTraceReflEPC: func(ctx context.Context, w *warming) (io.Closer, error) {
		return w.TraceReflEPC(ctx, w.paths(), scene.EPCOptions{})
	},
	OpTraceReflEPCField: func(ctx context.Context, w *warming) (io.Closer, error) {
		return w.TraceReflEPCField(ctx, w.paths(), scene.EPCFieldOptions{Materials: w.materials, Wavelength: 1})
	},
	OpDedupReflections: func(ctx context.Context, w *warming) (io.Closer, error) {
		return w.DedupReflections(ctx, scene.Paths{Bounces: 1, PrimIDs: w.face, SourceKey: w.face})
	},
	OpDfrPaths: func(ctx context.Context, w *warming) (io.Closer, error) {
		return w.TraceDfrPaths(ctx, w.from, w.to, w.states, scene.DfrPathOptions{Wavelength: 1, Materials: w.materials, Active: w.active})
	},
	OpAccumulateReflections: func(ctx context.Context, w *warming) (io.Closer, error) {
		return w.AccumulateReflections(ctx, w.rays(), warmGrid, scene.ReflGridOptions{
			Wavelength: 1, SolidAnglePerRay: 1, MaxBounces: 1, Materials: w.materials, TxPosition: w.from, IncludeLOS: true,
		})
	},
	OpAccumDfrDirect: func(ctx context.Context, w *warming) (io.Closer, error) {
		return w.AccumDfrDirect(ctx, w.states, warmGrid, scene.DfrDirectOptions{Wavelength: 1, DirectSamples: 1, Materials: w.materials})
	},
	OpAccumDfrCoherentDirect: func(ctx context.Context, w *warming) (io.Closer, error) {
		return w.AccumDfrCoherentDirect(ctx, w.states, warmGrid, scene.DfrCoherentOptions{Wavelength: 1, Materials: w.materials})
	},
}

// warmVisible serves for all visibility operations, whose kernels are one module and
// whose OptiX programs are the same.
func warmVisible(ctx context.Context, w *warming) (io.Closer, error) {
	return w.Visible(ctx, scene.Segments{Start: w.from, End: w.to})
}

// warmGrid is one cell.
var warmGrid = scene.Grid{Axis: scene.AxisZ, Position: 1, Min0: -1, Max0: 1, Min1: -1, Max1: 1, Res0: 1, Res1: 1}

// warming is a throwaway scene with what operations need for one row.
type warming struct {
	*scene.Scene
	from, to  cuda.Slice[float32] // points in front of the triangles and behind
	face      cuda.Slice[int32]
	active    cuda.Slice[uint8]
	states    *scene.StateTable
	materials *scene.MaterialTable
}

func (w *warming) rays() scene.Rays { return scene.Rays{O: w.from, D: w.to} }

func (w *warming) paths() scene.EPCRows {
	return scene.EPCRows{Source: w.from, Receiver: w.from, Seq: w.face, Bounces: 1}
}

// fill makes the inputs: one wedge, and one medium for so many faces.
func (w *warming) fill(ctx context.Context, faces int) (err error) {
	if w.from, err = cuda.Upload(ctx, w.Stream(), []float32{0, 0, -1}); err != nil {
		return err
	}
	if w.to, err = cuda.Upload(ctx, w.Stream(), []float32{0, 0, 1}); err != nil {
		return err
	}
	if w.face, err = cuda.Upload(ctx, w.Stream(), []int32{0}); err != nil {
		return err
	}
	if w.active, err = cuda.Upload(ctx, w.Stream(), []uint8{1}); err != nil {
		return err
	}
	w.states, err = w.UploadStates(ctx, scene.DfrStates{
		EdgeIndex: []int32{0}, EdgePos: []float32{0, -1, 0}, EdgeDir: []float32{1, 0, 0}, TMin: []float32{-1}, TMax: []float32{1},
		N0: []float32{0, 0, 1}, N1: []float32{0, 0, -1}, Prim0: []int32{0}, Prim1: []int32{-1}, ExteriorAngle: []float32{6},
		Src: []float32{0, -2, -1}, SrcPower: []float32{1},
	})
	if err != nil {
		return err
	}
	one := []float32{1}
	w.materials, err = w.UploadMaterials(ctx, scene.Materials{EtaR: one, Sigma: one, MuR: one, Gain: one, Index: make([]int32, faces)})
	return err
}

// close frees everything, also of a scene that was not filled.
func (w *warming) close() error {
	errs := []error{w.states.Close(), w.materials.Close()}
	for _, v := range []cuda.Slice[float32]{w.from, w.to} {
		if !v.IsNil() {
			errs = append(errs, cuda.Free(v))
		}
	}
	if !w.face.IsNil() {
		errs = append(errs, cuda.Free(w.face))
	}
	if !w.active.IsNil() {
		errs = append(errs, cuda.Free(w.active))
	}
	return firstError(append(errs, w.Scene.Close()))
}
