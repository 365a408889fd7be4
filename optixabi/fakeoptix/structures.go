package fakeoptix

import (
	"encoding/binary"

	"github.com/raymux/raymux/optixabi"
)

// structure is an acceleration structure in device memory that the fake never
// touches.
type structure struct {
	context   uintptr
	options   optixabi.AccelBuildOptions
	memory    optixabi.Buffer
	sizes     optixabi.AccelBufferSizes
	compacted bool
}

// Build is one build as the library got it.
type Build struct {
	CUDAContext uintptr
	Stream      uintptr
	Options     optixabi.AccelBuildOptions
	Triangles   []optixabi.TriangleArray
	Instances   []optixabi.InstanceArray
	Temp, Out   optixabi.Buffer
	Handle      optixabi.Traversable
}

// compactedSize is what is left of a structure of some size.
func compactedSize(size uint64) uint64 { return alignUp(size*3/4, optixabi.AccelBufferAlignment) }

func alignUp(n, to uint64) uint64 { return (n + to - 1) / to * to }

// sizesOf estimates like a driver would: linear in the primitives.
func sizesOf(primitives uint64) optixabi.AccelBufferSizes {
	return optixabi.AccelBufferSizes{
		OutputSizeInBytes:     alignUp(512+64*primitives, optixabi.AccelBufferAlignment),
		TempSizeInBytes:       alignUp(1024+16*primitives, optixabi.AccelBufferAlignment),
		TempUpdateSizeInBytes: alignUp(256+8*primitives, optixabi.AccelBufferAlignment),
	}
}

// inputs reads build inputs and counts their primitives. The lock is held.
func (c *call) inputs(abi optixabi.ABI, addr uintptr, n int) (b Build, primitives uint64, ok bool) {
	if addr == 0 || n == 0 {
		c.violate("%s: no build input", c.name)
		return b, 0, false
	}
	for i, r := 0, recordAt(abi, "OptixBuildInput", addr); i < n; i, r = i+1, r.next() {
		switch k := optixabi.BuildInputType(r.get("type")); k {
		case optixabi.InputTriangles:
			t, good := triangles(r.part("triangleArray", "OptixBuildInputTriangleArray"))
			if !good {
				c.violate("%s: bad triangle array %+v", c.name, t)
				return b, 0, false
			}
			b.Triangles = append(b.Triangles, t)
			primitives += uint64(t.NumTriangles)
		case optixabi.InputInstances:
			a := r.part("instanceArray", "OptixBuildInputInstanceArray")
			in := optixabi.InstanceArray{Instances: a.get("instances"), Count: uint32(a.get("numInstances"))}
			if in.Count > 0 && in.Instances%optixabi.InstanceAlignment != 0 {
				c.violate("%s: instances at %#x", c.name, in.Instances)
				return b, 0, false
			}
			b.Instances = append(b.Instances, in)
			primitives += uint64(in.Count)
		default:
			c.violate("%s: input type %d", c.name, k)
			return b, 0, false
		}
	}
	return b, primitives, true
}

func triangles(r record) (optixabi.TriangleArray, bool) {
	t := optixabi.TriangleArray{
		NumVertices: uint32(r.get("numVertices")), VertexStride: uint32(r.get("vertexStrideInBytes")),
		Indices: r.get("indexBuffer"), NumTriangles: uint32(r.get("numIndexTriplets")), IndexStride: uint32(r.get("indexStrideInBytes")),
	}
	vertices, flags := uintptr(r.get("vertexBuffers")), uintptr(r.get("flags"))
	if vertices == 0 || flags == 0 || r.get("numSbtRecords") != 1 ||
		r.get("vertexFormat") != uint64(optixabi.VertexFloat3) || r.get("indexFormat") != uint64(optixabi.IndicesUnsignedInt3) {
		return t, false
	}
	t.Vertices = *pointerTo[uint64](vertices)
	t.Flags = *pointerTo[optixabi.GeometryFlags](flags)
	return t, (t.VertexStride == 0 || t.VertexStride >= 12) && (t.IndexStride == 0 || t.IndexStride >= 12) && t.Vertices%4 == 0 && t.Indices%4 == 0
}

func (c *call) accelUsage() optixabi.Result {
	return c.onContext(func(ctx *object) optixabi.Result {
		_, n, ok := c.inputs(ctx.abi, c.args[2], int(c.word(3)))
		if !ok || c.args[1] == 0 || c.args[4] == 0 {
			return optixabi.ErrorInvalidValue
		}
		store(c.args[4], sizesOf(n))
		return optixabi.Success
	})
}

func (c *call) accelBuild() optixabi.Result {
	var b Build
	var emit []optixabi.AccelEmitDesc
	r := c.onContext(func(ctx *object) optixabi.Result {
		var n uint64
		var ok bool
		if b, n, ok = c.inputs(ctx.abi, c.args[3], int(c.word(4))); !ok || c.args[2] == 0 {
			return optixabi.ErrorInvalidValue
		}
		b.CUDAContext, b.Stream = ctx.context, c.args[1]
		b.Options = *pointerTo[optixabi.AccelBuildOptions](c.args[2])
		b.Temp = optixabi.Buffer{Addr: uint64(c.args[5]), Size: uint64(c.args[6])}
		b.Out = optixabi.Buffer{Addr: uint64(c.args[7]), Size: uint64(c.args[8])}
		if k := int(c.word(11)); k > 0 {
			emit = append(emit, sliceAt[optixabi.AccelEmitDesc](c.args[10], k)...)
		}
		s := &structure{context: ctx.handle, options: b.Options, memory: b.Out, sizes: sizesOf(n)}
		if r := c.checkBuild(b, s); r != optixabi.Success {
			return r
		}
		b.Handle = handleOf(b.Out)
		c.structures[b.Handle] = s
		store(c.args[9], b.Handle)
		return optixabi.Success
	})
	if r != optixabi.Success {
		return r
	}
	for _, e := range emit {
		if e.Type == optixabi.AccelCompactedSize && c.cfg.WriteDevice != nil {
			c.cfg.WriteDevice(e.Result, binary.LittleEndian.AppendUint64(nil, compactedSize(b.Out.Size)))
		}
	}
	if c.cfg.OnBuild != nil {
		c.cfg.OnBuild(b)
	}
	return optixabi.Success
}

// handleOf derives a traversable from its place, as real ones are.
func handleOf(out optixabi.Buffer) optixabi.Traversable { return optixabi.Traversable(out.Addr | 1) }

// checkBuild compares the buffers of a build with what it needs. The lock is
// held.
func (c *call) checkBuild(b Build, s *structure) optixabi.Result {
	temp := s.sizes.TempSizeInBytes
	switch b.Options.Operation {
	case optixabi.OperationBuild:
	case optixabi.OperationUpdate:
		temp = s.sizes.TempUpdateSizeInBytes
		old := c.structures[handleOf(b.Out)]
		if old == nil || old.options.BuildFlags&optixabi.BuildAllowUpdate == 0 || old.options.BuildFlags != b.Options.BuildFlags {
			return c.violate("%s: update of a structure that does not allow it, or with other flags", c.name)
		}
		// A compacted structure needs no more room than it has.
		s.sizes.OutputSizeInBytes, s.compacted = old.memory.Size, old.compacted
	default:
		return c.violate("%s: operation %d", c.name, b.Options.Operation)
	}
	if b.Temp.Addr == 0 || b.Out.Addr == 0 || (b.Temp.Addr|b.Out.Addr)%optixabi.AccelBufferAlignment != 0 {
		return c.violate("%s: buffers at %#x and %#x, need alignment %d", c.name, b.Temp.Addr, b.Out.Addr, optixabi.AccelBufferAlignment)
	}
	if b.Temp.Size < temp || b.Out.Size < s.sizes.OutputSizeInBytes {
		return c.violate("%s: buffers of %d and %d bytes, need %d and %d", c.name, b.Temp.Size, b.Out.Size, temp, s.sizes.OutputSizeInBytes)
	}
	return optixabi.Success
}

// structureOf is the structure behind a traversable. The lock is held.
func (c *call) structureOf(h uintptr) *structure {
	s := c.structures[optixabi.Traversable(h)]
	if s == nil {
		c.violate("%s: %#x is no structure", c.name, h)
	}
	return s
}

func (c *call) accelCompact() optixabi.Result {
	return c.onContext(func(ctx *object) optixabi.Result {
		s := c.structureOf(c.args[2])
		if s == nil {
			return optixabi.ErrorInvalidValue
		}
		out := optixabi.Buffer{Addr: uint64(c.args[3]), Size: uint64(c.args[4])}
		switch {
		case s.options.BuildFlags&optixabi.BuildAllowCompaction == 0:
			return c.violate("%s: the structure was built without allowing it", c.name)
		case out.Addr == 0 || out.Addr%optixabi.AccelBufferAlignment != 0 || out.Size < compactedSize(s.memory.Size):
			return c.violate("%s: %d bytes at %#x, need %d", c.name, out.Size, out.Addr, compactedSize(s.memory.Size))
		}
		moved := *s
		moved.memory, moved.compacted = out, true
		c.structures[handleOf(out)] = &moved
		store(c.args[5], handleOf(out))
		return optixabi.Success
	})
}

// relocationMark is in every relocation info, to tell others from ours.
const relocationMark = 0x7265_6c6f_6361

func (c *call) relocationInfo() optixabi.Result {
	return c.onContext(func(*object) optixabi.Result {
		if c.structureOf(c.args[1]) == nil {
			return optixabi.ErrorInvalidValue
		}
		store(c.args[2], optixabi.RelocationInfo{Info: [4]uint64{relocationMark, uint64(c.args[1])}})
		return optixabi.Success
	})
}

func (c *call) relocationCompatible() optixabi.Result {
	return c.onContext(func(*object) optixabi.Result {
		var yes int32
		if info := *pointerTo[optixabi.RelocationInfo](c.args[1]); info.Info[0] == relocationMark && !c.cfg.Incompatible {
			yes = 1
		}
		store(c.args[2], yes)
		return optixabi.Success
	})
}

func (c *call) accelRelocate() optixabi.Result {
	return c.onContext(func(ctx *object) optixabi.Result {
		info := *pointerTo[optixabi.RelocationInfo](c.args[2])
		s := c.structureOf(uintptr(info.Info[1]))
		target := optixabi.Buffer{Addr: uint64(c.args[5]), Size: uint64(c.args[6])}
		if s == nil || info.Info[0] != relocationMark || c.cfg.Incompatible {
			return optixabi.ErrorInvalidValue
		}
		if target.Addr == 0 || target.Addr%optixabi.AccelBufferAlignment != 0 || target.Size < s.memory.Size {
			return c.violate("%s: %d bytes at %#x, need %d", c.name, target.Size, target.Addr, s.memory.Size)
		}
		moved := *s
		moved.context, moved.memory = ctx.handle, target
		c.structures[handleOf(target)] = &moved
		store(c.args[7], handleOf(target))
		return optixabi.Success
	})
}
