package scene

import (
	"context"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/optixabi"
)

// buildMesh enqueues a build of the structure of shape i, which replaces the old
// one. It waits for the size of what can be compacted.
func (x *optixSearch) buildMesh(ctx context.Context, i int) error {
	m := &x.meshes[i]
	flags := optixabi.BuildPreferFastTrace | optixabi.BuildAllowCompaction
	if m.dynamic {
		flags = optixabi.BuildPreferFastTrace | optixabi.BuildAllowUpdate
	}
	old := m.optixStructure
	m.optixStructure = optixStructure{}
	m.builds++
	if err := release(x.s, &old.memory); err != nil {
		return err
	}
	return x.construct(ctx, &m.optixStructure, flags, x.triangles(i))
}

// refitMesh enqueues an update of the structure of shape i to its moved vertices.
func (x *optixSearch) refitMesh(i int) error {
	m := &x.meshes[i]
	m.updates++
	options := optixabi.AccelBuildOptions{
		BuildFlags: optixabi.BuildPreferFastTrace | optixabi.BuildAllowUpdate,
		Operation:  optixabi.OperationUpdate,
	}
	inputs := []optixabi.BuildInput{x.triangles(i)}
	sizes, err := x.usage(options.BuildFlags, inputs)
	if err != nil {
		return err
	}
	return x.withTemp(sizes.TempUpdateSizeInBytes, func(temp optixabi.Buffer) (err error) {
		m.handle, err = x.dev.table.AccelBuild(x.dev.handle, x.streamHandle(), options, inputs, temp, buffer(m.memory), nil)
		return err
	})
}

// buildInstances enqueues a build of the structure over several meshes.
func (x *optixSearch) buildInstances(ctx context.Context) error {
	if len(x.meshes) == 1 {
		return nil
	}
	all := make([]optixabi.Instance, len(x.meshes))
	for i := range all {
		all[i] = optixabi.Instance{
			Transform: identity, InstanceID: uint32(i), VisibilityMask: maxVisibility,
			TraversableHandle: x.meshes[i].handle,
		}
	}
	var table cuda.Slice[uint8]
	if err := upload(ctx, x.s, &table, optixabi.EncodeInstances(all)); err != nil {
		return err
	}
	old := x.instances
	x.instances = optixStructure{}
	return firstError(
		release(x.s, &old.memory),
		x.construct(ctx, &x.instances, optixabi.BuildPreferFastTrace,
			optixabi.InstanceArray{Instances: table.Addr(), Count: uint32(len(all))}),
		release(x.s, &table))
}

// triangles describes shape i. Faces hold global vertex ids, so every shape starts
// at the first vertex of all.
func (x *optixSearch) triangles(i int) optixabi.TriangleArray {
	h := x.t.shapes[i]
	return optixabi.TriangleArray{
		Vertices:     x.t.vertices.Addr(),
		NumVertices:  uint32(h.vertexOffset + h.vertexCount),
		Indices:      x.t.faces.Addr() + 12*uint64(h.faceOffset),
		NumTriangles: uint32(h.faceCount),
	}
}

// construct enqueues a build into new memory, compacted if the flags allow it.
func (x *optixSearch) construct(ctx context.Context, out *optixStructure, flags optixabi.BuildFlags, input optixabi.BuildInput) error {
	options := optixabi.AccelBuildOptions{BuildFlags: flags, Operation: optixabi.OperationBuild}
	inputs := []optixabi.BuildInput{input}
	sizes, err := x.usage(flags, inputs)
	if err != nil {
		return err
	}
	if err := allocate(x.s, &out.memory, int(sizes.OutputSizeInBytes)); err != nil {
		return err
	}
	if flags&optixabi.BuildAllowCompaction == 0 {
		return x.withTemp(sizes.TempSizeInBytes, func(temp optixabi.Buffer) error {
			return x.enqueue(out, options, inputs, temp, nil)
		})
	}
	var size cuda.Slice[uint64]
	if err := allocate(x.s, &size, 1); err != nil {
		return err
	}
	err = x.withTemp(sizes.TempSizeInBytes, func(temp optixabi.Buffer) error {
		return x.enqueue(out, options, inputs, temp,
			[]optixabi.AccelEmitDesc{{Result: size.Addr(), Type: optixabi.AccelCompactedSize}})
	})
	if err == nil {
		err = x.compact(ctx, out, size)
	}
	return firstError(err, release(x.s, &size))
}

func (x *optixSearch) enqueue(out *optixStructure, options optixabi.AccelBuildOptions, inputs []optixabi.BuildInput, temp optixabi.Buffer, emit []optixabi.AccelEmitDesc) (err error) {
	out.handle, err = x.dev.table.AccelBuild(x.dev.handle, x.streamHandle(), options, inputs, temp, buffer(out.memory), emit)
	return err
}

// compact waits for the size that a build has emitted, and moves the structure if
// that saves memory.
func (x *optixSearch) compact(ctx context.Context, out *optixStructure, size cuda.Slice[uint64]) error {
	got, err := cuda.Download(ctx, x.s.stream, size)
	if err != nil || got[0] == 0 || got[0] >= out.memory.Bytes() {
		return err
	}
	var small optixStructure
	if err := allocate(x.s, &small.memory, int(got[0])); err != nil {
		return err
	}
	err = x.dev.do(func() (err error) {
		small.handle, err = x.dev.table.AccelCompact(x.dev.handle, x.streamHandle(), out.handle, buffer(small.memory))
		return err
	})
	if err != nil {
		return firstError(err, release(x.s, &small.memory))
	}
	old := *out
	*out = small
	return release(x.s, &old.memory)
}

// usage is the memory that a build with these flags, and a later update, needs.
func (x *optixSearch) usage(flags optixabi.BuildFlags, inputs []optixabi.BuildInput) (sizes optixabi.AccelBufferSizes, err error) {
	options := optixabi.AccelBuildOptions{BuildFlags: flags, Operation: optixabi.OperationBuild}
	err = x.dev.do(func() (err error) {
		sizes, err = x.dev.table.AccelMemoryUsage(x.dev.handle, options, inputs)
		return err
	})
	return sizes, err
}

// withTemp runs f with the context current and scratch memory that is given back in
// stream order.
func (x *optixSearch) withTemp(bytes uint64, f func(temp optixabi.Buffer) error) error {
	var temp cuda.Slice[uint8]
	if err := allocate(x.s, &temp, int(bytes)); err != nil {
		return err
	}
	err := x.dev.do(func() error { return f(buffer(temp)) })
	return firstError(err, release(x.s, &temp))
}

func (x *optixSearch) streamHandle() uintptr { return uintptr(x.s.stream.Handle()) }
