//go:build linux && (amd64 || arm64) && !nocuda

package dl

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// libc opens a library that every system with a dynamic loader has.
func libc(t *testing.T) *Library {
	t.Helper()
	lib, err := Open([]string{"libc.so.6"}, Options{Symbol: "abs"})
	require.NoError(t, err)
	return lib
}

func TestOpenAndCall(t *testing.T) {
	lib := libc(t)
	assert.True(t, filepath.IsAbs(lib.Path()), "the file behind the name: %s", lib.Path())
	assert.Contains(t, filepath.Base(lib.Path()), "libc")
	abs, ok := lib.Lookup("abs")
	require.True(t, ok)
	var minus int32 = -41
	assert.Equal(t, int32(41), int32(Call(abs, uintptr(uint32(minus)))))
	_, ok = lib.Lookup("no_such_function_in_any_libc")
	assert.False(t, ok)
}

// TestCallback checks the order of more words than registers.
func TestCallback(t *testing.T) {
	fn := NewCallback(func(a, b, c, d, e, f, g, h, i, j, k uintptr) uintptr {
		v := uintptr(0)
		for _, x := range []uintptr{a, b, c, d, e, f, g, h, i, j, k} {
			v = v*12 + x
		}
		return v
	})
	want := uintptr(0)
	args := make([]uintptr, 11)
	for i := range args {
		args[i] = uintptr(i + 1)
		want = want*12 + args[i]
	}
	assert.Equal(t, want, Call(fn, args...))
}

func TestCallAllocatesNothing(t *testing.T) {
	abs, _ := libc(t).Lookup("abs")
	args := make([]uintptr, 11)
	assert.Zero(t, testing.AllocsPerRun(200, func() { Call(abs, args...) }))
}

// elfHead is the start of an ELF file of a class and machine.
func elfHead(class byte, machine uint16) []byte {
	b := make([]byte, 64)
	copy(b, "\x7fELF")
	b[4], b[5], b[6] = class, 1, 1
	binary.LittleEndian.PutUint16(b[16:], 3) // shared object
	binary.LittleEndian.PutUint16(b[18:], machine)
	return b
}

// TestUnusableFiles checks the cause given for each file that cannot work.
func TestUnusableFiles(t *testing.T) {
	own := map[string]uint16{"amd64": 62, "arm64": 183}[runtime.GOARCH]
	other := map[string]uint16{"amd64": 183, "arm64": 62}[runtime.GOARCH]
	dir := t.TempDir()
	put := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, data, 0o644))
		return path
	}
	link := filepath.Join(dir, "link.so")
	require.NoError(t, os.Symlink(put("stubs/libcuda.so", elfHead(2, own)), link))
	dangling := filepath.Join(dir, "dangling.so")
	require.NoError(t, os.Symlink(filepath.Join(dir, "gone"), dangling))
	relative := "testdata/libcuda.so"

	tests := []struct {
		name, path string
		cause      error
		text       string
	}{
		{"absent", filepath.Join(dir, "absent.so"), os.ErrNotExist, "no such file"},
		{"dangling link", dangling, os.ErrNotExist, "no such file"},
		{"empty", put("empty.so", nil), ErrEmptyFile, "0 bytes"},
		{"folder", dir, ErrNotLibrary, "folder"},
		{"short", put("short.so", []byte("\x7fELF")), ErrNotLibrary, "4 bytes"},
		{"text", put("text.so", []byte(strings.Repeat("INPUT(libc)", 9))), ErrNotLibrary, "not a shared library"},
		{"32 bit", put("32.so", elfHead(1, own)), ErrWrongMachine, "ELFCLASS32"},
		{"other machine", put("other.so", elfHead(2, other)), ErrWrongMachine, "EM_"},
		{"stub", filepath.Join(dir, "stubs", "libcuda.so"), ErrLinkStub, "stub"},
		{"link to a stub", link, ErrLinkStub, "stub"},
		{"relative", relative, ErrRelativePath, "not absolute"},
		{"damaged", put("damaged.so", elfHead(2, own)), nil, "damaged.so"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Open([]string{"libx.so"}, Options{Override: tt.path})
			var failed *OpenError
			require.ErrorAs(t, err, &failed)
			require.Len(t, failed.Attempts, 1)
			assert.Equal(t, tt.path, failed.Attempts[0].Path)
			assert.Contains(t, failed.Attempts[0].Cause.Error(), tt.text)
			if tt.cause != nil {
				assert.ErrorIs(t, err, tt.cause)
			}
		})
	}
}

// copyLibrary puts a copy of a small system library into dir.
func copyLibrary(t *testing.T, dir, name string) string {
	t.Helper()
	lib, err := Open([]string{"libm.so.6"}, Options{Symbol: "cbrt"})
	require.NoError(t, err)
	data, err := os.ReadFile(lib.Path())
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(dir, 0o755))
	path := filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(path, data, 0o755))
	return path
}

// TestOrder checks that bare names come first, that unusable files are passed
// over, and that every attempt is in the error.
func TestOrder(t *testing.T) {
	bad, good := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(bad, "libraymuxtest.so.1"), nil, 0o644))
	want := copyLibrary(t, good, "libraymuxtest.so.1")
	names := []string{"libraymuxtest.so.1", "libraymuxtest.so"}

	lib, err := Open(names, Options{Dirs: []string{bad, good}, Symbol: "cbrt"})
	require.NoError(t, err)
	assert.Equal(t, want, lib.Path())

	_, err = Open(names, Options{Dirs: []string{bad}, Symbol: "cbrt"})
	var failed *OpenError
	require.ErrorAs(t, err, &failed)
	var tried []string
	for _, a := range failed.Attempts {
		tried = append(tried, a.Path)
		assert.Contains(t, err.Error(), a.String())
		assert.Equal(t, 1, strings.Count(err.Error(), " "+a.Path+": "), "each path is named once")
	}
	assert.Equal(t, []string{"libraymuxtest.so.1", "libraymuxtest.so",
		filepath.Join(bad, "libraymuxtest.so.1"), filepath.Join(bad, "libraymuxtest.so")}, tried)
	assert.ErrorIs(t, err, ErrEmptyFile)
	assert.Contains(t, err.Error(), "cannot load libraymuxtest.so.1 or libraymuxtest.so; tried")
	assert.Equal(t, "tried libraymuxtest.so.1 and libraymuxtest.so in 4 places, found "+
		filepath.Join(bad, "libraymuxtest.so.1")+": the file has 0 bytes", failed.Summary())

	_, err = Open(names, Options{Dirs: []string{t.TempDir()}, Symbol: "cbrt"})
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, "tried libraymuxtest.so.1 and libraymuxtest.so in 4 places", failed.Summary())

	_, err = Open(names, Options{Dirs: []string{good}, Symbol: "cuInit"})
	assert.ErrorIs(t, err, ErrNoSymbol)
}

// TestStubBehindBareName checks that a stub which the system loader finds by
// its bare name is refused. The search path is read when a process starts, so
// the open runs in a child.
func TestStubBehindBareName(t *testing.T) {
	const child = "RAYMUX_TEST_STUB_CHILD"
	if os.Getenv(child) != "" {
		_, err := Open([]string{"libraymuxstub.so"}, Options{Symbol: "cbrt"})
		fmt.Println("child:", err)
		return
	}
	for folder, want := range map[string]string{"stubs": ErrLinkStub.Error(), "lib64": "child: <nil>"} {
		dir := filepath.Join(t.TempDir(), folder)
		copyLibrary(t, dir, "libraymuxstub.so")
		cmd := exec.Command(os.Args[0], "-test.run=^TestStubBehindBareName$")
		cmd.Env = append(os.Environ(), child+"=1", "LD_LIBRARY_PATH="+dir)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		assert.Contains(t, string(out), want)
	}
}

func TestMappedFile(t *testing.T) {
	maps := "1000-2000 r-xp 00000000 00:00 0 \n" +
		"7f00-8000 r--p 00000000 08:01 12    /usr/lib/lib with space.so\n" +
		"8000-9000 r-xp 00001000 08:01 12    /usr/lib/b.so\nbroken\n"
	for addr, want := range map[uintptr]string{
		0x7eff: "", 0x7f00: "/usr/lib/lib with space.so", 0x7fff: "/usr/lib/lib with space.so", 0x8000: "/usr/lib/b.so", 0x9000: "", 0x1000: "",
	} {
		assert.Equal(t, want, mappedFile(strings.NewReader(maps), addr), "%x", addr)
	}
}

// TestConcurrentFailures opens absent libraries from many goroutines. Each
// error must carry the message of its own call.
func TestConcurrentFailures(t *testing.T) {
	const goroutines, opens = 16, 1500
	var empty, wrong atomic.Int64
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for i := range opens {
				name := fmt.Sprintf("libabsent-%d-%d.so", g, i)
				_, err := Open([]string{name}, Options{})
				var failed *OpenError
				if !errors.As(err, &failed) {
					wrong.Add(1)
					continue
				}
				switch text := failed.Attempts[0].Cause.Error(); {
				case text == "":
					empty.Add(1)
				case !strings.Contains(text, name):
					wrong.Add(1)
				}
			}
		})
	}
	wg.Wait()
	assert.Zero(t, empty.Load(), "empty messages of %d", goroutines*opens)
	assert.Zero(t, wrong.Load(), "wrong messages of %d", goroutines*opens)
}

// TestPrivileged checks who may name a library by the environment.
func TestPrivileged(t *testing.T) {
	assert.True(t, privileged([][2]uintptr{{3, 9}, {secureKey, 1}}, nil))
	assert.False(t, privileged([][2]uintptr{{3, 1}, {secureKey, 0}}, nil))
	assert.False(t, privileged(nil, nil))
	assert.Equal(t, os.Getuid() != os.Geteuid() || os.Getgid() != os.Getegid(), privileged(nil, os.ErrNotExist))
	t.Setenv("RAYMUX_TEST_LIBRARY", "/a/b.so")
	assert.Equal(t, "/a/b.so", Getenv("RAYMUX_TEST_LIBRARY"))
}
