package main

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/multi"
	"github.com/raymux/raymux/tools/raymux/fileio"
)

// calibrationBytes is more than any record of `raymux calibrate` takes.
const calibrationBytes = 1 << 20

// calibrations declares the flag that names records of calibrations.
func (fs *flagSet) calibrations(c *common) {
	fs.Func("calibration", "`FILE` that calibrate -json wrote: its weights divide the operation that it is of; repeat it for several operations", func(s string) error {
		if s == "" {
			return errors.New("the name is empty")
		}
		c.calibrations = append(c.calibrations, s)
		return nil
	})
}

// readCalibrations reads all records, of one operation each.
func (p *program) readCalibrations(ctx context.Context, paths []string) ([]*multi.Calibration, error) {
	var records []*multi.Calibration
	of := map[string]string{}
	for _, path := range paths {
		r, err := p.readCalibration(ctx, path)
		if err != nil {
			return nil, err
		}
		if other, twice := of[r.Operation]; twice {
			return nil, usagef("-calibration: found %s and %s, both of %s; expected one for each operation", other, path, r.Operation)
		}
		of[r.Operation] = path
		records = append(records, r)
	}
	return records, nil
}

func (p *program) readCalibration(ctx context.Context, path string) (r *multi.Calibration, err error) {
	defer func() { err = forFile("-calibration", path, err) }()
	file, err := fileio.Open(ctx, p.fs, path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if file.Size > calibrationBytes {
		return nil, fileio.Faultf("a record of calibrate -json", "a file of %d bytes", file.Size)
	}
	text, err := io.ReadAll(io.LimitReader(file, calibrationBytes))
	if err != nil {
		return nil, err
	}
	return multi.ImportCalibration(text)
}

// checkUse refuses two splits of the command's operation, and notes records of which none is
// of it.
func (p *program) checkUse(c *common, records []*multi.Calibration, options chunked.Options, key string) error {
	var others []string
	for i, r := range records {
		switch {
		case r.Operation != key:
			others = append(others, r.Operation)
		case options.Weights != nil:
			return usagef("found -weights and -calibration %s, both of %s; expected one of them", c.calibrations[i], key)
		}
	}
	if len(others) > 0 && len(others) == len(records) {
		p.note("-calibration: not used: no record is of %s, found %s", key, strings.Join(others, ", "))
	}
	return nil
}

// openDivided opens the devices of a command, which divides the rows of its operation by the
// records that the command line names.
func (p *program) openDivided(ctx context.Context, c *common, options chunked.Options, key string) (*engine, error) {
	records, err := p.readCalibrations(ctx, c.calibrations)
	if err != nil {
		return nil, err
	}
	if err := p.checkUse(c, records, options, key); err != nil {
		return nil, err
	}
	e, err := p.openEngine(ctx, c.devices, c.backend, options)
	if err != nil {
		return nil, err
	}
	for i, r := range records {
		if err := forFile("-calibration", c.calibrations[i], e.scene.RestoreCalibration(r)); err != nil {
			return nil, errors.Join(err, e.close(ctx))
		}
	}
	return e, nil
}
