package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// spoken are the ABIs that Raymux speaks, with the first driver branch that
// usually knows each.
var spoken = []struct{ abi, branch int }{{87, 535}, {93, 555}, {105, 570}, {118, 590}}

// used are the functions that package optixabi calls. Each has to be in every
// ABI with the same parameters.
var used = []string{
	"optixGetErrorName", "optixGetErrorString",
	"optixDeviceContextCreate", "optixDeviceContextDestroy", "optixDeviceContextGetProperty", "optixDeviceContextSetLogCallback",
	"optixDeviceContextSetCacheEnabled", "optixDeviceContextSetCacheLocation", "optixDeviceContextSetCacheDatabaseSizes",
	"optixDeviceContextGetCacheEnabled", "optixDeviceContextGetCacheLocation", "optixDeviceContextGetCacheDatabaseSizes",
	"optixModuleCreate", "optixModuleDestroy",
	"optixProgramGroupCreate", "optixProgramGroupDestroy", "optixProgramGroupGetStackSize",
	"optixPipelineCreate", "optixPipelineDestroy", "optixPipelineSetStackSize",
	"optixAccelComputeMemoryUsage", "optixAccelBuild", "optixAccelCompact",
	"optixAccelGetRelocationInfo", "optixCheckRelocationCompatibility", "optixAccelRelocate",
	"optixSbtRecordPackHeader", "optixLaunch",
}

// structs are the structs that those functions take.
var structs = []string{
	"OptixDeviceContextOptions", "OptixModuleCompileOptions", "OptixPipelineCompileOptions", "OptixPipelineLinkOptions",
	"OptixProgramGroupDesc", "OptixProgramGroupSingleModule", "OptixProgramGroupHitgroup", "OptixProgramGroupOptions",
	"OptixStackSizes", "OptixShaderBindingTable",
	"OptixBuildInput", "OptixBuildInputTriangleArray", "OptixBuildInputInstanceArray",
	"OptixAccelBuildOptions", "OptixMotionOptions", "OptixAccelBufferSizes", "OptixAccelEmitDesc", "OptixInstance",
	"OptixRelocationInfo", "OptixRelocateInput", "OptixRelocateInputInstanceArray", "OptixRelocateInputTriangleArray",
}

// wholeFacts is the part of the complete list that is read.
type wholeFacts struct {
	Versions map[string]struct {
		OptiX         string           `json:"optix_version"`
		Constants     map[string]int64 `json:"constants"`
		FunctionTable struct {
			Size    int `json:"size"`
			Entries []struct {
				Index  int    `json:"index"`
				Name   string `json:"name"`
				Params []struct{ Type, Name string }
			} `json:"entries"`
		} `json:"function_table"`
		Enums map[string]struct {
			Size   int              `json:"size"`
			Values map[string]int64 `json:"values"`
		} `json:"enums"`
		Structs map[string]layoutFact `json:"structs"`
	} `json:"versions"`
}

// importFacts cuts a complete list of all ABIs down to what optixabi uses.
func importFacts(from, to string) error {
	raw, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	var w wholeFacts
	if err := json.Unmarshal(raw, &w); err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	f, err := cut(&w)
	if err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	return os.WriteFile(to, f.encode(), 0o644)
}

func cut(w *wholeFacts) (*facts, error) {
	f := &facts{
		Schema: "raymux-optix-abi/1", Params: map[string][]param{}, Structs: map[string][]layoutFact{},
		Enums: map[string]map[string]int64{}, Constants: map[string]int64{},
	}
	for _, s := range spoken {
		v, ok := w.Versions[strconv.Itoa(s.abi)]
		if !ok {
			return nil, fmt.Errorf("no ABI %d", s.abi)
		}
		a := abiFact{ABI: s.abi, OptiX: v.OptiX, Branch: s.branch, Size: v.FunctionTable.Size}
		for i, e := range v.FunctionTable.Entries {
			if e.Index != i {
				return nil, fmt.Errorf("ABI %d: entry %d has index %d", s.abi, i, e.Index)
			}
			a.Table = append(a.Table, e.Name)
			if !slices.Contains(used, e.Name) {
				continue
			}
			var params []param
			for _, p := range e.Params {
				params = append(params, param{p.Type, p.Name})
			}
			if have, ok := f.Params[e.Name]; ok && !slices.Equal(have, params) {
				return nil, fmt.Errorf("%s has other parameters in ABI %d", e.Name, s.abi)
			}
			f.Params[e.Name] = params
		}
		f.ABIs = append(f.ABIs, a)
		for _, name := range structs {
			l, ok := v.Structs[name]
			if !ok {
				return nil, fmt.Errorf("ABI %d: no struct %s", s.abi, name)
			}
			f.addLayout(name, l, s.abi)
		}
		for _, p := range append([]enumPlan{resultPlan}, enums...) {
			e, ok := v.Enums[p.c]
			if !ok || e.Size != 4 {
				return nil, fmt.Errorf("ABI %d: no enum %s of 4 bytes", s.abi, p.c)
			}
			if err := merge(f.values(p.c), e.Values); err != nil {
				return nil, fmt.Errorf("ABI %d: %w", s.abi, err)
			}
		}
		own := map[string]int64{}
		for _, c := range constants {
			value, ok := v.Constants[c.c]
			if !ok {
				return nil, fmt.Errorf("ABI %d: no constant %s", s.abi, c.c)
			}
			own[c.c] = value
		}
		if err := merge(f.Constants, own); err != nil {
			return nil, fmt.Errorf("ABI %d: %w", s.abi, err)
		}
	}
	for _, name := range used {
		for _, a := range f.ABIs {
			if !slices.Contains(a.Table, name) {
				return nil, fmt.Errorf("ABI %d: no function %s", a.ABI, name)
			}
		}
	}
	return f, nil
}

// values is the map of an enumeration.
func (f *facts) values(name string) map[string]int64 {
	if f.Enums[name] == nil {
		f.Enums[name] = map[string]int64{}
	}
	return f.Enums[name]
}

// addLayout files a layout under the ABIs that share it. The order in which a
// header lists members of a union is no difference.
func (f *facts) addLayout(name string, l layoutFact, abi int) {
	slices.SortStableFunc(l.Fields, func(a, b fieldFact) int {
		if a.Offset != b.Offset {
			return a.Offset - b.Offset
		}
		return strings.Compare(a.Name, b.Name)
	})
	all := f.Structs[name]
	for i, have := range all {
		if have.Size == l.Size && have.Align == l.Align && slices.Equal(have.Fields, l.Fields) {
			all[i].ABIs = append(have.ABIs, abi)
			return
		}
	}
	l.ABIs = []int{abi}
	f.Structs[name] = append(all, l)
}

func merge(into, from map[string]int64) error {
	for k, v := range from {
		if have, ok := into[k]; ok && have != v {
			return fmt.Errorf("%s was %d and is %d", k, have, v)
		}
		into[k] = v
	}
	return nil
}

// encode writes the facts with one item per line, so that a change shows as
// the lines that it concerns.
func (f *facts) encode() []byte {
	var b bytes.Buffer
	line := func(format string, args ...any) { fmt.Fprintf(&b, format, args...) }
	line("{\n \"schema\": %s,\n \"abis\": [", text(f.Schema))
	for i, a := range f.ABIs {
		line("%s\n  %s", comma(i), text(a))
	}
	line("\n ],\n \"functions\": {")
	writeMap(&b, f.Params)
	line("\n },\n \"structs\": {")
	for i, name := range sortedKeys(f.Structs) {
		line("%s\n  %s: [", comma(i), text(name))
		for j, l := range f.Structs[name] {
			line("%s\n   {\"abis\": %s, \"size\": %d, \"align\": %d, \"fields\": [", comma(j), text(l.ABIs), l.Size, l.Align)
			for k, fd := range l.Fields {
				line("%s\n    %s", comma(k), text(fd))
			}
			line("]}")
		}
		line("]")
	}
	line("\n },\n \"enums\": {")
	writeMap(&b, f.Enums)
	line("\n },\n \"constants\": %s\n}\n", text(f.Constants))
	return b.Bytes()
}

func writeMap[V any](b *bytes.Buffer, m map[string]V) {
	for i, k := range sortedKeys(m) {
		fmt.Fprintf(b, "%s\n  %s: %s", comma(i), text(k), text(m[k]))
	}
}

func comma(i int) string {
	if i == 0 {
		return ""
	}
	return ","
}

// text is a value as JSON in one line; the types of the facts cannot fail.
func text(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err)
	}
	return strings.TrimSpace(b.String())
}
