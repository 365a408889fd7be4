package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/raymux/raymux/tools/raymux/fileio"
	"github.com/raymux/raymux/tools/raymux/meshfile"
	"github.com/raymux/raymux/tools/raymux/npy"
)

// arrayInput is an array whose header has been read and whose elements have not.
type arrayInput struct {
	flag, arg string // as on the command line
	file      *fileio.Input
	array     *npy.Reader
}

// openArray opens a .npy file or a column of an .npz archive, written as file.npz:name.
func (p *program) openArray(ctx context.Context, flag, arg string) (*arrayInput, error) {
	path, column, isColumn := npy.SplitColumn(arg)
	file, err := fileio.Open(ctx, p.fs, path)
	if err != nil {
		var fault *fileio.Fault
		if errors.As(err, &fault) && strings.Contains(strings.ToLower(path), ".npy:") {
			err = fileio.Faultf("file.npy alone; file.npz:column is for archives", "a column of a .npy file, which holds one array")
		}
		return nil, forFile(flag, arg, err)
	}
	a := &arrayInput{flag: flag, arg: arg, file: file}
	if isColumn || isArchive(path) {
		a.array, err = npy.OpenColumn(file, file.Size, column)
	} else {
		a.array, err = npy.Open(file, file.Size)
	}
	if err != nil {
		return nil, forFile(flag, arg, errors.Join(err, file.Close()))
	}
	return a, nil
}

func (a *arrayInput) close() error {
	if a == nil {
		return nil
	}
	return errors.Join(a.array.Close(), a.file.Close())
}

// fault is a *fileio.Fault of this array.
func (a *arrayInput) fault(expected, found string, args ...any) error {
	return forFile(a.flag, a.arg, fileio.Faultf(expected, found, args...))
}

// anyWidth stands for [N] or [N, k] in place of a width.
const anyWidth = -1

// rows checks the shape [N] or [N, width] and returns N. Width 0 means [N].
func (a *arrayInput) rows(width int64) (int64, error) {
	shape := a.array.Header.Shape
	expected := "shape [N]"
	ok := len(shape) == 1
	switch {
	case width > 0:
		expected = fmt.Sprintf("shape [N, %d]", width)
		ok = len(shape) == 2 && shape[1] == width
	case width == anyWidth:
		expected = "shape [N] or [N, k]"
		ok = ok || len(shape) == 2
	}
	if len(shape) == 2 && shape[0] == width && !ok {
		expected += ": transpose it"
	}
	if !ok {
		return 0, a.fault(expected, "shape %s", a.array.Header.ShapeString())
	}
	return shape[0], nil
}

// inputSpec is an array that a command takes, with one row per row of the batch.
type inputSpec struct {
	flag, arg string // arg is empty where the flag was not given
	width     int64  // as for rows
	check     func(*npy.Reader) error
	target    **arrayInput
}

// openInputs opens arrays and compares their types and shapes before any of them is read. It returns the number of rows,
// which is that of the first. On a failure some are open.
func (p *program) openInputs(ctx context.Context, specs []inputSpec) (rows int64, err error) {
	for i, in := range specs {
		if in.arg == "" {
			continue
		}
		a, err := p.openArray(ctx, in.flag, in.arg)
		if err != nil {
			return 0, err
		}
		*in.target = a
		if err := in.check(a.array); err != nil {
			return 0, forFile(in.flag, in.arg, err)
		}
		n, err := a.rows(in.width)
		if err != nil {
			return 0, err
		}
		if i == 0 {
			rows = n
		}
		if n != rows {
			return 0, a.fault(fmt.Sprintf("%d, the rows of %s %s", rows, specs[0].flag, specs[0].arg), "%d rows", n)
		}
	}
	return rows, nil
}

// floats reads the elements and notes what the conversion from float64 changed.
func (a *arrayInput) floats(p *program) ([]float32, error) {
	data, overflowed, err := a.array.Float32()
	if err != nil {
		return nil, forFile(a.flag, a.arg, err)
	}
	if a.array.Converted() {
		text := "float64 rounded to float32"
		if overflowed > 0 {
			text += fmt.Sprintf("; %d values exceed its range and became infinite", overflowed)
		}
		p.note("%s %s: %s", a.flag, a.arg, text)
	}
	return data, nil
}

// readMask reads a mask, which may be absent.
func (p *program) readMask(a *arrayInput) ([]uint8, error) {
	if a == nil {
		return nil, nil
	}
	p.progress("reading " + a.arg)
	data, err := a.array.Bool()
	return data, forFile(a.flag, a.arg, err)
}

// readMesh reads one mesh file.
func (p *program) readMesh(ctx context.Context, path string) (m meshfile.Mesh, err error) {
	defer func() { err = forFile("-mesh", path, err) }()
	format, err := meshfile.FormatOf(path)
	if err != nil {
		return m, err
	}
	file, err := fileio.Open(ctx, p.fs, path)
	if err != nil {
		return m, err
	}
	m, err = meshfile.Read(file, file.Size, format)
	if err = errors.Join(err, file.Close()); err != nil {
		return m, err
	}
	if m.Rounded {
		p.note("-mesh %s: float64 positions rounded to float32", path)
	}
	return m, nil
}

// readMeshes reads all meshes in the order of the command line.
func (p *program) readMeshes(ctx context.Context, paths []string) ([]meshfile.Mesh, error) {
	var meshes []meshfile.Mesh
	for _, path := range paths {
		p.progress("reading " + path)
		m, err := p.readMesh(ctx, path)
		if err != nil {
			return nil, err
		}
		meshes = append(meshes, m)
	}
	return meshes, nil
}

// checkOut refuses an output that could not be written, before any work is done for it.
func (p *program) checkOut(out string, columns int) error {
	switch {
	case isArchive(out):
	case strings.HasSuffix(strings.ToLower(out), ".npy"):
		if columns != 1 {
			return forFile("-out", out, fileio.Faultf("an .npz file, or one column in -fields", "an .npy file for %d columns", columns))
		}
	default:
		found := "a name without extension"
		if ext := filepath.Ext(out); ext != "" {
			found = "extension " + fileio.Quote(ext)
		}
		return forFile("-out", out, fileio.Faultf("a name that ends in .npz, or .npy for a single column", "%s", found))
	}
	return forFile("-out", out, fileio.CheckOutput(p.fs, out))
}

// closeAll closes arrays, last first, and returns the failures.
func closeAll(arrays ...*arrayInput) error {
	var err error
	for _, a := range slices.Backward(arrays) {
		err = errors.Join(err, a.close())
	}
	return err
}
