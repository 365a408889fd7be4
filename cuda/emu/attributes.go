package emu

import "github.com/raymux/raymux/cuda/cuapi"

// Limits of every virtual device: those of a device of compute capability 7.5.
const (
	warpSize              = 32
	maxThreadsPerBlock    = 1024
	maxBlockXY            = 1024
	maxBlockZ             = 64
	maxGridX              = 1<<31 - 1
	maxGridYZ             = 65535
	maxThreadsPerSM       = 1024
	maxBlocksPerSM        = 16
	registersPerSM        = 65536
	maxRegistersPerThread = 255
	sharedPerBlock        = 48 << 10
	sharedPerBlockOptin   = 64 << 10
	sharedPerSM           = 64 << 10
	constantMemory        = 64 << 10
)

// deviceAttributes are the attributes that do not depend on the device.
// Attributes of features that the emulator does not have are absent: they
// are 0, as the native driver reports them.
var deviceAttributes = map[cuapi.DeviceAttribute]int{
	cuapi.AttrMaxThreadsPerBlock:                maxThreadsPerBlock,
	cuapi.AttrMaxBlockDimX:                      maxBlockXY,
	cuapi.AttrMaxBlockDimY:                      maxBlockXY,
	cuapi.AttrMaxBlockDimZ:                      maxBlockZ,
	cuapi.AttrMaxGridDimX:                       maxGridX,
	cuapi.AttrMaxGridDimY:                       maxGridYZ,
	cuapi.AttrMaxGridDimZ:                       maxGridYZ,
	cuapi.AttrMaxSharedMemoryPerBlock:           sharedPerBlock,
	cuapi.AttrTotalConstantMemory:               constantMemory,
	cuapi.AttrWarpSize:                          warpSize,
	cuapi.AttrMaxPitch:                          1<<31 - 1,
	cuapi.AttrMaxRegistersPerBlock:              registersPerSM,
	cuapi.AttrClockRate:                         1_000_000, // kHz
	cuapi.AttrTextureAlignment:                  512,
	cuapi.AttrGPUOverlap:                        1,
	cuapi.AttrCanMapHostMemory:                  1,
	cuapi.AttrConcurrentKernels:                 1,
	cuapi.AttrMemoryClockRate:                   1_000_000, // kHz
	cuapi.AttrGlobalMemoryBusWidth:              256,
	cuapi.AttrL2CacheSize:                       4 << 20,
	cuapi.AttrMaxThreadsPerMultiprocessor:       maxThreadsPerSM,
	cuapi.AttrAsyncEngineCount:                  2,
	cuapi.AttrUnifiedAddressing:                 1,
	cuapi.AttrStreamPrioritiesSupported:         1,
	cuapi.AttrGlobalL1CacheSupported:            1,
	cuapi.AttrLocalL1CacheSupported:             1,
	cuapi.AttrMaxSharedMemoryPerMultiprocessor:  sharedPerSM,
	cuapi.AttrMaxRegistersPerMultiprocessor:     registersPerSM,
	cuapi.AttrHostNativeAtomicSupported:         1,
	cuapi.AttrSingleToDoublePrecisionPerfRatio:  2,
	cuapi.AttrComputePreemptionSupported:        1,
	cuapi.AttrCanUseHostPointerForRegisteredMem: 1,
	cuapi.AttrMaxSharedMemoryPerBlockOptin:      sharedPerBlockOptin,
	cuapi.AttrHostRegisterSupported:             1,
	cuapi.AttrMaxBlocksPerMultiprocessor:        maxBlocksPerSM,
	cuapi.AttrMemoryPoolsSupported:              1,
}

// lastAttribute is the largest attribute number of the driver emulated here.
const lastAttribute = cuapi.AttrAtomicReductionSupported

// DeviceGetAttribute answers 0 for features that the emulator lacks and 1
// (invalid value) for numbers that are no attribute.
func (e *Emulator) DeviceGetAttribute(a cuapi.DeviceAttribute, d cuapi.Device) (int, cuapi.Result) {
	dev, r := e.device(d)
	if r != cuapi.Success {
		return 0, r
	}
	switch a {
	case cuapi.AttrMultiprocessorCount:
		return e.cfg.sms, cuapi.Success
	case cuapi.AttrComputeCapabilityMajor:
		return dev.major, cuapi.Success
	case cuapi.AttrComputeCapabilityMinor:
		return dev.minor, cuapi.Success
	case cuapi.AttrPCIBusID:
		return dev.ordinal + 1, cuapi.Success
	}
	if a < 1 || a > lastAttribute {
		return 0, cuapi.ErrorInvalidValue
	}
	return deviceAttributes[a], cuapi.Success
}
