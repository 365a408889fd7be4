package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// numbers declares a flag whose value is as many finite numbers as the target has room for, separated by commas.
func (fs *flagSet) numbers(name, usage string, target []float32) {
	fs.checked(name, usage, target, func() error { return nil })
}

// checked is numbers with a check of all of them.
func (fs *flagSet) checked(name, usage string, target []float32, check func() error) {
	fs.once(name, usage, func(s string) error {
		parts := strings.Split(s, ",")
		if len(parts) != len(target) {
			if len(target) == 1 {
				return errors.New("use 1 number")
			}
			return fmt.Errorf("use %d numbers, separated by commas", len(target))
		}
		for i, part := range parts {
			v, err := strconv.ParseFloat(strings.TrimSpace(part), 32)
			if err != nil || math.IsInf(v, 0) || math.IsNaN(v) {
				return fmt.Errorf("%q is no finite float32", part)
			}
			target[i] = float32(v)
		}
		return check()
	})
}

// positive declares a flag whose value is a finite number above 0, of such units.
func (fs *flagSet) positive(name, units, usage string, target *float64) {
	fs.once(name, usage, func(s string) (err error) {
		if *target, err = strconv.ParseFloat(s, 64); err != nil || !(*target > 0) || math.IsInf(*target, 0) {
			return fmt.Errorf("use a finite number of %s above 0", units)
		}
		return nil
	})
}

// wholes declares a flag whose value is two whole numbers, separated by a comma.
func (fs *flagSet) wholes(name, usage string, check func(a, b int64) error) {
	fs.once(name, usage, func(s string) error {
		first, second, ok := strings.Cut(s, ",")
		a, err := strconv.ParseInt(strings.TrimSpace(first), 10, 64)
		b, err2 := strconv.ParseInt(strings.TrimSpace(second), 10, 64)
		if !ok || err != nil || err2 != nil {
			return errors.New("use two whole numbers, separated by a comma")
		}
		return check(a, b)
	})
}
