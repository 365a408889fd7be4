package cuapi

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
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type goldenFacts struct {
	Structs map[string]struct {
		Size, Align int
		Fields      []struct {
			Name         string
			Offset, Size int
		}
	}
	Enums map[string]struct {
		Size   int
		Values map[string]int64
	}
	Functions []struct {
		Symbol  string
		MinCUDA string `json:"min_cuda"`
		Params  [][]string
	}
	Macros map[string]int64
}

func golden(t *testing.T) goldenFacts {
	t.Helper()
	raw, err := os.ReadFile("abi/cuda.json")
	require.NoError(t, err)
	var f goldenFacts
	require.NoError(t, json.Unmarshal(raw, &f))
	return f
}

// TestStructLayout compares sizes, alignments, offsets and widths.
func TestStructLayout(t *testing.T) {
	f := golden(t)
	for name, typ := range map[string]reflect.Type{
		"CUmemLocation":   reflect.TypeFor[MemLocation](),
		"CUmemAccessDesc": reflect.TypeFor[MemAccessDesc](),
		"CUmemPoolProps":  reflect.TypeFor[MemPoolProps](),
	} {
		want, ok := f.Structs[name]
		require.True(t, ok, name)
		assert.Equal(t, want.Size, int(typ.Size()), name)
		assert.Equal(t, want.Align, typ.Align(), name)
		for _, fd := range want.Fields {
			got, ok := typ.FieldByName(strings.ToUpper(fd.Name[:1]) + fd.Name[1:])
			require.True(t, ok, "%s.%s", name, fd.Name)
			assert.Equal(t, fd.Offset, int(got.Offset), "%s.%s", name, fd.Name)
			assert.Equal(t, fd.Size, int(got.Type.Size()), "%s.%s", name, fd.Name)
		}
	}
}

// constants reads the values that the compiler gives to the constants of each
// type of this package.
func constants(t *testing.T) map[string]map[string]int64 {
	t.Helper()
	fset := token.NewFileSet()
	var files []*ast.File
	for _, n := range []string{"zz_enums.go", "zz_errors.go", "zz_structs.go", "zz_symbols.go", "api.go", "result.go"} {
		file, err := parser.ParseFile(fset, n, nil, 0)
		require.NoError(t, err)
		files = append(files, file)
	}
	conf := types.Config{Importer: importer.ForCompiler(fset, "source", nil)}
	pkg, err := conf.Check("cuapi", fset, files, nil)
	require.NoError(t, err)
	byType := map[string]map[string]int64{}
	for _, n := range pkg.Scope().Names() {
		c, ok := pkg.Scope().Lookup(n).(*types.Const)
		if !ok {
			continue
		}
		typ := c.Type().(*types.Named).Obj().Name()
		if byType[typ] == nil {
			byType[typ] = map[string]int64{}
		}
		byType[typ][n], _ = constant.Int64Val(c.Val())
	}
	return byType
}

// letters drops what differs between the spellings MULTI_PROCESSOR_COUNT and
// MultiProcessorCount.
func letters(s string) string { return strings.ToLower(strings.ReplaceAll(s, "_", "")) }

// TestEnums compares every enumerator with the facts, both ways: none is
// missing, none is made up, none has another value.
func TestEnums(t *testing.T) {
	f, have := golden(t), constants(t)
	for c, e := range map[string]struct{ typ, cut, pre string }{
		"CUresult":              {"Result", "CUDA_", ""},
		"CUdevice_attribute":    {"DeviceAttribute", "CU_DEVICE_ATTRIBUTE_", "Attr"},
		"CUdevice_P2PAttribute": {"P2PAttribute", "CU_DEVICE_P2P_ATTRIBUTE_", "P2P"},
		"CUfunction_attribute":  {"FunctionAttribute", "CU_FUNC_ATTRIBUTE_", "Func"},
		"CUjit_option":          {"JITOption", "CU_JIT_", "JIT"},
		"CUlimit":               {"Limit", "CU_LIMIT_", "Limit"},
		"CUstream_flags":        {"StreamFlags", "CU_STREAM_", "Stream"},
		"CUevent_flags":         {"EventFlags", "CU_EVENT_", "Event"},
		"CUmemorytype":          {"MemoryType", "CU_MEMORYTYPE_", "MemoryType"},
		"CUmemPool_attribute":   {"MemPoolAttribute", "CU_MEMPOOL_ATTR_", "MemPool"},
		"CUmemAccess_flags":     {"MemAccessFlags", "CU_MEM_ACCESS_FLAGS_", "MemAccess"},
		"CUmemLocationType":     {"MemLocationType", "CU_MEM_LOCATION_TYPE_", "MemLocation"},
		"CUpointer_attribute":   {"PointerAttribute", "CU_POINTER_ATTRIBUTE_", "Pointer"},
		"CUcomputemode":         {"ComputeMode", "CU_COMPUTEMODE_", "ComputeMode"},
	} {
		require.Equal(t, 4, f.Enums[c].Size, c)
		want := map[string]int64{}
		for n, v := range f.Enums[c].Values {
			if !strings.HasSuffix(n, "_MAX") && !strings.HasSuffix(n, "_NUM_OPTIONS") {
				want[letters(e.pre+strings.TrimPrefix(n, e.cut))] = v
			}
		}
		got := map[string]int64{}
		for n, v := range have[e.typ] {
			got[letters(n)] = v
		}
		assert.Equal(t, want, got, c)
	}
	assert.Equal(t, map[string]int64{
		"MemHostAllocPortable":      f.Macros["CU_MEMHOSTALLOC_PORTABLE"],
		"MemHostAllocDeviceMap":     f.Macros["CU_MEMHOSTALLOC_DEVICEMAP"],
		"MemHostAllocWriteCombined": f.Macros["CU_MEMHOSTALLOC_WRITECOMBINED"],
	}, have["MemHostAllocFlags"])
}

// TestResults checks names and the forms of an error.
func TestResults(t *testing.T) {
	values := golden(t).Enums["CUresult"].Values
	assert.Len(t, resultNames, len(values))
	for name, v := range values {
		assert.Equal(t, name, Result(v).Name())
	}
	assert.NoError(t, Success.Err())
	assert.Equal(t, ErrorOutOfMemory, ErrorOutOfMemory.Err())
	assert.EqualError(t, ErrorOutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY (2)")
	assert.EqualError(t, Result(12345), "CUDA_ERROR_12345 (12345)")
}

// TestSticky checks the codes after which a context is lost against their
// names, over all codes. 713 (memory not registered) lies among them and is
// none.
func TestSticky(t *testing.T) {
	lost := map[string]bool{}
	for _, n := range []string{
		"ILLEGAL_ADDRESS", "LAUNCH_TIMEOUT", "ASSERT", "HARDWARE_STACK_ERROR", "ILLEGAL_INSTRUCTION", "MISALIGNED_ADDRESS",
		"INVALID_ADDRESS_SPACE", "INVALID_PC", "LAUNCH_FAILED", "ECC_UNCORRECTABLE", "NVLINK_UNCORRECTABLE",
	} {
		lost["CUDA_ERROR_"+n] = true
	}
	for name, v := range golden(t).Enums["CUresult"].Values {
		assert.Equal(t, lost[name], Result(v).Sticky(), name)
	}
}

// TestSymbols compares the tables of entry points with the facts.
func TestSymbols(t *testing.T) {
	fns := golden(t).Functions
	assert.Len(t, SymbolSince, len(fns))
	assert.Len(t, SymbolParams, len(fns))
	for _, fn := range fns {
		assert.Equal(t, fn.MinCUDA, SymbolSince[fn.Symbol], fn.Symbol)
		assert.Equal(t, len(fn.Params), SymbolParams[fn.Symbol], fn.Symbol)
	}
}

func TestD1(t *testing.T) { assert.Equal(t, Dim3{X: 7, Y: 1, Z: 1}, D1(7)) }
