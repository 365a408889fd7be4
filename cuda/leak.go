package cuda

import (
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// kind is the sort of a resource that a context owns.
type kind int

const (
	kindStream kind = iota
	kindEvent
	kindModule
	kindPinned
	kindMemory
	kindForeign
	numKinds
)

var kindNames = [numKinds]string{"stream", "event", "module", "pinned buffer", "device buffer", "wrapped buffer"}

// Leak is one kind of resource that is still open.
type Leak struct {
	Kind  string   // "stream", "event", "module", "pinned buffer", "device buffer", "wrapped buffer", "context"
	Count int      // how many
	Bytes uint64   // their memory, for the kinds that hold memory
	Sites []string // where they were made, "file.go:line", sorted; only with WithLeakSites
}

// WithLeakSites makes leak reports name where the program made each resource, or called what
// made it. It costs a few microseconds and a small allocation per resource. OpenEmulator has it
// always.
func WithLeakSites() Option { return func(c *config) { c.leakSites = true } }

// LeakError says that a parent was closed while resources made from it were
// open. The last one that is closed releases the parent; Context.Close says what they
// can be used for until then.
type LeakError struct {
	Parent string // what was closed
	Leaks  []Leak // what is still open, one entry per kind
}

func (e *LeakError) Error() string {
	parts := make([]string, len(e.Leaks))
	for i, l := range e.Leaks {
		s := fmt.Sprintf("%d %s", l.Count, l.Kind)
		if l.Count != 1 {
			s += "s"
		}
		if l.Bytes != 0 {
			s += fmt.Sprintf(" (%d bytes)", l.Bytes)
		}
		if len(l.Sites) != 0 {
			s += " made at " + strings.Join(l.Sites, ", ")
		}
		parts[i] = s
	}
	text := fmt.Sprintf("cuda: %s was closed before %s; close these first", e.Parent, strings.Join(parts, ", "))
	if slices.ContainsFunc(e.Leaks, func(l Leak) bool { return l.Kind != leakedContext && len(l.Sites) == 0 }) {
		text += "; a driver opened with cuda.WithLeakSites names where they were made"
	}
	return text
}

// leakedContext is the kind of a leak that has no sites.
const leakedContext = "context"

// census counts the open children of a context by kind.
type census struct {
	count [numKinds]atomic.Int64
	bytes [numKinds]atomic.Int64

	trackSites bool
	mu         sync.Mutex
	next       uint64
	sites      map[uint64]site
}

type site struct {
	kind kind
	at   string
}

// child is the entry of one resource in the census of its context.
type child struct {
	kind  kind
	bytes uint64
	id    uint64 // key of its creation site; 0 when sites are not tracked
}

func (c *census) add(k kind, bytes uint64) child {
	c.count[k].Add(1)
	c.bytes[k].Add(int64(bytes))
	ch := child{kind: k, bytes: bytes}
	if c.trackSites {
		at := callerSite()
		c.mu.Lock()
		c.next++
		ch.id = c.next
		if c.sites == nil {
			c.sites = make(map[uint64]site)
		}
		c.sites[ch.id] = site{k, at}
		c.mu.Unlock()
	}
	return ch
}

func (c *census) remove(ch child) {
	c.count[ch.kind].Add(-1)
	c.bytes[ch.kind].Add(-int64(ch.bytes))
	if ch.id != 0 {
		c.mu.Lock()
		delete(c.sites, ch.id)
		c.mu.Unlock()
	}
}

// leaks lists what is open, in the order of the kinds.
func (c *census) leaks() []Leak {
	var out []Leak
	for k := range numKinds {
		if n := c.count[k].Load(); n > 0 {
			out = append(out, Leak{Kind: kindNames[k], Count: int(n), Bytes: uint64(c.bytes[k].Load()), Sites: c.sitesOf(k)})
		}
	}
	return out
}

func (c *census) sitesOf(k kind) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for _, s := range c.sites {
		if s.kind == k {
			out = append(out, s.at)
		}
	}
	slices.Sort(out)
	return out
}

// callerSite is the nearest caller outside the library; on goroutines of the library, which
// have none, the nearest one outside this package. Tests of the library count as callers.
func callerSite() string {
	var pcs [48]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	var nearest runtime.Frame
	for more := true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		if of(f, packagePath+".") {
			continue
		}
		if nearest.Line == 0 {
			nearest = f
		}
		if !of(f, modulePath+"/scene.", modulePath+"/multi.", "sync.", "runtime.") {
			nearest = f
			break
		}
	}
	return fmt.Sprintf("%s:%d", filepath.Base(nearest.File), nearest.Line)
}

// of reports whether a function is of one of these packages, and of no test.
func of(f runtime.Frame, packages ...string) bool {
	return !strings.HasSuffix(f.File, "_test.go") &&
		slices.ContainsFunc(packages, func(p string) bool { return strings.HasPrefix(f.Function, p) })
}

const (
	modulePath  = "github.com/raymux/raymux"
	packagePath = modulePath + "/cuda"
)

// abandoned is told to the collector's clean-up of a handle that nobody closed.
// It must not refer to the handle itself.
type abandoned struct {
	drv    *Driver
	what   string
	device int
}

// report runs on the collector's goroutine, so it counts and logs and leaves
// the driver alone: the handle's context may be gone or in use elsewhere.
func (a abandoned) report() {
	a.drv.log.Warn("handle was garbage collected without Close; its driver resource is leaked",
		"handle", a.what, "device", a.device)
	a.drv.abandoned.Add(1)
}
