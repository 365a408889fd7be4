package optixabi

import (
	"fmt"
	"strconv"
)

// Error is the C name and number of the code. It needs no library.
func (r Result) Error() string { return r.Name() + " (" + strconv.Itoa(int(r)) + ")" }

// Name is the C name of the code, or OPTIX_ERROR_<number> for a code that the
// facts do not list.
func (r Result) Name() string {
	if n, ok := resultNames[r]; ok {
		return n
	}
	return "OPTIX_ERROR_" + strconv.Itoa(int(r))
}

// CacheFailure reports whether the code speaks of the disk cache of compiled
// programs, without which everything works too, only slower at first.
func (r Result) CacheFailure() bool {
	return r >= ErrorDiskCacheInvalidPath && r <= ErrorDiskCacheInvalidData
}

// Error is a call that failed. It unwraps to its code, so that
// errors.Is(err, ErrorDeviceOutOfMemory) works.
type Error struct {
	Op   string // C name of the function
	Code Result
	Log  string // compiler or link log, often empty
	Hint string // what to do, empty where the code says it all
}

// Error is one line, followed by the log where there is one.
func (e *Error) Error() string {
	s := fmt.Sprintf("%s: %v", e.Op, e.Code)
	if e.Hint != "" {
		s += ": " + e.Hint
	}
	if e.Log != "" {
		s += "\n" + e.Log
	}
	return s
}

// Unwrap is the code.
func (e *Error) Unwrap() error { return e.Code }

// callError is nil for Success.
func callError(f function, code Result, log string) error {
	if code == Success {
		return nil
	}
	return &Error{Op: functionNames[f], Code: code, Log: log, Hint: hints[code]}
}

// hints say what a code usually means on a machine and what to do about it.
var hints = map[Result]string{
	ErrorHostOutOfMemory:             "the process has no host memory left",
	ErrorDiskCacheInvalidPath:        "the folder of the program cache does not exist: correct or unset OPTIX_CACHE_PATH",
	ErrorDiskCachePermissionError:    "the program cache is not writable: give OPTIX_CACHE_PATH a folder of this user",
	ErrorDiskCacheDatabaseError:      "the program cache is locked or damaged, often because several processes or a network disk share it: give each process an OPTIX_CACHE_PATH of its own on a local disk",
	ErrorDiskCacheInvalidData:        "the program cache is damaged: delete its folder",
	ErrorLaunchFailure:               "a program failed on the device: the CUDA context may be lost; validation mode shows more",
	ErrorInvalidDeviceContext:        "the device context was made for another CUDA context or is destroyed already",
	ErrorCUDANotInitialized:          "no CUDA context is current on this thread",
	ErrorInvalidFunctionUse:          "a program calls a function that this ABI does not have, see the log",
	ErrorInvalidFunctionArguments:    "a program calls a function with other arguments than this ABI has, see the log",
	ErrorPipelineOutOfConstantMemory: "the launch parameters are too large",
	ErrorInternalCompilerError:       "the compiler of the driver failed: update the NVIDIA driver",
	ErrorNotCompatible:               "the device is not able to run OptiX",
	ErrorNotSupported:                "the device or this way of passing it through does not support OptiX",
	ErrorDeviceOutOfMemory:           "free device memory, use smaller chunks, or see with nvidia-smi who holds the memory",
	ErrorCUDAError:                   "a CUDA call inside OptiX failed; an earlier kernel may have failed, or the context is lost",
}
