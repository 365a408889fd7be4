// Package faultfs makes file operations fail on purpose, for tests of programs that go through [fileio.FS].
package faultfs

import (
	"io/fs"

	"github.com/raymux/raymux/tools/raymux/fileio"
)

// FS passes operations on to the embedded file system unless Fail returns an error for them.
type FS struct {
	fileio.FS
	// Fail is asked before every operation: stat, open, read, create, write, sync, close, rename and remove. Reads include
	// reads at an offset, close is that of outputs. For rename the name is the new one.
	Fail func(op, name string) error
}

// Stat implements [fileio.FS].
func (f FS) Stat(name string) (fs.FileInfo, error) {
	if err := f.Fail("stat", name); err != nil {
		return nil, err
	}
	return f.FS.Stat(name)
}

// Open implements [fileio.FS].
func (f FS) Open(name string) (fileio.File, error) {
	if err := f.Fail("open", name); err != nil {
		return nil, err
	}
	file, err := f.FS.Open(name)
	if err != nil {
		return nil, err
	}
	return &input{file, func() error { return f.Fail("read", name) }}, nil
}

// Create implements [fileio.FS].
func (f FS) Create(name string) (fileio.OutFile, error) {
	if err := f.Fail("create", name); err != nil {
		return nil, err
	}
	file, err := f.FS.Create(name)
	if err != nil {
		return nil, err
	}
	return &output{file, func(op string) error { return f.Fail(op, name) }}, nil
}

// Rename implements [fileio.FS].
func (f FS) Rename(from, to string) error {
	if err := f.Fail("rename", to); err != nil {
		return err
	}
	return f.FS.Rename(from, to)
}

// Remove implements [fileio.FS].
func (f FS) Remove(name string) error {
	if err := f.Fail("remove", name); err != nil {
		return err
	}
	return f.FS.Remove(name)
}

type input struct {
	fileio.File
	fail func() error
}

func (i *input) Read(p []byte) (int, error) {
	if err := i.fail(); err != nil {
		return 0, err
	}
	return i.File.Read(p)
}

func (i *input) ReadAt(p []byte, off int64) (int, error) {
	if err := i.fail(); err != nil {
		return 0, err
	}
	return i.File.ReadAt(p, off)
}

type output struct {
	fileio.OutFile
	fail func(op string) error
}

func (o *output) Write(p []byte) (int, error) {
	if err := o.fail("write"); err != nil {
		return 0, err
	}
	return o.OutFile.Write(p)
}

func (o *output) Sync() error {
	if err := o.fail("sync"); err != nil {
		return err
	}
	return o.OutFile.Sync()
}

// Close closes the file even when it is told to fail, as the operating system does.
func (o *output) Close() error {
	err := o.OutFile.Close()
	if e := o.fail("close"); e != nil {
		return e
	}
	return err
}
