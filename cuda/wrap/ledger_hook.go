package wrap

import "github.com/raymux/raymux/cuda/cuapi"

// ledgerKey names a live object. Device memory has one kind here, because the
// plain and the stream-ordered form may free each other's.
type ledgerKey struct {
	kind   kind
	handle uint64
	host   *byte
}

type ledgerItem struct {
	kind   kind
	device cuapi.Device
	bytes  uint64
}

// ledgerHook keeps the methods of a hook out of the wrapper's own.
type ledgerHook struct{ *Ledger }

// Before sets an object apart before the driver destroys it: once it has,
// another goroutine may be given the same handle.
func (l ledgerHook) Before(c Call) (cuapi.Result, bool) {
	if k, ok := destroyed(c); ok {
		l.mu.Lock()
		if item, ok := l.live[k]; ok {
			delete(l.live, k)
			l.dying[k] = append(l.dying[k], item)
		}
		l.mu.Unlock()
	}
	return cuapi.Success, false
}

func (l ledgerHook) After(c Call, r cuapi.Result) {
	switch {
	case c.ID == CallDevicePrimaryCtxRetain || c.ID == CallDevicePrimaryCtxRelease:
		l.countContext(c, r)
	case r == cuapi.Success:
		l.book(c)
	}
	if k, ok := destroyed(c); ok {
		l.settle(k, r)
	}
}

func (l *Ledger) countContext(c Call, r cuapi.Result) {
	sign := 1
	if c.ID == CallDevicePrimaryCtxRelease {
		sign = -1
	}
	if gone := sign < 0 && r == cuapi.ErrorDeinitialized; r != cuapi.Success && !gone {
		return
	}
	l.mu.Lock()
	l.on(c.Device).add(kindContext, 0, sign)
	l.mu.Unlock()
}

// book enters what a call made. The driver is asked for the device outside the
// lock.
func (l *Ledger) book(c Call) {
	k, item, ok := created(c)
	if !ok {
		return
	}
	item.device = NoDevice
	if d, r := l.inner.CtxGetDevice(); r == cuapi.Success {
		item.device = d
	}
	l.mu.Lock()
	l.live[k] = item
	l.on(item.device).add(item.kind, item.bytes, 1)
	l.mu.Unlock()
}

// settle ends the destruction of an object: it is gone, also when the driver
// was shut down before, or it is back in the books.
func (l *Ledger) settle(k ledgerKey, r cuapi.Result) {
	l.mu.Lock()
	defer l.mu.Unlock()
	queue := l.dying[k]
	if len(queue) == 0 {
		return
	}
	item := queue[0]
	if l.dying[k] = queue[1:]; len(queue) == 1 {
		delete(l.dying, k)
	}
	if r != cuapi.Success && r != cuapi.ErrorDeinitialized {
		l.live[k] = item
		return
	}
	l.on(item.device).add(item.kind, item.bytes, -1)
}

// on is the account of a device. The lock is held.
func (l *Ledger) on(d cuapi.Device) *Counts {
	c := l.held[d]
	if c == nil {
		c = &Counts{}
		l.held[d] = c
	}
	return c
}

// created tells what a successful call made.
func created(c Call) (ledgerKey, ledgerItem, bool) {
	item := ledgerItem{bytes: c.Size}
	switch c.ID {
	case CallModuleLoadDataEx:
		item = ledgerItem{kind: kindModule}
	case CallStreamCreateWithPriority:
		item = ledgerItem{kind: kindStream}
	case CallEventCreate:
		item = ledgerItem{kind: kindEvent}
	case CallMemAlloc:
		item.kind = kindDevice
		return ledgerKey{kind: kindDevice, handle: c.Handle}, item, true
	case CallMemAllocAsync:
		item.kind = kindPool
		return ledgerKey{kind: kindDevice, handle: c.Handle}, item, true
	case CallMemHostAlloc, CallMemHostRegister:
		item.kind = kindPinned
		return hostKey(c.Host), item, len(c.Host) > 0
	default:
		return ledgerKey{}, item, false
	}
	return ledgerKey{kind: item.kind, handle: c.Handle}, item, true
}

// destroyed tells what a call would destroy.
func destroyed(c Call) (ledgerKey, bool) {
	switch c.ID {
	case CallModuleUnload:
		return ledgerKey{kind: kindModule, handle: c.Handle}, true
	case CallStreamDestroy:
		return ledgerKey{kind: kindStream, handle: c.Handle}, true
	case CallEventDestroy:
		return ledgerKey{kind: kindEvent, handle: c.Handle}, true
	case CallMemFree, CallMemFreeAsync:
		return ledgerKey{kind: kindDevice, handle: c.Handle}, true
	case CallMemFreeHost, CallMemHostUnregister:
		return hostKey(c.Host), len(c.Host) > 0
	}
	return ledgerKey{}, false
}

// hostKey names host memory by its first byte.
func hostKey(b []byte) ledgerKey {
	if len(b) == 0 {
		return ledgerKey{}
	}
	return ledgerKey{kind: kindPinned, host: &b[0]}
}
