package multi

import (
	"context"
	"fmt"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/scene"
)

func reflectOperation(bounces int, fields scene.ChainFields) operation {
	return operation{key: fmt.Sprintf("trace_reflections:%d", bounces), family: "trace_reflections", record: scene.ChainRowBytes(bounces, fields)}
}

// TraceReflections follows every ray over at most maxBounces reflections, as
// scene.TraceReflections does, on all devices of the set. Rays and results are on the
// master; the call returns when the work is enqueued on the caller's stream.
//
// The cost per remote device is that of Intersect, but that four bytes per bounce come
// back for a row.
func (s *Scene) TraceReflections(ctx context.Context, rays scene.Rays, maxBounces int, fields scene.ChainFields, opts ...scene.CallOption) (*scene.Chains, error) {
	return ask(ctx, s, reflectOperation(maxBounces, fields), opts, func(m *scene.Scene, opts []scene.CallOption) (*scene.Chains, *scene.Call, error) {
		return m.PrepareReflections(ctx, rays, maxBounces, fields, opts...)
	})
}

// ReflectionsOp describes TraceReflections with these columns to the planner.
// rayBytes is 24, plus 4 with TMax, plus 1 with Active.
func ReflectionsOp(bounces int, fields scene.ChainFields, rayBytes int64) chunked.Op {
	o := reflectOperation(bounces, fields)
	return chunked.Op{Key: o.key, Family: o.family, In: rayBytes, Wire: winnerBytes * int64(bounces), Record: o.record}
}
