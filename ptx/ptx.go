package ptx

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/raymux/raymux/ptx/manifest"
)

//go:embed *.ptx manifest.json
var files embed.FS

// committed reads the embedded set on first use.
var committed = sync.OnceValues(func() (*set, error) { return load(files) })

// Module returns the PTX text of a module. The text is verified against the
// manifest; the error is an *UnknownModuleError or a *DigestError. The caller
// owns the slice.
func Module(name string) ([]byte, error) {
	s, err := committed()
	if err != nil {
		return nil, err
	}
	return s.module(name)
}

// Names lists the modules, sorted. It is empty if the manifest cannot be read,
// which Module reports.
func Names() []string {
	s, err := committed()
	if err != nil {
		return nil
	}
	return s.names()
}

// Entries lists the kernels that a module exports, sorted; nil for an unknown
// module.
func Entries(module string) []string {
	s, err := committed()
	if err != nil {
		return nil
	}
	if m := s.manifest.Module(module); m != nil {
		return slices.Clone(m.Entries)
	}
	return nil
}

// OptiX reports whether a module holds device programs of OptiX, which OptiX
// compiles and the driver's own loader refuses.
func OptiX(module string) bool {
	s, err := committed()
	if err != nil {
		return false
	}
	m := s.manifest.Module(module)
	return m != nil && slices.ContainsFunc(m.Imports, func(name string) bool { return strings.HasPrefix(name, "_optix_") })
}

// ManifestDigest is the SHA-256 of the manifest in hexadecimal, one number
// that identifies all kernels of a build. It is empty if the manifest cannot
// be read, which Module reports.
func ManifestDigest() string {
	s, err := committed()
	if err != nil {
		return ""
	}
	return s.digest
}

// UnknownModuleError says that no module has the name.
type UnknownModuleError struct {
	Name  string
	Known []string
}

func (e *UnknownModuleError) Error() string {
	return fmt.Sprintf("ptx: no module %q; the modules are %q", e.Name, e.Known)
}

// DigestError says that a module's text is not the one that the manifest
// names.
type DigestError struct {
	Module     string
	Want, Have string // SHA-256 in hexadecimal
}

func (e *DigestError) Error() string {
	return fmt.Sprintf("ptx: module %s has SHA-256 %s, the manifest says %s; restore ptx/ and rebuild the program "+
		"(go run ./tools/ptxaudit check names the file)", e.Module, e.Have, e.Want)
}

// set is a manifest with its texts.
type set struct {
	fsys     fs.FS
	manifest *manifest.Manifest
	digest   string
}

func load(fsys fs.FS) (*set, error) {
	data, err := fs.ReadFile(fsys, "manifest.json")
	if err != nil {
		return nil, fmt.Errorf("ptx: %w", err)
	}
	m, err := manifest.Parse(data)
	if err != nil {
		return nil, fmt.Errorf("ptx: %w", err)
	}
	return &set{fsys, m, digest(data)}, nil
}

func (s *set) names() []string {
	list := make([]string, len(s.manifest.Modules))
	for i, m := range s.manifest.Modules {
		list[i] = m.Name
	}
	slices.Sort(list)
	return list
}

// module hashes the text on every call: a module is loaded once per device, so
// remembering the verdict would buy nothing.
func (s *set) module(name string) ([]byte, error) {
	m := s.manifest.Module(name)
	if m == nil {
		return nil, &UnknownModuleError{name, s.names()}
	}
	text, err := fs.ReadFile(s.fsys, path.Base(m.PTX.Path))
	if err != nil {
		return nil, fmt.Errorf("ptx: module %s: %w", name, err)
	}
	if have := digest(text); have != m.PTX.SHA256 {
		return nil, &DigestError{name, m.PTX.SHA256, have}
	}
	return text, nil
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
