package optixabi

import "unsafe"

// ModuleCompileOptions belong to ModuleCreate. The zero value leaves all to
// the library.
type ModuleCompileOptions struct {
	MaxRegisterCount int32 // 0: no limit
	OptLevel         OptimizationLevel
	DebugLevel       DebugLevel
}

func (o *ModuleCompileOptions) record(abi ABI) record {
	r := newRecord(abi, "OptixModuleCompileOptions")
	r.set("maxRegisterCount", uint64(uint32(o.MaxRegisterCount)))
	r.set("optLevel", uint64(o.OptLevel))
	r.set("debugLevel", uint64(o.DebugLevel))
	return r
}

// PipelineCompileOptions are shared by all modules of a pipeline and the
// pipeline itself. There is no motion blur, and there are no micromaps.
type PipelineCompileOptions struct {
	TraversableGraphFlags GraphFlags
	NumPayloadValues      int32 // words that a trace call carries
	NumAttributeValues    int32 // at least 2 for triangles
	ExceptionFlags        ExceptionFlags
	LaunchParamsName      string // name of the .const variable of the programs
	LaunchParamsSize      uint64 // its bytes, which ABIs from 118 on want to know
	PrimitiveTypeFlags    PrimitiveTypeFlags
}

func (o *PipelineCompileOptions) record(abi ABI, b *block) record {
	r := newRecord(abi, "OptixPipelineCompileOptions")
	r.set("traversableGraphFlags", uint64(o.TraversableGraphFlags))
	r.set("numPayloadValues", uint64(uint32(o.NumPayloadValues)))
	r.set("numAttributeValues", uint64(uint32(o.NumAttributeValues)))
	r.set("exceptionFlags", uint64(o.ExceptionFlags))
	if o.LaunchParamsName != "" {
		r.set("pipelineLaunchParamsVariableName", uint64(b.text(o.LaunchParamsName)))
	}
	if r.has("pipelineLaunchParamsSizeInBytes") {
		r.set("pipelineLaunchParamsSizeInBytes", o.LaunchParamsSize)
	}
	r.set("usesPrimitiveTypeFlags", uint64(o.PrimitiveTypeFlags))
	return r
}

// ModuleCreate compiles a program text (PTX). The log is that of the compiler;
// an error carries it too.
func (t *Table) ModuleCreate(c DeviceContext, mo *ModuleCompileOptions, po *PipelineCompileOptions, program []byte) (Module, string, error) {
	b := getBlock()
	defer b.put()
	log := newLog()
	text, size := log.args(b)
	code := t.call(fnModuleCreate, b, uintptr(c), b.record(mo.record(t.ABI())), b.record(po.record(t.ABI(), b)),
		b.host(program), uintptr(len(program)), text, size, b.ref(0))
	if code != Success {
		return 0, log.String(), callError(fnModuleCreate, code, log.String())
	}
	return Module(b.out[0]), log.String(), nil
}

// ModuleDestroy frees a module. Program groups made from it have to be
// destroyed before.
func (t *Table) ModuleDestroy(m Module) error { return t.do(fnModuleDestroy, uintptr(m)) }

// EntryPoint is a program in a module; the zero value is none.
type EntryPoint struct {
	Module Module
	Name   string // with its prefix, such as __raygen__trace
}

// ProgramGroupDesc describes one program group.
type ProgramGroupDesc struct {
	Kind       ProgramGroupKind // GroupRaygen, GroupMiss or GroupHitgroup
	Program    EntryPoint       // of GroupRaygen and GroupMiss
	ClosestHit EntryPoint       // of GroupHitgroup
	AnyHit     EntryPoint       // of GroupHitgroup
}

func (d *ProgramGroupDesc) write(r record, b *block) {
	r.set("kind", uint64(d.Kind))
	put := func(p record, module, name string, e EntryPoint) {
		p.set(module, uint64(e.Module))
		if e.Name != "" {
			p.set(name, uint64(b.text(e.Name)))
		}
	}
	if d.Kind == GroupHitgroup {
		h := r.part("hitgroup", "OptixProgramGroupHitgroup")
		put(h, "moduleCH", "entryFunctionNameCH", d.ClosestHit)
		put(h, "moduleAH", "entryFunctionNameAH", d.AnyHit)
		return
	}
	// Raygen, miss and exception programs share the place in the union.
	put(r.part("raygen", "OptixProgramGroupSingleModule"), "module", "entryFunctionName", d.Program)
}

// ProgramGroupCreate makes program groups, one for each description. Either
// all are made or none.
func (t *Table) ProgramGroupCreate(c DeviceContext, descs []ProgramGroupDesc) ([]ProgramGroup, string, error) {
	if len(descs) == 0 {
		return nil, "", nil
	}
	b := getBlock()
	defer b.put()
	all := newRecords(t.ABI(), "OptixProgramGroupDesc", len(descs))
	for i := range descs {
		descs[i].write(all[i], b)
	}
	groups := make([]ProgramGroup, len(descs))
	log := newLog()
	text, size := log.args(b)
	code := t.call(fnProgramGroupCreate, b, uintptr(c), b.record(all[0]), uintptr(len(all)),
		b.record(newRecord(t.ABI(), "OptixProgramGroupOptions")), text, size, pin(b, &groups[0]))
	if code != Success {
		return nil, log.String(), callError(fnProgramGroupCreate, code, log.String())
	}
	return groups, log.String(), nil
}

// ProgramGroupDestroy frees a program group. Pipelines made from it have to be
// destroyed before.
func (t *Table) ProgramGroupDestroy(g ProgramGroup) error {
	return t.do(fnProgramGroupDestroy, uintptr(g))
}

// ProgramGroupStackSizes reads what the programs of a group need. The pipeline
// is the one that calls them, which decides the need of external functions.
func (t *Table) ProgramGroupStackSizes(g ProgramGroup, p Pipeline) (StackSizes, error) {
	var s StackSizes
	b := getBlock()
	defer b.put()
	code := t.call(fnProgramGroupGetStackSize, b, uintptr(g), pin(b, &s), uintptr(p))
	return s, callError(fnProgramGroupGetStackSize, code, "")
}

// PipelineLinkOptions belong to PipelineCreate.
type PipelineLinkOptions struct {
	MaxTraceDepth uint32 // nesting of trace calls; 1 for raygen programs alone
}

// PipelineCreate links program groups into a pipeline.
func (t *Table) PipelineCreate(c DeviceContext, po *PipelineCompileOptions, lo PipelineLinkOptions, groups []ProgramGroup) (Pipeline, string, error) {
	b := getBlock()
	defer b.put()
	link := newRecord(t.ABI(), "OptixPipelineLinkOptions")
	link.set("maxTraceDepth", uint64(lo.MaxTraceDepth))
	var list uintptr
	if len(groups) > 0 {
		list = pin(b, unsafe.SliceData(groups))
	}
	log := newLog()
	text, size := log.args(b)
	code := t.call(fnPipelineCreate, b, uintptr(c), b.record(po.record(t.ABI(), b)), b.record(link),
		list, uintptr(len(groups)), text, size, b.ref(0))
	if code != Success {
		return 0, log.String(), callError(fnPipelineCreate, code, log.String())
	}
	return Pipeline(b.out[0]), log.String(), nil
}

// PipelineDestroy frees a pipeline. Its launches have to be over.
func (t *Table) PipelineDestroy(p Pipeline) error { return t.do(fnPipelineDestroy, uintptr(p)) }
