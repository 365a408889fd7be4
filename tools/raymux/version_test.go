package main

import (
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/raymux/raymux/ptx"
)

func TestVersion(t *testing.T) {
	b := newBench(t)
	r := b.succeed(t, "version")
	assert.Contains(t, r.out, "raymux    ")
	assert.Contains(t, r.out, "PTX       manifest "+ptx.ManifestDigest()+"\n")
	assert.Empty(t, r.err)
	assert.Zero(t, b.emulatorRun, "no device is needed")
	r = b.run(t, t.Context(), "version", "-json")
	assert.Equal(t, exitUsage, r.status)
	assert.Contains(t, r.err, "unknown flag -json")
}

func TestVersionText(t *testing.T) {
	stamped := func(version string, settings ...debug.BuildSetting) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Version: version}, Settings: settings}
	}
	revision := debug.BuildSetting{Key: "vcs.revision", Value: "0123abcd"}
	for _, c := range []struct {
		name  string
		build *debug.BuildInfo
		want  []string
	}{
		{"no build information", &debug.BuildInfo{}, []string{"raymux    unversioned", "revision  not recorded"}},
		{"go run", stamped("(devel)"), []string{"raymux    unversioned", "revision  not recorded"}},
		{"a release", stamped("v1.2.3"), []string{"raymux    v1.2.3", "revision  not recorded"}},
		{"a checkout", stamped("v1.2.4-0.2026-0123", revision, debug.BuildSetting{Key: "vcs.modified", Value: "false"}),
			[]string{"raymux    v1.2.4-0.2026-0123", "revision  0123abcd"}},
		{"an edited checkout", stamped("(devel)", revision, debug.BuildSetting{Key: "vcs.modified", Value: "true"}),
			[]string{"raymux    unversioned", "revision  0123abcd, with local changes"}},
	} {
		want := append(c.want, "Go        "+runtime.Version()+", "+runtime.GOOS+"/"+runtime.GOARCH, "PTX       manifest feed", "")
		assert.Equal(t, strings.Join(want, "\n"), versionText(c.build, "feed"), c.name)
	}
}
