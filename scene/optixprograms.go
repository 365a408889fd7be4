package scene

import (
	"sync"
	"time"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/optixabi"
	"github.com/raymux/raymux/ptx"
)

// programKind is a set of device programs that are launched together.
type programKind struct {
	module            string
	raygen, hit, miss string
	anyHit            string // empty: none
	payloads          int32
	paramBytes        uint64
	// store finds the kernel that writes launch parameters.
	store func(*cuda.Module) (*cuda.Function, error)
}

var (
	closestPrograms = &programKind{
		module: closestRaygen.Module,
		raygen: closestRaygen.Name, hit: closestHit.Name, miss: closestMiss.Name,
		payloads: 2, paramBytes: paramSize[closestParams](), store: function(storeClosestKernel),
	}
	reflectPrograms = &programKind{
		module: reflectRaygen.Module,
		raygen: reflectRaygen.Name, hit: reflectHit.Name, miss: reflectMiss.Name,
		payloads: 2, paramBytes: paramSize[reflectParams](), store: function(storeReflectKernel),
	}
	visiblePrograms = &programKind{
		module: visibleRaygen.Module,
		raygen: visibleRaygen.Name, hit: visibleHit.Name, miss: visibleMiss.Name, anyHit: visibleAnyHit.Name,
		payloads: 4, paramBytes: paramSize[optixVisibleParams](), store: function(storeVisibleKernel),
	}
	barePrograms = &programKind{
		module: bareRaygen.Module,
		raygen: bareRaygen.Name, hit: bareHit.Name, miss: bareMiss.Name,
		payloads: 4, paramBytes: paramSize[bareParams](), store: function(storeBareKernel),
	}
)

// function finds an entry in its module.
func function[P any](e ptx.Entry[P]) func(*cuda.Module) (*cuda.Function, error) {
	return func(m *cuda.Module) (*cuda.Function, error) { return m.Function(e.Name) }
}

// paramSize is the size of a parameter struct.
func paramSize[P any]() uint64 {
	var p P
	return uint64(len(cuda.ParamBytes(&p)))
}

// programKey is what programs are compiled for. Levels is 1 for a mesh alone and 2
// for instances of meshes: OptiX makes faster code when it knows.
type programKey struct {
	kind   *programKind
	levels int
}

// optixPrograms is a compiled set of programs and the pipelines that were linked
// from it.
type optixPrograms struct {
	dev     *optixDevice
	key     programKey
	compile optixabi.PipelineCompileOptions
	store   *cuda.Function
	module  optixabi.Module
	groups  []optixabi.ProgramGroup // ray generation, miss, hit
	records cuda.Slice[uint8]
	table   optixabi.ShaderBindingTable

	linking chan struct{} // holds a token while a pipeline is linked
	mu      sync.Mutex
	lanes   []*optixLane // the least recently used first
}

// newPrograms compiles a set of programs and links its first pipeline.
func (x *optixDevice) newPrograms(key programKey) (_ *optixPrograms, err error) {
	p := &optixPrograms{dev: x, key: key, linking: make(chan struct{}, 1)}
	p.compile = optixabi.PipelineCompileOptions{
		TraversableGraphFlags: optixabi.GraphAllowSingleGAS,
		NumPayloadValues:      key.kind.payloads,
		NumAttributeValues:    2, // barycentrics
		LaunchParamsName:      "params",
		LaunchParamsSize:      key.kind.paramBytes,
		PrimitiveTypeFlags:    optixabi.PrimitiveTriangle,
	}
	if key.levels > 1 {
		p.compile.TraversableGraphFlags = optixabi.GraphAllowSingleLevelInstancing
	}
	defer func() {
		if err != nil {
			err = firstError(err, p.destroy())
		}
	}()
	if p.store, err = key.kind.store(x.support); err != nil {
		return nil, err
	}
	if err := p.build(); err != nil {
		return nil, err
	}
	if err := p.bind(); err != nil {
		return nil, err
	}
	l, err := p.link()
	if err != nil {
		return nil, err
	}
	p.release(l)
	return p, nil
}

// build compiles the module and makes the groups.
func (p *optixPrograms) build() error {
	text, err := ptx.Module(p.key.kind.module)
	if err != nil {
		return err
	}
	x, kind := p.dev, p.key.kind
	start := time.Now()
	err = x.create(func() error {
		m, _, err := x.table.ModuleCreate(x.handle, &optixabi.ModuleCompileOptions{}, &p.compile, text)
		p.module = m
		return err
	})
	if err != nil {
		return err
	}
	x.took(&x.first.Module, start)
	hit := optixabi.ProgramGroupDesc{
		Kind: optixabi.GroupHitgroup, ClosestHit: optixabi.EntryPoint{Module: p.module, Name: kind.hit},
	}
	if kind.anyHit != "" {
		hit.AnyHit = optixabi.EntryPoint{Module: p.module, Name: kind.anyHit}
	}
	return x.create(func() error {
		groups, _, err := x.table.ProgramGroupCreate(x.handle, []optixabi.ProgramGroupDesc{
			{Kind: optixabi.GroupRaygen, Program: optixabi.EntryPoint{Module: p.module, Name: kind.raygen}},
			{Kind: optixabi.GroupMiss, Program: optixabi.EntryPoint{Module: p.module, Name: kind.miss}},
			hit,
		})
		p.groups = groups
		return err
	})
}

// bind makes the shader binding table: one record per group, without data.
func (p *optixPrograms) bind() error {
	const size = optixabi.SBTRecordHeaderSize
	host := make([]byte, size*len(p.groups))
	err := p.dev.do(func() error {
		for i, g := range p.groups {
			if err := p.dev.table.SBTRecordPackHeader(g, host[size*i:size*(i+1)]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if p.records, err = uploadNow(p.dev.ctx, host); err != nil {
		return err
	}
	at := p.records.Addr()
	p.table = optixabi.ShaderBindingTable{
		RaygenRecord:   at,
		MissRecordBase: at + size, MissRecordStrideInBytes: size, MissRecordCount: 1,
		HitgroupRecordBase: at + 2*size, HitgroupRecordStrideInBytes: size, HitgroupRecordCount: 1,
	}
	return nil
}

// destroy needs all launches to be over.
func (p *optixPrograms) destroy() error {
	x := p.dev
	var errs []error
	for _, l := range p.lanes {
		errs = append(errs, l.destroy(x))
	}
	if x.ctx.Lost() == nil {
		errs = append(errs, x.do(func() error {
			var errs []error
			for _, g := range p.groups {
				errs = append(errs, x.table.ProgramGroupDestroy(g))
			}
			if p.module != 0 {
				errs = append(errs, x.table.ModuleDestroy(p.module))
			}
			return firstError(errs...)
		}))
	}
	return firstError(append(errs, cuda.Free(p.records))...)
}
