//go:build linux && !nocuda

package scene

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/optixabi"
	"github.com/raymux/raymux/optixabi/fakeoptix"
)

// cacheRig is a policy over a made-up environment and an empty disk, with a
// device context of a fake library.
type cacheRig struct {
	policy cachePolicy
	env    map[string]string
	disk   string
	fake   *fakeoptix.Fake
	table  *optixabi.Table
	ctx    optixabi.DeviceContext
	text   bytes.Buffer
	log    *slog.Logger
}

func newCacheRig(t *testing.T, failure optixabi.Result) *cacheRig {
	t.Helper()
	r := &cacheRig{env: map[string]string{}, disk: t.TempDir()}
	r.policy.getenv = func(name string) string { return r.env[name] }
	r.policy.base = func() string { return r.disk }
	r.log = slog.New(slog.NewTextHandler(&r.text, nil))
	var err error
	r.fake, err = fakeoptix.New(fakeoptix.Config{Cache: failure})
	require.NoError(t, err)
	t.Cleanup(r.fake.Close)
	r.table, err = r.fake.Library().Negotiate(optixabi.NegotiateOptions{})
	require.NoError(t, err)
	r.ctx, err = r.table.DeviceContextCreate(0, optixabi.DeviceContextOptions{})
	require.NoError(t, err)
	return r
}

func (r *cacheRig) open() string { return r.policy.open(r.table, r.ctx, r.log) }

func (r *cacheRig) enabled(t *testing.T) bool {
	t.Helper()
	on, err := r.table.CacheEnabled(r.ctx)
	require.NoError(t, err)
	return on
}

func (r *cacheRig) warnings() int { return strings.Count(r.text.String(), "level=WARN") }

const libraryDefault = "/fake/cache" // of the fake

// TestCacheFolder checks who decides on the folder.
func TestCacheFolder(t *testing.T) {
	own := "raymux-optix-" + strconv.Itoa(os.Getuid())
	tests := []struct {
		name, env string
		want      string // DISK stands for the local disk
		sets      int    // calls that change the folder
	}{
		{"one process", "", libraryDefault, 0},
		{"torchrun", "RANK=3", "DISK/" + own + "/rank-3", 1},
		{"Open MPI", "OMPI_COMM_WORLD_RANK=12", "DISK/" + own + "/rank-12", 1},
		{"MPICH", "PMI_RANK=0", "DISK/" + own + "/rank-0", 1},
		{"Slurm", "SLURM_PROCID=7", "DISK/" + own + "/rank-7", 1},
		{"mpirun in a Slurm job", "SLURM_PROCID=0 OMPI_COMM_WORLD_RANK=5", "DISK/" + own + "/rank-5", 1},
		{"no number", "RANK=first", libraryDefault, 0},
		{"negative", "RANK=-1", libraryDefault, 0},
		{"root", "RANK=2 OPTIX_CACHE_ROOT=DISK/a/b", "DISK/a/b/rank-2", 1},
		{"root without ranks", "OPTIX_CACHE_ROOT=DISK/a", libraryDefault, 0},
		{"path of the user", "RANK=2 OPTIX_CACHE_PATH=/x OPTIX_CACHE_ROOT=DISK/a", libraryDefault, 0},
		{"switched off by the user", "RANK=2 OPTIX_CACHE_MAXSIZE=0", "", 0},
		{"limited by the user", "RANK=2 OPTIX_CACHE_MAXSIZE=100000000", "DISK/" + own + "/rank-2", 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newCacheRig(t, optixabi.Success)
			for _, kv := range strings.Fields(tt.env) {
				k, v, _ := strings.Cut(kv, "=")
				r.env[k] = strings.ReplaceAll(v, "DISK", r.disk)
			}
			want := strings.ReplaceAll(tt.want, "DISK", r.disk)
			for range 2 { // the folder exists the second time
				assert.Equal(t, want, r.open())
			}
			assert.Equal(t, 2*tt.sets, r.fake.Calls("optixDeviceContextSetCacheLocation"))
			assert.Zero(t, r.fake.Calls("optixDeviceContextSetCacheDatabaseSizes"))
			assert.True(t, r.enabled(t))
			assert.Zero(t, r.warnings())
			if tt.sets > 0 {
				info, err := os.Stat(want)
				require.NoError(t, err)
				assert.Equal(t, os.FileMode(0o700), info.Mode().Perm())
			}
		})
	}
}

// TestCacheFolderRefused checks that a folder which others could have prepared
// is not used.
func TestCacheFolderRefused(t *testing.T) {
	own := "raymux-optix-" + strconv.Itoa(os.Getuid())
	for name, prepare := range map[string]func(t *testing.T, disk string){
		"link in the place of the folder": func(t *testing.T, disk string) {
			require.NoError(t, os.Symlink(t.TempDir(), filepath.Join(disk, own)))
		},
		"link in the place of the rank": func(t *testing.T, disk string) {
			require.NoError(t, os.Mkdir(filepath.Join(disk, own), 0o700))
			require.NoError(t, os.Symlink(t.TempDir(), filepath.Join(disk, own, "rank-1")))
		},
		"folder open to others": func(t *testing.T, disk string) {
			require.NoError(t, os.Mkdir(filepath.Join(disk, own), 0o700))
			require.NoError(t, os.Chmod(filepath.Join(disk, own), 0o777))
		},
		"readable by the group": func(t *testing.T, disk string) {
			require.NoError(t, os.MkdirAll(filepath.Join(disk, own, "rank-1"), 0o700))
			require.NoError(t, os.Chmod(filepath.Join(disk, own, "rank-1"), 0o740))
		},
		"file": func(t *testing.T, disk string) {
			require.NoError(t, os.WriteFile(filepath.Join(disk, own), nil, 0o600))
		},
		"folder of another user": func(t *testing.T, disk string) {
			require.NoError(t, os.Mkdir(filepath.Join(disk, own), 0o700))
			if err := os.Chown(filepath.Join(disk, own), 12345, 12345); err != nil {
				t.Skip("giving a folder away needs the rights of root")
			}
		},
		"no disk": func(t *testing.T, disk string) { require.NoError(t, os.RemoveAll(disk)) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newCacheRig(t, optixabi.Success)
			r.env["RANK"] = "1"
			prepare(t, r.disk)
			assert.Empty(t, r.open())
			assert.False(t, r.enabled(t))
			assert.Equal(t, 1, r.warnings())
			assert.Contains(t, r.text.String(), r.disk, "the warning names the place")
			assert.Zero(t, r.fake.Calls("optixDeviceContextSetCacheLocation"))
		})
	}
}

// TestCacheFailures checks for every code of the cache that work goes on, that
// the warning comes once, and that other errors pass unchanged.
func TestCacheFailures(t *testing.T) {
	module := []byte(".version 8.0\n.visible .entry __raygen__r() { ret; }")
	for code := optixabi.ErrorDiskCacheInvalidPath; code <= optixabi.ErrorDiskCacheInvalidData; code++ {
		t.Run(code.Name(), func(t *testing.T) {
			r := newCacheRig(t, code)
			var m optixabi.Module
			runs := 0
			create := func() (err error) {
				runs++
				m, _, err = r.table.ModuleCreate(r.ctx, &optixabi.ModuleCompileOptions{}, &optixabi.PipelineCompileOptions{}, module)
				return err
			}
			require.NoError(t, r.policy.retry(r.table, r.ctx, r.log, create))
			assert.NotZero(t, m)
			assert.Equal(t, 2, runs)
			assert.False(t, r.enabled(t))
			require.NoError(t, r.policy.retry(r.table, r.ctx, r.log, create))
			assert.Equal(t, 3, runs, "the cache is off now")
			assert.Equal(t, 1, r.warnings())
			assert.Contains(t, r.text.String(), code.Name())

			// Setting the folder fails the same way, in a second context.
			c, err := r.table.DeviceContextCreate(0, optixabi.DeviceContextOptions{})
			require.NoError(t, err)
			r.env["RANK"] = "0"
			assert.Empty(t, r.policy.open(r.table, c, r.log))
			on, err := r.table.CacheEnabled(c)
			require.NoError(t, err)
			assert.False(t, on)
			assert.Equal(t, 1, r.warnings(), "one warning per process")
		})
	}
	r := newCacheRig(t, optixabi.Success)
	other := errors.New("something else")
	runs := 0
	assert.Equal(t, other, r.policy.retry(r.table, r.ctx, r.log, func() error { runs++; return other }))
	assert.Equal(t, 1, runs)
	r.fake.FailCall("optixModuleCreate", 1, optixabi.ErrorInternalCompilerError)
	assert.ErrorIs(t, r.policy.retry(r.table, r.ctx, r.log, func() error {
		_, _, err := r.table.ModuleCreate(r.ctx, &optixabi.ModuleCompileOptions{}, &optixabi.PipelineCompileOptions{}, module)
		return err
	}), optixabi.ErrorInternalCompilerError)
	assert.True(t, r.enabled(t))
	assert.Zero(t, r.warnings())
}

// A logger that discards warnings does not use up the one warning.
func TestCacheWarningNeedsAListener(t *testing.T) {
	r := newCacheRig(t, optixabi.ErrorDiskCacheDatabaseError)
	r.env["RANK"] = "0"
	assert.Empty(t, r.policy.open(r.table, r.ctx, slog.New(slog.DiscardHandler)))
	assert.False(t, r.enabled(t))
	require.NoError(t, r.table.SetCacheEnabled(r.ctx, true))
	for range 2 {
		assert.Empty(t, r.open())
		require.NoError(t, r.table.SetCacheEnabled(r.ctx, true))
	}
	assert.Equal(t, 1, r.warnings())
}

func TestLocalDisk(t *testing.T) {
	info, err := os.Stat(localDisk())
	require.NoError(t, err)
	assert.True(t, info.IsDir())
}
