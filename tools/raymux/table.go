package main

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/raymux/raymux/tools/raymux/fileio"
	"github.com/raymux/raymux/tools/raymux/npy"
)

// tableColumn is a column of an archive that holds a table: wedge states, materials.
type tableColumn struct {
	name     string
	width    int64 // as for arrayInput.rows
	optional bool
	unlike   bool // the column has a length of its own
	// Where the values go, one of them.
	floats *[]float32
	ints   *[]int32
	bools  *[]uint8
}

// readTable reads the columns of an archive and returns the number of rows. Types and shapes of all columns are compared
// before any of them is read.
func (p *program) readTable(ctx context.Context, flag, file string, columns []tableColumn) (rows int64, err error) {
	var wanted []string
	for _, c := range columns {
		name := c.name
		if c.optional {
			name += " (optional)"
		}
		wanted = append(wanted, name)
	}
	expected := "an .npz archive with the columns " + strings.Join(wanted, ", ")
	if !isArchive(file) {
		found := "a name without extension"
		if ext := filepath.Ext(file); ext != "" {
			found = "extension " + fileio.Quote(ext)
		}
		return 0, forFile(flag, file, fileio.Faultf(expected, "%s", found))
	}
	names, err := p.columnNames(ctx, flag, file)
	if err != nil {
		return 0, err
	}
	inputs := make([]*arrayInput, len(columns))
	defer func() { err = errors.Join(err, closeAll(inputs...)) }()
	var alike []inputSpec
	for i, c := range columns {
		if !slices.Contains(names, c.name) {
			if c.optional {
				continue
			}
			return 0, forFile(flag, file, fileio.Faultf(expected, "no column %s", fileio.Quote(c.name)))
		}
		spec := inputSpec{flag, file + ":" + c.name, c.width, c.check(), &inputs[i]}
		if !c.unlike {
			alike = append(alike, spec)
		} else if _, err := p.openInputs(ctx, []inputSpec{spec}); err != nil {
			return 0, err
		}
		names = slices.DeleteFunc(names, func(n string) bool { return n == c.name })
	}
	if rows, err = p.openInputs(ctx, alike); err != nil {
		return 0, err
	}
	if len(names) > 0 {
		p.note("%s %s: not used: %s", flag, file, strings.Join(names, ", "))
	}
	p.progress("reading " + file)
	for i, c := range columns {
		if inputs[i] == nil {
			continue
		}
		if err := p.readColumn(c, inputs[i]); err != nil {
			return 0, err
		}
	}
	return rows, nil
}

// columnNames lists the columns of an archive.
func (p *program) columnNames(ctx context.Context, flag, file string) ([]string, error) {
	f, err := fileio.Open(ctx, p.fs, file)
	if err != nil {
		return nil, forFile(flag, file, err)
	}
	names, err := npy.Names(f, f.Size)
	return names, forFile(flag, file, errors.Join(err, f.Close()))
}

func (c *tableColumn) check() func(*npy.Reader) error {
	switch {
	case c.ints != nil:
		return (*npy.Reader).CheckInt
	case c.bools != nil:
		return (*npy.Reader).CheckBool
	}
	return (*npy.Reader).CheckFloat
}

func (p *program) readColumn(c tableColumn, in *arrayInput) (err error) {
	switch {
	case c.ints != nil:
		*c.ints, err = in.array.Int32()
		err = forFile(in.flag, in.arg, err)
	case c.bools != nil:
		*c.bools, err = p.readMask(in)
	default:
		*c.floats, err = in.floats(p)
	}
	return err
}
