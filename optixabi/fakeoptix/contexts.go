package fakeoptix

import (
	"runtime"
	"unsafe"

	"github.com/raymux/raymux/cuda/dl"
	"github.com/raymux/raymux/optixabi"
)

// logTarget is where a device context sends its messages.
type logTarget struct {
	fn, data uintptr
	level    uint32
}

// send delivers a message from a thread of its own and waits for it.
func (t logTarget) send(level uint32, tag, message string) {
	if t.fn == 0 || level > t.level {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		// Pinned and thereby on the heap: a stack moves when the receiver,
		// which runs on this goroutine too, needs more of it.
		text := append([]byte(tag+"\x00"+message), 0)
		var pins runtime.Pinner
		defer pins.Unpin()
		pins.Pin(&text[0])
		base := uintptr(unsafe.Pointer(&text[0]))
		dl.Call(t.fn, uintptr(level), base, base+uintptr(len(tag)+1), t.data)
	}()
	<-done
}

// Log sends a message to every device context that listens to its level, as
// the library does from threads of its own.
func (f *Fake) Log(level optixabi.LogLevel, tag, message string) {
	f.mu.Lock()
	var all []logTarget
	for _, o := range f.objects {
		if o.kind == kindContext {
			all = append(all, o.log)
		}
	}
	f.mu.Unlock()
	for _, t := range all {
		t.send(uint32(level), tag, message)
	}
}

func (c *call) contextCreate() optixabi.Result {
	if c.cfg.Create != optixabi.Success {
		return c.cfg.Create
	}
	if c.args[1] == 0 || c.args[2] == 0 {
		return optixabi.ErrorInvalidValue
	}
	c.mu.Lock()
	o := recordAt(c.abi, "OptixDeviceContextOptions", c.args[1])
	target := logTarget{uintptr(o.get("logCallbackFunction")), uintptr(o.get("logCallbackData")), uint32(o.get("logCallbackLevel"))}
	handle := c.create(&object{
		kind: kindContext, abi: c.abi, context: c.args[0], log: target,
		cacheEnabled: true, cacheLocation: "/fake/cache", cacheSizes: [2]uint64{1 << 30, 2 << 30},
	})
	c.mu.Unlock()
	store(c.args[2], handle)
	target.send(uint32(optixabi.LogStatus), "FAKE", "device context created\n")
	return optixabi.Success
}

// properties are those of an H200 but for its ray-tracing cores.
var properties = map[optixabi.Property]uint32{
	optixabi.PropertyLimitMaxTraceDepth:                 31,
	optixabi.PropertyLimitMaxTraversableGraphDepth:      31,
	optixabi.PropertyLimitMaxPrimitivesPerGAS:           1 << 29,
	optixabi.PropertyLimitMaxInstancesPerIAS:            1 << 28,
	optixabi.PropertyLimitMaxInstanceID:                 1<<28 - 1,
	optixabi.PropertyLimitNumBitsInstanceVisibilityMask: 8,
	optixabi.PropertyLimitMaxSBTRecordsPerGAS:           1 << 24,
	optixabi.PropertyLimitMaxSBTOffset:                  1<<28 - 1,
}

func (c *call) property() optixabi.Result {
	return c.onContext(func(*object) optixabi.Result {
		p := optixabi.Property(c.word(1))
		v, ok := properties[p]
		if p == optixabi.PropertyRTCoreVersion {
			v, ok = c.cfg.RTCores, true
		}
		if !ok || c.args[3] != 4 || c.args[2] == 0 {
			return c.violate("%s: property %d into %d bytes", c.name, p, c.args[3])
		}
		store(c.args[2], v)
		return optixabi.Success
	})
}

// onContext runs a body on the device context of the first argument, under the
// lock.
func (c *call) onContext(body func(*object) optixabi.Result) optixabi.Result {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := c.find(c.args[0], kindContext)
	if o == nil {
		return optixabi.ErrorInvalidDeviceContext
	}
	return body(o)
}

func (c *call) setLog() optixabi.Result {
	return c.onContext(func(o *object) optixabi.Result {
		o.log = logTarget{c.args[1], c.args[2], c.word(3)}
		return optixabi.Success
	})
}

func (c *call) setCacheEnabled() optixabi.Result {
	return c.onContext(func(o *object) optixabi.Result {
		o.cacheEnabled = c.word(1) != 0
		return optixabi.Success
	})
}

func (c *call) cacheEnabled() optixabi.Result {
	return c.onContext(func(o *object) optixabi.Result {
		var on int32
		if o.cacheEnabled {
			on = 1
		}
		store(c.args[1], on)
		return optixabi.Success
	})
}

func (c *call) setCacheLocation() optixabi.Result {
	return c.onContext(func(o *object) optixabi.Result {
		if o.cacheEnabled && c.cfg.Cache != optixabi.Success {
			return c.cfg.Cache
		}
		o.cacheLocation = textAt(c.args[1])
		return optixabi.Success
	})
}

func (c *call) cacheLocation() optixabi.Result {
	return c.onContext(func(o *object) optixabi.Result {
		text := append([]byte(o.cacheLocation), 0)
		if uintptr(len(text)) > c.args[2] {
			return optixabi.ErrorInvalidValue
		}
		copy(sliceAt[byte](c.args[1], len(text)), text)
		return optixabi.Success
	})
}

func (c *call) setCacheSizes() optixabi.Result {
	return c.onContext(func(o *object) optixabi.Result {
		o.cacheSizes = [2]uint64{uint64(c.args[1]), uint64(c.args[2])}
		return optixabi.Success
	})
}

func (c *call) cacheSizes() optixabi.Result {
	return c.onContext(func(o *object) optixabi.Result {
		store(c.args[1], o.cacheSizes[0])
		store(c.args[2], o.cacheSizes[1])
		return optixabi.Success
	})
}
