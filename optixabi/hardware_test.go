//go:build !nocuda && (linux || windows)

package optixabi_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/optixabi"
	"github.com/raymux/raymux/tests/gputest"
)

// probeProgram traces one ray per launch index i, from (i, 0, 5) along -z, and
// stores hit(primitive, instance id) of what it hits, or 0.
func probeProgram() []byte {
	registers := func(prefix string, n int) string {
		names := make([]string, n)
		for i := range names {
			names[i] = fmt.Sprintf("%%%s%d", prefix, i)
		}
		return strings.Join(names, ", ")
	}
	return []byte(`.version 7.0
.target sm_75
.address_size 64
.const .align 8 .b8 params[16];
.visible .entry __raygen__probe()
{
	.reg .f32 %f<8>;
	.reg .b32 %q<32>;
	.reg .b32 %p<32>;
	.reg .b32 %r<8>;
	.reg .b64 %d<4>;
	ld.const.u64 %d0, [params];
	ld.const.u64 %d1, [params+8];
	call (%r0), _optix_get_launch_index_x, ();
	cvt.rn.f32.u32 %f0, %r0;
	mov.f32 %f1, 0f00000000;
	mov.f32 %f2, 0f40A00000;
	mov.f32 %f3, 0fBF800000;
	mov.f32 %f4, 0f41200000;
	mov.u32 %r1, 0;
	mov.u32 %r2, 255;
	mov.u32 %r3, 1;
	mov.u32 %p0, 0;
	call (` + registers("q", 32) + `), _optix_trace_typed_32, (%r1, %d0, %f0, %f1, %f2, %f1, %f1, %f3, %f1, %f4, %f1, %r2, %r1, %r1, %r3, %r1, %r3, ` + registers("p", 32) + `);
	mul.wide.u32 %d2, %r0, 4;
	add.u64 %d3, %d1, %d2;
	st.global.u32 [%d3], %q0;
	ret;
}
.visible .entry __miss__probe()
{
	.reg .b32 %r<2>;
	mov.u32 %r0, 0;
	call (), _optix_set_payload, (%r0, %r0);
	ret;
}
.visible .entry __closesthit__probe()
{
	.reg .b32 %r<6>;
	call (%r0), _optix_read_primitive_idx, ();
	call (%r1), _optix_read_instance_id, ();
	mad.lo.u32 %r2, %r1, 100, %r0;
	add.u32 %r3, %r2, 1;
	mov.u32 %r4, 0;
	call (), _optix_set_payload, (%r4, %r3);
	ret;
}
`)
}

// hit is the word that the program stores.
func hit(primitive int, instance uint32) uint32 { return uint32(primitive) + 1 + 100*instance }

// noInstance is the instance id in a structure without instances.
const noInstance = 0xffffffff

const triangleCount = 8

// rowOfTriangles has triangle i around x = 2i + shift.
func rowOfTriangles(shift float32) (vertices []float32, faces []int32) {
	for i := range triangleCount {
		x := float32(2*i) + shift
		vertices = append(vertices, x-.5, -1, 0, x+.5, -1, 0, x, 1, 0)
		faces = append(faces, int32(3*i), int32(3*i+1), int32(3*i+2))
	}
	return vertices, faces
}

// gpu is a device with OptiX under one ABI.
type gpu struct {
	*testing.T
	c      *cuda.Context
	s      *cuda.Stream
	table  *optixabi.Table
	device optixabi.DeviceContext
	keep   []cuda.Slice[uint8]
}

// memory is device memory that lives as long as the test.
func (g *gpu) memory(n uint64) optixabi.Buffer {
	s, err := cuda.Alloc[uint8](g.c, int(n))
	require.NoError(g, err)
	g.keep = append(g.keep, s)
	require.Zero(g, s.Addr()%optixabi.AccelBufferAlignment)
	return optixabi.Buffer{Addr: s.Addr(), Size: n}
}

func (g *gpu) upload(data []byte) optixabi.Buffer {
	b := g.memory(uint64(len(data)))
	require.NoError(g, cuda.CopyIn(context.Background(), g.s, g.keep[len(g.keep)-1], data))
	return b
}

func bytesOf[T any](values []T) []byte {
	b, err := binary.Append(nil, binary.LittleEndian, values)
	if err != nil {
		panic(err)
	}
	return b
}

// read waits for the stream and copies device memory that memory gave.
func (g *gpu) read(b optixabi.Buffer) []byte {
	for _, s := range g.keep {
		if s.Addr() == b.Addr {
			data, err := cuda.Download(context.Background(), g.s, s)
			require.NoError(g, err)
			return data
		}
	}
	g.Fatal("no such memory")
	return nil
}

func (g *gpu) do(f func() error) {
	g.Helper()
	require.NoError(g, g.c.Do(f))
}

func (g *gpu) stream() uintptr { return uintptr(g.s.Handle()) }

// build makes a structure, compacted if its options allow it.
func (g *gpu) build(o optixabi.AccelBuildOptions, inputs []optixabi.BuildInput) (h optixabi.Traversable, out optixabi.Buffer) {
	var sizes optixabi.AccelBufferSizes
	g.do(func() (err error) {
		sizes, err = g.table.AccelMemoryUsage(g.device, o, inputs)
		return err
	})
	temp := g.memory(sizes.TempSizeInBytes)
	out = g.memory(sizes.OutputSizeInBytes)
	var emit []optixabi.AccelEmitDesc
	size := g.memory(8)
	if o.BuildFlags&optixabi.BuildAllowCompaction != 0 {
		emit = []optixabi.AccelEmitDesc{{Result: size.Addr, Type: optixabi.AccelCompactedSize}}
	}
	g.do(func() (err error) {
		h, err = g.table.AccelBuild(g.device, g.stream(), o, inputs, temp, out, emit)
		return err
	})
	require.NotZero(g, h)
	if emit == nil {
		return h, out
	}
	compacted := binary.LittleEndian.Uint64(g.read(size))
	require.NotZero(g, compacted)
	require.LessOrEqual(g, compacted, out.Size)
	small := g.memory(compacted)
	g.do(func() (err error) {
		h, err = g.table.AccelCompact(g.device, g.stream(), h, small)
		return err
	})
	return h, small
}

// program is a pipeline with its shader binding table.
type program struct {
	pipe   optixabi.Pipeline
	sbt    optixabi.ShaderBindingTable
	out    optixabi.Buffer
	module optixabi.Module
	groups []optixabi.ProgramGroup
}

const rays = 2 * triangleCount

func (g *gpu) program(graph optixabi.GraphFlags) *program {
	p := &program{}
	po := &optixabi.PipelineCompileOptions{
		TraversableGraphFlags: graph, NumPayloadValues: 1, NumAttributeValues: 2, LaunchParamsName: "params", LaunchParamsSize: 16,
		PrimitiveTypeFlags: optixabi.PrimitiveTriangle,
	}
	start := time.Now()
	g.do(func() (err error) {
		var log string
		if p.module, log, err = g.table.ModuleCreate(g.device, &optixabi.ModuleCompileOptions{}, po, probeProgram()); err != nil {
			return err
		}
		moduleTime := time.Since(start)
		at := func(name string) optixabi.EntryPoint { return optixabi.EntryPoint{Module: p.module, Name: name} }
		if p.groups, _, err = g.table.ProgramGroupCreate(g.device, []optixabi.ProgramGroupDesc{
			{Kind: optixabi.GroupRaygen, Program: at("__raygen__probe")},
			{Kind: optixabi.GroupMiss, Program: at("__miss__probe")},
			{Kind: optixabi.GroupHitgroup, ClosestHit: at("__closesthit__probe")},
		}); err != nil {
			return err
		}
		start = time.Now()
		if p.pipe, _, err = g.table.PipelineCreate(g.device, po, optixabi.PipelineLinkOptions{MaxTraceDepth: 1}, p.groups); err != nil {
			return err
		}
		g.Logf("ABI %v: module %v, pipeline %v, log %q", g.table.ABI(), moduleTime, time.Since(start), log)
		var sizes []optixabi.StackSizes
		for _, group := range p.groups {
			s, err := g.table.ProgramGroupStackSizes(group, p.pipe)
			if err != nil {
				return err
			}
			sizes = append(sizes, s)
		}
		depth := uint32(1)
		if graph == optixabi.GraphAllowSingleLevelInstancing {
			depth = 2
		}
		return g.table.PipelineSetStackSize(p.pipe, optixabi.PipelineStack{Continuation: optixabi.ContinuationStack(1, sizes...), MaxGraphDepth: depth})
	})
	var records []byte
	for _, group := range p.groups {
		header := make([]byte, optixabi.SBTRecordHeaderSize)
		g.do(func() error { return g.table.SBTRecordPackHeader(group, header) })
		records = append(records, header...)
	}
	table := g.upload(records)
	p.sbt = optixabi.ShaderBindingTable{
		RaygenRecord: table.Addr, MissRecordBase: table.Addr + 32, MissRecordStrideInBytes: 32, MissRecordCount: 1,
		HitgroupRecordBase: table.Addr + 64, HitgroupRecordStrideInBytes: 32, HitgroupRecordCount: 1,
	}
	p.out = g.memory(4 * rays)
	return p
}

// trace launches and returns what each ray found.
func (g *gpu) trace(p *program, h optixabi.Traversable) []uint32 {
	params := g.upload(bytesOf([]uint64{uint64(h), p.out.Addr}))
	g.do(func() error { return g.table.Launch(p.pipe, g.stream(), params, &p.sbt, rays, 1, 1) })
	found := make([]uint32, rays)
	_, err := binary.Decode(g.read(p.out), binary.LittleEndian, found)
	require.NoError(g, err)
	return found
}

func (g *gpu) destroy(p *program) {
	g.do(func() error { return g.table.PipelineDestroy(p.pipe) })
	for _, group := range p.groups {
		g.do(func() error { return g.table.ProgramGroupDestroy(group) })
	}
	g.do(func() error { return g.table.ModuleDestroy(p.module) })
}

// TestHardware builds, compacts, refits, moves, instances and traces triangles
// on a GPU under every tested ABI.
func TestHardware(t *testing.T) {
	if !gputest.Native() {
		t.Skip("needs a GPU with an OptiX driver: set " + gputest.DevicesVariable)
	}
	lib, err := optixabi.Open(optixabi.Options{})
	require.NoError(t, err)
	t.Logf("library %s, driver %q", lib.Path(), lib.DriverVersion())
	rig := gputest.Open(t, 1, nil)
	c := rig.Context(t, 0)
	s, err := c.NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })

	var newest *optixabi.Table
	require.NoError(t, c.Do(func() (err error) {
		newest, err = lib.Negotiate(optixabi.NegotiateOptions{})
		return err
	}))
	t.Logf("negotiated ABI %v", newest.ABI())
	for _, abi := range []optixabi.ABI{optixabi.ABI87, optixabi.ABI93, optixabi.ABI105, optixabi.ABI118} {
		t.Run(abi.String(), func(t *testing.T) {
			g := &gpu{T: t, c: c, s: s}
			err := c.Do(func() (err error) {
				g.table, err = lib.Negotiate(optixabi.NegotiateOptions{Only: abi})
				return err
			})
			if abi > newest.ABI() {
				assert.ErrorIs(t, err, optixabi.ErrDriverTooOld, "if this driver knows ABI %v, it can be tested now", abi)
				t.Skipf("the driver does not know ABI %v", abi)
			}
			require.NoError(t, err)
			testGPU(g)
		})
	}
}

func testGPU(g *gpu) {
	var r recorder
	start := time.Now()
	g.do(func() (err error) {
		g.device, err = g.table.DeviceContextCreate(uintptr(g.c.Handle()), optixabi.DeviceContextOptions{
			Log: slog.New(&r), LogLevel: optixabi.LogStatus, Validation: optixabi.ValidationAll,
		})
		return err
	})
	g.Logf("device context %v", time.Since(start))
	defer func() {
		g.do(func() error { return g.table.DeviceContextDestroy(g.device) })
		for _, m := range g.keep {
			assert.NoError(g, cuda.Free(m))
		}
	}()
	assert.Equal(g, "OPTIX_ERROR_LAUNCH_FAILURE", g.table.ErrorName(optixabi.ErrorLaunchFailure))
	assert.NotEmpty(g, g.table.ErrorString(optixabi.ErrorLaunchFailure))
	g.do(func() error {
		cores, err := g.table.DeviceProperty(g.device, optixabi.PropertyRTCoreVersion)
		g.Logf("ray-tracing cores: version %d", cores)
		return err
	})
	dir := g.TempDir()
	g.do(func() error { return g.table.SetCacheLocation(g.device, dir) })
	g.do(func() error {
		have, err := g.table.CacheLocation(g.device)
		g.Logf("cache in %s", have)
		return err
	})
	g.do(func() error { return g.table.SetCacheSizes(g.device, 1<<20, 1<<21) })
	g.do(func() error { _, _, err := g.table.CacheSizes(g.device); return err })
	g.do(func() error { return g.table.SetCacheEnabled(g.device, false) })
	g.do(func() error {
		on, err := g.table.CacheEnabled(g.device)
		assert.False(g, on)
		return err
	})

	// A program that the compiler refuses: text in error and log.
	err := g.c.Do(func() error {
		_, _, err := g.table.ModuleCreate(g.device, &optixabi.ModuleCompileOptions{}, &optixabi.PipelineCompileOptions{NumAttributeValues: 2},
			[]byte(strings.Replace(string(probeProgram()), "_optix_get_launch_index_x", "_optix_no_such_function", 1)))
		return err
	})
	var failed *optixabi.Error
	require.ErrorAs(g, err, &failed)
	assert.Contains(g, failed.Log, "_optix_no_such_function")
	assert.Contains(g, strings.Join(r.take(), "\n"), "_optix_no_such_function", "the log callback got the text too")

	// One mesh: odd rays pass between the triangles.
	even, odd := make([]uint32, rays), make([]uint32, rays)
	for i := range triangleCount {
		even[2*i], odd[2*i+1] = hit(i, noInstance), hit(i, noInstance)
	}
	vertices, faces := rowOfTriangles(0)
	v := g.upload(bytesOf(vertices))
	mesh := optixabi.TriangleArray{Vertices: v.Addr, NumVertices: 3 * triangleCount, Indices: g.upload(bytesOf(faces)).Addr, NumTriangles: triangleCount}
	inputs := []optixabi.BuildInput{mesh}
	o := optixabi.AccelBuildOptions{
		BuildFlags: optixabi.BuildPreferFastTrace | optixabi.BuildAllowCompaction | optixabi.BuildAllowUpdate, Operation: optixabi.OperationBuild,
	}
	h, memory := g.build(o, inputs)
	p := g.program(optixabi.GraphAllowSingleGAS)
	defer g.destroy(p)
	assert.Equal(g, even, g.trace(p, h))

	// Relocated to other memory of the device.
	var info optixabi.RelocationInfo
	var fits bool
	g.do(func() (err error) {
		if info, err = g.table.AccelRelocationInfo(g.device, h); err != nil {
			return err
		}
		fits, err = g.table.RelocationCompatible(g.device, info)
		return err
	})
	require.True(g, fits)
	for _, in := range [][]optixabi.RelocateInput{nil, {optixabi.RelocateTriangles{}}} {
		moved := g.upload(g.read(memory))
		var h2 optixabi.Traversable
		g.do(func() (err error) {
			h2, err = g.table.AccelRelocate(g.device, g.stream(), info, in, moved)
			return err
		})
		assert.Equal(g, even, g.trace(p, h2), "relocated with %d inputs", len(in))
	}

	// Refitted one to the right.
	shifted, _ := rowOfTriangles(1)
	mesh.Vertices = g.upload(bytesOf(shifted)).Addr
	inputs[0] = mesh
	o.Operation = optixabi.OperationUpdate
	var sizes optixabi.AccelBufferSizes
	g.do(func() (err error) {
		sizes, err = g.table.AccelMemoryUsage(g.device, o, inputs)
		return err
	})
	temp := g.memory(max(1, sizes.TempUpdateSizeInBytes))
	g.do(func() (err error) {
		h, err = g.table.AccelBuild(g.device, g.stream(), o, inputs, temp, memory, nil)
		return err
	})
	assert.Equal(g, odd, g.trace(p, h))

	// Two instances of it: one in place and one moved back by 1. A third one
	// has no visibility and would be in front.
	identity := func(x, z float32) (m [12]float32) {
		m[0], m[5], m[10], m[3], m[11] = 1, 1, 1, x, z
		return m
	}
	all := []optixabi.Instance{
		{Transform: identity(0, 0), InstanceID: 2, VisibilityMask: 255, TraversableHandle: h},
		{Transform: identity(-1, 0), InstanceID: 3, VisibilityMask: 255, TraversableHandle: h},
		{Transform: identity(0, 1), InstanceID: 9, TraversableHandle: h},
	}
	instances := g.upload(optixabi.EncodeInstances(all))
	o = optixabi.AccelBuildOptions{BuildFlags: optixabi.BuildPreferFastTrace, Operation: optixabi.OperationBuild}
	top, _ := g.build(o, []optixabi.BuildInput{optixabi.InstanceArray{Instances: instances.Addr, Count: uint32(len(all))}})
	p2 := g.program(optixabi.GraphAllowSingleLevelInstancing)
	defer g.destroy(p2)
	both := make([]uint32, rays)
	for i := range both {
		both[i] = hit(i/2, uint32(3-i%2))
	}
	assert.Equal(g, both, g.trace(p2, top))
}
