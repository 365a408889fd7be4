package fakeoptix

import (
	"encoding/binary"
	"fmt"
	"regexp"

	"github.com/raymux/raymux/optixabi"
)

func (c *call) readOptions(abi optixabi.ABI, addr uintptr) compileOptions {
	r := recordAt(abi, "OptixPipelineCompileOptions", addr)
	return compileOptions{
		graph: r.get("traversableGraphFlags"), payload: r.get("numPayloadValues"), attributes: r.get("numAttributeValues"),
		exceptions: r.get("exceptionFlags"), params: r.text("pipelineLaunchParamsVariableName"),
		paramsSize: r.get("pipelineLaunchParamsSizeInBytes"), primitives: r.get("usesPrimitiveTypeFlags"),
	}
}

// writeLog follows the protocol of log buffers: room in, needed length out.
func writeLog(text, size uintptr, format string, args ...any) {
	if text == 0 || size == 0 {
		return
	}
	msg := append(fmt.Appendf(nil, format, args...), 0)
	room := *pointerTo[uint64](size)
	store(size, uint64(len(msg)))
	if room == 0 {
		return
	}
	buf := sliceAt[byte](text, int(min(room, uint64(len(msg)))))
	copy(buf, msg)
	buf[len(buf)-1] = 0
}

// entryPattern finds the programs of a text: functions whose name has one of
// the fixed prefixes.
var entryPattern = regexp.MustCompile(`\.(?:entry|func)\s+(?:\([^)]*\)\s*)?(__(?:raygen|miss|closesthit|anyhit|intersection|exception)__\w+)`)

func (c *call) moduleCreate() optixabi.Result {
	c.mu.Lock()
	defer c.mu.Unlock()
	ctx := c.find(c.args[0], kindContext)
	if ctx == nil {
		return optixabi.ErrorInvalidDeviceContext
	}
	if c.args[1] == 0 || c.args[2] == 0 || c.args[3] == 0 || c.args[4] == 0 {
		return c.violate("%s: options or program text missing", c.name)
	}
	if ctx.cacheEnabled && c.cfg.Cache != optixabi.Success {
		return c.cfg.Cache
	}
	recordAt(ctx.abi, "OptixModuleCompileOptions", c.args[1]).get("optLevel")
	o := &object{kind: kindModule, abi: ctx.abi, context: ctx.handle, parents: []uintptr{ctx.handle}, entries: map[string]bool{}}
	o.options = c.readOptions(ctx.abi, c.args[2])
	text := string(sliceAt[byte](c.args[3], int(c.args[4])))
	for _, m := range entryPattern.FindAllStringSubmatch(text, -1) {
		o.entries[m[1]] = true
	}
	if len(o.entries) == 0 {
		writeLog(c.args[5], c.args[6], "no program with one of the fixed prefixes")
		return optixabi.ErrorInvalidInput
	}
	writeLog(c.args[5], c.args[6], "%d programs", len(o.entries))
	store(c.args[7], c.create(o))
	return optixabi.Success
}

func (c *call) groupCreate() optixabi.Result {
	c.mu.Lock()
	defer c.mu.Unlock()
	ctx := c.find(c.args[0], kindContext)
	if ctx == nil {
		return optixabi.ErrorInvalidDeviceContext
	}
	n := int(c.word(2))
	if n == 0 || c.args[1] == 0 || c.args[3] == 0 || c.args[6] == 0 {
		return c.violate("%s: arguments missing", c.name)
	}
	var made []*object
	for i, r := 0, recordAt(ctx.abi, "OptixProgramGroupDesc", c.args[1]); i < n; i, r = i+1, r.next() {
		o, result := c.group(ctx, r)
		if result != optixabi.Success {
			return result
		}
		made = append(made, o)
	}
	handles := sliceAt[uintptr](c.args[6], n)
	for i, o := range made {
		handles[i] = c.create(o)
	}
	writeLog(c.args[4], c.args[5], "")
	return optixabi.Success
}

// group reads one description. The lock is held.
func (c *call) group(ctx *object, r record) (*object, optixabi.Result) {
	o := &object{kind: kindGroup, abi: ctx.abi, context: ctx.handle, parents: []uintptr{ctx.handle}}
	type program struct {
		prefix, name string
		module       uintptr
	}
	var want []program
	single := func(prefix string) {
		s := r.part("raygen", "OptixProgramGroupSingleModule")
		want = append(want, program{prefix, s.text("entryFunctionName"), uintptr(s.get("module"))})
	}
	switch k := optixabi.ProgramGroupKind(r.get("kind")); k {
	case optixabi.GroupRaygen:
		single("__raygen__")
	case optixabi.GroupMiss:
		single("__miss__")
	case optixabi.GroupHitgroup:
		h := r.part("hitgroup", "OptixProgramGroupHitgroup")
		want = append(want, program{"__closesthit__", h.text("entryFunctionNameCH"), uintptr(h.get("moduleCH"))},
			program{"__anyhit__", h.text("entryFunctionNameAH"), uintptr(h.get("moduleAH"))},
			program{"__intersection__", h.text("entryFunctionNameIS"), uintptr(h.get("moduleIS"))})
	default:
		return nil, c.violate("%s: kind %d", c.name, k)
	}
	for i, p := range want {
		if p.module == 0 && p.name == "" && (i > 0 || len(want) > 1 || p.prefix == "__miss__") {
			continue // an empty program is allowed here
		}
		m := c.find(p.module, kindModule)
		if m == nil {
			return nil, optixabi.ErrorInvalidValue
		}
		if !m.entries[p.name] || len(p.name) < len(p.prefix) || p.name[:len(p.prefix)] != p.prefix {
			writeLog(c.args[4], c.args[5], "no %s program %q in the module", p.prefix, p.name)
			return nil, optixabi.ErrorInvalidValue
		}
		o.programs = append(o.programs, p.name)
		o.parents = append(o.parents, m.handle)
		o.options = m.options
	}
	return o, optixabi.Success
}

// groupStackSizes are what every group claims to need.
var groupStackSizes = optixabi.StackSizes{CSSRG: 64, CSSMS: 16, CSSCH: 32, CSSAH: 48}

func (c *call) groupStack() optixabi.Result {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.find(c.args[0], kindGroup) == nil {
		return optixabi.ErrorInvalidValue
	}
	store(c.args[1], groupStackSizes)
	return optixabi.Success
}

func (c *call) pipelineCreate() optixabi.Result {
	c.mu.Lock()
	defer c.mu.Unlock()
	ctx := c.find(c.args[0], kindContext)
	if ctx == nil {
		return optixabi.ErrorInvalidDeviceContext
	}
	n := int(c.word(4))
	if c.args[1] == 0 || c.args[2] == 0 || c.args[3] == 0 || n == 0 {
		return c.violate("%s: arguments missing", c.name)
	}
	o := &object{kind: kindPipeline, abi: ctx.abi, context: ctx.handle, parents: []uintptr{ctx.handle}}
	o.options = c.readOptions(ctx.abi, c.args[1])
	depth := recordAt(ctx.abi, "OptixPipelineLinkOptions", c.args[2]).get("maxTraceDepth")
	if depth > uint64(properties[optixabi.PropertyLimitMaxTraceDepth]) {
		return c.violate("%s: trace depth %d", c.name, depth)
	}
	for _, h := range sliceAt[uintptr](c.args[3], n) {
		g := c.find(h, kindGroup)
		if g == nil {
			return optixabi.ErrorInvalidValue
		}
		if len(g.programs) > 0 && g.options != o.options {
			writeLog(c.args[5], c.args[6], "compile options of a module and of the pipeline differ")
			return optixabi.ErrorPipelineLinkError
		}
		o.parents = append(o.parents, h)
		o.programs = append(o.programs, g.programs...)
	}
	writeLog(c.args[5], c.args[6], "")
	store(c.args[7], c.create(o))
	return optixabi.Success
}

func (c *call) pipelineStack() optixabi.Result {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.find(c.args[0], kindPipeline)
	if p == nil {
		return optixabi.ErrorInvalidValue
	}
	if c.word(4) == 0 {
		return c.violate("%s: graph depth 0", c.name)
	}
	p.stackSet = true
	return optixabi.Success
}

// packHeader writes the handle of the group into all of the header, so that
// the records of a launch can be told.
func (c *call) packHeader() optixabi.Result {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.find(c.args[0], kindGroup) == nil || c.args[1] == 0 {
		return optixabi.ErrorInvalidValue
	}
	header := sliceAt[byte](c.args[1], optixabi.SBTRecordHeaderSize)
	for i := 0; i < len(header); i += 8 {
		binary.LittleEndian.PutUint64(header[i:], uint64(c.args[0]))
	}
	return optixabi.Success
}

// Launch is one launch as the library got it.
type Launch struct {
	ABI           optixabi.ABI
	CUDAContext   uintptr
	Pipeline      optixabi.Pipeline
	Programs      []string // entry points of the pipeline
	Stream        uintptr
	Params        optixabi.Buffer
	SBT           optixabi.ShaderBindingTable
	Width, Height uint32
	Depth         uint32
}

func (c *call) launch() optixabi.Result {
	l, p, r := c.acceptLaunch()
	if r != optixabi.Success {
		return r
	}
	if c.cfg.OnLaunch != nil {
		r = c.cfg.OnLaunch(l)
	}
	c.mu.Lock()
	p.inFlight--
	c.mu.Unlock()
	return r
}

func (c *call) acceptLaunch() (Launch, *object, optixabi.Result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.find(c.args[0], kindPipeline)
	if p == nil {
		return Launch{}, nil, optixabi.ErrorInvalidValue
	}
	l := Launch{
		ABI: p.abi, CUDAContext: c.objects[p.context].context, Pipeline: optixabi.Pipeline(p.handle), Programs: p.programs, Stream: c.args[1],
		Params: optixabi.Buffer{Addr: uint64(c.args[2]), Size: uint64(c.args[3])},
		Width:  c.word(5), Height: c.word(6), Depth: c.word(7),
	}
	if c.args[4] == 0 {
		return l, p, c.violate("%s: no shader binding table", c.name)
	}
	l.SBT = *pointerTo[optixabi.ShaderBindingTable](c.args[4])
	misplaced := (l.SBT.RaygenRecord | l.SBT.MissRecordBase | l.SBT.HitgroupRecordBase | uint64(l.SBT.MissRecordStrideInBytes) |
		uint64(l.SBT.HitgroupRecordStrideInBytes)) % optixabi.SBTRecordAlignment
	switch {
	case l.Width == 0 || l.Height == 0 || l.Depth == 0:
		return l, p, c.violate("%s: %dx%dx%d", c.name, l.Width, l.Height, l.Depth)
	case l.SBT.RaygenRecord == 0 || misplaced != 0:
		return l, p, c.violate("%s: records missing or not aligned to %d bytes", c.name, optixabi.SBTRecordAlignment)
	case p.options.params != "" && (l.Params.Addr == 0 || l.Params.Size == 0):
		return l, p, c.violate("%s: launch parameters missing", c.name)
	case p.abi >= optixabi.ABI118 && l.Params.Size != p.options.paramsSize:
		return l, p, c.violate("%s: %d bytes of launch parameters, the pipeline was made for %d", c.name, l.Params.Size, p.options.paramsSize)
	case !p.stackSet:
		return l, p, c.violate("%s: the stack of the pipeline was never set", c.name)
	case p.inFlight > 0:
		return l, p, c.violate("%s: launches of one pipeline overlap", c.name)
	}
	p.inFlight++
	return l, p, optixabi.Success
}
