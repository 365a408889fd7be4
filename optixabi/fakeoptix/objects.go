package fakeoptix

import (
	"strings"

	"github.com/raymux/raymux/optixabi"
)

// kind is what a handle stands for.
type kind int

const (
	kindContext kind = iota + 1
	kindModule
	kindGroup
	kindPipeline
)

func (k kind) String() string {
	return [...]string{"nothing", "device context", "module", "program group", "pipeline"}[k]
}

// object is what the library keeps behind a handle.
type object struct {
	kind     kind
	abi      optixabi.ABI
	handle   uintptr
	context  uintptr // device context; of one: its CUDA context
	parents  []uintptr
	children int

	// Of device contexts.
	log           logTarget
	cacheEnabled  bool
	cacheLocation string
	cacheSizes    [2]uint64

	// Of modules, and of pipelines the options that have to agree.
	options compileOptions
	entries map[string]bool

	// Of groups and pipelines.
	programs []string
	stackSet bool
	inFlight int // launch calls under way
}

// compileOptions are the pipeline compile options.
type compileOptions struct {
	graph, payload, attributes, exceptions uint64
	params                                 string
	paramsSize                             uint64 // 0 before ABI 118
	primitives                             uint64
}

// firstHandle is far from what a confused caller might pass.
const firstHandle = 0x6f70_7469_0000

// create makes an object. The lock is held.
func (f *Fake) create(o *object) uintptr {
	f.last++
	o.handle = firstHandle + 64*f.last
	f.objects[o.handle] = o
	for _, p := range o.parents {
		f.objects[p].children++
	}
	return o.handle
}

// find is the object behind a handle, or nil and a violation. The lock is
// held.
func (c *call) find(handle uintptr, k kind) *object {
	o := c.objects[handle]
	if o == nil || o.kind != k {
		c.violate("%s: %#x is no %v (never made, or destroyed already)", c.name, handle, k)
		return nil
	}
	return o
}

// destroy ends the object behind the first argument.
func (c *call) destroy(k kind) optixabi.Result {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := c.find(c.args[0], k)
	if o == nil {
		return optixabi.ErrorInvalidValue
	}
	if o.children > 0 {
		c.violate("%s: the %v still has %d objects made from it", c.name, k, o.children)
	}
	if o.inFlight > 0 {
		c.violate("%s: a launch of the pipeline is under way", c.name)
	}
	delete(c.objects, o.handle)
	for _, p := range o.parents {
		if parent := c.objects[p]; parent != nil {
			parent.children--
		}
	}
	return optixabi.Success
}

func isDestroy(function string) bool { return strings.HasSuffix(function, "Destroy") }
