package audit

import (
	"bytes"
	"slices"
	"strings"

	"github.com/raymux/raymux/ptx/manifest"
)

// Check compares policy, manifest, sources, modules and Go launches with each
// other and returns the number of modules with every difference. The error
// tells that the records could not be read at all.
func Check(root string) (modules int, found []Finding, err error) {
	t := tree(root)
	p, err := t.policy()
	if err != nil {
		return 0, nil, err
	}
	data, err := t.read(manifestPath)
	if err != nil {
		return 0, nil, err
	}
	m, err := manifest.Parse(data)
	if err != nil {
		return 0, nil, err
	}
	out := p.check()
	if text, err := m.Encode(); err != nil || !bytes.Equal(text, bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))) {
		out.add(manifestPath, "not in the form that ptxaudit update writes: edited by hand")
	}
	out = append(out, checkToolchain(p, m)...)
	out = append(out, checkModuleLists(p, m)...)

	external := map[string]bool{}
	for _, pm := range p.Modules {
		mod := m.Module(pm.Name)
		if mod == nil {
			continue // reported by checkModuleLists
		}
		out = append(out, t.checkSources(p, m, pm, mod, external)...)
		out = append(out, t.checkBlob(p, pm, mod)...)
	}
	for _, e := range m.External {
		if !external[e.Path] {
			out.add(e.Path, "closure changed: recorded as an external header, and no module includes it")
		}
	}
	out = append(out, t.checkOrphans(m)...)
	scan, err := t.scanOptions()
	if err != nil {
		return 0, nil, err
	}
	out = append(out, scan...)
	table, err := t.checkLaunches(m)
	if err != nil {
		return 0, nil, err
	}
	out = append(out, table...)
	slices.SortStableFunc(out, func(a, b Finding) int { return strings.Compare(a.File, b.File) })
	return len(m.Modules), out, nil
}

func checkToolchain(p *policy, m *manifest.Manifest) (out findings) {
	t := m.Toolchain
	for _, v := range []struct{ what, have, want string }{
		{"nvrtc", t.NVRTC, p.Toolchain.NVRTC},
		{"optix_headers", t.OptixHeaders, p.Toolchain.OptixHeaders},
		{"cuda_headers", t.CUDAHeaders, p.Toolchain.CUDAHeaders},
	} {
		if v.have != v.want {
			out.add(manifestPath, "toolchain: %s is %q, the policy declares %q", v.what, v.have, v.want)
		}
	}
	if len(t.Library) != 64 || len(t.Builtins) != 64 {
		out.add(manifestPath, "toolchain: the digests of libnvrtc and its builtins are not recorded")
	}
	return out
}

// checkModuleLists compares the sets of modules. Order is part of the
// manifest's one form.
func checkModuleLists(p *policy, m *manifest.Manifest) (out findings) {
	for _, pm := range p.Modules {
		if m.Module(pm.Name) == nil {
			out.add(manifestPath, "module %s of the policy is missing: run ptxaudit update", pm.Name)
		}
	}
	for i, mod := range m.Modules {
		if !slices.ContainsFunc(p.Modules, func(pm policyModule) bool { return pm.Name == mod.Name }) {
			out.add(manifestPath, "module %s is not declared in %s", mod.Name, policyPath)
		}
		if i > 0 && m.Modules[i-1].Name >= mod.Name {
			out.add(manifestPath, "module %s is out of order or listed twice", mod.Name)
		}
	}
	return out
}

// checkSources compares a module's closure, as the files are now, with the
// record.
func (t tree) checkSources(p *policy, all *manifest.Manifest, pm policyModule, mod *manifest.Module, external map[string]bool) (out findings) {
	now, c, bad, err := t.describe(p, pm)
	if err != nil {
		out.add(pm.Source, "module %s: closure cannot be read: %v", pm.Name, err)
		return out
	}
	out = append(out, bad...)
	if now.Source != mod.Source || now.ProgramName != mod.ProgramName {
		out.add(manifestPath, "module %s: source %s compiled as %q, expected %s as %q",
			mod.Name, mod.Source, mod.ProgramName, now.Source, now.ProgramName)
	}
	if !slices.Equal(now.Options, mod.Options) {
		out.add(manifestPath, "module %s: option vector %q differs from policy %q", mod.Name, mod.Options, now.Options)
	}
	was := map[string]manifest.Source{}
	for _, s := range mod.Sources {
		was[s.Path] = s
	}
	for _, s := range now.Sources {
		old, ok := was[s.Path]
		delete(was, s.Path)
		switch {
		case !ok:
			out.add(s.Path, "module %s: closure changed: the file is now included", mod.Name)
		case old.SHA256 != s.SHA256:
			out.add(s.Path, "module %s: stale: the file changed after the module was compiled", mod.Name)
		case old.Bytes != s.Bytes:
			out.add(manifestPath, "module %s: %s has %d bytes, recorded %d", mod.Name, s.Path, s.Bytes, old.Bytes)
		}
	}
	for file := range was {
		out.add(file, "module %s: closure changed: the file is no longer included", mod.Name)
	}
	out = append(out, checkStructs(mod, newCStructs(c))...)
	for _, file := range c.external {
		external[file] = true
		ok := slices.ContainsFunc(all.External, func(e manifest.External) bool {
			return e.Path == file && e.SHA256 == digest(c.texts[file])
		})
		if !ok {
			out.add(file, "module %s: stale: external header differs from the record", mod.Name)
		}
	}
	return out
}

// checkStructs compares the recorded parameter structs with the sources, by
// name; rebuild compares their layout too.
func checkStructs(mod *manifest.Module, s cStructs) (out findings) {
	now := &manifest.Module{Entries: mod.Entries}
	if err := describeParams(now, s); err != nil {
		out.add(mod.Source, "module %s: %v", mod.Name, err)
		return out
	}
	names := func(p manifest.Params) string {
		list := []string{p.Entry, p.Struct}
		for _, f := range p.Fields {
			list = append(list, f.Name)
		}
		return strings.Join(list, " ")
	}
	if !slices.EqualFunc(now.Params, mod.Params, func(a, b manifest.Params) bool { return names(a) == names(b) }) {
		out.add(manifestPath, "module %s: the recorded parameter structs are not those of the sources", mod.Name)
	}
	return out
}

// checkBlob compares a committed text with the record and the policy.
func (t tree) checkBlob(p *policy, pm policyModule, mod *manifest.Module) (out findings) {
	file := blobPath(mod.Name)
	data, err := t.read(file)
	if err != nil {
		out.add(file, "module %s: missing: %v", mod.Name, err)
		return out
	}
	text, err := parsePTX(string(data))
	if err != nil {
		out.add(file, "not a readable PTX text: %v", err)
		return out
	}
	now := &manifest.Module{Name: mod.Name}
	if err := describePTX(now, string(data)); err != nil {
		out.add(file, "%v", err)
		return out
	}
	switch {
	case now.PTX.SHA256 != mod.PTX.SHA256:
		out.add(file, "module %s: digest %s, recorded %s", mod.Name, now.PTX.SHA256, mod.PTX.SHA256)
	case now.PTX != mod.PTX:
		out.add(manifestPath, "module %s: PTX is %+v, recorded %+v", mod.Name, now.PTX, mod.PTX)
	}
	if !slices.Equal(now.Entries, mod.Entries) {
		out.add(file, "module %s: exports %q, recorded %q", mod.Name, now.Entries, mod.Entries)
	}
	if !slices.Equal(now.Imports, mod.Imports) {
		out.add(file, "module %s: imports %q, recorded %q", mod.Name, now.Imports, mod.Imports)
	}
	out = append(out, checkParams(file, text, mod)...)
	return append(out, p.checkPTX(pm, file, text)...)
}

// checkParams compares the parameter blocks in the text with the record.
func checkParams(file string, text *ptxText, mod *manifest.Module) (out findings) {
	for i, e := range text.entries() {
		if i >= len(mod.Params) || mod.Params[i].Entry != e.name {
			out.add(manifestPath, "module %s: no parameter block recorded for entry %s", mod.Name, e.name)
			continue
		}
		have := 0
		for _, n := range e.paramBytes {
			have += n
		}
		if _, raygen := deviceProgram(e.name); raygen {
			have += text.constantBytes
		}
		if rec := mod.Params[i]; have != rec.Bytes || len(e.paramBytes) > 1 {
			out.add(file, "module %s: entry %s takes %d parameters of %d bytes, recorded one of %d bytes",
				mod.Name, e.name, len(e.paramBytes), have, rec.Bytes)
		}
	}
	return out
}

// checkOrphans finds committed texts that no module owns.
func (t tree) checkOrphans(m *manifest.Manifest) (out findings) {
	blobs, err := t.blobs()
	if err != nil {
		out.add(ptxDir, "%v", err)
	}
	for _, file := range blobs {
		name := strings.TrimSuffix(strings.TrimPrefix(file, ptxDir+"/"), ".ptx")
		if m.Module(name) == nil {
			out.add(file, "orphan: no module of the manifest owns it")
		}
	}
	return out
}
