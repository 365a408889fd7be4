package multi

import (
	"context"
	"fmt"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/scene"
)

// TraceReflEPC is equivalent-path correction (EPC): it finds for every row the specular path
// over the given surfaces, as scene.TraceReflEPC does, on all devices of the set. Rows and
// results are on the master, groups come from UploadSurfaceGroups.
//
// The cost per remote device is that of Intersect, but that 1 byte and 4 per bounce come
// back for a row.
func (s *Scene) TraceReflEPC(ctx context.Context, in scene.EPCRows, opt scene.EPCOptions, opts ...scene.CallOption) (*scene.EPCPaths, error) {
	return ask(ctx, s, epcOperation("trace_refl_epc", in.Bounces), opts, func(m *scene.Scene, opts []scene.CallOption) (*scene.EPCPaths, *scene.Call, error) {
		return m.PrepareReflEPC(ctx, in, opt, opts...)
	})
}

// TraceReflEPCField is TraceReflEPC with the field that arrives on each path, as
// scene.TraceReflEPCField gives it; materials come from UploadMaterials.
func (s *Scene) TraceReflEPCField(ctx context.Context, in scene.EPCRows, opt scene.EPCFieldOptions, opts ...scene.CallOption) (*scene.EPCFields, error) {
	return ask(ctx, s, epcOperation("trace_refl_epc_field", in.Bounces), opts, func(m *scene.Scene, opts []scene.CallOption) (*scene.EPCFields, *scene.Call, error) {
		return m.PrepareReflEPCField(ctx, in, opt, opts...)
	})
}

// epcOperation has the record that the columns of the result have.
func epcOperation(family string, bounces int) operation {
	return operation{key: fmt.Sprintf("%s:%d", family, bounces), family: family}
}

// ReflEPCOp describes TraceReflEPC to the planner. planes says that rows override the planes
// of their surfaces, active whether there is a mask.
func ReflEPCOp(bounces int, planes, active bool) chunked.Op {
	return epcOp("trace_refl_epc", bounces, epcRecord+int64(bounces)*epcSlot, planes, active)
}

// ReflEPCFieldOp describes TraceReflEPCField to the planner, without the columns of paths
// and with one polarization for all rows; see ReflEPCOp.
func ReflEPCFieldOp(bounces int, planes, active bool) chunked.Op {
	return epcOp("trace_refl_epc_field", bounces, epcFieldRecord+1+winnerBytes*int64(bounces), planes, active)
}

// Sizes of a row of TraceReflEPC, of each of its bounces, and of a row of TraceReflEPCField
// beside the winners, which it keeps.
const (
	epcRecord      = 7
	epcSlot        = 32
	epcFieldRecord = 29
)

func epcOp(family string, bounces int, record int64, planes, active bool) chunked.Op {
	o, b := epcOperation(family, bounces), int64(bounces)
	op := chunked.Op{Key: o.key, Family: o.family, In: 24 + 4*b, Wire: 1 + winnerBytes*b, Record: record}
	if planes {
		op.In += 24 * b
	}
	if active {
		op.In++
	}
	return op
}
