package dl

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// goTool runs the go command for another target.
func goTool(t *testing.T, env []string, args ...string) string {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "go %s: %s", strings.Join(args, " "), out)
	return string(out)
}

// TestTargets checks, for every platform that has a driver and for one that
// has none, which builds bring purego along.
func TestTargets(t *testing.T) {
	tests := []struct {
		goos, goarch, tags string
		purego             bool
	}{
		{"linux", "amd64", "", true},
		{"linux", "arm64", "", true},
		{"windows", "amd64", "", true},
		{"linux", "amd64", "nocuda", false},
		{"darwin", "arm64", "", false},
	}
	for _, tt := range tests {
		t.Run(strings.Trim(tt.goos+"-"+tt.goarch+"-"+tt.tags, "-"), func(t *testing.T) {
			env := []string{"CGO_ENABLED=0", "GOOS=" + tt.goos, "GOARCH=" + tt.goarch}
			deps := goTool(t, env, "list", "-deps", "-tags="+tt.tags, ".")
			assert.Equal(t, tt.purego, strings.Contains(deps, "github.com/ebitengine/purego"))
		})
	}
}
