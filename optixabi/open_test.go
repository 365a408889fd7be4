//go:build linux && (amd64 || arm64) && !nocuda

package optixabi

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda/dl"
)

// anyLibrary copies a system library, which lacks our entry point, to a path.
func anyLibrary(t *testing.T, path string) {
	t.Helper()
	lib, err := dl.Open([]string{"libm.so.6"}, dl.Options{Symbol: "cbrt"})
	require.NoError(t, err)
	data, err := os.ReadFile(lib.Path())
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, data, 0o755))
}

// testMachine has no files and no environment, and one empty driver folder.
func testMachine(t *testing.T) (m machine, files fstest.MapFS, dir string) {
	t.Helper()
	files, dir = fstest.MapFS{}, t.TempDir()
	return machine{goos: "linux", root: files, getenv: func(string) string { return "" }, dirs: []string{dir}}, files, dir
}

const soname = "libnvoptix.so.1"

// TestOpenFailures checks that every way to lack the library is an error of
// its own, that all count as unavailable, and what the hints say.
func TestOpenFailures(t *testing.T) {
	if _, err := dl.Open([]string{soname}, dl.Options{}); err == nil {
		t.Skip("this machine has an OptiX library, so its absence cannot be tested")
	}
	inContainer := func(files fstest.MapFS) { files[".dockerenv"] = &fstest.MapFile{} }
	tests := []struct {
		name   string
		set    func(t *testing.T, m *machine, files fstest.MapFS, dir string, o *Options)
		reason error
		hint   string
	}{
		{"missing", func(*testing.T, *machine, fstest.MapFS, string, *Options) {}, ErrLibraryMissing, "install the full NVIDIA driver"},
		{"missing in WSL", func(_ *testing.T, _ *machine, files fstest.MapFS, _ string, _ *Options) {
			files["proc/version"] = &fstest.MapFile{Data: []byte("Linux version 5.15-Microsoft-standard-WSL2")}
		}, ErrLibraryMissing, "Subsystem for Linux"},
		{"container without any driver", func(_ *testing.T, _ *machine, files fstest.MapFS, _ string, _ *Options) { inContainer(files) },
			ErrLibraryMissing, "NVIDIA_DRIVER_CAPABILITIES"},
		{"container with the compute part", func(_ *testing.T, _ *machine, files fstest.MapFS, _ string, _ *Options) {
			inContainer(files)
			files["proc/driver/nvidia/version"] = &fstest.MapFile{}
		}, ErrLibraryMasked, "NVIDIA_DRIVER_CAPABILITIES=compute,utility,graphics"},
		{"container with libcuda in a driver folder", func(_ *testing.T, _ *machine, files fstest.MapFS, dir string, _ *Options) {
			files["run/.containerenv"] = &fstest.MapFile{}
			files[filepath.Join(dir, "libcuda.so.1")[1:]] = &fstest.MapFile{}
		}, ErrLibraryMasked, "graphics"},
		{"pod without any driver", func(_ *testing.T, m *machine, _ fstest.MapFS, _ string, _ *Options) {
			m.getenv = func(name string) string { return map[string]string{"KUBERNETES_SERVICE_HOST": "10.0.0.1"}[name] }
		}, ErrLibraryMissing, "graphics"},
		{"device node in its place", func(t *testing.T, _ *machine, files fstest.MapFS, dir string, _ *Options) {
			require.NoError(t, os.Symlink("/dev/null", filepath.Join(dir, soname)))
			files[filepath.Join(dir, soname)[1:]] = &fstest.MapFile{Mode: fs.ModeDevice | fs.ModeCharDevice}
		}, ErrLibraryMasked, "graphics"},
		{"empty", func(t *testing.T, _ *machine, _ fstest.MapFS, dir string, _ *Options) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, soname), nil, 0o755))
		}, ErrLibraryEmpty, "reinstall"},
		{"empty in a container", func(t *testing.T, _ *machine, files fstest.MapFS, dir string, _ *Options) {
			inContainer(files)
			require.NoError(t, os.WriteFile(filepath.Join(dir, soname), nil, 0o755))
		}, ErrLibraryEmpty, "graphics"},
		{"another library of that name", func(t *testing.T, _ *machine, _ fstest.MapFS, dir string, _ *Options) {
			anyLibrary(t, filepath.Join(dir, soname))
		}, ErrLibraryUnusable, "reinstall"},
		{"text", func(t *testing.T, _ *machine, _ fstest.MapFS, dir string, _ *Options) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, soname), make([]byte, 100), 0o755))
		}, ErrLibraryUnusable, "reinstall"},
		{"wrong path by option", func(_ *testing.T, _ *machine, _ fstest.MapFS, dir string, o *Options) {
			o.Path = filepath.Join(dir, "gone")
		},
			ErrLibraryMissing, "only the path given"},
		{"relative path", func(_ *testing.T, _ *machine, _ fstest.MapFS, _ string, o *Options) { o.Path = "lib/" + soname },
			ErrLibraryUnusable, EnvLibrary},
		{"wrong path by environment", func(_ *testing.T, m *machine, _ fstest.MapFS, dir string, _ *Options) {
			m.getenv = func(name string) string { return map[string]string{EnvLibrary: filepath.Join(dir, "gone")}[name] }
		}, ErrLibraryMissing, "only the path given"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, files, dir := testMachine(t)
			var o Options
			tt.set(t, &m, files, dir, &o)
			_, err := open(o, m)
			var failed *OpenError
			require.ErrorAs(t, err, &failed)
			assert.Equal(t, tt.reason, failed.Reason, "%v", err)
			assert.Contains(t, failed.Hint, tt.hint)
			assert.Contains(t, err.Error(), tt.reason.Error())
			assert.Contains(t, err.Error(), tt.hint)
			assert.True(t, Unavailable(err))
			var tried *dl.OpenError
			require.ErrorAs(t, err, &tried, "every path tried is in the error")
			assert.Contains(t, err.Error(), tried.Attempts[0].Path)
		})
	}
}

// TestOpenOrder checks that the driver's own folder comes first, then the
// names, then the usual folders, and that an override is alone.
func TestOpenOrder(t *testing.T) {
	if _, err := dl.Open([]string{soname}, dl.Options{}); err == nil {
		t.Skip("this machine has an OptiX library, so the search ends early")
	}
	m, files, dir := testMachine(t)
	paths := func(o Options) (all []string) {
		_, err := open(o, m)
		var tried *dl.OpenError
		require.ErrorAs(t, err, &tried)
		for _, a := range tried.Attempts {
			all = append(all, a.Path)
		}
		return all
	}
	assert.Equal(t, []string{soname, filepath.Join(dir, soname)}, paths(Options{}))
	assert.Equal(t, []string{"/driver/" + soname, soname, filepath.Join(dir, soname)}, paths(Options{DriverDir: "/driver"}))
	files["proc/self/maps"] = &fstest.MapFile{Data: []byte("1000-2000 r-xp 00000000 00:00 0 \n" +
		"2000-3000 r-xp 00000000 08:01 11    /usr/lib/libcudart.so.12\n" +
		"7f00-8000 r--p 00000000 08:01 12    /opt/a driver/libcuda.so.580.159.03\n" +
		"8000-9000 r-xp 00001000 08:01 12    /later/libcuda.so.1\n")}
	assert.Equal(t, []string{"/opt/a driver/" + soname, soname, filepath.Join(dir, soname)}, paths(Options{}), "the driver of this process")
	assert.Equal(t, []string{"/driver/" + soname, soname, filepath.Join(dir, soname)}, paths(Options{DriverDir: "/driver"}))
	assert.Equal(t, []string{"/only/here.so"}, paths(Options{DriverDir: "/driver", Path: "/only/here.so"}))
	m.getenv = func(string) string { return "/by/environment.so" }
	assert.Equal(t, []string{"/by/environment.so"}, paths(Options{DriverDir: "/driver"}))
	assert.Equal(t, []string{"/only/here.so"}, paths(Options{Path: "/only/here.so"}), "the option wins over the environment")
}

func TestNames(t *testing.T) {
	assert.Equal(t, "nvoptix.dll", libraryName("windows"))
	assert.Equal(t, soname, libraryName("linux"))
	assert.Contains(t, libraryDirs(), "/usr/lib/wsl/lib")
	for _, dir := range libraryDirs() {
		assert.True(t, filepath.IsAbs(dir), dir)
	}
}

func TestDriverVersion(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "libnvoptix.so.580.159.03")
	require.NoError(t, os.WriteFile(file, nil, 0o644))
	link := filepath.Join(dir, soname)
	require.NoError(t, os.Symlink(file, link))
	for path, want := range map[string]string{
		link: "580.159.03", file: "580.159.03", "/gone/libnvoptix.so.535.54": "535.54", "/gone/" + soname: "", "": "", "/x/nvoptix.dll": "",
	} {
		assert.Equal(t, want, driverVersion(path), path)
	}
}

// TestUnavailable separates machines without OptiX from failures of one.
func TestUnavailable(t *testing.T) {
	for _, reason := range []error{
		ErrUnsupportedPlatform, ErrLibraryMissing, ErrLibraryMasked, ErrLibraryEmpty, ErrLibraryUnusable, ErrDriverTooOld, ErrDriverIncomplete,
	} {
		assert.True(t, Unavailable(&OpenError{Reason: reason}), "%v", reason)
	}
	for _, reason := range []error{ErrDriverFailed, ErrTableSize, ErrQueryOptions, ErrNullEntry} {
		assert.False(t, Unavailable(&OpenError{Reason: reason}), "%v", reason)
	}
	for r := range resultNames {
		want := r == ErrorNotSupported || r == ErrorNotCompatible
		assert.Equal(t, want, Unavailable(callError(fnDeviceContextCreate, r, "")), "%v", r)
	}
	assert.False(t, Unavailable(errors.New("something else")))
	assert.False(t, Unavailable(nil))
}

// TestLaunchAllocatesNothing calls a C function of no effect in the place of
// the launch.
func TestLaunchAllocatesNothing(t *testing.T) {
	libc, err := dl.Open([]string{"libc.so.6"}, dl.Options{Symbol: "abs"})
	require.NoError(t, err)
	abs, _ := libc.Lookup("abs")
	table := &Table{facts: ABI105.facts()}
	table.fns[fnLaunch] = abs
	sbt := ShaderBindingTable{RaygenRecord: 16}
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		if err := table.Launch(0, 1, Buffer{2, 3}, &sbt, 4, 5, 6); err != nil {
			t.Fatal(err)
		}
	}))
}

// TestLogBuffer checks the protocol of log buffers.
func TestLogBuffer(t *testing.T) {
	l := newLog()
	copy(l.text, "short\x00rest")
	l.size = 6
	assert.Equal(t, "short", l.String())
	for i := range l.text {
		l.text[i] = 'x'
	}
	l.text[logBytes-1] = 0
	l.size = logBytes + 1
	assert.Len(t, l.String(), logBytes-1+len("\n[log cut]"))
	assert.Empty(t, newLog().String())
}
