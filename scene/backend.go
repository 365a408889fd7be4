package scene

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/raymux/raymux/cuda"
)

// Backend is how rays find triangles.
type Backend int

// Backends of Options.
const (
	// Auto takes OptiX when every device of the scene has ray-tracing cores and
	// OptiX is available, and CUDA otherwise.
	Auto Backend = iota
	// OptiX searches structures that the driver builds. Where it cannot run, Build
	// fails.
	OptiX
	// CUDA is Raymux' own search tree and kernels, which also run on the
	// emulator.
	CUDA
)

// String is the lower-case name.
func (b Backend) String() string {
	switch b {
	case Auto:
		return "auto"
	case OptiX:
		return "optix"
	case CUDA:
		return "cuda"
	}
	return fmt.Sprintf("Backend(%d)", int(b))
}

// ParseBackend reads the name of a backend.
func ParseBackend(name string) (Backend, error) {
	for _, b := range []Backend{Auto, OptiX, CUDA} {
		if b.String() == name {
			return b, nil
		}
	}
	return 0, badArg("ParseBackend", "name", "is %q, want auto, optix or cuda", name)
}

// noOptixVariable switches OptiX off when it is 1 or true.
const noOptixVariable = "RAYMUX_NO_OPTIX"

// optixDisabled is asked for at every Build, so that a running program can be told.
func optixDisabled() bool {
	v := os.Getenv(noOptixVariable)
	return v == "1" || strings.EqualFold(v, "true")
}

// ResolveBackend says which backend a Build would choose now, and why. It starts
// OptiX where that is in question. For schedulers.
func (s *Scene) ResolveBackend() (Backend, string, error) {
	switch s.want {
	case CUDA:
		return CUDA, "requested", nil
	case OptiX:
		if _, err := openOptix(s.ctx.Device(), s.log); err != nil {
			return 0, "", err
		}
		return OptiX, "requested", nil
	case Auto:
		return s.chooseBackend()
	}
	return 0, "", badArg("Build", "Options.Backend", "is %v, want Auto, OptiX or CUDA", s.want)
}

func (s *Scene) chooseBackend() (Backend, string, error) {
	devices := append([]*cuda.Device{s.ctx.Device()}, s.replicas...)
	for _, d := range devices {
		if major, minor := d.Capability(); !mayHaveRTCores(major, minor) {
			return CUDA, fmt.Sprintf("device %d (%s, compute capability %d.%d) has no ray-tracing cores",
				d.Ordinal(), d.Name(), major, minor), nil
		}
	}
	opened, errs := make([]*optixDevice, len(devices)), make([]error, len(devices))
	var wg sync.WaitGroup
	for i, d := range devices {
		wg.Go(func() { opened[i], errs[i] = openOptix(d, s.log) })
	}
	wg.Wait()
	for i, d := range devices {
		if err := errs[i]; errors.Is(err, ErrBackendUnavailable) {
			return CUDA, strings.TrimPrefix(err.Error(), ErrBackendUnavailable.Error()+": "), nil
		} else if err != nil {
			return 0, "", err
		}
		if opened[i].rtCores == 0 {
			return CUDA, fmt.Sprintf("device %d (%s) has no ray-tracing cores", d.Ordinal(), d.Name()), nil
		}
	}
	return OptiX, "every device has ray-tracing cores", nil
}

// mayHaveRTCores is false for the chips of which none has ray-tracing cores: V100,
// A100, H100 and H200. Only OptiX knows of the others, and asking it costs tenths of
// a second.
func mayHaveRTCores(major, minor int) bool {
	return !(minor == 0 && (major == 7 || major == 8 || major == 9))
}
