package optixabi

import (
	"encoding/json"
	"go/ast"
	"go/constant"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type goldenField struct {
	Name, Type   string
	Offset, Size int
}

type goldenFacts struct {
	ABIs []struct {
		ABI       int
		OptiX     string
		Branch    int `json:"driver_branch"`
		TableSize int `json:"table_size"`
		Table     []string
	}
	Functions map[string][][2]string
	Structs   map[string][]struct {
		ABIs        []int
		Size, Align int
		Fields      []goldenField
	}
	Enums     map[string]map[string]int64
	Constants map[string]int64
}

func golden(t *testing.T) goldenFacts {
	t.Helper()
	raw, err := os.ReadFile("abi/optix.json")
	require.NoError(t, err)
	var f goldenFacts
	require.NoError(t, json.Unmarshal(raw, &f))
	return f
}

// layout is the layout of a struct in an ABI, from the facts alone.
func (f *goldenFacts) layout(t *testing.T, abi int, name string) (size int, fields map[string]goldenField) {
	t.Helper()
	for _, l := range f.Structs[name] {
		if slices.Contains(l.ABIs, abi) {
			fields = map[string]goldenField{}
			for _, fd := range l.Fields {
				fields[fd.Name] = fd
			}
			return l.Size, fields
		}
	}
	t.Fatalf("no layout of %s in ABI %d", name, abi)
	return 0, nil
}

// TestTables compares every slot with the facts.
func TestTables(t *testing.T) {
	f := golden(t)
	require.Len(t, tables, len(f.ABIs))
	for i, want := range f.ABIs {
		abi := ABI(want.ABI)
		assert.Equal(t, abi, tables[i].abi)
		assert.Equal(t, want.TableSize, abi.TableSize())
		assert.Equal(t, 8*len(want.Table), abi.TableSize())
		assert.Equal(t, want.OptiX, abi.OptiX())
		assert.Equal(t, want.Branch, abi.DriverBranch())
		seen := map[int]bool{}
		for name, params := range f.Functions {
			slot, ok := abi.Slot(name)
			require.True(t, ok, name)
			assert.Equal(t, name, want.Table[slot], "ABI %v", abi)
			assert.False(t, seen[slot], "slot %d is taken twice", slot)
			seen[slot] = true
			assert.Equal(t, len(params), Functions()[name], name)
			assert.LessOrEqual(t, len(params), maxArgs, name)
		}
	}
	assert.Len(t, Functions(), len(f.Functions))
	_, ok := ABI105.Slot("optixDenoiserCreate")
	assert.False(t, ok, "a function that is not called has no slot")
	assert.Zero(t, ABI(104).TableSize())
	assert.Empty(t, ABI(104).OptiX())
	assert.Zero(t, ABI(104).DriverBranch())
}

// TestDifferences pins what differs between the ABIs to numbers from outside
// of the facts.
func TestDifferences(t *testing.T) {
	launch := map[ABI]int{ABI87: 39, ABI93: 39, ABI105: 41, ABI118: 49}
	entries := map[ABI]int{ABI87: 48, ABI93: 50, ABI105: 52, ABI118: 60}
	sizes := map[string]map[ABI]int{
		"OptixPipelineCompileOptions":  {ABI87: 40, ABI93: 40, ABI105: 48, ABI118: 56},
		"OptixModuleCompileOptions":    {ABI87: 40, ABI93: 40, ABI105: 40, ABI118: 48},
		"OptixPipelineLinkOptions":     {ABI87: 4, ABI93: 4, ABI105: 4, ABI118: 20},
		"OptixBuildInputTriangleArray": {ABI87: 240, ABI93: 240, ABI105: 240, ABI118: 144},
		"OptixBuildInput":              {ABI87: 1032, ABI93: 1032, ABI105: 1032, ABI118: 1032},
		"OptixAccelBuildOptions":       {ABI87: 20, ABI93: 20, ABI105: 20, ABI118: 20},
		"OptixInstance":                {ABI87: 80, ABI93: 80, ABI105: 80, ABI118: 80},
		"OptixShaderBindingTable":      {ABI87: 64, ABI93: 64, ABI105: 64, ABI118: 64},
		"OptixDeviceContextOptions":    {ABI87: 24, ABI93: 24, ABI105: 24, ABI118: 24},
		"OptixProgramGroupDesc":        {ABI87: 56, ABI93: 56, ABI105: 56, ABI118: 56},
		"OptixStackSizes":              {ABI87: 28, ABI93: 28, ABI105: 28, ABI118: 28},
	}
	for _, abi := range []ABI{ABI87, ABI93, ABI105, ABI118} {
		slot, ok := abi.Slot("optixLaunch")
		require.True(t, ok)
		assert.Equal(t, launch[abi], slot)
		assert.Equal(t, 8*entries[abi], abi.TableSize())
		for name, want := range sizes {
			l, ok := LayoutOf(abi, name)
			require.True(t, ok)
			assert.Equal(t, want[abi], l.Size, "%s in ABI %v", name, abi)
		}
		assert.Equal(t, abi != ABI118, abi.Tested())
	}
	pack, _ := ABI87.Slot("optixSbtRecordPackHeader")
	assert.Equal(t, 38, pack)
	pack, _ = ABI118.Slot("optixSbtRecordPackHeader")
	assert.Equal(t, 48, pack)
}

// TestLayouts compares every offset and size with the facts, both ways.
func TestLayouts(t *testing.T) {
	f := golden(t)
	n := 0
	for name, all := range f.Structs {
		covered := 0
		for _, want := range all {
			n++
			for _, abi := range want.ABIs {
				covered++
				have, ok := LayoutOf(ABI(abi), name)
				require.True(t, ok, "%s in ABI %d", name, abi)
				assert.Equal(t, want.Size, have.Size, name)
				assert.Equal(t, want.Align, have.Align, name)
				require.Len(t, have.Fields, len(want.Fields), name)
				for i, fd := range want.Fields {
					assert.Equal(t, Field(fd), have.Fields[i], name)
					assert.LessOrEqual(t, fd.Offset+fd.Size, want.Size, "%s.%s", name, fd.Name)
				}
			}
		}
		assert.Equal(t, len(tables), covered, "%s has a layout for every ABI", name)
	}
	assert.Len(t, layouts, n)
	_, ok := LayoutOf(ABI105, "OptixDenoiserOptions")
	assert.False(t, ok)
}

// TestStructs compares the Go structs with the facts of every ABI.
func TestStructs(t *testing.T) {
	f := golden(t)
	for _, typ := range []reflect.Type{
		reflect.TypeFor[AccelBufferSizes](), reflect.TypeFor[AccelBuildOptions](), reflect.TypeFor[AccelEmitDesc](), reflect.TypeFor[Instance](),
		reflect.TypeFor[MotionOptions](), reflect.TypeFor[RelocationInfo](), reflect.TypeFor[ShaderBindingTable](), reflect.TypeFor[StackSizes](),
	} {
		for _, abi := range f.ABIs {
			size, fields := f.layout(t, abi.ABI, "Optix"+typ.Name())
			assert.Equal(t, size, int(typ.Size()), typ.Name())
			byName := map[string]goldenField{}
			for _, fd := range fields {
				byName[strings.ToLower(fd.Name)] = fd
			}
			for i := range typ.NumField() {
				have := typ.Field(i)
				if have.Name == "_" {
					continue
				}
				want, ok := byName[strings.ToLower(have.Name)]
				require.True(t, ok, "%s.%s", typ.Name(), have.Name)
				delete(byName, strings.ToLower(have.Name))
				assert.Equal(t, want.Offset, int(have.Offset), "%s.%s", typ.Name(), have.Name)
				assert.Equal(t, want.Size, int(have.Type.Size()), "%s.%s", typ.Name(), have.Name)
			}
			delete(byName, "pad")
			assert.Empty(t, byName, "members of %s that the Go struct lacks", typ.Name())
		}
	}
}

// packageConstants reads the values that the compiler gives to the generated
// constants, by type; untyped ones under the empty name.
func packageConstants(t *testing.T) map[string]map[string]int64 {
	t.Helper()
	fset := token.NewFileSet()
	var files []*ast.File
	for _, n := range []string{"zz_enums.go", "zz_results.go"} {
		file, err := parser.ParseFile(fset, n, nil, 0)
		require.NoError(t, err)
		files = append(files, file)
	}
	conf := types.Config{Importer: importer.ForCompiler(fset, "source", nil)}
	pkg, err := conf.Check("optixabi", fset, files, nil)
	require.NoError(t, err)
	byType := map[string]map[string]int64{}
	for _, n := range pkg.Scope().Names() {
		c, ok := pkg.Scope().Lookup(n).(*types.Const)
		if !ok {
			continue
		}
		typ := ""
		if named, ok := c.Type().(*types.Named); ok {
			typ = named.Obj().Name()
		}
		if byType[typ] == nil {
			byType[typ] = map[string]int64{}
		}
		byType[typ][n], _ = constant.Int64Val(c.Val())
	}
	return byType
}

// letters drops what differs between the spellings RTCORE_VERSION and
// RTCoreVersion.
func letters(s string) string { return strings.ToLower(strings.ReplaceAll(s, "_", "")) }

// TestEnums compares every enumerator with the facts, both ways.
func TestEnums(t *testing.T) {
	f, have := golden(t), packageConstants(t)
	plans := map[string]struct{ typ, cut, pre string }{
		"OptixResult":                      {"Result", "OPTIX_", ""},
		"OptixAccelPropertyType":           {"AccelProperty", "OPTIX_PROPERTY_TYPE_", "Accel"},
		"OptixBuildFlags":                  {"BuildFlags", "OPTIX_BUILD_FLAG_", "Build"},
		"OptixBuildInputType":              {"BuildInputType", "OPTIX_BUILD_INPUT_TYPE_", "Input"},
		"OptixBuildOperation":              {"BuildOperation", "OPTIX_BUILD_OPERATION_", "Operation"},
		"OptixCompileDebugLevel":           {"DebugLevel", "OPTIX_COMPILE_DEBUG_LEVEL_", "Debug"},
		"OptixCompileOptimizationLevel":    {"OptimizationLevel", "OPTIX_COMPILE_OPTIMIZATION_", "Optimization"},
		"OptixDeviceContextValidationMode": {"ValidationMode", "OPTIX_DEVICE_CONTEXT_VALIDATION_MODE_", "Validation"},
		"OptixDeviceProperty":              {"Property", "OPTIX_DEVICE_PROPERTY_", "Property"},
		"OptixExceptionFlags":              {"ExceptionFlags", "OPTIX_EXCEPTION_FLAG_", "Exception"},
		"OptixGeometryFlags":               {"GeometryFlags", "OPTIX_GEOMETRY_FLAG_", "Geometry"},
		"OptixIndicesFormat":               {"IndicesFormat", "OPTIX_INDICES_FORMAT_", "Indices"},
		"OptixInstanceFlags":               {"InstanceFlags", "OPTIX_INSTANCE_FLAG_", "Instance"},
		"OptixPrimitiveTypeFlags":          {"PrimitiveTypeFlags", "OPTIX_PRIMITIVE_TYPE_FLAGS_", "Primitive"},
		"OptixProgramGroupKind":            {"ProgramGroupKind", "OPTIX_PROGRAM_GROUP_KIND_", "Group"},
		"OptixTraversableGraphFlags":       {"GraphFlags", "OPTIX_TRAVERSABLE_GRAPH_FLAG_", "Graph"},
		"OptixVertexFormat":                {"VertexFormat", "OPTIX_VERTEX_FORMAT_", "Vertex"},
	}
	assert.Len(t, plans, len(f.Enums))
	for c, p := range plans {
		want := map[string]int64{}
		for n, v := range f.Enums[c] {
			if c != "OptixResult" {
				v = int64(uint32(v)) // flags in bit 31 are written as negative in C
			}
			want[letters(p.pre+strings.TrimPrefix(n, p.cut))] = v
		}
		got := map[string]int64{}
		for n, v := range have[p.typ] {
			got[letters(n)] = v
		}
		assert.Equal(t, want, got, c)
	}
	assert.Equal(t, map[string]int64{
		"AccelBufferAlignment": f.Constants["OPTIX_ACCEL_BUFFER_BYTE_ALIGNMENT"],
		"InstanceAlignment":    f.Constants["OPTIX_INSTANCE_BYTE_ALIGNMENT"],
		"SBTRecordAlignment":   f.Constants["OPTIX_SBT_RECORD_ALIGNMENT"],
		"SBTRecordHeaderSize":  f.Constants["OPTIX_SBT_RECORD_HEADER_SIZE"],
	}, have[""])
}

// TestResults checks names and the forms of an error.
func TestResults(t *testing.T) {
	values := golden(t).Enums["OptixResult"]
	assert.Len(t, resultNames, len(values))
	for name, v := range values {
		assert.Equal(t, name, Result(v).Name())
		assert.Equal(t, strings.HasPrefix(name, "OPTIX_ERROR_DISK_CACHE_"), Result(v).CacheFailure(), name)
	}
	assert.EqualError(t, ErrorUnsupportedABIVersion, "OPTIX_ERROR_UNSUPPORTED_ABI_VERSION (7801)")
	assert.EqualError(t, Result(1234), "OPTIX_ERROR_1234 (1234)")
	assert.NoError(t, callError(fnLaunch, Success, "a log"))
	err := callError(fnModuleCreate, ErrorInvalidFunctionUse, "line 3: too new")
	assert.ErrorIs(t, err, ErrorInvalidFunctionUse)
	assert.EqualError(t, err, "optixModuleCreate: OPTIX_ERROR_INVALID_FUNCTION_USE (7204): "+hints[ErrorInvalidFunctionUse]+"\nline 3: too new")
	for code := range hints {
		assert.Contains(t, resultNames, code)
	}
}
