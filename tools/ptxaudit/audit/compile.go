package audit

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/raymux/raymux/ptx/manifest"
)

// Program is one translation unit with everything that the compiler may see.
type Program struct {
	// Name is the file name that the compiler is told.
	Name    string
	Source  string
	Headers map[string]string // by the name that an #include uses
	Options []string
}

// Compiler turns programs into PTX, in order. Toolchain names the libraries
// before anything is compiled.
type Compiler interface {
	Toolchain() (library, builtins string) // SHA-256 digests
	Compile(programs []Program) ([]string, error)
}

// blob is a compiled module.
type blob struct {
	path string
	ptx  string
}

// produce compiles every module of the policy and states what came from what.
func (t tree) produce(p *policy, cc Compiler) (*manifest.Manifest, []blob, error) {
	m := &manifest.Manifest{Schema: manifest.Schema, External: []manifest.External{}, Modules: []manifest.Module{}}
	m.Toolchain.Library, m.Toolchain.Builtins = cc.Toolchain()
	m.Toolchain.NVRTC = p.Toolchain.NVRTC
	m.Toolchain.OptixHeaders, m.Toolchain.CUDAHeaders = p.Toolchain.OptixHeaders, p.Toolchain.CUDAHeaders

	var programs []Program
	modules := slices.Clone(p.Modules)
	slices.SortFunc(modules, func(a, b policyModule) int { return strings.Compare(a.Name, b.Name) })
	external := map[string]manifest.External{}
	for _, pm := range modules {
		mod, c, bad, err := t.describe(p, pm)
		if err != nil {
			return nil, nil, err
		}
		if len(bad) > 0 {
			return nil, nil, errors.New(bad[0].String())
		}
		for _, e := range p.External {
			if slices.Contains(c.external, e.Path) {
				external[e.Path] = manifest.External{Origin: e.Origin, Path: e.Path, SHA256: digest(c.texts[e.Path])}
			}
		}
		text := c.texts[c.root]
		programs = append(programs, Program{mod.ProgramName, text, c.headers, mod.Options})
		m.Modules = append(m.Modules, *mod)
	}
	for _, file := range slices.Sorted(maps.Keys(external)) {
		m.External = append(m.External, external[file])
	}

	texts, err := cc.Compile(programs)
	if err != nil {
		return nil, nil, err
	}
	blobs := make([]blob, len(texts))
	layouts := make([]Program, len(texts))
	for i := range m.Modules {
		mod := &m.Modules[i]
		blobs[i] = blob{blobPath(mod.Name), texts[i]}
		if err := describePTX(mod, texts[i]); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", mod.Source, err)
		}
		c, _, err := t.closure(p, mod.Source)
		if err != nil {
			return nil, nil, err
		}
		if err := describeParams(mod, newCStructs(c)); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", mod.Source, err)
		}
		layouts[i] = programs[i]
		layouts[i].Source = layoutProgram(programs[i].Source, mod.Params)
	}
	if texts, err = cc.Compile(layouts); err != nil {
		return nil, nil, fmt.Errorf("layout of the parameter structs: %w", err)
	}
	for i := range m.Modules {
		if err := readLayout(texts[i], m.Modules[i].Params); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", m.Modules[i].Source, err)
		}
	}
	return m, blobs, nil
}

func blobPath(module string) string { return path.Join(ptxDir, module+".ptx") }

// describe states what a module is made from.
func (t tree) describe(p *policy, pm policyModule) (*manifest.Module, *closure, findings, error) {
	c, bad, err := t.closure(p, pm.Source)
	if err != nil {
		return nil, nil, nil, err
	}
	m := &manifest.Module{Name: pm.Name, Source: pm.Source, ProgramName: path.Base(pm.Source), Options: p.options(pm)}
	for _, file := range c.paths() {
		text := c.texts[file]
		m.Sources = append(m.Sources, manifest.Source{Path: file, SHA256: digest(text), Bytes: len(text)})
	}
	return m, c, bad, nil
}

// describePTX states what a module's text holds.
func describePTX(m *manifest.Module, text string) error {
	p, err := parsePTX(text)
	if err != nil {
		return err
	}
	m.PTX = manifest.PTX{Path: blobPath(m.Name), SHA256: digest(text), Bytes: len(text),
		ISAVersion: p.isaVersion, Target: p.target, AddressSize: p.addressSize}
	m.Imports = p.imports()
	m.Entries = []string{}
	for _, e := range p.entries() {
		m.Entries = append(m.Entries, e.name)
	}
	return nil
}

// describeParams names the parameter structs and their fields.
func describeParams(m *manifest.Module, s cStructs) error {
	m.Params = []manifest.Params{}
	for _, entry := range m.Entries {
		p := manifest.Params{Entry: entry, Fields: []manifest.Field{}}
		var err error
		if p.Struct, err = s.param(entry); err != nil {
			return err
		}
		if p.Struct != "" {
			names, err := s.fields(p.Struct)
			if err != nil {
				return err
			}
			for _, name := range names {
				p.Fields = append(p.Fields, manifest.Field{Name: name})
			}
		}
		m.Params = append(m.Params, p)
	}
	return nil
}

// Update compiles every module and writes blobs and manifest. It returns the
// names of the modules.
func Update(root string, cc Compiler) ([]string, error) {
	t := tree(root)
	p, err := t.policy()
	if err != nil {
		return nil, err
	}
	if bad := p.check(); len(bad) > 0 {
		return nil, errors.New(bad[0].String())
	}
	m, blobs, err := t.produce(p, cc)
	if err != nil {
		return nil, err
	}
	text, err := m.Encode()
	if err != nil {
		return nil, err
	}
	old, err := t.blobs()
	if err != nil {
		return nil, err
	}
	var names []string
	for i, b := range blobs {
		if err := t.write(b.path, []byte(b.ptx)); err != nil {
			return nil, err
		}
		names = append(names, m.Modules[i].Name)
	}
	for _, file := range old {
		if !slices.ContainsFunc(blobs, func(b blob) bool { return b.path == file }) {
			if err := t.remove(file); err != nil {
				return nil, err
			}
		}
	}
	return names, t.write(manifestPath, text)
}

// Rebuild compiles every module again and compares: the compiler's libraries
// first, then each PTX byte for byte, then the manifest.
func Rebuild(root string, cc Compiler) ([]Finding, error) {
	t := tree(root)
	p, err := t.policy()
	if err != nil {
		return nil, err
	}
	committed, err := t.read(manifestPath)
	if err != nil {
		return nil, err
	}
	m, err := manifest.Parse(committed)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", manifestPath, err)
	}
	var out findings
	library, builtins := cc.Toolchain()
	if library != m.Toolchain.Library || builtins != m.Toolchain.Builtins {
		out.add(manifestPath, "toolchain: libnvrtc %s and builtins %s recorded, found %s and %s; nothing was rebuilt",
			m.Toolchain.Library, m.Toolchain.Builtins, library, builtins)
		return out, nil
	}
	again, blobs, err := t.produce(p, cc)
	if err != nil {
		return nil, err
	}
	for _, b := range blobs {
		have, err := t.read(b.path)
		switch {
		case err != nil:
			out.add(b.path, "missing: %v", err)
		case string(have) != b.ptx:
			out.add(b.path, "not reproduced: line %d differs", firstDifference(string(have), b.ptx))
		}
	}
	text, err := again.Encode()
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(text, committed) {
		out.add(manifestPath, "not reproduced: line %d differs", firstDifference(string(committed), string(text)))
	}
	return out, nil
}

func firstDifference(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return 1 + strings.Count(a[:n], "\n")
}
