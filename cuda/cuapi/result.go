package cuapi

import "strconv"

// Error is the C name and number of the code. It needs no driver.
func (r Result) Error() string { return r.Name() + " (" + strconv.Itoa(int(r)) + ")" }

// Name is the C name of the code, or CUDA_ERROR_<number> for a code that the
// facts do not list.
func (r Result) Name() string {
	if n, ok := resultNames[r]; ok {
		return n
	}
	return "CUDA_ERROR_" + strconv.Itoa(int(r))
}

// Err is nil for Success and the code itself otherwise.
func (r Result) Err() error {
	if r == Success {
		return nil
	}
	return r
}

// Sticky reports whether the code means that the context is lost: every later
// call in it fails, and only a new process gets the device back.
func (r Result) Sticky() bool {
	switch r {
	case 700, 702, 710, 714, 715, 716, 717, 718, 719, 214, 220:
		return true
	}
	return false
}

// MemHostAllocFlags are the flags of MemHostAlloc.
type MemHostAllocFlags uint32

// Values of MemHostAllocFlags.
const (
	MemHostAllocPortable      MemHostAllocFlags = 1
	MemHostAllocDeviceMap     MemHostAllocFlags = 2
	MemHostAllocWriteCombined MemHostAllocFlags = 4
)
