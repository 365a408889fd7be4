package scene

import "fmt"

// Backend is how rays find triangles.
type Backend int

// Backends of Options.
const (
	// Auto takes the best backend that every device of the scene supports.
	Auto Backend = iota
	// OptiX searches structures that the driver builds.
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

// resolveBackend says which backend answers a request, and why.
func resolveBackend(want Backend) (Backend, string, error) {
	switch want {
	case CUDA:
		return CUDA, "requested", nil
	case Auto:
		return CUDA, "this build has no OptiX tracer", nil
	case OptiX:
		return 0, "", fmt.Errorf("%w: OptiX was requested, but this build has no OptiX tracer; use Auto or CUDA",
			ErrBackendUnavailable)
	}
	return 0, "", badArg("Build", "Options.Backend", "is %v, want Auto, OptiX or CUDA", want)
}
