package fakeoptix

import (
	"encoding/binary"
	"sync"
	"unsafe"

	"github.com/raymux/raymux/optixabi"
)

// pointerTo turns an address that a call was given into a pointer. It is not
// inlined, because the compiler cannot yet reason about the round trip through
// memory inside a larger function.
//
//go:noinline
func pointerTo[T any](addr uintptr) *T {
	return (*T)(*(*unsafe.Pointer)(unsafe.Pointer(&addr)))
}

// sliceAt is memory of the caller; the address is not 0.
func sliceAt[T any](addr uintptr, n int) []T { return unsafe.Slice(pointerTo[T](addr), n) }

// store writes a result where the caller wants it.
func store[T any](addr uintptr, v T) {
	if addr != 0 {
		*pointerTo[T](addr) = v
	}
}

// textAt reads a C string.
func textAt(addr uintptr) string {
	if addr == 0 {
		return ""
	}
	n := 0
	for *pointerTo[byte](addr + uintptr(n)) != 0 {
		n++
	}
	return string(sliceAt[byte](addr, n))
}

// record is a struct of the caller, read at the offsets of an ABI.
type record struct {
	abi    optixabi.ABI
	layout *optixabi.Layout
	addr   uintptr
}

func recordAt(abi optixabi.ABI, name string, addr uintptr) record {
	l, ok := optixabi.LayoutOf(abi, name)
	if !ok {
		panic("fakeoptix: no layout of " + name)
	}
	return record{abi: abi, layout: l, addr: addr}
}

// get reads a number; 0 for a member that the ABI does not have.
func (r record) get(field string) uint64 {
	f, ok := r.layout.Field(field)
	if !ok {
		return 0
	}
	mem := sliceAt[byte](r.addr+uintptr(f.Offset), f.Size)
	if f.Size == 4 {
		return uint64(binary.LittleEndian.Uint32(mem))
	}
	return binary.LittleEndian.Uint64(mem)
}

// text reads the C string that a member points to.
func (r record) text(field string) string { return textAt(uintptr(r.get(field))) }

// part is the struct inside a member.
func (r record) part(field, name string) record {
	f, ok := r.layout.Field(field)
	if !ok {
		panic("fakeoptix: no member " + field)
	}
	return recordAt(r.abi, name, r.addr+uintptr(f.Offset))
}

// next is the following struct of an array.
func (r record) next() record {
	r.addr += uintptr(r.layout.Size)
	return r
}

// texts are the functions that return C strings.
var texts = map[string]func(optixabi.Result) uintptr{
	"optixGetErrorName":   func(r optixabi.Result) uintptr { return cText(r.Name()) },
	"optixGetErrorString": func(r optixabi.Result) uintptr { return cText("fake text of " + r.Name()) },
}

// cTexts keeps the texts that were handed out, since C callers never give them
// back.
var cTexts sync.Map

func cText(s string) uintptr {
	buf, _ := cTexts.LoadOrStore(s, append([]byte(s), 0))
	return uintptr(unsafe.Pointer(unsafe.SliceData(buf.([]byte))))
}
