package vm

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLoadTestdata(t *testing.T) {
	files, err := filepath.Glob("testdata/*.ptx")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, f := range files {
		b, err := os.ReadFile(f)
		require.NoError(t, err)
		p, err := Load(b)
		require.NoError(t, err, f)
		require.NotEmpty(t, p.Kernels())
	}
}

// The time of Load grows with the length of the text, also for many functions.
func TestLoadManyFunctions(t *testing.T) {
	load := func(functions int) time.Duration {
		var b strings.Builder
		b.WriteString(".version 8.0\n.target sm_75\n.address_size 64\n.func f0() { ret; }\n")
		for i := 1; i < functions; i++ {
			fmt.Fprintf(&b, ".func f%d() { call.uni f%d, (); ret; }\n", i, i-1)
		}
		b.WriteString(".visible .entry k() { ret; }\n")
		best := time.Hour
		for range 3 {
			start := time.Now()
			_, err := Load([]byte(b.String()))
			require.NoError(t, err)
			best = min(best, time.Since(start))
		}
		return best
	}
	// Eight times the text takes eight times as long, not 64 times. A busy machine is not fair to both.
	require.Less(t, float64(load(16000)), 40*float64(load(2000)))
}

// A message repeats no more than the beginning of a word that has no end.
func TestLoadErrorsAreShort(t *testing.T) {
	long := strings.Repeat("9", 1<<20)
	for _, body := range []string{"mov.u64 %r, " + long + ";", "add." + long + " a, b, c;", long + "x y;"} {
		_, err := Load([]byte(".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry k()\n{\n.reg .b64 %r;\n" + body + "\nret;\n}\n"))
		require.Error(t, err)
		require.Less(t, len(err.Error()), 1000)
	}
}
