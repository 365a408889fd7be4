package scene

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/raymux/raymux/optixabi"
)

// The OptiX library keeps compiled programs in a database on disk. It serves
// one process well; several that share one, or one on a network disk, get
// database errors, which must not become errors of a scene. So:
//
//   - OPTIX_CACHE_PATH and OPTIX_CACHE_MAXSIZE belong to the user: when one
//     says where the cache is or that there is none, nothing is changed;
//   - a process that a launcher started as one of several gets a folder of
//     its own, below OPTIX_CACHE_ROOT or on the local disk;
//   - when the cache fails all the same, work goes on without it, and one
//     warning says so.

// rankVariables tell the number of a process among those of its launcher. The
// first that is set counts: under mpirun inside a Slurm job, Slurm's variable
// describes the launcher.
var rankVariables = []string{"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"}

// optixCache is the policy of this process.
var optixCache = cachePolicy{getenv: os.Getenv, base: localDisk}

// openCache chooses the folder of the cache of a device context. It never
// fails; the result is the folder in use, or empty without a cache.
func openCache(t *optixabi.Table, c optixabi.DeviceContext, log *slog.Logger) string {
	return optixCache.open(t, c, log)
}

// withoutCache runs a creation and, if the cache made it fail, runs it again
// with the cache switched off.
func withoutCache(t *optixabi.Table, c optixabi.DeviceContext, log *slog.Logger, f func() error) error {
	return optixCache.retry(t, c, log, f)
}

type cachePolicy struct {
	getenv func(string) string
	base   func() string // folder on a local disk in which others may write too
	warned sync.Once
}

func (p *cachePolicy) open(t *optixabi.Table, c optixabi.DeviceContext, log *slog.Logger) string {
	if p.getenv("OPTIX_CACHE_MAXSIZE") == "0" {
		return ""
	}
	if rank, ok := p.rank(); ok && p.getenv("OPTIX_CACHE_PATH") == "" {
		dir, err := p.rankDir(rank)
		if err == nil {
			err = t.SetCacheLocation(c, dir)
		}
		if err != nil {
			p.disable(t, c, log, err)
			return ""
		}
	}
	dir, err := t.CacheLocation(c)
	if err != nil {
		return "" // it is only reported
	}
	return dir
}

func (p *cachePolicy) retry(t *optixabi.Table, c optixabi.DeviceContext, log *slog.Logger, f func() error) error {
	err := f()
	var failed *optixabi.Error
	if !errors.As(err, &failed) || !failed.Code.CacheFailure() {
		return err
	}
	p.disable(t, c, log, err)
	return f()
}

// disable switches the cache off and says so once per process, to the first logger
// that listens.
func (p *cachePolicy) disable(t *optixabi.Table, c optixabi.DeviceContext, log *slog.Logger, why error) {
	if err := t.SetCacheEnabled(c, false); err != nil {
		why = errors.Join(why, err)
	}
	if !log.Enabled(context.Background(), slog.LevelWarn) {
		return
	}
	p.warned.Do(func() {
		log.Warn("OptiX works without its disk cache, so every process compiles its programs anew", "cause", why)
	})
}

// rank is the number that a launcher gave to this process.
func (p *cachePolicy) rank() (int, bool) {
	for _, name := range rankVariables {
		if s := p.getenv(name); s != "" {
			n, err := strconv.Atoi(s)
			return n, err == nil && n >= 0
		}
	}
	return 0, false
}

// rankDir makes the folder of a rank. A program that is loaded from the cache
// runs as ours, so nobody else may be able to write there.
func (p *cachePolicy) rankDir(rank int) (string, error) {
	root := p.getenv("OPTIX_CACHE_ROOT")
	if root == "" {
		root = filepath.Join(p.base(), "raymux-optix-"+strconv.Itoa(os.Getuid()))
		if err := privateDir(root); err != nil {
			return "", err
		}
	} else {
		abs, err := filepath.Abs(root)
		if err != nil {
			return "", err
		}
		if err := os.MkdirAll(abs, 0o700); err != nil {
			return "", err
		}
		root = abs
	}
	dir := filepath.Join(root, "rank-"+strconv.Itoa(rank))
	return dir, privateDir(dir)
}

// privateDir makes a folder for this user alone, or checks that it is one.
func privateDir(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Lstat(dir) // not following a link that somebody left there
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is a %v and not a folder: remove it, or set OPTIX_CACHE_PATH", dir, info.Mode().Type())
	case !ownDir(info):
		return fmt.Errorf("%s belongs to another user or others may use it (%v): remove it, or set OPTIX_CACHE_PATH", dir, info.Mode())
	}
	return nil
}

// localDisk is a folder that network homes do not reach and that outlives a
// restart where the system has one.
func localDisk() string {
	const kept = "/var/tmp"
	if info, err := os.Stat(kept); err == nil && info.IsDir() {
		return kept
	}
	return os.TempDir()
}
