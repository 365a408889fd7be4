package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// maxFileBytes is far more than a record or a page has.
const maxFileBytes = 64 << 20

// ReadFile returns the text of a regular file. Devices and pipes, which may never end, are refused before they are
// opened, and so is a file that is too long for a record.
func ReadFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", path)
	case info.Size() > maxFileBytes:
		return nil, fmt.Errorf("%s has %d bytes, a record has at most %d", path, info.Size(), maxFileBytes)
	}
	return os.ReadFile(path)
}

// Decode reads a record, validates it against the schema and checks the semantic rules.
func Decode(text []byte) (*Record, error) {
	if err := ValidateSchema(text); err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields() // the schema is closed as well; this finds a field that only the Go type lacks
	var r Record
	if err := d.Decode(&r); err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	return &r, Check(&r)
}

// Encode returns the record as indented JSON with a final newline, after validating it like [Decode]. An invalid record
// gives an error and no text.
func (r *Record) Encode() ([]byte, error) {
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	if err := ValidateSchema(text); err != nil {
		return nil, err
	}
	if err := Check(r); err != nil {
		return nil, err
	}
	return append(text, '\n'), nil
}

// WriteFile validates the record and writes it to path, creating parent folders. The file appears whole or not at all.
func (r *Record) WriteFile(path string) error {
	text, err := r.Encode()
	if err != nil {
		return err
	}
	return WriteAtomic(path, text)
}

// Write validates the record and writes it to w.
func (r *Record) Write(w io.Writer) error {
	text, err := r.Encode()
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

// WriteAtomic writes data to a temporary file beside path and renames it, creating parent folders, so that a reader
// never sees a part of it and a failure leaves an existing file as it was. Only a regular file is replaced: the rename
// would put a file in the place of a device or a pipe, for root even of /dev/null.
func WriteAtomic(path string, data []byte) (err error) {
	f, err := createBeside(path)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if _, err := f.Write(data); err != nil {
		return err
	}
	if err := f.Chmod(0o644); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// Writable reports why WriteAtomic cannot write to path. It creates parent folders, and leaves path as it is.
func Writable(path string) error {
	f, err := createBeside(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// createBeside creates the temporary file that takes the place of path.
func createBeside(path string) (*os.File, error) {
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file: give the name of a file, or - for standard output", path)
	}
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	return os.CreateTemp(folder, ".partial-*")
}
