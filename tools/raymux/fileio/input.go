package fileio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"syscall"
)

// Input is an open regular file. Its Read and ReadAt fail with the context's error once the context of [Open] is done, so
// an interrupt ends the reading of a large file.
type Input struct {
	Size int64 // bytes, as the file system reports them

	ctx  context.Context
	file File
}

// Open opens a regular file for reading. A missing file, a folder, a pipe or device, and a file that the user may not read
// are a [*Fault].
//
// The kind is asked before opening, because opening a pipe would wait for a writer, and again on the open file, which is
// the one that counts.
func Open(ctx context.Context, fsys FS, name string) (*Input, error) {
	info, err := fsys.Stat(name)
	if err != nil {
		return nil, openFault(err)
	}
	if err := checkRegular(info); err != nil {
		return nil, err
	}
	f, err := fsys.Open(name)
	if err != nil {
		return nil, openFault(err)
	}
	info, err = f.Stat()
	if err == nil {
		err = checkRegular(info)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &Input{Size: info.Size(), ctx: ctx, file: f}, nil
}

// Read implements io.Reader.
func (in *Input) Read(p []byte) (int, error) {
	if err := in.ctx.Err(); err != nil {
		return 0, err
	}
	return in.file.Read(p)
}

// ReadAt implements io.ReaderAt.
func (in *Input) ReadAt(p []byte, off int64) (int, error) {
	if err := in.ctx.Err(); err != nil {
		return 0, err
	}
	return in.file.ReadAt(p, off)
}

// Close closes the file.
func (in *Input) Close() error { return in.file.Close() }

var (
	_ io.Reader   = (*Input)(nil)
	_ io.ReaderAt = (*Input)(nil)
)

func openFault(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return Faultf("a file", "no such file")
	case errors.Is(err, fs.ErrPermission):
		return Faultf("a file that you may read", "permission denied")
	case errors.Is(err, fs.ErrInvalid), errors.Is(err, syscall.ENAMETOOLONG), errors.Is(err, syscall.ELOOP):
		return Faultf("a file", "an invalid name")
	}
	return err
}

func checkRegular(info fs.FileInfo) error {
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		return Faultf("a file", "a folder")
	default:
		return Faultf("a regular file", "%s", kindName(mode))
	}
}

func kindName(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeNamedPipe != 0:
		return "a pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	}
	return fmt.Sprintf("a file of kind %s", mode.Type())
}
