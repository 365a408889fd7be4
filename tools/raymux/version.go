package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/raymux/raymux/ptx"
)

// version prints what the program was built from.
func (p *program) version(_ context.Context, args []string) error {
	if err := newFlagSet("version").parse(p, args); err != nil {
		return ignoreHelp(err)
	}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		build = &debug.BuildInfo{}
	}
	_, err := fmt.Fprint(p.stdout, versionText(build, ptx.ManifestDigest()))
	return err
}

// versionText describes a build. Go stamps the revision into programs that are built in a checkout, not into those of
// go run.
func versionText(build *debug.BuildInfo, manifest string) string {
	setting := func(key string) string {
		for _, s := range build.Settings {
			if s.Key == key {
				return s.Value
			}
		}
		return ""
	}
	module := build.Main.Version
	if module == "" || module == "(devel)" {
		module = "unversioned"
	}
	revision := setting("vcs.revision")
	switch {
	case revision == "":
		revision = "not recorded"
	case setting("vcs.modified") == "true":
		revision += ", with local changes"
	}
	return fmt.Sprintf("raymux    %s\nrevision  %s\nGo        %s, %s/%s\nPTX       manifest %s\n",
		module, revision, runtime.Version(), runtime.GOOS, runtime.GOARCH, manifest)
}
