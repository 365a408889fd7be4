package main

import (
	"bytes"
	"fmt"
	"strings"
)

type structFact struct {
	Size   int `json:"size"`
	Align  int `json:"align"`
	Fields []struct {
		Name   string `json:"name"`
		Type   string `json:"type"`
		Offset int    `json:"offset"`
		Size   int    `json:"size"`
	} `json:"fields"`
}

type function struct {
	Symbol  string     `json:"symbol"`
	MinCUDA string     `json:"min_cuda"`
	Params  [][]string `json:"params"`
}

// structPlan lists the structs that Raymux hands to the driver.
var structPlan = []string{"CUmemLocation", "CUmemAccessDesc", "CUmemPoolProps"}

// genStructs writes plain Go structs; the golden test compares every offset
// and size with the facts.
func genStructs(f *facts) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString(header)
	for _, n := range structPlan {
		s, ok := f.Structs[n]
		if !ok {
			return nil, fmt.Errorf("no struct %s", n)
		}
		goName := strings.ToUpper(n[2:3]) + n[3:]
		fmt.Fprintf(&b, "// %s is the driver's %s: %d bytes.\ntype %s struct {\n", goName, n, s.Size, goName)
		end := 0
		for _, fd := range s.Fields {
			if fd.Offset > end {
				fmt.Fprintf(&b, "\t_ [%d]byte\n", fd.Offset-end)
			}
			fmt.Fprintf(&b, "\t%s %s // offset %d\n", strings.ToUpper(fd.Name[:1])+fd.Name[1:], goField(f, fd.Type, fd.Size), fd.Offset)
			end = fd.Offset + fd.Size
		}
		if s.Size > end {
			fmt.Fprintf(&b, "\t_ [%d]byte\n", s.Size-end)
		}
		b.WriteString("}\n\n")
	}
	return b.Bytes(), nil
}

func goField(f *facts, ctype string, size int) string {
	if _, ok := f.Structs[ctype]; ok {
		return strings.ToUpper(ctype[2:3]) + ctype[3:]
	}
	switch size {
	case 1:
		return "uint8"
	case 2:
		return "uint16"
	case 4:
		return "int32"
	case 8:
		return "uint64"
	}
	return fmt.Sprintf("[%d]byte", size)
}

// genSymbols writes the first CUDA version of every driver entry point, which
// error texts name when a symbol is missing.
func genSymbols(f *facts) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString(header)
	b.WriteString("// SymbolSince maps an exported driver symbol to the first CUDA version whose driver had it.\nvar SymbolSince = map[string]string{\n")
	for _, fn := range f.Functions {
		fmt.Fprintf(&b, "\t%q: %q,\n", fn.Symbol, fn.MinCUDA)
	}
	b.WriteString("}\n\n// SymbolParams maps an exported driver symbol to its number of parameters.\nvar SymbolParams = map[string]int{\n")
	for _, fn := range f.Functions {
		fmt.Fprintf(&b, "\t%q: %d,\n", fn.Symbol, len(fn.Params))
	}
	b.WriteString("}\n")
	return b.Bytes(), nil
}
