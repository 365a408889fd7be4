package multi

import (
	"context"
	"iter"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/offload"
	"github.com/raymux/raymux/scene"
)

// IntersectSeq is Intersect as a sequence of chunks, for a loop whose body takes the place
// of the consumer of Offload:
//
//	for chunk, err := range s.IntersectSeq(ctx, rays, scene.All) {
//		if err != nil {
//			return err
//		}
//		use(chunk.Start, chunk.Result)
//	}
//
// An error ends the sequence. Leaving the loop ends the call; the body must not call the
// scene, which is busy until then, also where iter.Pull turns the sequence around.
func (s *Scene) IntersectSeq(ctx context.Context, rays scene.Rays, flags scene.Flags, opts ...scene.CallOption) iter.Seq2[offload.Chunk[*scene.Hits], error] {
	return sequence[*scene.Hits](opts, func(opts []scene.CallOption) error {
		_, err := s.Intersect(ctx, rays, flags, opts...)
		return err
	})
}

// TraceReflectionsSeq is TraceReflections as a sequence of chunks; see IntersectSeq.
func (s *Scene) TraceReflectionsSeq(ctx context.Context, rays scene.Rays, maxBounces int, fields scene.ChainFields, opts ...scene.CallOption) iter.Seq2[offload.Chunk[*scene.Chains], error] {
	return sequence[*scene.Chains](opts, func(opts []scene.CallOption) error {
		_, err := s.TraceReflections(ctx, rays, maxBounces, fields, opts...)
		return err
	})
}

// VisibleSeq is Visible as a sequence of chunks; see IntersectSeq.
func (s *Scene) VisibleSeq(ctx context.Context, in scene.Segments, opts ...scene.CallOption) iter.Seq2[offload.Chunk[*scene.Visibility], error] {
	return sequence[*scene.Visibility](opts, func(opts []scene.CallOption) error {
		_, err := s.Visible(ctx, in, opts...)
		return err
	})
}

// VisiblePairSeq is VisiblePair as a sequence of chunks; see IntersectSeq.
func (s *Scene) VisiblePairSeq(ctx context.Context, in scene.SegmentPairs, opts ...scene.CallOption) iter.Seq2[offload.Chunk[*scene.PairVisibility], error] {
	return sequence[*scene.PairVisibility](opts, func(opts []scene.CallOption) error {
		_, err := s.VisiblePair(ctx, in, opts...)
		return err
	})
}

// VisibleEdgeSeq is VisibleEdge as a sequence of chunks; see IntersectSeq.
func (s *Scene) VisibleEdgeSeq(ctx context.Context, in scene.EdgeSamples, opts ...scene.CallOption) iter.Seq2[offload.Chunk[*scene.EdgeVisibility], error] {
	return sequence[*scene.EdgeVisibility](opts, func(opts []scene.CallOption) error {
		_, err := s.VisibleEdge(ctx, in, opts...)
		return err
	})
}

// VisibleChainSeq is VisibleChain as a sequence of chunks; see IntersectSeq.
func (s *Scene) VisibleChainSeq(ctx context.Context, in scene.Polylines, opts ...scene.CallOption) iter.Seq2[offload.Chunk[*scene.ChainVisibility], error] {
	return sequence[*scene.ChainVisibility](opts, func(opts []scene.CallOption) error {
		_, err := s.VisibleChain(ctx, in, opts...)
		return err
	})
}

// TraceReflEPCSeq is TraceReflEPC as a sequence of chunks; see IntersectSeq.
func (s *Scene) TraceReflEPCSeq(ctx context.Context, in scene.EPCRows, opt scene.EPCOptions, opts ...scene.CallOption) iter.Seq2[offload.Chunk[*scene.EPCPaths], error] {
	return sequence[*scene.EPCPaths](opts, func(opts []scene.CallOption) error {
		_, err := s.TraceReflEPC(ctx, in, opt, opts...)
		return err
	})
}

// TraceReflEPCFieldSeq is TraceReflEPCField as a sequence of chunks; see IntersectSeq.
func (s *Scene) TraceReflEPCFieldSeq(ctx context.Context, in scene.EPCRows, opt scene.EPCFieldOptions, opts ...scene.CallOption) iter.Seq2[offload.Chunk[*scene.EPCFields], error] {
	return sequence[*scene.EPCFields](opts, func(opts []scene.CallOption) error {
		_, err := s.TraceReflEPCField(ctx, in, opt, opts...)
		return err
	})
}

// TraceDfrPathsSeq is TraceDfrPaths as a sequence of chunks, each with a Count of its own;
// see IntersectSeq. The layout has to be SourceLane.
func (s *Scene) TraceDfrPathsSeq(ctx context.Context, tx, rx cuda.Slice[float32], states *scene.StateTable, opt scene.DfrPathOptions, opts ...scene.CallOption) iter.Seq2[offload.Chunk[*scene.DfrPaths], error] {
	return sequence[*scene.DfrPaths](opts, func(opts []scene.CallOption) error {
		_, err := s.TraceDfrPaths(ctx, tx, rx, states, opt, opts...)
		return err
	})
}

func sequence[R scene.Reusable](opts []scene.CallOption, call func([]scene.CallOption) error) iter.Seq2[offload.Chunk[R], error] {
	return offload.Seq(func(f offload.Func[R]) error {
		return call(append(opts[:len(opts):len(opts)], Offload(f)))
	})
}
