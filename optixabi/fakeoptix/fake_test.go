//go:build !nocuda && (linux || windows)

package fakeoptix_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/optixabi"
	"github.com/raymux/raymux/optixabi/fakeoptix"
)

// rig is a fake with a pipeline that may be launched.
type rig struct {
	*testing.T
	fake   *fakeoptix.Fake
	table  *optixabi.Table
	ctx    optixabi.DeviceContext
	module optixabi.Module
	group  optixabi.ProgramGroup
	pipe   optixabi.Pipeline
}

var options = optixabi.PipelineCompileOptions{NumAttributeValues: 2, LaunchParamsName: "params", LaunchParamsSize: 16}

func newRig(t *testing.T, cfg fakeoptix.Config) *rig {
	t.Helper()
	f, err := fakeoptix.New(cfg)
	require.NoError(t, err)
	t.Cleanup(f.Close)
	r := &rig{T: t, fake: f}
	r.table, err = f.Library().Negotiate(optixabi.NegotiateOptions{Untested: true})
	require.NoError(t, err)
	r.ctx, err = r.table.DeviceContextCreate(1, optixabi.DeviceContextOptions{})
	require.NoError(t, err)
	r.module, _, err = r.table.ModuleCreate(r.ctx, &optixabi.ModuleCompileOptions{}, &options, []byte(".entry __raygen__r() {}"))
	require.NoError(t, err)
	groups, _, err := r.table.ProgramGroupCreate(r.ctx, []optixabi.ProgramGroupDesc{{Kind: optixabi.GroupRaygen, Program: optixabi.EntryPoint{Module: r.module, Name: "__raygen__r"}}})
	require.NoError(t, err)
	r.group = groups[0]
	r.pipe, _, err = r.table.PipelineCreate(r.ctx, &options, optixabi.PipelineLinkOptions{MaxTraceDepth: 1}, groups)
	require.NoError(t, err)
	return r
}

func (r *rig) stack() {
	require.NoError(r, r.table.PipelineSetStackSize(r.pipe, optixabi.PipelineStack{MaxGraphDepth: 1}))
}

func (r *rig) launch(params optixabi.Buffer, sbt optixabi.ShaderBindingTable, width uint32) error {
	return r.table.Launch(r.pipe, 2, params, &sbt, width, 1, 1)
}

var (
	goodParams  = optixabi.Buffer{Addr: 8, Size: 16}
	goodRecords = optixabi.ShaderBindingTable{RaygenRecord: 16}
	goodMesh    = optixabi.TriangleArray{Vertices: 64, NumVertices: 3, Indices: 64, NumTriangles: 1}
)

func (r *rig) build(o optixabi.AccelBuildOptions, temp, out optixabi.Buffer) (optixabi.Traversable, error) {
	return r.table.AccelBuild(r.ctx, 2, o, []optixabi.BuildInput{goodMesh}, temp, out, nil)
}

// TestMisuse checks that each mistake is an error or at least a violation, and
// that the same call without the mistake is neither.
func TestMisuse(t *testing.T) {
	big := func(addr uint64) optixabi.Buffer { return optixabi.Buffer{Addr: addr, Size: 1 << 20} }
	build := optixabi.AccelBuildOptions{Operation: optixabi.OperationBuild}
	update := optixabi.AccelBuildOptions{Operation: optixabi.OperationUpdate}
	tests := []struct {
		name  string
		good  func(r *rig) error
		wrong func(r *rig) error
		text  string
	}{
		{"stack never set", func(r *rig) error { r.stack(); return r.launch(goodParams, goodRecords, 1) },
			func(r *rig) error { return r.launch(goodParams, goodRecords, 1) }, "stack"},
		{"no rays", nil, func(r *rig) error { r.stack(); return r.launch(goodParams, goodRecords, 0) }, "0x1x1"},
		{"no raygen record", nil, func(r *rig) error { r.stack(); return r.launch(goodParams, optixabi.ShaderBindingTable{}, 1) }, "records"},
		{"unaligned record", nil, func(r *rig) error {
			r.stack()
			return r.launch(goodParams, optixabi.ShaderBindingTable{RaygenRecord: 16, MissRecordBase: 8}, 1)
		}, "aligned"},
		{"no parameters", nil, func(r *rig) error { r.stack(); return r.launch(optixabi.Buffer{}, goodRecords, 1) }, "parameters"},
		{"dead pipeline", nil, func(r *rig) error {
			r.stack()
			require.NoError(r, r.table.PipelineDestroy(r.pipe))
			return r.launch(goodParams, goodRecords, 1)
		}, "no pipeline"},
		{"depth of the graph", func(r *rig) error { r.stack(); return nil },
			func(r *rig) error { return r.table.PipelineSetStackSize(r.pipe, optixabi.PipelineStack{}) }, "depth"},
		{"group before pipeline", func(r *rig) error {
			return first(r.table.PipelineDestroy(r.pipe), r.table.ProgramGroupDestroy(r.group), r.table.ModuleDestroy(r.module), r.table.DeviceContextDestroy(r.ctx))
		}, func(r *rig) error { return r.table.ProgramGroupDestroy(r.group) }, "still has 1"},
		{"module before group", nil, func(r *rig) error { return r.table.ModuleDestroy(r.module) }, "still has 1"},
		{"context before all", nil, func(r *rig) error { return r.table.DeviceContextDestroy(r.ctx) }, "still has 3"},
		{"handle of another kind", nil, func(r *rig) error { return r.table.ModuleDestroy(optixabi.Module(r.pipe)) }, "no module"},
		{"unknown property", nil, func(r *rig) error { _, err := r.table.DeviceProperty(r.ctx, 1); return err }, "property 1"},
		{"unaligned temporary memory", func(r *rig) error { _, err := r.build(build, big(128), big(1<<30)); return err },
			func(r *rig) error { _, err := r.build(build, big(64), big(1<<30)); return err }, "alignment"},
		{"unaligned output", nil, func(r *rig) error { _, err := r.build(build, big(128), big(64)); return err }, "alignment"},
		{"small temporary memory", nil, func(r *rig) error {
			_, err := r.build(build, optixabi.Buffer{Addr: 128, Size: 1}, big(1<<30))
			return err
		}, "need"},
		{"small output", nil, func(r *rig) error {
			_, err := r.build(build, big(128), optixabi.Buffer{Addr: 128, Size: 1})
			return err
		}, "need"},
		{"no operation", nil, func(r *rig) error { _, err := r.build(optixabi.AccelBuildOptions{}, big(128), big(1<<30)); return err }, "operation 0"},
		{"update of nothing", nil, func(r *rig) error { _, err := r.build(update, big(128), big(1<<30)); return err }, "update"},
		{"update not allowed", func(r *rig) error {
			o := optixabi.AccelBuildOptions{BuildFlags: optixabi.BuildAllowUpdate, Operation: optixabi.OperationBuild}
			_, err := r.build(o, big(128), big(1<<30))
			o.Operation = optixabi.OperationUpdate
			_, err2 := r.build(o, big(128), big(1<<30))
			return first(err, err2)
		}, func(r *rig) error {
			_, err := r.build(build, big(128), big(1<<30))
			require.NoError(r, err)
			_, err = r.build(update, big(128), big(1<<30))
			return err
		}, "update"},
		{"compaction not allowed", func(r *rig) error {
			h, err := r.build(optixabi.AccelBuildOptions{BuildFlags: optixabi.BuildAllowCompaction, Operation: optixabi.OperationBuild}, big(128), big(1<<30))
			_, err2 := r.table.AccelCompact(r.ctx, 2, h, big(1<<31))
			return first(err, err2)
		}, func(r *rig) error {
			h, err := r.build(build, big(128), big(1<<30))
			require.NoError(r, err)
			_, err = r.table.AccelCompact(r.ctx, 2, h, big(1<<31))
			return err
		}, "without allowing"},
		{"vertices between words", nil, func(r *rig) error {
			_, err := r.table.AccelMemoryUsage(r.ctx, build, []optixabi.BuildInput{optixabi.TriangleArray{Vertices: 2}})
			return err
		}, "bad triangle array"},
		{"unaligned instances", nil, func(r *rig) error {
			_, err := r.table.AccelMemoryUsage(r.ctx, build, []optixabi.BuildInput{optixabi.InstanceArray{Instances: 8, Count: 1}})
			return err
		}, "instances at 0x8"},
		{"relocation of nothing", nil, func(r *rig) error { _, err := r.table.AccelRelocationInfo(r.ctx, 3); return err }, "no structure"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.good != nil {
				r := newRig(t, fakeoptix.Config{})
				require.NoError(t, tt.good(r))
				assert.Empty(t, r.fake.Violations())
			}
			r := newRig(t, fakeoptix.Config{})
			_ = tt.wrong(r) // some mistakes are accepted by the library
			require.Len(t, r.fake.Violations(), 1)
			assert.Contains(t, r.fake.Violations()[0], tt.text)
		})
	}
}

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// TestParameterSize: from ABI 118 on, the size of the launch parameters is
// part of the pipeline.
func TestParameterSize(t *testing.T) {
	r := newRig(t, fakeoptix.Config{ABIs: map[optixabi.ABI]fakeoptix.Answer{optixabi.ABI118: {}}})
	r.stack()
	assert.NoError(t, r.launch(goodParams, goodRecords, 1))
	assert.Error(t, r.launch(optixabi.Buffer{Addr: 8, Size: 24}, goodRecords, 1))
}

// TestOverlap lets a launch begin while another one of the same pipeline is
// under way.
func TestOverlap(t *testing.T) {
	inside, leave := make(chan struct{}), make(chan struct{})
	r := newRig(t, fakeoptix.Config{OnLaunch: func(fakeoptix.Launch) optixabi.Result {
		inside <- struct{}{}
		<-leave
		return optixabi.ErrorLaunchFailure
	}})
	r.stack()
	done := make(chan error)
	go func() { done <- r.launch(goodParams, goodRecords, 1) }()
	<-inside
	assert.ErrorIs(t, r.launch(goodParams, goodRecords, 1), optixabi.ErrorInvalidValue)
	require.NoError(t, r.table.PipelineDestroy(r.pipe))
	leave <- struct{}{}
	assert.ErrorIs(t, <-done, optixabi.ErrorLaunchFailure, "the hook's answer is the launch's")
	v := r.fake.Violations()
	require.Len(t, v, 2)
	assert.Contains(t, v[0], "overlap")
	assert.Contains(t, v[1], "under way")
}

// TestFaults: the k-th call fails, once, and is counted.
func TestFaults(t *testing.T) {
	r := newRig(t, fakeoptix.Config{})
	enabled := func() error { return r.table.SetCacheEnabled(r.ctx, true) }
	r.fake.FailCall("optixDeviceContextSetCacheEnabled", 3, optixabi.ErrorInternalError)
	r.fake.FailAt(2, optixabi.ErrorUnknown)
	before := r.fake.Calls("")
	assert.NoError(t, enabled())
	assert.ErrorIs(t, enabled(), optixabi.ErrorUnknown)
	assert.ErrorIs(t, enabled(), optixabi.ErrorInternalError)
	assert.NoError(t, enabled())
	assert.Equal(t, 4, r.fake.Calls("")-before)
	assert.Equal(t, 4, r.fake.Counters()["optixDeviceContextSetCacheEnabled"])
	r.fake.FailAt(1, optixabi.ErrorUnknown)
	r.fake.ClearFaults()
	assert.NoError(t, enabled())
	// A destroy that reports a failure has destroyed.
	r.fake.FailAt(1, optixabi.ErrorUnknown)
	assert.Error(t, r.table.PipelineDestroy(r.pipe))
	assert.Zero(t, r.fake.Live().Pipelines)
}

// TestCreateAnswer: a device that OptiX does not support.
func TestCreateAnswer(t *testing.T) {
	f, err := fakeoptix.New(fakeoptix.Config{Create: optixabi.ErrorNotSupported})
	require.NoError(t, err)
	defer f.Close()
	table, err := f.Library().Negotiate(optixabi.NegotiateOptions{})
	require.NoError(t, err)
	_, err = table.DeviceContextCreate(0, optixabi.DeviceContextOptions{})
	assert.True(t, optixabi.Unavailable(err))
	assert.Zero(t, f.Live())
}

// TestClosed: a library that was closed answers with an error, and its
// function pointers serve the next one; the number of those in use is limited.
func TestClosed(t *testing.T) {
	r := newRig(t, fakeoptix.Config{})
	r.fake.Close()
	r.fake.Close() // once is enough, twice does no harm
	assert.Error(t, r.table.PipelineDestroy(r.pipe))
	_, err := r.table.Library().Negotiate(optixabi.NegotiateOptions{})
	assert.ErrorIs(t, err, optixabi.ErrDriverFailed)

	var open []*fakeoptix.Fake
	for range 100 {
		f, err := fakeoptix.New(fakeoptix.Config{})
		if err != nil {
			assert.ErrorContains(t, err, "too many")
			break
		}
		open = append(open, f)
	}
	assert.Greater(t, len(open), 4)
	assert.Less(t, len(open), 100)
	for _, f := range open {
		f.Close()
	}
}

// TestHooks: every call is announced before it runs.
func TestHooks(t *testing.T) {
	var calls []string
	r := newRig(t, fakeoptix.Config{OnCall: func(name string) { calls = append(calls, name) }})
	require.NoError(t, r.table.PipelineDestroy(r.pipe))
	assert.Equal(t, []string{"optixDeviceContextCreate", "optixModuleCreate", "optixProgramGroupCreate", "optixPipelineCreate", "optixPipelineDestroy"}, calls)
}
