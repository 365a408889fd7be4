package optixabi

import "unsafe"

// BuildInput is what an acceleration structure is built from: TriangleArray or
// InstanceArray.
type BuildInput interface {
	// write fills an OptixBuildInput.
	write(r record, b *block)
}

// TriangleArray is a mesh in device memory, with one record in the shader
// binding table.
type TriangleArray struct {
	Vertices     uint64 // address of three floats per vertex
	NumVertices  uint32
	VertexStride uint32 // bytes; 0 means 12
	Indices      uint64 // address of three 32-bit indices per triangle
	NumTriangles uint32
	IndexStride  uint32 // bytes; 0 means 12
	Flags        GeometryFlags
}

func (a TriangleArray) write(r record, b *block) {
	// The library reads the address of the vertices and the flags from arrays
	// in host memory.
	vertices, flags := a.Vertices, a.Flags
	r.set("type", uint64(InputTriangles))
	t := r.part("triangleArray", "OptixBuildInputTriangleArray")
	t.set("vertexBuffers", uint64(pin(b, &vertices)))
	t.set("numVertices", uint64(a.NumVertices))
	t.set("vertexFormat", uint64(VertexFloat3))
	t.set("vertexStrideInBytes", uint64(a.VertexStride))
	t.set("indexBuffer", a.Indices)
	t.set("numIndexTriplets", uint64(a.NumTriangles))
	t.set("indexFormat", uint64(IndicesUnsignedInt3))
	t.set("indexStrideInBytes", uint64(a.IndexStride))
	t.set("flags", uint64(pin(b, &flags)))
	t.set("numSbtRecords", 1)
}

// InstanceArray is an array of Instance in device memory, aligned to
// InstanceAlignment.
type InstanceArray struct {
	Instances uint64 // address
	Count     uint32
}

func (a InstanceArray) write(r record, _ *block) {
	r.set("type", uint64(InputInstances))
	i := r.part("instanceArray", "OptixBuildInputInstanceArray")
	i.set("instances", a.Instances)
	i.set("numInstances", uint64(a.Count))
}

// EncodeInstances is the array as it has to lie in device memory. The bytes
// are those of the slice, not a copy.
func EncodeInstances(all []Instance) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(all))), len(all)*int(unsafe.Sizeof(Instance{})))
}

// buildInputs is the address of an array of OptixBuildInput.
func (t *Table) buildInputs(b *block, inputs []BuildInput) uintptr {
	if len(inputs) == 0 {
		return 0
	}
	all := newRecords(t.ABI(), "OptixBuildInput", len(inputs))
	for i, in := range inputs {
		in.write(all[i], b)
	}
	return b.record(all[0])
}

// AccelMemoryUsage says how much memory a build needs. All inputs are of one
// kind.
func (t *Table) AccelMemoryUsage(c DeviceContext, o AccelBuildOptions, inputs []BuildInput) (AccelBufferSizes, error) {
	var s AccelBufferSizes
	b := getBlock()
	defer b.put()
	code := t.call(fnAccelComputeMemoryUsage, b, uintptr(c), pin(b, &o), t.buildInputs(b, inputs), uintptr(len(inputs)), pin(b, &s))
	return s, callError(fnAccelComputeMemoryUsage, code, "")
}

// AccelBuild enqueues a build, or with OperationUpdate a refit of what lies in
// out, on a stream. Both buffers are aligned to AccelBufferAlignment; temp may
// be reused when the build is over. Emitted properties are written in stream
// order.
func (t *Table) AccelBuild(c DeviceContext, stream uintptr, o AccelBuildOptions, inputs []BuildInput, temp, out Buffer, emit []AccelEmitDesc) (Traversable, error) {
	b := getBlock()
	defer b.put()
	var props uintptr
	if len(emit) > 0 {
		props = pin(b, unsafe.SliceData(emit))
	}
	code := t.call(fnAccelBuild, b, uintptr(c), stream, pin(b, &o), t.buildInputs(b, inputs), uintptr(len(inputs)),
		uintptr(temp.Addr), uintptr(temp.Size), uintptr(out.Addr), uintptr(out.Size), b.ref(0), props, uintptr(len(emit)))
	if code != Success {
		return 0, callError(fnAccelBuild, code, "")
	}
	return Traversable(b.out[0]), nil
}

// AccelCompact enqueues a copy of a structure into a buffer of its compacted
// size. The structure must have been built with BuildAllowCompaction.
func (t *Table) AccelCompact(c DeviceContext, stream uintptr, in Traversable, out Buffer) (Traversable, error) {
	b := getBlock()
	defer b.put()
	code := t.call(fnAccelCompact, b, uintptr(c), stream, uintptr(in), uintptr(out.Addr), uintptr(out.Size), b.ref(0))
	if code != Success {
		return 0, callError(fnAccelCompact, code, "")
	}
	return Traversable(b.out[0]), nil
}
