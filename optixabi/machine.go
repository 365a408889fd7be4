package optixabi

import (
	"bufio"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/raymux/raymux/cuda/dl"
)

// machine is what the search and its hints need to know about the computer.
type machine struct {
	goos   string
	root   fs.FS // files below the root folder
	getenv func(string) string
	dirs   []string // folders in which drivers lie
}

func thisMachine() machine {
	return machine{goos: goos, root: os.DirFS("/"), getenv: dl.Getenv, dirs: libraryDirs()}
}

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

// hasDriver reports whether the CUDA part of the driver is there.
func (m machine) hasDriver() bool {
	if m.has("proc/driver/nvidia/version") || m.has("dev/nvidiactl") {
		return true
	}
	for _, dir := range m.dirs {
		if m.has(strings.TrimPrefix(filepath.ToSlash(filepath.Join(dir, "libcuda.so.1")), "/")) {
			return true
		}
	}
	return false
}

// driverDir is the folder of the CUDA driver library that this process has
// loaded, as far as the system tells.
func (m machine) driverDir() string {
	maps, err := m.root.Open("proc/self/maps")
	if err != nil {
		return ""
	}
	defer maps.Close()
	for sc := bufio.NewScanner(maps); sc.Scan(); {
		// Address, rights, offset, device, inode, and the file if there is one.
		_, file, found := strings.Cut(sc.Text(), "/")
		if file = "/" + file; found && strings.HasPrefix(filepath.Base(file), "libcuda.so.") {
			return filepath.Dir(file)
		}
	}
	return ""
}

// device reports whether a full path leads to a device node.
func (m machine) device(path string) bool {
	if !filepath.IsAbs(path) {
		return false
	}
	info, err := fs.Stat(m.root, strings.TrimPrefix(filepath.ToSlash(path), "/"))
	return err == nil && info.Mode()&fs.ModeDevice != 0
}
