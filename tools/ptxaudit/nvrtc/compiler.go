package main

import (
	"fmt"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"

	"github.com/raymux/raymux/cuda/dl"
	"github.com/raymux/raymux/tools/ptxaudit/internal/protocol"
)

// compiler is an opened NVRTC library.
type compiler struct {
	fn map[string]uintptr
}

var functions = []string{
	"nvrtcVersion", "nvrtcGetErrorString", "nvrtcCreateProgram", "nvrtcDestroyProgram", "nvrtcCompileProgram",
	"nvrtcGetPTXSize", "nvrtcGetPTX", "nvrtcGetProgramLogSize", "nvrtcGetProgramLog",
}

// open loads the built-ins library first: NVRTC asks the loader for it by bare
// name, and a library that is already there satisfies that without a search
// path.
func open(library, builtins string) (*compiler, error) {
	if _, err := load(builtins); err != nil {
		return nil, err
	}
	lib, err := load(library)
	if err != nil {
		return nil, err
	}
	c := &compiler{fn: map[string]uintptr{}}
	for _, name := range functions {
		p, ok := lib.Lookup(name)
		if !ok {
			return nil, fmt.Errorf("%s exports no %s: not an NVRTC library", library, name)
		}
		c.fn[name] = p
	}
	return c, nil
}

func load(path string) (*dl.Library, error) {
	return dl.Open([]string{filepath.Base(path)}, dl.Options{Override: path})
}

func (c *compiler) call(name string, args ...uintptr) error {
	if r := int32(dl.Call(c.fn[name], args...)); r != 0 {
		return fmt.Errorf("%s failed with code %d", name, r)
	}
	return nil
}

func (c *compiler) version() (string, error) {
	v := make([]int32, 2)
	err := c.call("nvrtcVersion", address(v), address(v[1:]))
	return fmt.Sprintf("%d.%d", v[0], v[1]), err
}

func (c *compiler) compile(p protocol.Program) (res protocol.Result) {
	var keep runtime.Pinner
	defer keep.Unpin()

	names := make([]string, 0, len(p.Headers))
	for name := range p.Headers {
		names = append(names, name)
	}
	slices.Sort(names)
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = p.Headers[name]
	}

	handle := make([]uintptr, 1)
	err := c.call("nvrtcCreateProgram", address(handle), cString(&keep, p.Source), cString(&keep, p.Name),
		uintptr(len(names)), cStrings(&keep, texts), cStrings(&keep, names))
	if err != nil {
		res.Error = err.Error()
		return res
	}
	defer func() { _ = c.call("nvrtcDestroyProgram", address(handle)) }()

	compileErr := c.call("nvrtcCompileProgram", handle[0], uintptr(len(p.Options)), cStrings(&keep, p.Options))
	if res.Log, err = c.text("nvrtcGetProgramLogSize", "nvrtcGetProgramLog", handle[0]); err == nil && compileErr == nil {
		res.PTX, err = c.text("nvrtcGetPTXSize", "nvrtcGetPTX", handle[0])
	}
	if compileErr != nil {
		err = compileErr
	}
	if err != nil {
		res.Error = err.Error()
	}
	return res
}

// text reads one of NVRTC's texts, whose length counts a terminating zero.
func (c *compiler) text(size, get string, program uintptr) (string, error) {
	n := make([]uintptr, 1)
	if err := c.call(size, program, address(n)); err != nil {
		return "", err
	}
	if n[0] == 0 {
		return "", nil
	}
	b := make([]byte, n[0])
	if err := c.call(get, program, address(b)); err != nil {
		return "", err
	}
	return string(b[:len(b)-1]), nil
}

// address is the address of a slice's first element. The slices here are on
// the heap, since reflection takes them, and Go does not move heap objects;
// they stay in use, or pinned, until the call that reads them is over.
func address[T any](s []T) uintptr {
	return reflect.ValueOf(s).Pointer()
}

func cString(keep *runtime.Pinner, s string) uintptr {
	b := append([]byte(s), 0)
	keep.Pin(&b[0])
	return address(b)
}

func cStrings(keep *runtime.Pinner, list []string) uintptr {
	if len(list) == 0 {
		return 0
	}
	a := make([]uintptr, len(list))
	for i, s := range list {
		a[i] = cString(keep, s)
	}
	keep.Pin(&a[0])
	return address(a)
}
