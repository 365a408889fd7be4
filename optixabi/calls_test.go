//go:build !nocuda && (linux || windows)

package optixabi_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/optixabi"
	"github.com/raymux/raymux/optixabi/fakeoptix"
)

const programs = `.version 8.0
.visible .entry __raygen__trace() { ret; }
.visible .entry __miss__none() { ret; }
.visible .func __closesthit__hit() { ret; }
.visible .entry __anyhit__skip() { ret; }`

func newFake(t *testing.T, cfg fakeoptix.Config) *fakeoptix.Fake {
	t.Helper()
	f, err := fakeoptix.New(cfg)
	require.NoError(t, err)
	t.Cleanup(f.Close)
	return f
}

// onlyABI is a library that knows one ABI.
func onlyABI(abi optixabi.ABI) map[optixabi.ABI]fakeoptix.Answer {
	return map[optixabi.ABI]fakeoptix.Answer{abi: {}}
}

func negotiate(t *testing.T, f *fakeoptix.Fake) *optixabi.Table {
	t.Helper()
	table, err := f.Library().Negotiate(optixabi.NegotiateOptions{Untested: true})
	require.NoError(t, err)
	return table
}

var allABIs = []optixabi.ABI{optixabi.ABI87, optixabi.ABI93, optixabi.ABI105, optixabi.ABI118}

// pipe is everything that a launch needs.
type pipe struct {
	t      *optixabi.Table
	ctx    optixabi.DeviceContext
	module optixabi.Module
	groups []optixabi.ProgramGroup
	pipe   optixabi.Pipeline
}

var (
	compileOptions = optixabi.PipelineCompileOptions{
		TraversableGraphFlags: optixabi.GraphAllowSingleLevelInstancing, NumPayloadValues: 2, NumAttributeValues: 2,
		LaunchParamsName: "params", LaunchParamsSize: 48, PrimitiveTypeFlags: optixabi.PrimitiveTriangle,
	}
	moduleOptions = optixabi.ModuleCompileOptions{OptLevel: optixabi.OptimizationLevel3}
)

// cold makes everything from nothing. When a step fails, what was made before
// is destroyed.
func cold(t *optixabi.Table) (p *pipe, err error) {
	p = &pipe{t: t}
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	if p.ctx, err = t.DeviceContextCreate(0, optixabi.DeviceContextOptions{}); err != nil {
		return p, err
	}
	if p.module, _, err = t.ModuleCreate(p.ctx, &moduleOptions, &compileOptions, []byte(programs)); err != nil {
		return p, err
	}
	entry := func(name string) optixabi.EntryPoint { return optixabi.EntryPoint{Module: p.module, Name: name} }
	if p.groups, _, err = t.ProgramGroupCreate(p.ctx, []optixabi.ProgramGroupDesc{
		{Kind: optixabi.GroupRaygen, Program: entry("__raygen__trace")},
		{Kind: optixabi.GroupMiss, Program: entry("__miss__none")},
		{Kind: optixabi.GroupHitgroup, ClosestHit: entry("__closesthit__hit"), AnyHit: entry("__anyhit__skip")},
	}); err != nil {
		return p, err
	}
	if p.pipe, _, err = t.PipelineCreate(p.ctx, &compileOptions, optixabi.PipelineLinkOptions{MaxTraceDepth: 1}, p.groups); err != nil {
		return p, err
	}
	var sizes []optixabi.StackSizes
	for _, g := range p.groups {
		s, err := t.ProgramGroupStackSizes(g, p.pipe)
		if err != nil {
			return p, err
		}
		sizes = append(sizes, s)
	}
	return p, t.PipelineSetStackSize(p.pipe, optixabi.PipelineStack{Continuation: optixabi.ContinuationStack(1, sizes...), MaxGraphDepth: 2})
}

func (p *pipe) close() (errs []error) {
	add := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	if p.pipe != 0 {
		add(p.t.PipelineDestroy(p.pipe))
	}
	for _, g := range p.groups {
		add(p.t.ProgramGroupDestroy(g))
	}
	if p.module != 0 {
		add(p.t.ModuleDestroy(p.module))
	}
	if p.ctx != 0 {
		add(p.t.DeviceContextDestroy(p.ctx))
	}
	return errs
}

// TestColdCreation makes, uses and destroys everything once under every ABI,
// and checks what arrived on the other side.
func TestColdCreation(t *testing.T) {
	for _, abi := range allABIs {
		t.Run(abi.String(), func(t *testing.T) {
			var launches []fakeoptix.Launch
			var builds []fakeoptix.Build
			written := map[uint64][]byte{}
			f := newFake(t, fakeoptix.Config{
				ABIs: onlyABI(abi), RTCores: 30,
				OnLaunch:    func(l fakeoptix.Launch) optixabi.Result { launches = append(launches, l); return 0 },
				OnBuild:     func(b fakeoptix.Build) { builds = append(builds, b) },
				WriteDevice: func(addr uint64, data []byte) { written[addr] = data },
			})
			table := negotiate(t, f)
			assert.Equal(t, abi, table.ABI())
			p, err := cold(table)
			require.NoError(t, err)
			assert.Equal(t, fakeoptix.Live{Contexts: 1, Modules: 1, ProgramGroups: 3, Pipelines: 1}, f.Live())

			cores, err := table.DeviceProperty(p.ctx, optixabi.PropertyRTCoreVersion)
			require.NoError(t, err)
			assert.EqualValues(t, 30, cores)
			depth, err := table.DeviceProperty(p.ctx, optixabi.PropertyLimitMaxTraceDepth)
			require.NoError(t, err)
			assert.EqualValues(t, 31, depth)

			// A mesh: build, compact, update the copy, move it elsewhere.
			mesh := optixabi.TriangleArray{Vertices: 0x1000, NumVertices: 4, VertexStride: 12, Indices: 0x2000, NumTriangles: 2, IndexStride: 12}
			inputs := []optixabi.BuildInput{mesh}
			o := optixabi.AccelBuildOptions{
				BuildFlags: optixabi.BuildPreferFastTrace | optixabi.BuildAllowCompaction | optixabi.BuildAllowUpdate, Operation: optixabi.OperationBuild,
			}
			sizes, err := table.AccelMemoryUsage(p.ctx, o, inputs)
			require.NoError(t, err)
			require.NotZero(t, sizes.OutputSizeInBytes)
			temp := optixabi.Buffer{Addr: 0x10000, Size: sizes.TempSizeInBytes}
			out := optixabi.Buffer{Addr: 0x20000, Size: sizes.OutputSizeInBytes}
			h, err := table.AccelBuild(p.ctx, 9, o, inputs, temp, out, []optixabi.AccelEmitDesc{{Result: 0x3000, Type: optixabi.AccelCompactedSize}})
			require.NoError(t, err)
			require.Len(t, builds, 1)
			assert.Equal(t, fakeoptix.Build{Stream: 9, Options: o, Triangles: []optixabi.TriangleArray{mesh}, Temp: temp, Out: out, Handle: h}, builds[0])
			require.Len(t, written[0x3000], 8)
			small := binary.LittleEndian.Uint64(written[0x3000])
			assert.Less(t, small, out.Size)
			compact := optixabi.Buffer{Addr: 0x30000, Size: small}
			h2, err := table.AccelCompact(p.ctx, 9, h, compact)
			require.NoError(t, err)
			assert.NotEqual(t, h, h2)
			o.Operation = optixabi.OperationUpdate
			temp.Size = sizes.TempUpdateSizeInBytes
			h3, err := table.AccelBuild(p.ctx, 9, o, inputs, temp, compact, nil)
			require.NoError(t, err)
			assert.Equal(t, h2, h3)
			info, err := table.AccelRelocationInfo(p.ctx, h3)
			require.NoError(t, err)
			fits, err := table.RelocationCompatible(p.ctx, info)
			require.NoError(t, err)
			assert.True(t, fits)
			_, err = table.AccelRelocate(p.ctx, 9, info, []optixabi.RelocateInput{optixabi.RelocateTriangles{}}, optixabi.Buffer{Addr: 0x40000, Size: small})
			require.NoError(t, err)

			// Instances of it.
			ias := []optixabi.BuildInput{optixabi.InstanceArray{Instances: 0x5000, Count: 3}}
			o.Operation = optixabi.OperationBuild
			sizes, err = table.AccelMemoryUsage(p.ctx, o, ias)
			require.NoError(t, err)
			_, err = table.AccelBuild(p.ctx, 9, o, ias, optixabi.Buffer{Addr: 0x60000, Size: sizes.TempSizeInBytes},
				optixabi.Buffer{Addr: 0x70000, Size: sizes.OutputSizeInBytes}, nil)
			require.NoError(t, err)
			assert.Equal(t, []optixabi.InstanceArray{{Instances: 0x5000, Count: 3}}, builds[len(builds)-1].Instances)

			// Records and a launch.
			header := make([]byte, 48)
			require.NoError(t, table.SBTRecordPackHeader(p.groups[1], header))
			assert.EqualValues(t, p.groups[1], binary.LittleEndian.Uint64(header))
			assert.EqualValues(t, p.groups[1], binary.LittleEndian.Uint64(header[24:]))
			assert.Equal(t, make([]byte, 16), header[32:], "the program data is left alone")
			assert.ErrorIs(t, table.SBTRecordPackHeader(p.groups[1], header[:31]), optixabi.ErrorInvalidValue)
			sbt := optixabi.ShaderBindingTable{
				RaygenRecord: 0x100, MissRecordBase: 0x200, MissRecordStrideInBytes: 32, MissRecordCount: 1,
				HitgroupRecordBase: 0x300, HitgroupRecordStrideInBytes: 48, HitgroupRecordCount: 2,
			}
			params := optixabi.Buffer{Addr: 0x400, Size: 48}
			require.NoError(t, table.Launch(p.pipe, 11, params, &sbt, 12, 13, 14))
			assert.Equal(t, []fakeoptix.Launch{{
				ABI: abi, Pipeline: p.pipe, Programs: []string{"__raygen__trace", "__miss__none", "__closesthit__hit", "__anyhit__skip"},
				Stream: 11, Params: params, SBT: sbt, Width: 12, Height: 13, Depth: 14,
			}}, launches)

			assert.Empty(t, p.close())
			assert.Zero(t, f.Live())
			assert.Empty(t, f.Violations())
		})
	}
}

// TestTexts reads the library's own names and sentences.
func TestTexts(t *testing.T) {
	table := negotiate(t, newFake(t, fakeoptix.Config{}))
	for _, r := range []optixabi.Result{optixabi.Success, optixabi.ErrorLaunchFailure, 1234} {
		assert.Equal(t, r.Name(), table.ErrorName(r))
		assert.Equal(t, "fake text of "+r.Name(), table.ErrorString(r))
	}
	assert.Equal(t, "/fake/libnvoptix.so.1", table.Library().Path())
}

// TestCreationErrors checks that what is refused carries code and log.
func TestCreationErrors(t *testing.T) {
	f := newFake(t, fakeoptix.Config{})
	table := negotiate(t, f)
	p, err := cold(table)
	require.NoError(t, err)
	var failed *optixabi.Error

	_, _, err = table.ModuleCreate(p.ctx, &moduleOptions, &compileOptions, []byte(".version 8.0"))
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, &optixabi.Error{Op: "optixModuleCreate", Code: optixabi.ErrorInvalidInput, Log: "no program with one of the fixed prefixes"}, failed)

	_, _, err = table.ModuleCreate(p.ctx, &moduleOptions, &compileOptions, nil)
	assert.ErrorIs(t, err, optixabi.ErrorInvalidValue)

	_, _, err = table.ProgramGroupCreate(p.ctx, []optixabi.ProgramGroupDesc{{Kind: optixabi.GroupMiss, Program: optixabi.EntryPoint{Module: p.module, Name: "__miss__other"}}})
	require.ErrorAs(t, err, &failed)
	assert.Contains(t, failed.Log, `"__miss__other"`)

	other := compileOptions
	other.NumPayloadValues++
	_, _, err = table.PipelineCreate(p.ctx, &other, optixabi.PipelineLinkOptions{MaxTraceDepth: 1}, p.groups)
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, optixabi.ErrorPipelineLinkError, failed.Code)
	assert.Contains(t, failed.Log, "compile options")

	groups, _, err := table.ProgramGroupCreate(p.ctx, nil)
	require.NoError(t, err)
	assert.Empty(t, groups)
	_, _, err = table.PipelineCreate(p.ctx, &compileOptions, optixabi.PipelineLinkOptions{}, nil)
	assert.Error(t, err)
	_, err = table.AccelMemoryUsage(p.ctx, optixabi.AccelBuildOptions{}, nil)
	assert.Error(t, err)
	assert.Empty(t, p.close())
	assert.Zero(t, f.Live())

	// A handle that is dead is an error and noticed.
	before := len(f.Violations())
	assert.ErrorIs(t, table.ModuleDestroy(p.module), optixabi.ErrorInvalidValue)
	assert.ErrorIs(t, table.DeviceContextDestroy(p.ctx), optixabi.ErrorInvalidValue)
	assert.Len(t, f.Violations(), before+2)
}

// TestIncompatibleRelocation: a device that cannot take a structure says so.
func TestIncompatibleRelocation(t *testing.T) {
	table := negotiate(t, newFake(t, fakeoptix.Config{Incompatible: true}))
	c, err := table.DeviceContextCreate(7, optixabi.DeviceContextOptions{})
	require.NoError(t, err)
	fits, err := table.RelocationCompatible(c, optixabi.RelocationInfo{})
	require.NoError(t, err)
	assert.False(t, fits)
	_, err = table.AccelRelocationInfo(c, 5)
	assert.Error(t, err, "no structure")
}

// TestEveryCallFails fails each call of a cold creation in turn: the error
// names the call and its code, and nothing is left behind.
func TestEveryCallFails(t *testing.T) {
	for _, abi := range allABIs {
		f := newFake(t, fakeoptix.Config{ABIs: onlyABI(abi)})
		table := negotiate(t, f)
		runs := 0
		for k := 1; ; k++ {
			f.FailAt(k, optixabi.ErrorDeviceOutOfMemory)
			p, err := cold(table)
			if err == nil {
				f.ClearFaults()
				assert.Empty(t, p.close())
				break
			}
			runs++
			assert.ErrorIs(t, err, optixabi.ErrorDeviceOutOfMemory)
			require.Equal(t, fakeoptix.Live{}, f.Live(), "after call %d: %v", k, err)
		}
		assert.Equal(t, 8, runs, "context, module, groups, pipeline, three stack sizes, stack")
		assert.Zero(t, f.Live())
		assert.Empty(t, f.Violations())
	}
}

// TestDestroyErrorsAreReported: a destroy that fails says so.
func TestDestroyErrorsAreReported(t *testing.T) {
	f := newFake(t, fakeoptix.Config{})
	p, err := cold(negotiate(t, f))
	require.NoError(t, err)
	names := []string{"optixPipelineDestroy", "optixProgramGroupDestroy", "optixModuleDestroy", "optixDeviceContextDestroy"}
	for _, n := range names {
		f.FailCall(n, 1, optixabi.ErrorInternalError)
	}
	errs := p.close()
	require.Len(t, errs, len(names))
	for i, n := range names {
		assert.True(t, strings.HasPrefix(errs[i].Error(), n+": OPTIX_ERROR_INTERNAL_ERROR (7990)"), "%v", errs[i])
	}
}

// TestCacheSettings round-trips the settings of the disk cache.
func TestCacheSettings(t *testing.T) {
	f := newFake(t, fakeoptix.Config{})
	table := negotiate(t, f)
	c, err := table.DeviceContextCreate(0, optixabi.DeviceContextOptions{})
	require.NoError(t, err)
	on, err := table.CacheEnabled(c)
	require.NoError(t, err)
	assert.True(t, on)
	require.NoError(t, table.SetCacheLocation(c, "/somewhere/else"))
	dir, err := table.CacheLocation(c)
	require.NoError(t, err)
	assert.Equal(t, "/somewhere/else", dir)
	require.NoError(t, table.SetCacheSizes(c, 3<<32, 5<<32))
	low, high, err := table.CacheSizes(c)
	require.NoError(t, err)
	assert.Equal(t, [2]uint64{3 << 32, 5 << 32}, [2]uint64{low, high})
	require.NoError(t, table.SetCacheEnabled(c, false))
	on, err = table.CacheEnabled(c)
	require.NoError(t, err)
	assert.False(t, on)
	require.NoError(t, table.SetCacheEnabled(c, true))
	on, err = table.CacheEnabled(c)
	require.NoError(t, err)
	assert.True(t, on)
}

// TestCacheFailures: while the cache fails, so does what uses it; switched off,
// all works.
func TestCacheFailures(t *testing.T) {
	for r := optixabi.ErrorDiskCacheInvalidPath; r <= optixabi.ErrorDiskCacheInvalidData; r++ {
		f := newFake(t, fakeoptix.Config{Cache: r})
		table := negotiate(t, f)
		c, err := table.DeviceContextCreate(0, optixabi.DeviceContextOptions{})
		require.NoError(t, err)
		assert.ErrorIs(t, table.SetCacheLocation(c, "/x"), r)
		_, _, err = table.ModuleCreate(c, &moduleOptions, &compileOptions, []byte(programs))
		assert.ErrorIs(t, err, r)
		var failed *optixabi.Error
		require.ErrorAs(t, err, &failed)
		assert.True(t, failed.Code.CacheFailure())
		assert.NotEmpty(t, failed.Hint)
		require.NoError(t, table.SetCacheEnabled(c, false))
		m, _, err := table.ModuleCreate(c, &moduleOptions, &compileOptions, []byte(programs))
		require.NoError(t, err)
		require.NoError(t, table.ModuleDestroy(m))
		require.NoError(t, table.DeviceContextDestroy(c))
		f.Close()
	}
}

// TestConcurrentUse makes and destroys from many goroutines. Host memory of
// calls is moved about by a collector under pressure, so a lost pin shows as a
// wrong name or a wrong count.
func TestConcurrentUse(t *testing.T) {
	f := newFake(t, fakeoptix.Config{})
	table := negotiate(t, f)
	var wg sync.WaitGroup
	errs := make(chan error, 1000)
	for g := range 8 {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(g), 3))
			for range 25 {
				p, err := cold(table)
				if err != nil {
					errs <- err
					return
				}
				garbage := make([][]byte, 100)
				for i := range garbage {
					garbage[i] = make([]byte, rnd.IntN(5000))
				}
				n := 1 + rnd.IntN(1000)
				in := make([]optixabi.BuildInput, n)
				for i := range in {
					in[i] = optixabi.TriangleArray{Vertices: 64, NumVertices: 3, Indices: 64, NumTriangles: 1}
				}
				s, err := table.AccelMemoryUsage(p.ctx, optixabi.AccelBuildOptions{}, in)
				if want := uint64(512 + 64*n + 127); err != nil || s.OutputSizeInBytes != want/128*128 {
					errs <- fmt.Errorf("%d inputs: %+v, %w", n, s, err)
				}
				if bad := p.close(); len(bad) > 0 {
					errs <- bad[0]
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		t.Error(err)
	}
	assert.Zero(t, f.Live())
	assert.Empty(t, f.Violations())
}
