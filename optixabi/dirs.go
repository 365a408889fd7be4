//go:build !windows || nocuda

package optixabi

import "runtime"

// libraryDirs are the folders in which drivers lie that the system loader may
// not search.
func libraryDirs() []string {
	multiarch := map[string]string{"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}[runtime.GOARCH]
	return []string{
		"/usr/lib/" + multiarch,
		"/usr/lib64",
		"/usr/local/nvidia/lib64", // containers of cloud machines
		"/usr/lib/wsl/lib",        // Windows Subsystem for Linux 2
		"/run/opengl-driver/lib",  // NixOS
	}
}
