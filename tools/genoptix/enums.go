package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// enumPlan says how one C enumeration becomes a Go type: its name, the prefix
// that the C names share, and the prefix of the Go names.
type enumPlan struct{ c, goType, cut, pre string }

var resultPlan = enumPlan{"OptixResult", "Result", "OPTIX_", ""}

var enums = []enumPlan{
	{"OptixAccelPropertyType", "AccelProperty", "OPTIX_PROPERTY_TYPE_", "Accel"},
	{"OptixBuildFlags", "BuildFlags", "OPTIX_BUILD_FLAG_", "Build"},
	{"OptixBuildInputType", "BuildInputType", "OPTIX_BUILD_INPUT_TYPE_", "Input"},
	{"OptixBuildOperation", "BuildOperation", "OPTIX_BUILD_OPERATION_", "Operation"},
	{"OptixCompileDebugLevel", "DebugLevel", "OPTIX_COMPILE_DEBUG_LEVEL_", "Debug"},
	{"OptixCompileOptimizationLevel", "OptimizationLevel", "OPTIX_COMPILE_OPTIMIZATION_", "Optimization"},
	{"OptixDeviceContextValidationMode", "ValidationMode", "OPTIX_DEVICE_CONTEXT_VALIDATION_MODE_", "Validation"},
	{"OptixDeviceProperty", "Property", "OPTIX_DEVICE_PROPERTY_", "Property"},
	{"OptixExceptionFlags", "ExceptionFlags", "OPTIX_EXCEPTION_FLAG_", "Exception"},
	{"OptixGeometryFlags", "GeometryFlags", "OPTIX_GEOMETRY_FLAG_", "Geometry"},
	{"OptixIndicesFormat", "IndicesFormat", "OPTIX_INDICES_FORMAT_", "Indices"},
	{"OptixInstanceFlags", "InstanceFlags", "OPTIX_INSTANCE_FLAG_", "Instance"},
	{"OptixPrimitiveTypeFlags", "PrimitiveTypeFlags", "OPTIX_PRIMITIVE_TYPE_FLAGS_", "Primitive"},
	{"OptixProgramGroupKind", "ProgramGroupKind", "OPTIX_PROGRAM_GROUP_KIND_", "Group"},
	{"OptixTraversableGraphFlags", "GraphFlags", "OPTIX_TRAVERSABLE_GRAPH_FLAG_", "Graph"},
	{"OptixVertexFormat", "VertexFormat", "OPTIX_VERTEX_FORMAT_", "Vertex"},
}

// constants are the macros that are generated.
var constants = []struct{ c, goName, doc string }{
	{"OPTIX_ACCEL_BUFFER_BYTE_ALIGNMENT", "AccelBufferAlignment", "the alignment in bytes of acceleration structures and of their temporary memory"},
	{"OPTIX_INSTANCE_BYTE_ALIGNMENT", "InstanceAlignment", "the alignment in bytes of an array of instances"},
	{"OPTIX_SBT_RECORD_ALIGNMENT", "SBTRecordAlignment", "the alignment in bytes of records of a shader binding table"},
	{"OPTIX_SBT_RECORD_HEADER_SIZE", "SBTRecordHeaderSize", "the bytes at the start of a record that SBTRecordPackHeader fills"},
}

func genEnums(f *facts, b *bytes.Buffer) error {
	for _, p := range enums {
		values, ok := f.Enums[p.c]
		if !ok {
			return fmt.Errorf("no enum %s", p.c)
		}
		fmt.Fprintf(b, "// %s is %s.\ntype %s uint32\n\n// Values of %s.\nconst (\n", p.goType, p.c, p.goType, p.goType)
		for _, n := range byValue(values) {
			fmt.Fprintf(b, "\t%s%s %s = %d\n", p.pre, camel(strings.TrimPrefix(n, p.cut)), p.goType, uint32(values[n]))
		}
		b.WriteString(")\n\n")
	}
	b.WriteString("// Sizes and alignments.\nconst (\n")
	for _, c := range constants {
		v, ok := f.Constants[c.c]
		if !ok {
			return fmt.Errorf("no constant %s", c.c)
		}
		fmt.Fprintf(b, "\t// %s is %s.\n\t%s = %d\n", c.goName, c.doc, c.goName, v)
	}
	b.WriteString(")\n")
	return nil
}

// genResults writes the result codes with their C names, so that an error has
// a text even when no library is loaded.
func genResults(f *facts, b *bytes.Buffer) error {
	values, ok := f.Enums[resultPlan.c]
	if !ok {
		return fmt.Errorf("no enum %s", resultPlan.c)
	}
	b.WriteString("// Result is an OptixResult: 0 or the reason why a call failed. It is an error.\ntype Result int32\n\n")
	b.WriteString("// Values of Result.\nconst (\n")
	names := byValue(values)
	for _, n := range names {
		fmt.Fprintf(b, "\t%s Result = %d\n", camel(strings.TrimPrefix(n, resultPlan.cut)), values[n])
	}
	b.WriteString(")\n\nvar resultNames = map[Result]string{\n")
	for _, n := range names {
		fmt.Fprintf(b, "\t%d: %q,\n", values[n], n)
	}
	b.WriteString("}\n")
	return nil
}

// byValue sorts enumerators by value.
func byValue(m map[string]int64) []string {
	names := sortedKeys(m)
	slices.SortStableFunc(names, func(x, y string) int { return int(m[x] - m[y]) })
	return names
}
