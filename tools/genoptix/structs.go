package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// plain are the structs that become Go structs: they are laid out alike in
// every ABI and hold no address of host memory.
var plain = []struct{ c, doc string }{
	{"OptixAccelBufferSizes", "the memory in bytes that a build needs"},
	{"OptixAccelBuildOptions", "how a structure is built"},
	{"OptixAccelEmitDesc", "a property that a build writes to device memory"},
	{"OptixInstance", "one entry of the array of instances in device memory; one whose VisibilityMask is 0 is never hit"},
	{"OptixMotionOptions", "the time steps of a structure; zero means none"},
	{"OptixRelocationInfo", "what the driver needs to know about a structure to move it"},
	{"OptixShaderBindingTable", "where the records of a shader binding table lie; addresses are device addresses"},
	{"OptixStackSizes", "the stack bytes that the programs of a group need"},
}

// typed gives fields that C declares as plain numbers the type of their flags.
var typed = map[string]string{
	"OptixAccelBuildOptions.buildFlags": "BuildFlags",
	"OptixInstance.flags":               "InstanceFlags",
}

func genStructs(f *facts, b *bytes.Buffer) error {
	for _, p := range plain {
		all := f.Structs[p.c]
		if len(all) != 1 {
			return fmt.Errorf("%s has %d layouts, a Go struct needs one", p.c, len(all))
		}
		s := all[0]
		name := strings.TrimPrefix(p.c, "Optix")
		fmt.Fprintf(b, "// %s is %s. It is %s of every ABI: %d bytes.\ntype %s struct {\n", name, p.doc, p.c, s.Size, name)
		end := 0
		for _, fd := range s.Fields {
			if fd.Offset != end {
				return fmt.Errorf("%s.%s: offset %d, expected %d", p.c, fd.Name, fd.Offset, end)
			}
			end += fd.Size
			if fd.Name == "pad" {
				fmt.Fprintf(b, "\t_ [%d]byte\n", fd.Size)
				continue
			}
			typ, err := goField(f, p.c, fd)
			if err != nil {
				return err
			}
			fmt.Fprintf(b, "\t%s %s // offset %d\n", exported(fd.Name), typ, fd.Offset)
		}
		if s.Size > end {
			fmt.Fprintf(b, "\t_ [%d]byte\n", s.Size-end)
		}
		b.WriteString("}\n\n")
	}
	return nil
}

func goField(f *facts, owner string, fd fieldFact) (string, error) {
	if t, ok := typed[owner+"."+fd.Name]; ok {
		return t, nil
	}
	if _, ok := f.Structs[fd.Type]; ok {
		return strings.TrimPrefix(fd.Type, "Optix"), nil
	}
	for _, p := range enums {
		if p.c == fd.Type {
			return p.goType, nil
		}
	}
	t, ok := map[string]string{
		"CUdeviceptr": "uint64", "size_t": "uint64", "unsigned int": "uint32", "unsigned short": "uint16", "float": "float32",
		"float[12]": "[12]float32", "unsigned long long[4]": "[4]uint64", "OptixTraversableHandle": "Traversable",
	}[fd.Type]
	if !ok {
		return "", fmt.Errorf("%s.%s: no Go type for %s", owner, fd.Name, fd.Type)
	}
	return t, nil
}

// exported turns instanceId into InstanceID and cssRG into CSSRG.
func exported(s string) string {
	for _, pre := range []string{"sbt", "css", "dss"} {
		if strings.HasPrefix(s, pre) {
			s = strings.ToUpper(pre) + s[len(pre):]
		}
	}
	if strings.HasSuffix(s, "Id") {
		s = s[:len(s)-1] + "D"
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// genLayouts writes every layout as data.
func genLayouts(f *facts, b *bytes.Buffer) error {
	b.WriteString("var layouts = []Layout{\n")
	for _, name := range sortedKeys(f.Structs) {
		for _, l := range f.Structs[name] {
			fmt.Fprintf(b, "\t{Name: %q, ABIs: []ABI{%s}, Size: %d, Align: %d, Fields: []Field{\n", name, list(l.ABIs), l.Size, l.Align)
			for _, fd := range l.Fields {
				fmt.Fprintf(b, "\t\t{%q, %q, %d, %d},\n", fd.Name, fd.Type, fd.Offset, fd.Size)
			}
			b.WriteString("\t}},\n")
		}
	}
	b.WriteString("}\n")
	return nil
}

func list(abis []int) string {
	var words []string
	for _, a := range abis {
		words = append(words, fmt.Sprintf("ABI%d", a))
	}
	return strings.Join(words, ", ")
}

// genTables writes where each function lies in the table of each ABI.
func genTables(f *facts, b *bytes.Buffer) error {
	b.WriteString("// The ABIs that Raymux speaks.\nconst (\n")
	for _, a := range f.ABIs {
		fmt.Fprintf(b, "\tABI%d ABI = %d // OptiX %s\n", a.ABI, a.ABI, a.OptiX)
	}
	b.WriteString(")\n\n// function is one of the functions that the package calls.\ntype function uint8\n\nconst (\n")
	names := sortedKeys(f.Params)
	for i, n := range names {
		typ := ""
		if i == 0 {
			typ = " function = iota"
		}
		fmt.Fprintf(b, "\t%s%s\n", ident(n), typ)
	}
	b.WriteString("\tfunctions // their number\n)\n\nvar functionNames = [functions]string{\n")
	for _, n := range names {
		fmt.Fprintf(b, "\t%s: %q,\n", ident(n), n)
	}
	b.WriteString("}\n\n// functionParams holds the number of parameters of each function.\nvar functionParams = [functions]int{\n")
	for _, n := range names {
		fmt.Fprintf(b, "\t%s: %d,\n", ident(n), len(f.Params[n]))
	}
	b.WriteString("}\n\n// tables is oldest first.\nvar tables = []tableFacts{\n")
	for _, a := range f.ABIs {
		fmt.Fprintf(b, "\t{abi: ABI%d, optix: %q, branch: %d, size: %d, slots: [functions]int{\n", a.ABI, a.OptiX, a.Branch, a.Size)
		if a.Size != 8*len(a.Table) {
			return fmt.Errorf("ABI %d: %d entries in %d bytes", a.ABI, len(a.Table), a.Size)
		}
		for _, n := range names {
			fmt.Fprintf(b, "\t\t%s: %d,\n", ident(n), slices.Index(a.Table, n))
		}
		b.WriteString("\t}},\n")
	}
	b.WriteString("}\n")
	return nil
}

// ident turns optixModuleCreate into fnModuleCreate.
func ident(name string) string { return "fn" + strings.TrimPrefix(name, "optix") }
