package cuda

import (
	"fmt"
	"reflect"
	"sync"
	"unsafe"
)

// ParamBytes is the memory of *p as the parameter block of a launch: the struct
// that the kernel takes by value, declared with the same fields in the same
// order. T may hold integers and floats of fixed size, arrays and structs of
// these; device addresses are uint64. ParamBytes panics for any other field,
// because such a struct cannot mean the same to the kernel. The view is valid
// as long as *p is. No driver call, no allocation.
func ParamBytes[T any](p *T) []byte {
	t := reflect.TypeFor[T]()
	if _, ok := plainTypes.Load(t); !ok {
		if err := checkPlain(t, t.String()); err != nil {
			panic(err)
		}
		plainTypes.Store(t, struct{}{})
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(p)), unsafe.Sizeof(*p))
}

// plainTypes holds the types that passed checkPlain. It only ever grows by the
// types that the program declares.
var plainTypes sync.Map

func checkPlain(t reflect.Type, path string) error {
	switch t.Kind() {
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64,
		reflect.Float32, reflect.Float64:
		return nil
	case reflect.Array:
		return checkPlain(t.Elem(), path+"[]")
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			if err := checkPlain(f.Type, path+"."+f.Name); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("cuda: ParamBytes: %s is a %s, which has no fixed size or holds a pointer; "+
		"kernel parameters are int8 to int64, uint8 to uint64, float32, float64, and arrays and structs of these", path, t.Kind())
}

// paramBlock is a parameter block on the heap. Launch copies into one so that
// the caller's struct may stay on the stack, where no driver call may look.
type paramBlock [4096]byte

var paramBlocks = sync.Pool{New: func() any { return new(paramBlock) }}
