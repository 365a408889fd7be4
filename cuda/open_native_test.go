//go:build !nocuda && (linux || windows)

package cuda

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/cuda/dl"
)

// TestStart plays the drivers that Open may meet.
func TestStart(t *testing.T) {
	tests := []struct {
		name   string
		set    func(f *fakeDriver)
		reason error
		code   cuapi.Result
		text   []string // parts of the message
	}{
		{"oldest accepted", func(f *fakeDriver) { f.version(12000) }, nil, 0, nil},
		{"newer", func(f *fakeDriver) { f.version(13000) }, nil, 0, nil},
		{"too old", func(f *fakeDriver) { f.version(11080) }, ErrDriverTooOld, 0, []string{"CUDA 11.8", "12.0 or newer", "branch 525"}},
		{"too old and bare", func(f *fakeDriver) { f.version(4000); f.absent["cuMemcpyPeer"] = true }, ErrDriverTooOld, 0, []string{"CUDA 4.0"}},
		{"no version call", func(f *fakeDriver) { f.absent["cuDriverGetVersion"] = true }, ErrDriverTooOld, cuapi.ErrorCallRequiresNewerDriver, []string{"cuDriverGetVersion"}},
		{"stub", func(f *fakeDriver) { f.results["cuDriverGetVersion"] = 34; f.results["cuInit"] = 34 }, ErrStubLibrary, 34, []string{"stub", "LD_LIBRARY_PATH"}},
		{"stub that knows its version", func(f *fakeDriver) { f.results["cuInit"] = 34 }, ErrStubLibrary, 34, []string{"CUDA_ERROR_STUB_LIBRARY (34)"}},
		{"no device", func(f *fakeDriver) { f.results["cuInit"] = 100 }, ErrNoDevice, 100, []string{"CUDA_VISIBLE_DEVICES", "--gpus all"}},
		{"count fails", func(f *fakeDriver) { f.results["cuDeviceGetCount"] = 100 }, ErrNoDevice, 100, nil},
		{"counts none", func(f *fakeDriver) { f.on["cuDeviceGetCount"] = func(a []uintptr) { writeAt(a[0], int32(0)) } }, ErrNoDevice, 100, nil},
		{"unavailable", func(f *fakeDriver) { f.results["cuInit"] = 46 }, ErrDriverFailed, 46, []string{"exclusive mode"}},
		{"bad ordinal", func(f *fakeDriver) { f.results["cuInit"] = 101 }, ErrDriverFailed, 101, []string{"CUDA_VISIBLE_DEVICES"}},
		{"not ready", func(f *fakeDriver) { f.results["cuInit"] = 802 }, ErrDriverFailed, 802, []string{"fabricmanager"}},
		{"mismatch", func(f *fakeDriver) { f.results["cuInit"] = 803 }, ErrDriverFailed, 803, []string{"reboot"}},
		{"compat", func(f *fakeDriver) { f.results["cuInit"] = 804 }, ErrDriverFailed, 804, []string{"cuda-compat"}},
		{"unknown", func(f *fakeDriver) { f.results["cuInit"] = 999 }, ErrDriverFailed, 999, []string{"nvidia-modprobe"}},
	}
	messages := map[string]string{}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFake(t)
			f.on["cuDeviceGetCount"] = func(a []uintptr) { writeAt(a[0], int32(1)) }
			tt.set(f)
			api, version, err := start(f.library())
			if err == nil {
				_, err = countDevices(api, "/fake/libcuda.so.1", version)
			}
			if tt.reason == nil {
				require.NoError(t, err)
				assert.Equal(t, 1, f.calls["cuInit"])
				return
			}
			require.ErrorIs(t, err, tt.reason)
			var open *OpenError
			require.ErrorAs(t, err, &open)
			assert.Equal(t, tt.code, open.Code)
			assert.Equal(t, "/fake/libcuda.so.1", open.Path)
			assert.NotEmpty(t, open.Hint)
			if tt.code != 0 {
				assert.ErrorIs(t, err, tt.code)
			}
			for _, part := range append(tt.text, "/fake/libcuda.so.1") {
				assert.Contains(t, err.Error(), part)
			}
			messages[tt.name] = err.Error()
		})
	}
	// Two reasons that read alike would not help anybody.
	owner := map[string]string{}
	for name, m := range messages {
		if name == "counts none" || name == "count fails" {
			continue // one state, seen at two places
		}
		assert.Empty(t, owner[m], "%q and %q give the same message", name, owner[m])
		owner[m] = name
	}
}

// TestRequiredSymbols takes each entry point away in turn.
func TestRequiredSymbols(t *testing.T) {
	for _, e := range entries {
		t.Run(e.name, func(t *testing.T) {
			f := newFake(t)
			f.absent[e.name] = true
			api, _, err := start(f.library())
			if !e.required {
				require.NoError(t, err)
				assert.Equal(t, []SymbolError{{e.name, cuapi.SymbolSince[e.name]}}, api.missing())
				return
			}
			require.ErrorIs(t, err, ErrDriverTooOld)
			require.ErrorIs(t, err, ErrSymbolMissing)
			var s *SymbolError
			require.ErrorAs(t, err, &s)
			assert.Equal(t, e.name, s.Name)
			assert.Equal(t, cuapi.SymbolSince[e.name], s.Since)
			assert.Zero(t, f.calls["cuInit"], "refused before any work")
		})
	}
}

// TestSymbolTable compares the table with the facts.
func TestSymbolTable(t *testing.T) {
	params := symbolFacts(t)
	names := map[string]bool{}
	for s, e := range entries {
		assert.NotEmpty(t, e.name, "entry %d", s)
		assert.Contains(t, params, e.name)
		assert.NotEmpty(t, cuapi.SymbolSince[e.name])
		assert.False(t, names[e.name], "%s twice", e.name)
		names[e.name] = true
		assert.LessOrEqual(t, len(params[e.name]), maxArgs)
	}
}

func rootWith(files ...string) fstest.MapFS {
	m := fstest.MapFS{}
	for _, f := range files {
		m[f] = &fstest.MapFile{Data: []byte("x"), Mode: fs.ModePerm}
	}
	return m
}

// TestMissingHint plays the machines on which no driver library is found.
func TestMissingHint(t *testing.T) {
	wsl := rootWith("dev/dxg")
	wsl["proc/version"] = &fstest.MapFile{Data: []byte("Linux version 5.15.0-Microsoft-standard-WSL2")}
	none := errors.New("no such file")
	tests := []struct {
		name     string
		root     fs.FS
		env      string // KUBERNETES_SERVICE_HOST
		err      error
		override string
		want     string
	}{
		{"bare", rootWith(), "", none, "", "install the NVIDIA driver; without a GPU use cuda.OpenEmulator"},
		{"module only", rootWith("dev/nvidia0"), "", none, "", "user-space library"},
		{"container without GPU", rootWith(".dockerenv"), "", none, "", "--gpus all"},
		{"podman without GPU", rootWith("run/.containerenv"), "", none, "", "--gpus all"},
		{"pod without GPU", rootWith(), "10.0.0.1", none, "", "--gpus all"},
		{"container without libraries", rootWith(".dockerenv", "dev/nvidiactl"), "", none, "", "NVIDIA_DRIVER_CAPABILITIES"},
		{"WSL", wsl, "", none, "", "in Windows, not in Linux"},
		{"empty file", rootWith(".dockerenv"), "", dl.ErrEmptyFile, "", "empty library file"},
		{"wrong machine", rootWith(), "", dl.ErrWrongMachine, "", "another architecture"},
		{"stub", rootWith(), "", dl.ErrLinkStub, "", "LD_LIBRARY_PATH"},
		{"relative", rootWith(), "", dl.ErrRelativePath, "x.so", "absolute path"},
		{"override", rootWith("dev/nvidia0"), "", none, "/x.so", "is tried: correct or unset it"},
		{"platform", rootWith(), "", dl.ErrUnsupportedPlatform, "", "linux/amd64"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := machine{root: tt.root, getenv: func(k string) string {
				return map[string]string{"KUBERNETES_SERVICE_HOST": tt.env}[k]
			}}
			assert.Contains(t, m.missingHint(tt.err, tt.override), tt.want)
		})
	}
}

func bareMachine(env map[string]string) machine {
	return machine{root: rootWith(), getenv: func(k string) string { return env[k] }}
}

// TestOpenLibrary checks where the library comes from and what is said when it
// does not come.
func TestOpenLibrary(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "libcuda.so.1")
	require.NoError(t, os.WriteFile(empty, nil, 0o644))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "stubs"), 0o755))
	stub := filepath.Join(dir, "stubs", "libcuda.so")
	require.NoError(t, os.WriteFile(stub, []byte("x"), 0o644))
	absent := filepath.Join(dir, "absent.so")

	tests := []struct {
		name   string
		option string
		env    string
		reason error
		tried  string
		text   string
	}{
		{"option, absent", absent, "", ErrDriverMissing, absent, "no such file"},
		{"environment, absent", "", absent, ErrDriverMissing, absent, "RAYMUX_LIBCUDA"},
		{"option wins", absent, stub, ErrDriverMissing, absent, "no such file"},
		{"empty", empty, "", ErrDriverMissing, empty, "0 bytes"},
		{"stub", "", stub, ErrStubLibrary, stub, "link-time stub"},
		{"relative", "libcuda.so.1", "", ErrDriverMissing, "libcuda.so.1", "absolute path"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if runtime.GOOS != "linux" {
				t.Skip("needs Linux: the causes are those of its loader")
			}
			_, err := openLibrary(newConfig([]Option{WithLibraryPath(tt.option)}), bareMachine(map[string]string{EnvLibrary: tt.env}))
			require.ErrorIs(t, err, tt.reason)
			var failed *dl.OpenError
			require.ErrorAs(t, err, &failed)
			require.Len(t, failed.Attempts, 1, "an override is the only candidate")
			assert.Equal(t, tt.tried, failed.Attempts[0].Path)
			assert.Contains(t, err.Error(), tt.text)
		})
	}
}

// named is an API that only knows its name.
type named struct {
	cuapi.API
	name string
}

func (n named) Name() string { return n.name }

// TestOptions checks that options keep their order and that nil changes
// nothing.
func TestOptions(t *testing.T) {
	wrap := func(s string) Option {
		return WithAPI(func(a cuapi.API) cuapi.API { return named{a, s + "(" + a.Name() + ")"} })
	}
	c := newConfig([]Option{WithAPI(nil), WithLogger(nil), wrap("ledger"), wrap("fault")})
	assert.NotNil(t, c.logger)
	assert.Equal(t, "fault(ledger(native))", c.wrap(named{name: "native"}).Name())
	assert.Nil(t, newConfig(nil).wrap)
}

// TestOpenMissing checks that a machine without the named driver gets an error
// and never an emulator.
func TestOpenMissing(t *testing.T) {
	d, err := Open(WithLibraryPath("/nowhere/libcuda.so.1"))
	assert.Nil(t, d)
	assert.ErrorIs(t, err, ErrDriverMissing)
}

// TestOpenErrorIsShort checks that the places that were searched are counted in
// the message, and listed only by the cause and by the report.
func TestOpenErrorIsShort(t *testing.T) {
	names := []string{"libraymuxabsent.so.1", "libraymuxabsent.so"}
	_, cause := dl.Open(names, dl.Options{Dirs: []string{"/nowhere/lib", "/nowhere/lib64"}})
	err := &OpenError{Reason: ErrDriverMissing, Cause: cause, Hint: "do this"}
	assert.EqualError(t, err, "cuda: no NVIDIA driver found: tried libraymuxabsent.so.1 and libraymuxabsent.so in 6 places (hint: do this)")
	var load *dl.OpenError
	require.ErrorAs(t, err, &load)
	require.Len(t, load.Attempts, 6)
	report := Report{Problem: err, Attempts: load.Attempts}.String()
	for _, a := range load.Attempts {
		assert.Contains(t, report, "tried         "+a.Path+": ")
		assert.Equal(t, 1, strings.Count(report, " "+a.Path+": "), "each path is named once")
	}
}

// TestLibraryPlaces fixes the names and folders per platform.
func TestLibraryPlaces(t *testing.T) {
	assert.Equal(t, []string{"libcuda.so.1", "libcuda.so"}, libraryNames("linux"))
	assert.Equal(t, []string{"nvcuda.dll"}, libraryNames("windows"))
	assert.Empty(t, libraryDirs("windows", "amd64"))
	assert.Equal(t, []string{"/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/local/nvidia/lib64", "/usr/lib/wsl/lib", "/run/opengl-driver/lib"}, libraryDirs("linux", "arm64"))
	assert.Equal(t, "/usr/lib/x86_64-linux-gnu", libraryDirs("linux", "amd64")[0])
}

// TestProbe checks the report for a driver, and for a machine without one.
func TestProbe(t *testing.T) {
	f := newFake(t)
	f.absent["cuMemAllocAsync"] = true
	f.on["cuDeviceGetCount"] = func(a []uintptr) { writeAt(a[0], int32(2)) }
	f.on["cuDeviceGet"] = func(a []uintptr) { writeAt(a[0], int32(a[1])) }
	f.on["cuDeviceGetName"] = func(a []uintptr) { writeAt(a[0], nDeviceName) }
	f.on["cuDeviceGetAttribute"] = func(a []uintptr) {
		writeAt(a[0], map[uint32]int32{75: 9, 76: 1}[uint32(a[1])]) // major and minor capability
	}
	f.on["cuDeviceTotalMem_v2"] = func(a []uintptr) {
		writeAt(a[0], uint64(3<<30))
	}
	r := Report{Platform: "linux/amd64"}
	r.ask(f.library())
	require.NoError(t, r.Problem)
	assert.True(t, r.OK())
	assert.Equal(t, []SymbolError{{"cuMemAllocAsync", "11.2"}}, r.Missing)
	require.Len(t, r.Devices, 2)
	assert.Equal(t, DeviceReport{Ordinal: 1, Name: "Fake GPU", Major: 9, Minor: 1, TotalMem: 3 << 30}, r.Devices[1])
	assert.Contains(t, r.String(), "1: Fake GPU, compute capability 9.1, 3072 MiB")
	assert.Contains(t, r.String(), "cuMemAllocAsync (CUDA 11.2)")

	// A query that fails is reported with the device and stops nothing.
	f.results["cuDeviceGetName"] = cuapi.ErrorUnknown
	r = Report{}
	r.ask(f.library())
	assert.True(t, r.OK())
	assert.ErrorIs(t, r.Devices[0].Err, cuapi.ErrorUnknown)
	assert.Equal(t, 9, r.Devices[0].Major)

	// A driver that does not start is still described.
	f.results["cuInit"] = cuapi.ErrorSystemDriverMismatch
	r = Report{}
	r.ask(f.library())
	assert.False(t, r.OK())
	assert.Equal(t, MinDriverVersion, r.Version)
	assert.Contains(t, r.String(), "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH")

	r = Probe(WithLibraryPath("/nowhere/libcuda.so.1"))
	assert.ErrorIs(t, r.Problem, ErrDriverMissing)
	require.Len(t, r.Attempts, 1)
	assert.Contains(t, r.String(), "problem")
	assert.Contains(t, r.String(), "tried         /nowhere/libcuda.so.1: no such file")
}
