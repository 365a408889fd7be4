package fileio

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"syscall"
)

// tempAttempts bounds the search for a free temporary name.
const tempAttempts = 100

// CheckOutput reports, before any work, that [WriteAtomic] could not write name: the folder is missing or not a folder, it
// cannot be written, or name is something that must not be replaced. It leaves nothing behind.
func CheckOutput(fsys FS, name string) error {
	dir := filepath.Dir(name)
	info, err := fsys.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return Faultf("an existing folder to write into", "no folder %s", Quote(dir))
	case err != nil:
		return openFault(err)
	case !info.IsDir():
		return Faultf("a folder to write into", "%s, which is not a folder", Quote(dir))
	}
	info, err = fsys.Stat(name)
	switch {
	case err == nil:
		if err := checkRegular(info); err != nil {
			return err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return openFault(err)
	}
	temp, f, err := createTemp(fsys, name)
	if errors.Is(err, fs.ErrPermission) {
		return Faultf("a folder that you may write into", "permission denied in %s", Quote(dir))
	}
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), fsys.Remove(temp))
}

// WriteAtomic makes the file name from what fill writes. The content goes to a temporary file in the same folder, reaches
// the disk and is then renamed, so that name is at every moment absent, the old file or the complete new one. On any
// failure, and when ctx ends, the temporary file is removed.
func WriteAtomic(ctx context.Context, fsys FS, name string, fill func(io.Writer) error) (err error) {
	temp, f, err := createTemp(fsys, name)
	if err != nil {
		return err
	}
	open := true
	defer func() {
		if err == nil {
			return
		}
		if open {
			err = errors.Join(err, f.Close())
		}
		err = errors.Join(err, fsys.Remove(temp))
	}()
	w := bufio.NewWriterSize(&ctxWriter{ctx: ctx, w: f}, 1<<20)
	if err = fill(w); err != nil {
		return err
	}
	if err = w.Flush(); err != nil {
		return err
	}
	if err = f.Sync(); err != nil {
		return err
	}
	open = false
	if err = f.Close(); err != nil {
		return err
	}
	// The last chance to leave no output for a run that was interrupted.
	if err = ctx.Err(); err != nil {
		return err
	}
	return fsys.Rename(temp, name)
}

// createTemp makes a new hidden file beside name. It does not use os.CreateTemp because that gives the file, and after the
// rename the result, a mode that only the owner can read.
func createTemp(fsys FS, name string) (string, OutFile, error) {
	dir, base := filepath.Split(name)
	for range tempAttempts {
		temp := filepath.Join(dir, fmt.Sprintf(".%s.%08x.tmp", base, rand.Uint32()))
		f, err := fsys.Create(temp)
		if err == nil {
			return temp, f, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return "", nil, err
		}
	}
	return "", nil, fmt.Errorf("no free temporary name beside %s", name)
}

// ctxWriter fails once its context is done.
type ctxWriter struct {
	ctx context.Context
	w   io.Writer
}

func (c *ctxWriter) Write(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.w.Write(p)
}
