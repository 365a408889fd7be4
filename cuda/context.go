package cuda

import (
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/raymux/raymux/cuda/cuapi"
)

// Context is a hold on the primary context of a device, which is what other
// libraries of the process use too, so that memory can be shared with them. It
// owns streams, events, modules and memory. All methods are safe for use by
// several goroutines.
type Context struct {
	dev *Device
	h   cuapi.Context

	// refs counts the handle itself, its open children and the scopes in
	// progress. The primary context is released when it reaches zero, so a
	// child keeps its context alive.
	refs   atomic.Int64
	closed atomic.Bool
	once   sync.Once
	err    error
	census census

	pool    *Pool
	staging *staging
	cleanup runtime.Cleanup
}

// Retain takes a hold on the device's primary context. Each call returns a
// Context of its own, with its own pool; Close gives it back. Cost: one driver
// call, and the creation of the primary context the first time.
func (d *Device) Retain() (*Context, error) {
	if d.drv.closed.Load() {
		return nil, errClosed("driver")
	}
	if err := d.lostError(); err != nil {
		return nil, err
	}
	h, r := d.drv.api.DevicePrimaryCtxRetain(d.h)
	if err := d.check("cuDevicePrimaryCtxRetain", r, ""); err != nil {
		return nil, err
	}
	c := &Context{dev: d, h: h}
	c.refs.Store(1)
	c.census.trackSites = d.drv.leakSites
	c.pool = newPool(c)
	c.staging = newStaging(c)
	d.drv.contexts.Add(1)
	c.cleanup = runtime.AddCleanup(c, abandoned.report, abandoned{d.drv, "context", d.ordinal})
	return c, nil
}

// Device is the device of the context.
func (c *Context) Device() *Device { return c.dev }

// Driver is the driver of the context.
func (c *Context) Driver() *Driver { return c.dev.drv }

// Handle is the driver's handle, for libraries that work in the same context.
func (c *Context) Handle() cuapi.Context { return c.h }

// Pool is the context's caching allocator. Alloc, Upload and the other
// functions that make a Slice take their memory from it.
func (c *Context) Pool() *Pool { return c.pool }

// Lost is nil while the device works, and afterwards a *LostError, which
// matches ErrDeviceLost and unwraps to the first cause. No driver call.
func (c *Context) Lost() error { return c.dev.lostError() }

// Close frees the cached memory and gives the context back. With children open
// it returns a *LeakError, and the last one that is closed releases the context.
// Until then they can be used for what takes nothing of the context: launches,
// fills, events, waits, copies on the device or with Pinned memory. Copies of Go
// memory (Upload, Download, CopyIn, CopyOut) went through its buffers and are
// ErrClosed, as all is that makes something new. Later calls return what the first
// returned. Cost: a wait for the streams on which cached memory was freed, and one
// driver call per cached block.
func (c *Context) Close() error {
	if c == nil {
		return nil
	}
	c.once.Do(func() {
		c.closed.Store(true)
		c.cleanup.Stop()
		leaks := c.census.leaks()
		errs := []error{c.staging.close(), c.pool.close()}
		if len(leaks) != 0 {
			errs = append([]error{&LeakError{Parent: "the context of device " + strconv.Itoa(c.dev.ordinal), Leaks: leaks}}, errs...)
		}
		c.err = firstError(append(errs, c.unref())...)
	})
	return c.err
}

// ref keeps the context alive for a new child or a scope of the user.
func (c *Context) ref() error {
	for {
		if c.closed.Load() {
			return errClosed("context")
		}
		n := c.refs.Load()
		if n == 0 {
			return errClosed("context")
		}
		if c.refs.CompareAndSwap(n, n+1) {
			return nil
		}
	}
}

// unref undoes ref; the last one releases the primary context.
func (c *Context) unref() error {
	if c.refs.Add(-1) != 0 {
		return nil
	}
	c.dev.drv.contexts.Add(-1)
	// A call that overlapped Close may have cached memory after it.
	err := c.pool.Trim()
	if c.dev.lostError() != nil {
		return nil
	}
	return firstError(err, c.dev.checkDestroy("cuDevicePrimaryCtxRelease", c.dev.drv.api.DevicePrimaryCtxRelease(c.dev.h), ""))
}

// adopt counts a new child, which holds a reference already.
func (c *Context) adopt(k kind, bytes uint64) child { return c.census.add(k, bytes) }

// release forgets a child whose driver resource is gone.
func (c *Context) release(ch child) error {
	c.census.remove(ch)
	return c.unref()
}

// create makes the driver resource of a new child with c current, and keeps the
// reference that the child needs. When the thread's previous context cannot be
// restored it undoes what it made, so that a failed constructor makes nothing.
func (c *Context) create(construct, undo func() error) error {
	if err := c.ref(); err != nil {
		return err
	}
	made := false
	err := c.with(func() error {
		err := construct()
		made = err == nil
		return err
	})
	if err == nil {
		return nil
	}
	if made {
		err = firstError(err, c.destroy(undo))
	}
	return firstError(err, c.unref())
}

// destroy runs f with c current, or not at all when the device is lost: its
// resources are gone then and a call could hang. A destroy that is not made
// leaks for the life of the process, so when c cannot be made current, which is
// reported, it is tried once more.
func (c *Context) destroy(f func() error) error {
	if c.dev.lostError() != nil {
		return nil
	}
	ran := false
	run := func() error {
		ran = true
		return f()
	}
	err := c.with(run)
	if ran || c.dev.lostError() != nil {
		return err
	}
	return firstError(err, c.with(run))
}

// MemInfo is the device's free and total memory in bytes. Memory cached by the
// pool counts as used. Cost: one driver call.
func (c *Context) MemInfo() (free, total uint64, err error) {
	err = c.Do(func() error {
		var r cuapi.Result
		free, total, r = c.api().MemGetInfo()
		return c.dev.check("cuMemGetInfo_v2", r, "")
	})
	return free, total, err
}

// Synchronize waits for all work of the context, also of other libraries, and
// cannot be interrupted; prefer Stream.Synchronize. Cost: one driver call that
// blocks the OS thread.
func (c *Context) Synchronize() error {
	return c.Do(func() error {
		return c.dev.check("cuCtxSynchronize", c.api().CtxSynchronize(), "")
	})
}

// EnablePeer lets kernels of c access the memory of to, in this direction only.
// That it is enabled already counts as success. Cost: one driver call.
func (c *Context) EnablePeer(to *Context) error {
	switch {
	case to == nil:
		return badArg("Context.EnablePeer", "to", "is nil")
	case to.dev.drv != c.dev.drv:
		return badArg("Context.EnablePeer", "to", "belongs to another driver")
	case to.dev == c.dev:
		return badArg("Context.EnablePeer", "to", "is on the same device %d; a context always accesses its own memory", c.dev.ordinal)
	}
	if err := to.ref(); err != nil {
		return err
	}
	err := c.Do(func() error {
		r := c.api().CtxEnablePeerAccess(to.h, 0)
		if r == cuapi.ErrorPeerAccessAlreadyEnabled {
			return nil
		}
		return c.dev.check("cuCtxEnablePeerAccess", r, "peer device "+strconv.Itoa(to.dev.ordinal))
	})
	return firstError(err, to.unref())
}

func (c *Context) api() cuapi.API { return c.dev.drv.api }

func (c *Context) check(op string, r cuapi.Result) error { return c.dev.check(op, r, "") }
