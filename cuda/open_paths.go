package cuda

// libraryNames are the names that a driver library has on an operating system.
func libraryNames(goos string) []string {
	if goos == "windows" {
		return []string{"nvcuda.dll"}
	}
	return []string{"libcuda.so.1", "libcuda.so"}
}

// libraryDirs are the folders in which drivers lie that the system loader may
// not search. Windows has none: the driver is in System32.
func libraryDirs(goos, goarch string) []string {
	if goos != "linux" {
		return nil
	}
	multiarch := map[string]string{"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}[goarch]
	return []string{
		"/usr/lib/" + multiarch,
		"/usr/lib64",
		"/usr/local/nvidia/lib64", // containers of cloud machines
		"/usr/lib/wsl/lib",        // Windows Subsystem for Linux 2
		"/run/opengl-driver/lib",  // NixOS
	}
}
