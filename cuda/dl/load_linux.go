//go:build linux && (amd64 || arm64) && !nocuda

package dl

import (
	"errors"
	"os"
	"runtime"

	"github.com/ebitengine/purego"
	"golang.org/x/sys/unix"
)

const supported = true

// load opens one library. The loader keeps its error text per thread and
// purego fetches it by a second call, so the goroutine stays on its thread
// for both.
func load(path string, _ bool) (lib *Library, unload func(), err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	h, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, nil, errors.New(err.Error())
	}
	lookup := func(name string) uintptr {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		fn, err := purego.Dlsym(h, name)
		if err != nil {
			return 0
		}
		return fn
	}
	return New(path, lookup), func() { _ = purego.Dlclose(h) }, nil
}

// secureKey is AT_SECURE, the auxiliary vector entry that the kernel sets for
// setuid and setgid programs and for those with file capabilities.
const secureKey = 23

// Getenv reads an environment variable that names a library. It is empty in a
// program that runs with raised privileges, whose environment belongs to
// somebody with fewer rights.
func Getenv(name string) string {
	if privileged(unix.Auxv()) {
		return ""
	}
	return os.Getenv(name)
}

func privileged(auxv [][2]uintptr, err error) bool {
	if err != nil { // no vector to ask: compare the ids instead
		return os.Getuid() != os.Geteuid() || os.Getgid() != os.Getegid()
	}
	for _, kv := range auxv {
		if kv[0] == secureKey {
			return kv[1] != 0
		}
	}
	return false
}
