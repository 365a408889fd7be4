package cuda

import "github.com/raymux/raymux/cuda/cuapi"

// hints say in plain words what a code usually means on a machine and what to
// do about it. Codes whose name says it all have none.
var hints = map[cuapi.Result]string{
	cuapi.ErrorOutOfMemory:                "free device memory, use smaller chunks, or see with nvidia-smi who holds the memory",
	cuapi.ErrorStubLibrary:                "the folder of the CUDA toolkit named stubs is on the library path; remove it from LD_LIBRARY_PATH and install the driver",
	cuapi.ErrorCallRequiresNewerDriver:    "this call needs an entry point that the installed driver lacks; update the NVIDIA driver",
	cuapi.ErrorDeviceUnavailable:          "the GPU is busy or in exclusive mode: another process holds it, or nvidia-smi -c 0 is needed to share it",
	cuapi.ErrorNoDevice:                   "no GPU is visible: check nvidia-smi, CUDA_VISIBLE_DEVICES, and in a container that the GPUs were passed in (--gpus all, device nodes /dev/nvidia*)",
	cuapi.ErrorInvalidDevice:              "the ordinal does not exist, or CUDA_VISIBLE_DEVICES names a GPU that does not exist; GPUs in MIG mode are named by their instance",
	cuapi.ErrorDeviceNotLicensed:          "the virtual GPU has no licence: check the licence server settings of the guest",
	cuapi.ErrorNoBinaryForGPU:             "the program was built for other GPUs: devices need compute capability 7.5 or newer",
	cuapi.ErrorInvalidPTX:                 "the program text is damaged or not meant for this device: see the compiler log in the error",
	cuapi.ErrorUnsupportedPTXVersion:      "the program uses a newer PTX version than the driver knows; update the NVIDIA driver",
	cuapi.ErrorJITCompilerNotFound:        "the driver's PTX compiler library (libnvidia-ptxjitcompiler.so.1) is missing: reinstall the driver, or in a container add compute to NVIDIA_DRIVER_CAPABILITIES",
	cuapi.ErrorJITCompilationDisabled:     "just-in-time compilation is switched off: unset CUDA_DISABLE_PTX_JIT",
	cuapi.ErrorECCUncorrectable:           "the GPU memory has an uncorrectable error: see nvidia-smi -q -d ECC; reset the GPU or take it out of service",
	cuapi.ErrorNvlinkUncorrectable:        "an NVLink failed: see nvidia-smi nvlink -e; reset the GPU",
	cuapi.ErrorOperatingSystem:            "the operating system refused: check locked-memory limits (ulimit -l), device permissions and free shared memory",
	cuapi.ErrorIllegalAddress:             "a kernel used an address outside its memory; the process has to be restarted. Run the same on the emulator to see kernel, line and address",
	cuapi.ErrorLaunchTimeout:              "a kernel ran longer than the display watchdog allows: use smaller chunks or a GPU without a display",
	cuapi.ErrorLaunchOutOfResources:       "the block needs more registers or shared memory than the device has: use smaller blocks",
	cuapi.ErrorMisalignedAddress:          "a kernel used a misaligned address; run the same on the emulator to see kernel, line and address",
	cuapi.ErrorHostMemoryNotRegistered:    "asynchronous copies need page-locked host memory (AllocPinned)",
	cuapi.ErrorNotPermitted:               "the operation is not permitted to this user, or peer access is disabled in this container",
	cuapi.ErrorNotSupported:               "the device or this way of passing it through does not support the operation",
	cuapi.ErrorSystemNotReady:             "the NVSwitch fabric is not ready: start nvidia-fabricmanager in the version of the driver and wait until it is up",
	cuapi.ErrorSystemDriverMismatch:       "library and kernel module are of different driver versions: reboot after a driver update, or restart the container so that it gets the host's libraries",
	cuapi.ErrorCompatNotSupportedOnDevice: "the forward-compatibility libraries (cuda-compat) work on data-centre GPUs only: remove them from the library path",
	cuapi.ErrorMPSConnectionFailed:        "the MPS daemon does not answer: start nvidia-cuda-mps-control or unset CUDA_MPS_PIPE_DIRECTORY",
	cuapi.ErrorUnknown:                    "the driver gives no reason; usual ones are missing device nodes (run nvidia-modprobe -u -c=0), a kernel module that is not loaded, or a machine that was suspended",
}

// hint is empty for a code that needs none.
func hint(code cuapi.Result) string {
	if code.Sticky() && hints[code] == "" {
		return "the device is lost to this process: restart it"
	}
	return hints[code]
}
