package scene

import (
	"errors"
	"fmt"

	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/optixabi"
)

// Errors to compare with errors.Is. Errors of the device and of its memory are
// those of package cuda.
var (
	// ErrNotReady: the call needs a built scene. Call Build first, and again after meshes
	// were added.
	ErrNotReady = errors.New("scene: not ready: call Build first")
	// ErrFailed: an earlier Build or Sync failed on the device. Only Build
	// recovers the scene.
	ErrFailed = errors.New("scene: failed")
	// ErrNoMesh: Build was called on a scene without meshes.
	ErrNoMesh = errors.New("scene: nothing to build: call AddMesh first")
	// ErrBackendUnavailable: the requested backend cannot run here.
	ErrBackendUnavailable = errors.New("scene: backend unavailable")
)

// errExtended is ErrNotReady of a scene that was ready.
var errExtended = fmt.Errorf("%w: meshes were added since the last one", ErrNotReady)

// ArgumentError says which argument was refused and why. Nothing was enqueued and
// the scene is unchanged.
type ArgumentError struct {
	Op     string // the method that was called
	Arg    string // the argument, as the method names it
	Detail string // what was given and what is accepted
}

func (e *ArgumentError) Error() string {
	return fmt.Sprintf("scene: %s: %s: %s", e.Op, e.Arg, e.Detail)
}

func badArg(op, arg, format string, args ...any) error {
	return &ArgumentError{Op: op, Arg: arg, Detail: fmt.Sprintf(format, args...)}
}

// LimitError says that a scene is too large for its int32 ids, or that a mesh has many more
// edges than faces.
type LimitError struct {
	What   string // what is counted
	Have   int64  // how many there are
	Limit  int64  // how many are accepted
	Advice string // what to do
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("scene: %d %s exceed the limit of %d; %s", e.Have, e.What, e.Limit, e.Advice)
}

// FailedError is returned by every call on a failed scene but Build and Close. It
// matches ErrFailed and wraps what went wrong.
type FailedError struct {
	Op    string // the call that failed: Build or Sync
	Cause error  // what failed it
}

func (e *FailedError) Error() string {
	return fmt.Sprintf("scene: %s failed earlier and left no usable geometry; call Build: %v", e.Op, e.Cause)
}

// Is reports whether target is ErrFailed.
func (e *FailedError) Is(target error) bool { return target == ErrFailed }

func (e *FailedError) Unwrap() error { return e.Cause }

// The id spaces of a scene.
const (
	maxVertices = 1<<31 - 1
	maxFaces    = 1 << 29
	maxEdges    = 1 << 30
	maxShapes   = 1 << 24
)

func checkLimit(what string, have, limit int64) error {
	if have > limit {
		return &LimitError{What: what, Have: have, Limit: limit, Advice: "split the geometry over several scenes"}
	}
	return nil
}

// A mesh has up to fewEdges, or edgesPerFace for each face if that is more: three are those of
// faces without neighbours, and 24 leave room for a surface of which every face is there eight
// times. Without a limit a few thousand equal faces would take all memory.
const (
	fewEdges     = 1 << 22
	edgesPerFace = 24
)

// checkEdges judges the edges of a mesh of which most faces share a side.
func checkEdges(edges, faces, most int64) error {
	limit := max(fewEdges, edgesPerFace*faces)
	if edges <= limit {
		return checkLimit("edges", edges, maxEdges)
	}
	return &LimitError{What: "edges of a mesh", Have: edges, Limit: limit, Advice: fmt.Sprintf(
		"%d of its faces share a side, of which every two are an edge, %.1f GB in all: remove faces that are there several times, or set NoEdges",
		most, float64(edges)*edgeBytes/1e9)}
}

// OfDevice reports whether an error is of a call to the driver or to OptiX, and not of
// arguments, of the state of a scene, or of a context that ended.
func OfDevice(err error) bool {
	var (
		code  cuapi.Result
		optix *optixabi.Error
	)
	return errors.As(err, &code) || errors.As(err, &optix)
}
