package audit

import (
	"fmt"
	"go/types"
	"slices"
	"strings"

	"github.com/raymux/raymux/ptx/manifest"
)

// check compares one declared launch with the kernel's record.
func (l launch) check(m *manifest.Manifest) (out findings) {
	mod := m.Module(l.module)
	if mod == nil || !slices.Contains(mod.Entries, l.name) {
		out.add(l.file, "entry set differs from the Go program table: no module %q exports %q", l.module, l.name)
		return out
	}
	i := slices.IndexFunc(mod.Params, func(p manifest.Params) bool { return p.Entry == l.name })
	if i < 0 {
		return out // reported with the module
	}
	want := mod.Params[i]
	bad := func(format string, args ...any) {
		out.add(l.file, "ABI mismatch: %s of kernel %s: %s", l.params, l.name, fmt.Sprintf(format, args...))
	}
	if plain(l.params) != plain(want.Struct) {
		bad("the kernel takes a %q", want.Struct)
	}
	have, err := flatten(l.layout, "", 0)
	if err != nil {
		bad("%v", err)
		return out
	}
	size := 0
	if l.layout.NumFields() > 0 {
		size = int(sizes.Sizeof(l.layout))
	}
	if size != want.Bytes {
		bad("%d bytes, the kernel's block has %d", size, want.Bytes)
	}
	if len(have) != len(want.Fields) {
		bad("%d fields, the kernel's block has %d", len(have), len(want.Fields))
	}
	for k := range min(len(have), len(want.Fields)) {
		if g, c := have[k], want.Fields[k]; !same(g, c) {
			bad("field %s is %s of %d bytes at %d, the kernel's field %s is %s of %d bytes at %d",
				g.Name, g.Kind, g.Bytes, g.Offset, c.Name, c.Kind, c.Bytes, c.Offset)
		}
	}
	return out
}

// same compares a Go field with a C field. An address is an unsigned number in
// Go, and a blank field matches any name.
func same(g, c manifest.Field) bool {
	kind := g.Kind == c.Kind || c.Kind == "pointer" && g.Kind == "uint" && g.Bytes%8 == 0
	name := g.Name == "_" || strings.HasSuffix(g.Name, "._") || plain(g.Name) == plain(c.Name)
	return kind && name && g.Offset == c.Offset && g.Bytes == c.Bytes
}

// plain removes what the naming styles of the two languages differ in.
func plain(name string) string {
	return strings.ToLower(strings.ReplaceAll(name, "_", ""))
}

// flatten lists a struct's fields the way the manifest does.
func flatten(s *types.Struct, prefix string, base int) ([]manifest.Field, error) {
	fields := make([]*types.Var, s.NumFields())
	for i := range fields {
		fields[i] = s.Field(i)
	}
	offsets := sizes.Offsetsof(fields)
	var list []manifest.Field
	for i, f := range fields {
		name, offset := prefix+f.Name(), base+int(offsets[i])
		if inner, ok := f.Type().Underlying().(*types.Struct); ok {
			nested, err := flatten(inner, name+".", offset)
			if err != nil {
				return nil, err
			}
			list = append(list, nested...)
			continue
		}
		kind, err := goKind(f.Type())
		if err != nil {
			return nil, fmt.Errorf("field %s: %w", name, err)
		}
		list = append(list, manifest.Field{Name: name, Offset: offset, Bytes: int(sizes.Sizeof(f.Type())), Kind: kind})
	}
	return list, nil
}

// goKind is the kind of a number or of an array's element.
func goKind(t types.Type) (string, error) {
	for {
		a, ok := t.Underlying().(*types.Array)
		if !ok {
			break
		}
		t = a.Elem()
	}
	if b, ok := t.Underlying().(*types.Basic); ok {
		switch b.Kind() {
		case types.Float32, types.Float64:
			return "float", nil
		case types.Int8, types.Int16, types.Int32, types.Int64:
			return "int", nil
		case types.Uint8, types.Uint16, types.Uint32, types.Uint64:
			return "uint", nil
		}
	}
	return "", fmt.Errorf("type %s: a parameter block holds fixed-size numbers, arrays of them and structs of the same package", t)
}
