package wrap

import (
	"fmt"
	"sort"
	"strings"
	"sync"

	"github.com/raymux/raymux/cuda/cuapi"
)

// kind is what the ledger keeps apart.
type kind uint8

const (
	kindContext kind = iota
	kindModule
	kindStream
	kindEvent
	kindDevice // MemAlloc
	kindPool   // MemAllocAsync
	kindPinned // MemHostAlloc
)

// Counts are live objects and bytes.
type Counts struct {
	Contexts int // primary contexts retained and not released
	Modules  int
	Streams  int
	Events   int

	DeviceBytes uint64 // MemAlloc
	PoolBytes   uint64 // MemAllocAsync
	PinnedBytes uint64 // MemHostAlloc
}

// String lists what is not zero.
func (c Counts) String() string {
	var parts []string
	for _, p := range []struct {
		n    uint64
		what string
	}{
		{uint64(c.Contexts), "contexts"}, {uint64(c.Modules), "modules"}, {uint64(c.Streams), "streams"}, {uint64(c.Events), "events"},
		{c.DeviceBytes, "device bytes"}, {c.PoolBytes, "pool bytes"}, {c.PinnedBytes, "pinned bytes"},
	} {
		if p.n != 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	if parts == nil {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}

// add puts sign times one object of a kind into the counts.
func (c *Counts) add(k kind, bytes uint64, sign int) {
	switch k {
	case kindContext:
		c.Contexts += sign
	case kindModule:
		c.Modules += sign
	case kindStream:
		c.Streams += sign
	case kindEvent:
		c.Events += sign
	case kindDevice:
		c.DeviceBytes += uint64(sign) * bytes
	case kindPool:
		c.PoolBytes += uint64(sign) * bytes
	case kindPinned:
		c.PinnedBytes += uint64(sign) * bytes
	}
}

// Ledger keeps account of what the calls through it made and did not give
// back.
type Ledger struct {
	*Hooked
	inner cuapi.API

	mu   sync.Mutex
	live map[ledgerKey]ledgerItem
	// dying are being destroyed: the driver has not answered yet. One handle may
	// be there several times, since the driver reuses it as soon as it is free.
	dying map[ledgerKey][]ledgerItem
	held  map[cuapi.Device]*Counts
}

// NewLedger keeps account of the calls that pass to api.
func NewLedger(api cuapi.API) *Ledger {
	l := &Ledger{inner: api, live: map[ledgerKey]ledgerItem{}, dying: map[ledgerKey][]ledgerItem{}, held: map[cuapi.Device]*Counts{}}
	l.Hooked = NewHooked(api, ledgerHook{l})
	return l
}

// Report is what is live, per device.
func (l *Ledger) Report() map[cuapi.Device]Counts {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := map[cuapi.Device]Counts{}
	for d, c := range l.held {
		if *c != (Counts{}) {
			m[d] = *c
		}
	}
	return m
}

// Total is what is live on all devices together.
func (l *Ledger) Total() Counts {
	var sum Counts
	for _, c := range l.Report() {
		sum.Contexts += c.Contexts
		sum.Modules += c.Modules
		sum.Streams += c.Streams
		sum.Events += c.Events
		sum.DeviceBytes += c.DeviceBytes
		sum.PoolBytes += c.PoolBytes
		sum.PinnedBytes += c.PinnedBytes
	}
	return sum
}

// Check is nil when everything was given back, and names what was not.
func (l *Ledger) Check() error {
	report := l.Report()
	devices := make([]int, 0, len(report))
	for d := range report {
		devices = append(devices, int(d))
	}
	if len(devices) == 0 {
		return nil
	}
	sort.Ints(devices)
	var parts []string
	for _, d := range devices {
		parts = append(parts, fmt.Sprintf("device %d: %v", d, report[cuapi.Device(d)]))
	}
	return fmt.Errorf("wrap: not given back on %s", strings.Join(parts, "; "))
}
