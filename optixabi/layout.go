package optixabi

import (
	"encoding/binary"
	"fmt"
	"slices"
	"unsafe"
)

// Layout is how a C struct lies in memory.
type Layout struct {
	Name   string // C name
	ABIs   []ABI  // the ABIs in which the struct is laid out like this
	Size   int    // bytes
	Align  int
	Fields []Field // members of a union share an offset
}

// Field is one member of a struct.
type Field struct {
	Name, Type   string // as in C
	Offset, Size int    // bytes
}

// Field finds a member by its C name.
func (l *Layout) Field(name string) (Field, bool) {
	for _, f := range l.Fields {
		if f.Name == name {
			return f, true
		}
	}
	return Field{}, false
}

// LayoutOf is the layout of a C struct in an ABI. It is false for a struct
// that the package does not use.
func LayoutOf(abi ABI, name string) (*Layout, bool) {
	for i := range layouts {
		if layouts[i].Name == name && slices.Contains(layouts[i].ABIs, abi) {
			return &layouts[i], true
		}
	}
	return nil, false
}

// record is a struct in the making. It starts as zeros, which means "default"
// for every field that a newer ABI added.
type record struct {
	abi    ABI
	layout *Layout
	mem    []byte
}

// newRecords makes n structs in a row. Memory comes in words, so that it is
// aligned as the widest field wants it.
func newRecords(abi ABI, name string, n int) []record {
	l := mustLayout(abi, name)
	words := make([]uint64, max(1, (n*l.Size+7)/8))
	mem := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), n*l.Size)
	all := make([]record, n)
	for i := range all {
		all[i] = record{abi: abi, layout: l, mem: mem[i*l.Size : (i+1)*l.Size]}
	}
	return all
}

func newRecord(abi ABI, name string) record { return newRecords(abi, name, 1)[0] }

// part is the struct inside a member.
func (r record) part(field, name string) record {
	f := r.field(field)
	l := mustLayout(r.abi, name)
	return record{abi: r.abi, layout: l, mem: r.mem[f.Offset : f.Offset+l.Size]}
}

// has reports whether the ABI knows a member.
func (r record) has(field string) bool {
	_, ok := r.layout.Field(field)
	return ok
}

// set writes a number as wide as the member is.
func (r record) set(field string, v uint64) {
	f := r.field(field)
	switch f.Size {
	case 4:
		binary.LittleEndian.PutUint32(r.mem[f.Offset:], uint32(v))
	case 8:
		binary.LittleEndian.PutUint64(r.mem[f.Offset:], v)
	default:
		panic(fmt.Sprintf("optixabi: %s.%s has %d bytes", r.layout.Name, field, f.Size))
	}
}

// field panics for a name that is not in the facts: the names are constants of
// this package and the tests write every one of them for every ABI.
func (r record) field(name string) Field {
	f, ok := r.layout.Field(name)
	if !ok {
		panic(fmt.Sprintf("optixabi: ABI %v: no %s.%s", r.abi, r.layout.Name, name))
	}
	return f
}

func mustLayout(abi ABI, name string) *Layout {
	l, ok := LayoutOf(abi, name)
	if !ok {
		panic(fmt.Sprintf("optixabi: ABI %v: no struct %s", abi, name))
	}
	return l
}
