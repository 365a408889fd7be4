package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/raymux/raymux/tools/ptxaudit/audit"
	"github.com/raymux/raymux/tools/ptxaudit/internal/protocol"
)

const (
	libraryFile  = "libnvrtc.so.12"
	builtinsFile = "libnvrtc-builtins.so.12.0"
	worker       = "github.com/raymux/raymux/tools/ptxaudit/nvrtc"
)

// errNoCompiler is returned by locate when no NVRTC is found.
var errNoCompiler = errors.New("no NVRTC found")

// toolchain is the compiler in its own process (package nvrtc). It runs with an
// empty environment in an empty folder, because NVRTC also takes headers from
// the working folder.
type toolchain struct {
	root             string // repository whose compiler process is built
	dir              string // where the libraries lie
	library, builtin string // digests
}

// locate finds the compiler's libraries: the folder given, else the one in
// RAYMUX_NVRTC, else an installed Python wheel. A folder that was asked for by
// name is the only one tried.
func locate(root, dir string) (*toolchain, error) {
	if dir == "" {
		dir = os.Getenv("RAYMUX_NVRTC")
	}
	candidates := []string{dir}
	if dir == "" {
		candidates = wheelFolders(root)
	}
	for _, d := range candidates {
		library, err1 := fileDigest(filepath.Join(d, libraryFile))
		builtins, err2 := fileDigest(filepath.Join(d, builtinsFile))
		if err1 == nil && err2 == nil {
			absRoot, err1 := filepath.Abs(root)
			absDir, err2 := filepath.Abs(d)
			return &toolchain{absRoot, absDir, library, builtins}, errors.Join(err1, err2)
		}
		if dir != "" {
			return nil, fmt.Errorf("%w in %s: %w", errNoCompiler, dir, errors.Join(err1, err2))
		}
	}
	return nil, fmt.Errorf("%w: looked for %s in %s", errNoCompiler, libraryFile, strings.Join(candidates, ", "))
}

// wheelFolders lists where Python keeps the wheel's libraries: a virtual
// environment in the repository, then the interpreter on the path.
func wheelFolders(root string) []string {
	const inside = "nvidia/cuda_nvrtc/lib"
	list, _ := filepath.Glob(filepath.Join(root, ".venv", "lib*", "python3*", "site-packages", inside))
	const script = "import site, sys; print('\\n'.join(site.getsitepackages() + [site.getusersitepackages()]))"
	for _, python := range []string{"python3", "python"} {
		out, err := exec.Command(python, "-c", script).Output()
		if err != nil {
			continue
		}
		for _, p := range strings.Fields(string(out)) {
			list = append(list, filepath.Join(p, inside))
		}
		break
	}
	return list
}

func fileDigest(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Toolchain returns the digests of the two libraries.
func (t *toolchain) Toolchain() (library, builtins string) { return t.library, t.builtin }

// Compile builds and runs the compiler process. The first program that fails
// makes the whole call fail, with the compiler's log.
func (t *toolchain) Compile(programs []audit.Program) ([]string, error) {
	req := protocol.Request{Library: filepath.Join(t.dir, libraryFile), Builtins: filepath.Join(t.dir, builtinsFile)}
	for _, p := range programs {
		req.Programs = append(req.Programs, protocol.Program(p))
	}
	resp, err := t.exchange(req)
	if err != nil {
		return nil, err
	}
	if resp.Error != "" {
		return nil, errors.New(resp.Error)
	}
	if len(resp.Results) != len(programs) {
		return nil, fmt.Errorf("compiler process: %d results for %d programs", len(resp.Results), len(programs))
	}
	texts := make([]string, len(programs))
	for i, r := range resp.Results {
		if r.Error != "" {
			return nil, fmt.Errorf("%s: %s\n%s", programs[i].Name, r.Error, strings.TrimSpace(r.Log))
		}
		texts[i] = r.PTX
	}
	return texts, nil
}

func (t *toolchain) exchange(req protocol.Request) (resp protocol.Response, err error) {
	tmp, err := os.MkdirTemp("", "ptxaudit-")
	if err != nil {
		return resp, err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	program, empty := filepath.Join(tmp, "nvrtc"), filepath.Join(tmp, "empty")
	if err := os.Mkdir(empty, 0o700); err != nil {
		return resp, err
	}
	build := exec.Command("go", "build", "-o", program, worker)
	build.Dir, build.Env = t.root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return resp, fmt.Errorf("cannot build the compiler process %s: %w\n%s", worker, err, out)
	}
	in, err := json.Marshal(req)
	if err != nil {
		return resp, err
	}
	run := exec.Command(program)
	run.Dir, run.Env, run.Stdin = empty, []string{}, bytes.NewReader(in)
	var stderr bytes.Buffer
	run.Stderr = &stderr
	out, err := run.Output()
	if err != nil {
		return resp, fmt.Errorf("compiler process: %w\n%s", err, stderr.String())
	}
	return resp, json.Unmarshal(out, &resp)
}
