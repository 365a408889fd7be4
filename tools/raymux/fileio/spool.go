package fileio

import (
	"bufio"
	"context"
	"errors"
	"io"
)

// Spool is a temporary file beside an output, for parts of it that come in another order than that of the output.
type Spool struct {
	fs   FS
	name string
	out  OutFile
	w    *bufio.Writer
	size int64
	in   File
}

// NewSpool makes an empty spool beside the output with the given name. Writes fail once ctx is done.
func NewSpool(ctx context.Context, fsys FS, name string) (*Spool, error) {
	temp, f, err := createTemp(fsys, name)
	if err != nil {
		return nil, err
	}
	return &Spool{fs: fsys, name: temp, out: f, w: bufio.NewWriterSize(&ctxWriter{ctx: ctx, w: f}, 1<<20)}, nil
}

// Write appends.
func (s *Spool) Write(p []byte) (int, error) {
	n, err := s.w.Write(p)
	s.size += int64(n)
	return n, err
}

// Size is how many bytes were written.
func (s *Spool) Size() int64 { return s.size }

// CopyTo copies n bytes that were written at an offset to w.
func (s *Spool) CopyTo(w io.Writer, from, n int64) error {
	if err := s.w.Flush(); err != nil {
		return err
	}
	if s.in == nil {
		var err error
		if s.in, err = s.fs.Open(s.name); err != nil {
			return err
		}
	}
	_, err := io.CopyN(w, io.NewSectionReader(s.in, from, n), n)
	return err
}

// Close removes the file.
func (s *Spool) Close() error {
	var err error
	if s.in != nil {
		err = s.in.Close()
	}
	return errors.Join(err, s.out.Close(), s.fs.Remove(s.name))
}
