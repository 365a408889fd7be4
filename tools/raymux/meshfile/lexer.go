package meshfile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/raymux/raymux/tools/raymux/fileio"
)

// maxWord bounds a word of a text file. Numbers are far shorter; only damaged files have longer words.
const maxWord = 256

// lexer splits a text file into lines and words without ever holding a line, since a polygon may be of any length. Lines
// end in \n, \r\n or \r.
type lexer struct {
	r         *bufio.Reader
	comment   byte // begins a comment when it begins a word; 0: no comments
	joinLines bool // a backslash at the end of a line continues it
	line      int  // number of the current line, from 1; 0 before the first nextLine

	ended bool // the end of the current line has been read, or no line has been begun
	word  [maxWord]byte
}

func newLexer(r *bufio.Reader) *lexer { return &lexer{r: r, ended: true} }

// nextLine moves to the beginning of the next line, skipping the rest of the current one. It returns false at the end of
// the file.
func (l *lexer) nextLine() (bool, error) {
	for !l.ended {
		if _, err := l.next(); err != nil {
			return false, err
		}
	}
	if _, err := l.r.Peek(1); err != nil {
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		return false, err
	}
	l.line++
	l.ended = false
	return true, nil
}

// where names the current line in a fault.
func (l *lexer) where() string { return fmt.Sprintf("line %d", l.line) }

func (l *lexer) fault(expected, found string, args ...any) error {
	return &fileio.Fault{Where: l.where(), Found: fmt.Sprintf(found, args...), Expected: expected}
}

// newline is what next returns for the end of a line, and at the end of the file.
const newline = '\n'

// next reads one character; line ends of any kind are one newline, and set ended.
func (l *lexer) next() (byte, error) {
	c, err := l.r.ReadByte()
	switch {
	case errors.Is(err, io.EOF):
		l.ended = true
		return newline, nil
	case err != nil:
		return 0, err
	case c == '\r':
		if b, err := l.r.Peek(1); err == nil && b[0] == '\n' {
			_, _ = l.r.Discard(1) // buffered by Peek
		}
		c = newline
	}
	if c == newline {
		l.ended = true
	}
	return c, nil
}

func blank(c byte) bool { return c == ' ' || c == '\t' || c == '\v' || c == '\f' }

// nextWord returns the next word of the current line, or nil when the line has no more. The slice is valid until the following call.
func (l *lexer) nextWord() ([]byte, error) {
	w := l.word[:0]
	for !l.ended {
		c, err := l.next()
		if err != nil {
			return nil, err
		}
		switch {
		case c == '\\' && l.joinLines && l.atLineEnd():
			if _, err := l.next(); err != nil {
				return nil, err
			}
			l.line++
			l.ended = false
			c = ' '
		case c == l.comment && c != 0 && len(w) == 0:
			for !l.ended {
				if _, err := l.next(); err != nil {
					return nil, err
				}
			}
		}
		if blank(c) || l.ended {
			if len(w) > 0 {
				return w, nil
			}
			continue
		}
		if len(w) == maxWord {
			return nil, l.fault("text", "a word of more than %d characters", maxWord)
		}
		w = append(w, c)
	}
	return nil, nil
}

func (l *lexer) atLineEnd() bool {
	b, err := l.r.Peek(1)
	return err == nil && (b[0] == '\n' || b[0] == '\r')
}

// number reads the next word of the line as a finite float32, rounded once from the decimal text.
func (l *lexer) number(what string) (float32, error) {
	w, err := l.nextWord()
	if err != nil {
		return 0, err
	}
	if w == nil {
		return 0, l.fault(what, "the end of the line")
	}
	return l.parseFloat(w, what)
}

func (l *lexer) parseFloat(w []byte, what string) (float32, error) {
	v, err := parseDecimal(w, 32)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, l.fault(what+", a number", "%s", fileio.Quote(w))
	}
	if !finite(float32(v)) {
		return 0, l.fault(what+", a finite float32", "%s", fileio.Quote(w))
	}
	return float32(v), nil
}

// parseDecimal is strconv.ParseFloat without the notations that only Go source has: in a mesh file 1_0 and 0x1p3 are
// damage.
func parseDecimal(w []byte, bits int) (float64, error) {
	if bytes.ContainsAny(w, "_xX") {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseFloat(string(w), bits)
}
