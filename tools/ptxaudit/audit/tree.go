package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
)

const (
	ptxDir       = "ptx"
	kernelDir    = "ptx/kernels"
	policyPath   = "ptx/policy.json"
	manifestPath = "ptx/manifest.json"
)

// Finding is one difference, with the file that shows it relative to the root
// of the repository.
type Finding struct {
	File string
	Text string
}

func (f Finding) String() string { return f.File + ": " + f.Text }

// findings collects differences.
type findings []Finding

func (f *findings) add(file, format string, args ...any) {
	*f = append(*f, Finding{file, fmt.Sprintf(format, args...)})
}

// tree is a checkout; paths are slash-separated and relative to it.
type tree string

func (t tree) file(name string) string { return filepath.Join(string(t), filepath.FromSlash(name)) }

// read accepts regular files only, which are all that git and the embedding of
// modules know: a link may show other content elsewhere, and a pipe never ends.
func (t tree) read(name string) ([]byte, error) {
	info, err := os.Lstat(t.file(name))
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("not a regular file")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	data, err := os.ReadFile(t.file(name))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return data, nil
}

// readText reads a source with LF line ends, the form that is hashed and
// compiled, so that a checkout that converts line ends changes nothing.
func (t tree) readText(name string) (string, error) {
	data, err := t.read(name)
	return string(bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))), err
}

// blobs lists the committed modules.
func (t tree) blobs() ([]string, error) {
	entries, err := os.ReadDir(t.file(ptxDir))
	if err != nil {
		return nil, err
	}
	var list []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".ptx") {
			list = append(list, path.Join(ptxDir, e.Name()))
		}
	}
	return list, nil
}

// write replaces a file in one step, so that an interrupted update leaves
// whole files.
func (t tree) write(name string, data []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(t.file(name)), ".ptxaudit-*")
	if err != nil {
		return err
	}
	_, err = tmp.Write(data)
	if closeErr := tmp.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Chmod(tmp.Name(), 0o644)
	}
	if err == nil {
		err = os.Rename(tmp.Name(), t.file(name))
	}
	if err != nil {
		_ = os.Remove(tmp.Name())
	}
	return err
}

func digest[T string | []byte](data T) string {
	sum := sha256.Sum256([]byte(data))
	return hex.EncodeToString(sum[:])
}

func (t tree) remove(name string) error { return os.Remove(t.file(name)) }
