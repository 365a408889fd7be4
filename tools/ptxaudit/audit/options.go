package audit

import (
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// numericOption matches a compiler option that changes results, where a
// command line or a string would hold it.
var numericOption = regexp.MustCompile("(?:^|[\\s\"'`=,\\[(])--?(?:" + strings.Join(numeric, "|") + `)\b`)

// scanned are the extensions of programs, scripts and workflows.
var scanned = []string{".go", ".sh", ".bash", ".ps1", ".bat", ".py", ".mk", ".yml", ".yaml", ".toml"}

// scanOptions refuses numeric compiler options outside the policy: an option
// added by a script would not show in the option vectors.
func (t tree) scanOptions() (out findings, err error) {
	err = t.walk(func(name string) error {
		script := strings.HasPrefix(name, ".ci/") || path.Base(name) == "Makefile"
		if !script && !slices.Contains(scanned, path.Ext(name)) || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		text, err := t.readText(name)
		if err != nil {
			return err
		}
		for i, line := range strings.Split(text, "\n") {
			if numericOption.MatchString(line) {
				out.add(name, "line %d: numeric compiler option outside %s", i+1, policyPath)
			}
		}
		return nil
	})
	return out, err
}

// walk visits the regular files of the tree, except hidden folders other than
// those of continuous integration, folders that Go ignores, and the scratch
// folder artifacts, which git ignores.
func (t tree) walk(visit func(name string) error) error {
	return filepath.WalkDir(string(t), func(full string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(string(t), full)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(rel)
		base := path.Base(name)
		switch {
		case d.IsDir() && name != "." && base != ".ci" && base != ".github" &&
			(strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") || base == "testdata" || base == "vendor" || name == "artifacts"):
			return fs.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		return visit(name)
	})
}
