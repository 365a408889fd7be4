package main

import (
	"bytes"
	"fmt"
	"sort"
	"strings"
)

// enumPlan says how one C enumeration becomes a Go type: its name, the prefix
// that the C names share, and the prefix of the Go names.
type enumPlan struct{ c, goType, cut, pre string }

var enums = []enumPlan{
	{"CUdevice_attribute", "DeviceAttribute", "CU_DEVICE_ATTRIBUTE_", "Attr"},
	{"CUdevice_P2PAttribute", "P2PAttribute", "CU_DEVICE_P2P_ATTRIBUTE_", "P2P"},
	{"CUfunction_attribute", "FunctionAttribute", "CU_FUNC_ATTRIBUTE_", "Func"},
	{"CUjit_option", "JITOption", "CU_JIT_", "JIT"},
	{"CUlimit", "Limit", "CU_LIMIT_", "Limit"},
	{"CUstream_flags", "StreamFlags", "CU_STREAM_", "Stream"},
	{"CUevent_flags", "EventFlags", "CU_EVENT_", "Event"},
	{"CUmemorytype", "MemoryType", "CU_MEMORYTYPE_", "MemoryType"},
	{"CUmemPool_attribute", "MemPoolAttribute", "CU_MEMPOOL_ATTR_", "MemPool"},
	{"CUmemAccess_flags", "MemAccessFlags", "CU_MEM_ACCESS_FLAGS_", "MemAccess"},
	{"CUmemLocationType", "MemLocationType", "CU_MEM_LOCATION_TYPE_", "MemLocation"},
	{"CUpointer_attribute", "PointerAttribute", "CU_POINTER_ATTRIBUTE_", "Pointer"},
	{"CUcomputemode", "ComputeMode", "CU_COMPUTEMODE_", "ComputeMode"},
}

func genEnums(f *facts) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString(header)
	for _, p := range enums {
		e, ok := f.Enums[p.c]
		if !ok {
			return nil, fmt.Errorf("no enum %s", p.c)
		}
		if e.Size != 4 {
			return nil, fmt.Errorf("%s: size %d, expected 4", p.c, e.Size)
		}
		fmt.Fprintf(&b, "// %s is the driver's %s.\ntype %s int32\n\n", p.goType, p.c, p.goType)
		fmt.Fprintf(&b, "// Values of %s.\nconst (\n", p.goType)
		for _, n := range byValue(e.Values) {
			if strings.HasSuffix(n, "_MAX") || strings.HasSuffix(n, "_NUM_OPTIONS") {
				continue // sentinels move between releases
			}
			fmt.Fprintf(&b, "\t%s%s %s = %s\n", p.pre, camel(strings.TrimPrefix(n, p.cut)), p.goType, e.Values[n])
		}
		b.WriteString(")\n\n")
	}
	return b.Bytes(), nil
}

// genErrors writes the result codes with their C names, so that an error has
// a text even when no driver is loaded.
func genErrors(f *facts) ([]byte, error) {
	e, ok := f.Enums["CUresult"]
	if !ok {
		return nil, fmt.Errorf("no enum CUresult")
	}
	var b bytes.Buffer
	b.WriteString(header)
	b.WriteString("// Result is a CUresult: 0 or the reason why a call failed. It is an error.\ntype Result int32\n\n")
	b.WriteString("// Values of Result.\nconst (\n")
	names := byValue(e.Values)
	for _, n := range names {
		fmt.Fprintf(&b, "\t%s Result = %s\n", camel(strings.TrimPrefix(n, "CUDA_")), e.Values[n])
	}
	b.WriteString(")\n\nvar resultNames = map[Result]string{\n")
	for _, n := range names {
		fmt.Fprintf(&b, "\t%s: %q,\n", e.Values[n], n)
	}
	b.WriteString("}\n")
	return b.Bytes(), nil
}

// byValue sorts enumerators by value, then by name.
func byValue[N interface{ Int64() (int64, error) }](m map[string]N) []string {
	names := make([]string, 0, len(m))
	for n := range m {
		names = append(names, n)
	}
	sort.Slice(names, func(i, j int) bool {
		a, _ := m[names[i]].Int64()
		c, _ := m[names[j]].Int64()
		if a != c {
			return a < c
		}
		return names[i] < names[j]
	})
	return names
}
