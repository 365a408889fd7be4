package fileio

import (
	"io"
	"io/fs"
	"os"
)

// FS is the set of file operations that the program uses. Names are operating system paths.
type FS interface {
	// Stat describes the file that name leads to, symbolic links followed.
	Stat(name string) (fs.FileInfo, error)
	// Open opens a file for reading.
	Open(name string) (File, error)
	// Create makes a new file for writing and fails with [fs.ErrExist] if there is one of that name.
	Create(name string) (OutFile, error)
	// Rename moves a file to a new name, replacing a file of that name.
	Rename(from, to string) error
	// Remove deletes a file.
	Remove(name string) error
}

// File is an open input.
type File interface {
	io.Reader
	io.ReaderAt
	io.Closer
	Stat() (fs.FileInfo, error)
}

// OutFile is an open output.
type OutFile interface {
	io.Writer
	io.Closer
	// Sync returns once the content has reached the disk.
	Sync() error
}

// OS is the operating system's file system.
type OS struct{}

// Stat implements [FS].
func (OS) Stat(name string) (fs.FileInfo, error) { return os.Stat(name) }

// Open implements [FS].
func (OS) Open(name string) (File, error) { return os.Open(name) }

// Create implements [FS]. The mode is that of any new file, so that a result has the permissions the user expects.
func (OS) Create(name string) (OutFile, error) {
	return os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
}

// Rename implements [FS].
func (OS) Rename(from, to string) error { return os.Rename(from, to) }

// Remove implements [FS].
func (OS) Remove(name string) error { return os.Remove(name) }
