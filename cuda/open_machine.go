package cuda

import (
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/cuda/dl"
)

// machine is what hints need to know about the computer: its files below the
// root folder, and its environment.
type machine struct {
	root   fs.FS
	getenv func(string) string
}

func thisMachine() machine { return machine{root: os.DirFS("/"), getenv: dl.Getenv} }

func (m machine) has(path string) bool {
	_, err := fs.Stat(m.root, path)
	return err == nil
}

// container reports whether the process runs in a container.
func (m machine) container() bool {
	return m.has(".dockerenv") || m.has("run/.containerenv") || m.getenv("KUBERNETES_SERVICE_HOST") != ""
}

// wsl reports whether this is the Windows Subsystem for Linux.
func (m machine) wsl() bool {
	text, err := fs.ReadFile(m.root, "proc/version")
	return err == nil && strings.Contains(strings.ToLower(string(text)), "microsoft")
}

// deviceNodes lists the files through which the driver reaches GPUs.
func (m machine) deviceNodes() []string {
	nodes, _ := fs.Glob(m.root, "dev/nvidia*") // the pattern is well formed
	if m.has("dev/dxg") {
		nodes = append(nodes, "dev/dxg")
	}
	for i := range nodes {
		nodes[i] = "/" + nodes[i]
	}
	return nodes
}

// kernelDriver is the version line of the loaded kernel module, or empty.
func (m machine) kernelDriver() string {
	text, err := fs.ReadFile(m.root, "proc/driver/nvidia/version")
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimSpace(line)
}

// missingHint says what to do when no driver library could be loaded.
func (m machine) missingHint(err error, override string) string {
	const emulator = "; without a GPU use cuda.OpenEmulator"
	nodes := len(m.deviceNodes()) > 0
	switch {
	case errors.Is(err, dl.ErrUnsupportedPlatform):
		return "build for linux/amd64, linux/arm64 or windows/amd64 without the tag nocuda" + emulator
	case errors.Is(err, dl.ErrRelativePath):
		return "give an absolute path to WithLibraryPath or " + EnvLibrary
	case errors.Is(err, dl.ErrLinkStub):
		return hint(cuapi.ErrorStubLibrary)
	case override != "":
		return "only the path given by WithLibraryPath or " + EnvLibrary + " is tried: correct or unset it"
	case errors.Is(err, dl.ErrEmptyFile):
		return "the container runtime left an empty library file: add compute,utility to NVIDIA_DRIVER_CAPABILITIES and start the container through the NVIDIA container toolkit"
	case errors.Is(err, dl.ErrWrongMachine):
		return "a driver for another architecture is installed: install the 64-bit libraries of this one"
	case m.wsl():
		return "install the NVIDIA driver in Windows, not in Linux; its library then appears in /usr/lib/wsl/lib" + emulator
	case m.container() && nodes:
		return "the container has the device nodes and not the driver libraries: set NVIDIA_DRIVER_CAPABILITIES=compute,utility"
	case m.container():
		return "the container got no GPU: start it with --gpus all (or the device request of your scheduler)" + emulator
	case nodes || m.kernelDriver() != "":
		return "the kernel module is loaded and its user-space library is not installed: install the compute libraries of the same driver version"
	}
	return "install the NVIDIA driver" + emulator
}
