//go:build !nocuda

package optixabi

import (
	"path/filepath"
	"slices"

	"golang.org/x/sys/windows/registry"
)

// displayClass is the registry key of the display adapters.
const displayClass = `SYSTEM\CurrentControlSet\Control\Class\{4d36e968-e325-11ce-bfc1-08002be10318}`

// libraryDirs are the folders of the OpenGL drivers of all display adapters:
// when the OptiX library is not in System32, it lies beside one of them.
func libraryDirs() []string {
	class, err := registry.OpenKey(registry.LOCAL_MACHINE, displayClass, registry.READ)
	if err != nil {
		return nil
	}
	defer class.Close()
	adapters, err := class.ReadSubKeyNames(-1)
	if err != nil {
		return nil
	}
	var dirs []string
	for _, name := range adapters {
		adapter, err := registry.OpenKey(class, name, registry.QUERY_VALUE)
		if err != nil {
			continue // the class has keys that only the system may read
		}
		files, _, err := adapter.GetStringsValue("OpenGLDriverName")
		if err != nil {
			var one string
			if one, _, err = adapter.GetStringValue("OpenGLDriverName"); err == nil {
				files = []string{one}
			}
		}
		adapter.Close()
		for _, f := range files {
			if dir := filepath.Dir(f); filepath.IsAbs(f) && !slices.Contains(dirs, dir) {
				dirs = append(dirs, dir)
			}
		}
	}
	return dirs
}
