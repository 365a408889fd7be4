package multi

import (
	"log/slog"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/scene"
)

// Options configure a scene over several devices. The zero value of every
// field is its default.
type Options struct {
	// Options are what a plan depends on: weights, floor, transport. New copies them.
	chunked.Options
	// AllowNoPeerAccess accepts pairs of devices without working peer access;
	// their rows are then staged through the host. By default New refuses
	// them, because a scene that silently runs at the speed of host copies is
	// rarely what the caller wants.
	AllowNoPeerAccess bool
	// AllowMixedDevices accepts devices of different names or compute
	// capabilities. Results stay bitwise equal; equal weights no longer mean
	// equal times.
	AllowMixedDevices bool
	// Backend is the triangle tracer of every replica.
	Backend scene.Backend
	// Builder makes the search tree of the CUDA backend, once for all replicas.
	Builder scene.Builder
	// NoWarmUp keeps Build from preparing all devices at the same time. It
	// matters to OptiX, whose first use takes a second or so per device.
	NoWarmUp bool
	// Logger receives warnings, and what scene.Options.Logger does. Nil: the logger
	// of the driver (cuda.WithLogger).
	Logger *slog.Logger
}
