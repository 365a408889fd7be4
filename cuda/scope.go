package cuda

import (
	"runtime"

	"github.com/raymux/raymux/cuda/cuapi"
)

// Scope is a stretch of code during which a context is current on the calling
// goroutine's OS thread. It is a value and allocates nothing. Use it on the
// goroutine that entered it only, and leave it exactly once:
//
//	sc, err := c.Enter()
//	if err != nil {
//		return err
//	}
//	defer sc.Exit()
//
// Scopes nest, also of different contexts, when they are left in reverse order.
type Scope struct {
	c    *Context
	prev cuapi.Context
	held bool // Exit drops a reference of the context
}

// Enter pins the goroutine to its OS thread and makes c current there. Cost:
// one driver call, two more here and in Exit when another context was current.
func (c *Context) Enter() (Scope, error) {
	if err := c.ref(); err != nil {
		return Scope{}, err
	}
	sc, err := c.enter()
	if err != nil {
		return Scope{}, firstError(err, c.unref())
	}
	sc.held = true
	return sc, nil
}

// Switch makes c current instead of the scope's context, without going back to what was
// current before, which Exit of the scope that it returns does. The receiver is not used
// any more, not even after an error: in any case it is the returned scope that has to be
// left. Cost: one driver call.
func (sc Scope) Switch(c *Context) (Scope, error) {
	switch {
	case c == nil:
		return sc, badArg("Scope.Switch", "c", "is nil")
	case c.dev.drv != sc.c.dev.drv:
		return sc, badArg("Scope.Switch", "c", "belongs to another driver")
	}
	if err := c.ref(); err != nil {
		return sc, err
	}
	err := c.dev.lostError()
	if err == nil && c.h != sc.c.h {
		err = c.check("cuCtxSetCurrent", c.api().CtxSetCurrent(c.h))
	}
	if err != nil {
		return sc, firstError(err, c.unref())
	}
	left := sc
	sc.c, sc.held = c, true
	if left.held {
		err = left.c.unref()
	}
	return sc, err
}

// Exit makes the context current again that was current before Enter, and
// unpins the goroutine. It restores also when the device is lost.
func (sc Scope) Exit() error {
	err := sc.exit()
	if sc.held {
		if e := sc.c.unref(); err == nil {
			err = e
		}
	}
	return err
}

// Context is the context of the scope.
func (sc Scope) Context() *Context { return sc.c }

// Do runs f with c current on the calling goroutine's OS thread. The thread's
// current context is restored when f returns, fails or panics. Cost: one to
// three driver calls more than f makes.
func (c *Context) Do(f func() error) (err error) {
	if err := c.ref(); err != nil {
		return err
	}
	defer func() {
		if e := c.unref(); err == nil {
			err = e
		}
	}()
	return c.with(f)
}

// enter is Enter for callers that keep the context alive otherwise.
func (c *Context) enter() (Scope, error) {
	if err := c.dev.lostError(); err != nil {
		return Scope{}, err
	}
	api := c.dev.drv.api
	runtime.LockOSThread()
	prev, r := api.CtxGetCurrent()
	if r != cuapi.Success {
		runtime.UnlockOSThread()
		return Scope{}, c.dev.failure("cuCtxGetCurrent", r, "")
	}
	if prev != c.h {
		if r := api.CtxSetCurrent(c.h); r != cuapi.Success {
			runtime.UnlockOSThread()
			return Scope{}, c.dev.failure("cuCtxSetCurrent", r, "")
		}
	}
	return Scope{c: c, prev: prev}, nil
}

func (sc Scope) exit() error {
	if sc.prev == sc.c.h {
		runtime.UnlockOSThread()
		return nil
	}
	api := sc.c.dev.drv.api
	r := api.CtxSetCurrent(sc.prev)
	if r != cuapi.Success {
		// A thread left with a foreign context spoils calls that have nothing
		// to do with this one, so it is worth a second attempt.
		api.CtxSetCurrent(sc.prev)
	}
	runtime.UnlockOSThread()
	if r != cuapi.Success {
		return newError("cuCtxSetCurrent", r, sc.c.dev.ordinal, "restoring the thread's previous context")
	}
	return nil
}

// with is Do for callers that keep the context alive otherwise.
func (c *Context) with(f func() error) (err error) {
	sc, err := c.enter()
	if err != nil {
		return err
	}
	defer func() {
		if e := sc.exit(); err == nil {
			err = e
		}
	}()
	return f()
}
