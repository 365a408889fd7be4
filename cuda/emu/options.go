package emu

import (
	"fmt"
	"runtime"
)

// MaxDevices is the largest number of virtual devices of one Emulator.
const MaxDevices = 64

// Option configures New.
type Option func(*config)

type config struct {
	memory     uint64
	peer       func(a, b int) bool
	raceCheck  bool
	workers    int
	sms        int
	name       func(dev int) string
	capability func(dev int) (major, minor int)
	corrupt    func(src, dst int, data []byte)
}

func defaults() config {
	return config{
		memory:     4 << 30,
		peer:       func(a, b int) bool { return true },
		workers:    runtime.GOMAXPROCS(0),
		sms:        8,
		name:       func(int) string { return "Raymux Emulator" },
		capability: func(int) (int, int) { return 7, 5 },
	}
}

func (c *config) validate(n int) error {
	switch {
	case n < 1 || n > MaxDevices:
		return badArg("n", "%d devices asked for, 1 to %d are possible", n, MaxDevices)
	case c.memory < 1<<20 || c.memory > arenaSize:
		return badArg("WithMemory", "%d bytes per device asked for, %d to %d are possible", c.memory, 1<<20, uint64(arenaSize))
	case c.workers < 1:
		return badArg("WithWorkers", "%d workers asked for, at least 1 is needed", c.workers)
	case c.sms < 1:
		return badArg("WithSMs", "%d multiprocessors asked for, at least 1 is needed", c.sms)
	}
	return nil
}

// ArgumentError says which argument of New is unusable and why.
type ArgumentError struct {
	Arg    string // n, or the name of an option
	Detail string // what was given and what is accepted
}

func (e *ArgumentError) Error() string { return "emu: New: " + e.Arg + ": " + e.Detail }

func badArg(arg, format string, args ...any) error {
	return &ArgumentError{Arg: arg, Detail: fmt.Sprintf(format, args...)}
}

// WithMemory sets the bytes of memory of every device (default 4 GiB). Host
// memory is used only for what is allocated.
func WithMemory(bytes uint64) Option { return func(c *config) { c.memory = bytes } }

// WithPeerAccess decides which directed pairs may enable peer access: f(a, b)
// says whether kernels of device a can reach memory of device b. Without it
// all pairs can.
func WithPeerAccess(f func(a, b int) bool) Option { return func(c *config) { c.peer = f } }

// WithRaceCheck makes kernels fault when two threads of a block touch the same
// shared memory between two barriers and one of them writes. It is off by
// default because it slows kernels with shared memory down.
func WithRaceCheck(on bool) Option { return func(c *config) { c.raceCheck = on } }

// WithWorkers sets how many host threads run the blocks of one launch
// (default GOMAXPROCS).
func WithWorkers(n int) Option { return func(c *config) { c.workers = n } }

// WithSMs sets the number of multiprocessors that each device reports
// (default 8). It changes occupancy numbers only, not speed.
func WithSMs(n int) Option { return func(c *config) { c.sms = n } }

// WithName sets the device names (default "Raymux Emulator").
func WithName(f func(dev int) string) Option { return func(c *config) { c.name = f } }

// WithCapability sets the compute capability of each device (default 7.5). A
// module whose .target is newer is refused at load.
func WithCapability(f func(dev int) (major, minor int)) Option {
	return func(c *config) { c.capability = f }
}

// WithPeerCorruption simulates a bad link: f may change the bytes that cross
// from device src to another device dst. It sees each copy as a whole, and
// every load and store of a kernel on memory of a peer, and the value that an
// atomic operation brings to it; it is called from several goroutines at once.
func WithPeerCorruption(f func(src, dst int, data []byte)) Option {
	return func(c *config) { c.corrupt = f }
}
