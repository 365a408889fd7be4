package fileio

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// Fault says why a file is refused: the content or the kind of the file is wrong, and reading it again will not help.
type Fault struct {
	Where    string // place inside the file, for instance "line 7"; empty when it is the whole file
	Found    string // what is there
	Expected string // what should be there
}

// Error implements error: the place, what was found and what was expected, on one line.
func (f *Fault) Error() string {
	var b strings.Builder
	if f.Where != "" {
		b.WriteString(f.Where)
		b.WriteString(": ")
	}
	b.WriteString("found ")
	b.WriteString(f.Found)
	b.WriteString("; expected ")
	b.WriteString(f.Expected)
	return b.String()
}

// Faultf builds a [*Fault] without a place. The expectation comes first, because the format of what was found takes args.
func Faultf(expected, found string, args ...any) *Fault {
	return &Fault{Found: fmt.Sprintf(found, args...), Expected: expected}
}

// AsTruncation turns the end of input, met where more was expected, into a [*Fault], and leaves every other error alone:
// a read that the operating system refused must not look like a damaged file.
func AsTruncation(err error, where, expected string) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &Fault{Where: where, Found: "the end of the file", Expected: expected}
	}
	return err
}

// maxQuoted bounds the part of a damaged file that a message repeats.
const maxQuoted = 40

// Quote shows a piece of a file in a message: quoted, on one line, at most 40 bytes of it.
func Quote[T ~string | ~[]byte](s T) string {
	if len(s) > maxQuoted {
		return fmt.Sprintf("%q...", s[:maxQuoted])
	}
	return fmt.Sprintf("%q", s)
}
