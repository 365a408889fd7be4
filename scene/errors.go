package scene

import (
	"errors"
	"fmt"
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

// LimitError says that a scene is too large for its int32 ids.
type LimitError struct {
	What  string // what is counted
	Have  int64  // how many there are
	Limit int64  // how many are accepted
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("scene: %d %s exceed the limit of %d; split the geometry over several scenes",
		e.Have, e.What, e.Limit)
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
		return &LimitError{What: what, Have: have, Limit: limit}
	}
	return nil
}
