package optixabi

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var allABIs = []ABI{ABI87, ABI93, ABI105, ABI118}

// inspector reads an encoded struct at the offsets of the facts, and remembers
// what it read, so that the rest can be checked to be zero.
type inspector struct {
	t     *testing.T
	facts goldenFacts
	abi   ABI
	mem   []byte
	read  []bool
}

func inspect(t *testing.T, abi ABI, mem []byte) *inspector {
	return &inspector{t: t, facts: golden(t), abi: abi, mem: mem, read: make([]bool, len(mem))}
}

// at reads member name of the struct that begins at base.
func (in *inspector) at(base int, structName, name string) uint64 {
	in.t.Helper()
	_, fields := in.facts.layout(in.t, int(in.abi), structName)
	f, ok := fields[name]
	require.True(in.t, ok, "%s.%s", structName, name)
	for i := range f.Size {
		in.read[base+f.Offset+i] = true
	}
	m := in.mem[base+f.Offset:]
	if f.Size == 4 {
		return uint64(binary.LittleEndian.Uint32(m))
	}
	return binary.LittleEndian.Uint64(m)
}

func (in *inspector) offset(structName, name string) int {
	_, fields := in.facts.layout(in.t, int(in.abi), structName)
	return fields[name].Offset
}

func (in *inspector) has(structName, name string) bool {
	_, fields := in.facts.layout(in.t, int(in.abi), structName)
	_, ok := fields[name]
	return ok
}

// restIsZero checks every byte that was not read.
func (in *inspector) restIsZero() {
	in.t.Helper()
	for i, b := range in.mem {
		if !in.read[i] {
			assert.Zero(in.t, b, "byte %d", i)
		}
	}
}

// textAt reads back a C string that was encoded as an address.
func textAt(addr uint64) string { return foreignText(uintptr(addr)) }

func eachABI(t *testing.T, body func(t *testing.T, abi ABI, b *block, rnd *rand.Rand)) {
	for _, abi := range allABIs {
		t.Run(abi.String(), func(t *testing.T) {
			b := getBlock()
			defer b.put()
			body(t, abi, b, rand.New(rand.NewPCG(uint64(abi), 7)))
		})
	}
}

func TestEncodeModuleOptions(t *testing.T) {
	eachABI(t, func(t *testing.T, abi ABI, _ *block, rnd *rand.Rand) {
		o := ModuleCompileOptions{MaxRegisterCount: rnd.Int32(), OptLevel: OptimizationLevel(rnd.Uint32()), DebugLevel: DebugLevel(rnd.Uint32())}
		const s = "OptixModuleCompileOptions"
		in := inspect(t, abi, o.record(abi).mem)
		assert.Len(t, in.mem, map[ABI]int{ABI87: 40, ABI93: 40, ABI105: 40, ABI118: 48}[abi])
		assert.EqualValues(t, o.MaxRegisterCount, in.at(0, s, "maxRegisterCount"))
		assert.EqualValues(t, o.OptLevel, in.at(0, s, "optLevel"))
		assert.EqualValues(t, o.DebugLevel, in.at(0, s, "debugLevel"))
		in.restIsZero()
	})
}

func TestEncodePipelineOptions(t *testing.T) {
	eachABI(t, func(t *testing.T, abi ABI, b *block, rnd *rand.Rand) {
		o := PipelineCompileOptions{
			TraversableGraphFlags: GraphFlags(rnd.Uint32()), NumPayloadValues: rnd.Int32(), NumAttributeValues: rnd.Int32(),
			ExceptionFlags: ExceptionFlags(rnd.Uint32()), LaunchParamsName: "params", LaunchParamsSize: rnd.Uint64(),
			PrimitiveTypeFlags: PrimitiveTypeFlags(rnd.Uint32()),
		}
		const s = "OptixPipelineCompileOptions"
		in := inspect(t, abi, o.record(abi, b).mem)
		assert.EqualValues(t, o.TraversableGraphFlags, in.at(0, s, "traversableGraphFlags"))
		assert.EqualValues(t, o.NumPayloadValues, in.at(0, s, "numPayloadValues"))
		assert.EqualValues(t, o.NumAttributeValues, in.at(0, s, "numAttributeValues"))
		assert.EqualValues(t, o.ExceptionFlags, in.at(0, s, "exceptionFlags"))
		assert.EqualValues(t, o.PrimitiveTypeFlags, in.at(0, s, "usesPrimitiveTypeFlags"))
		assert.Equal(t, "params", textAt(in.at(0, s, "pipelineLaunchParamsVariableName")))
		assert.Equal(t, abi == ABI118, in.has(s, "pipelineLaunchParamsSizeInBytes"))
		if abi == ABI118 {
			assert.Equal(t, o.LaunchParamsSize, in.at(0, s, "pipelineLaunchParamsSizeInBytes"))
		}
		in.restIsZero()
		// Programs without launch parameters name no variable.
		inspect(t, abi, (&PipelineCompileOptions{}).record(abi, b).mem).restIsZero()
	})
}

func TestEncodeProgramGroups(t *testing.T) {
	eachABI(t, func(t *testing.T, abi ABI, b *block, rnd *rand.Rand) {
		const s, single, hit = "OptixProgramGroupDesc", "OptixProgramGroupSingleModule", "OptixProgramGroupHitgroup"
		descs := []ProgramGroupDesc{
			{Kind: GroupRaygen, Program: EntryPoint{Module(rnd.Uint64()), "__raygen__a"}},
			{Kind: GroupMiss, Program: EntryPoint{Module(rnd.Uint64()), "__miss__b"}},
			{Kind: GroupMiss},
			{Kind: GroupHitgroup, ClosestHit: EntryPoint{Module(rnd.Uint64()), "__closesthit__c"}, AnyHit: EntryPoint{Module(rnd.Uint64()), "__anyhit__d"}},
			{Kind: GroupHitgroup, AnyHit: EntryPoint{Module(rnd.Uint64()), "__anyhit__e"}},
		}
		all := newRecords(abi, s, len(descs))
		for i, d := range descs {
			d.write(all[i], b)
			in := inspect(t, abi, all[i].mem)
			assert.EqualValues(t, d.Kind, in.at(0, s, "kind"))
			if d.Kind == GroupHitgroup {
				base := in.offset(s, "hitgroup")
				assert.EqualValues(t, d.ClosestHit.Module, in.at(base, hit, "moduleCH"))
				assert.Equal(t, d.ClosestHit.Name, textAt(in.at(base, hit, "entryFunctionNameCH")))
				assert.EqualValues(t, d.AnyHit.Module, in.at(base, hit, "moduleAH"))
				assert.Equal(t, d.AnyHit.Name, textAt(in.at(base, hit, "entryFunctionNameAH")))
			} else {
				member := map[ProgramGroupKind]string{GroupRaygen: "raygen", GroupMiss: "miss"}[d.Kind]
				base := in.offset(s, member)
				assert.EqualValues(t, d.Program.Module, in.at(base, single, "module"))
				assert.Equal(t, d.Program.Name, textAt(in.at(base, single, "entryFunctionName")))
			}
			in.restIsZero()
		}
		// Records of an array follow each other without a gap.
		facts := golden(t)
		size, _ := facts.layout(t, int(abi), s)
		assert.Equal(t, uintptr(unsafe.Pointer(&all[0].mem[0]))+uintptr(size), uintptr(unsafe.Pointer(&all[1].mem[0])))
	})
}

func TestEncodeBuildInputs(t *testing.T) {
	eachABI(t, func(t *testing.T, abi ABI, b *block, rnd *rand.Rand) {
		const s, tri, inst = "OptixBuildInput", "OptixBuildInputTriangleArray", "OptixBuildInputInstanceArray"
		a := TriangleArray{
			Vertices: rnd.Uint64(), NumVertices: rnd.Uint32(), VertexStride: rnd.Uint32(), Indices: rnd.Uint64(),
			NumTriangles: rnd.Uint32(), IndexStride: rnd.Uint32(), Flags: GeometryFlags(rnd.Uint32()),
		}
		r := newRecord(abi, s)
		a.write(r, b)
		in := inspect(t, abi, r.mem)
		assert.EqualValues(t, 8513, in.at(0, s, "type"))
		base := in.offset(s, "triangleArray")
		vertices := in.at(base, tri, "vertexBuffers")
		assert.Equal(t, a.Vertices, binary.LittleEndian.Uint64(foreign(uintptr(vertices), 8)))
		assert.EqualValues(t, a.NumVertices, in.at(base, tri, "numVertices"))
		assert.EqualValues(t, 8481, in.at(base, tri, "vertexFormat"))
		assert.EqualValues(t, a.VertexStride, in.at(base, tri, "vertexStrideInBytes"))
		assert.EqualValues(t, a.Indices, in.at(base, tri, "indexBuffer"))
		assert.EqualValues(t, a.NumTriangles, in.at(base, tri, "numIndexTriplets"))
		assert.EqualValues(t, 8451, in.at(base, tri, "indexFormat"))
		assert.EqualValues(t, a.IndexStride, in.at(base, tri, "indexStrideInBytes"))
		assert.EqualValues(t, 1, in.at(base, tri, "numSbtRecords"))
		assert.EqualValues(t, a.Flags, binary.LittleEndian.Uint32(foreign(uintptr(in.at(base, tri, "flags")), 4)))
		in.restIsZero()

		i := InstanceArray{Instances: rnd.Uint64(), Count: rnd.Uint32()}
		r = newRecord(abi, s)
		i.write(r, b)
		in = inspect(t, abi, r.mem)
		assert.EqualValues(t, 8515, in.at(0, s, "type"))
		base = in.offset(s, "instanceArray")
		assert.Equal(t, i.Instances, in.at(base, inst, "instances"))
		assert.EqualValues(t, i.Count, in.at(base, inst, "numInstances"))
		in.restIsZero()
	})
}

func TestEncodeRelocateInputs(t *testing.T) {
	eachABI(t, func(t *testing.T, abi ABI, _ *block, rnd *rand.Rand) {
		const s = "OptixRelocateInput"
		r := newRecord(abi, s)
		RelocateTriangles{}.write(r)
		in := inspect(t, abi, r.mem)
		assert.EqualValues(t, 8513, in.at(0, s, "type"))
		assert.EqualValues(t, 1, in.at(in.offset(s, "triangleArray"), "OptixRelocateInputTriangleArray", "numSbtRecords"))
		in.restIsZero()

		a := RelocateInstances{Traversables: rnd.Uint64(), Count: rnd.Uint32()}
		r = newRecord(abi, s)
		a.write(r)
		in = inspect(t, abi, r.mem)
		base := in.offset(s, "instanceArray")
		assert.EqualValues(t, 8515, in.at(0, s, "type"))
		assert.EqualValues(t, a.Count, in.at(base, "OptixRelocateInputInstanceArray", "numInstances"))
		assert.Equal(t, a.Traversables, in.at(base, "OptixRelocateInputInstanceArray", "traversableHandles"))
		in.restIsZero()
	})
}

func TestEncodeInstances(t *testing.T) {
	all := []Instance{{InstanceID: 7}, {InstanceID: 8, SBTOffset: 9, VisibilityMask: 255, Flags: InstanceDisableAnyHit, TraversableHandle: 1 << 40}}
	all[1].Transform[11] = 1
	mem := EncodeInstances(all)
	require.Len(t, mem, 160)
	u32 := func(off int) uint32 { return binary.LittleEndian.Uint32(mem[off:]) }
	assert.EqualValues(t, 7, u32(48))
	assert.EqualValues(t, 0x3f800000, u32(80+44))
	assert.EqualValues(t, []uint32{8, 9, 255, 4}, []uint32{u32(128), u32(132), u32(136), u32(140)})
	assert.EqualValues(t, 1<<40, binary.LittleEndian.Uint64(mem[144:]))
	assert.Empty(t, EncodeInstances(nil))
}

// TestRecordsRefuseNames checks that a wrong name cannot end as a silent write
// elsewhere.
func TestRecordsRefuseNames(t *testing.T) {
	assert.Panics(t, func() { newRecord(ABI87, "OptixNothing") })
	r := newRecord(ABI87, "OptixPipelineCompileOptions")
	assert.Panics(t, func() { r.set("pipelineLaunchParamsSizeInBytes", 1) })
	assert.False(t, r.has("pipelineLaunchParamsSizeInBytes"))
	in := newRecord(ABI87, "OptixBuildInput")
	assert.Panics(t, func() { in.set("triangleArray", 1) }, "a struct is no number")
}

// TestContinuationStack compares with the deepest of all chains of calls.
func TestContinuationStack(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		groups := make([]StackSizes, rnd.IntN(5))
		for i := range groups {
			groups[i] = StackSizes{CSSRG: rnd.Uint32N(500), CSSMS: rnd.Uint32N(500), CSSCH: rnd.Uint32N(500), CSSAH: rnd.Uint32N(500), CSSIS: rnd.Uint32N(500)}
		}
		for depth := range 5 {
			assert.Equal(t, deepestChain(groups, depth), ContinuationStack(depth, groups...), "depth %d of %+v", depth, groups)
		}
	}
}

// deepestChain walks every chain: a raygen program traces; what a trace call
// runs is a closest-hit or miss program, which may trace again, or an
// intersection program, which may call an any-hit program.
func deepestChain(groups []StackSizes, depth int) uint32 {
	var trace func(left int) uint32
	trace = func(left int) uint32 {
		if left == 0 {
			return 0
		}
		var deepest uint32
		below := trace(left - 1)
		for _, g := range groups {
			deepest = max(deepest, g.CSSCH+below, g.CSSMS+below)
			for _, h := range groups {
				deepest = max(deepest, g.CSSIS+h.CSSAH)
			}
		}
		return deepest
	}
	var deepest uint32
	for _, g := range groups {
		deepest = max(deepest, g.CSSRG)
	}
	return deepest + trace(depth)
}
