package meshfile

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/raymux/raymux/tools/raymux/fileio"
)

// plyValues delivers the numbers of a file one after the other, whatever its encoding. Every value of every type of the
// format fits into a float64 without loss.
type plyValues interface {
	// next reads a number of type t.
	next(t *plyType) (float64, error)
	// end checks that the data ends here.
	end() error
}

// plyBinary decodes binary data.
type plyBinary struct {
	r     io.Reader
	order binary.ByteOrder
	buf   [8]byte
}

func (p *plyBinary) next(t *plyType) (float64, error) {
	b := p.buf[:t.size]
	if _, err := io.ReadFull(p.r, b); err != nil {
		return 0, err
	}
	switch t.size {
	case 1:
		if t.lo < 0 {
			return float64(int8(b[0])), nil
		}
		return float64(b[0]), nil
	case 2:
		v := p.order.Uint16(b)
		if t.lo < 0 {
			return float64(int16(v)), nil
		}
		return float64(v), nil
	case 4:
		v := p.order.Uint32(b)
		switch {
		case t.floating:
			return float64(math.Float32frombits(v)), nil
		case t.lo < 0:
			return float64(int32(v)), nil
		}
		return float64(v), nil
	default:
		return math.Float64frombits(p.order.Uint64(b)), nil
	}
}

// end accepts trailing white space, which text tools like to add, and nothing else: more data means that the header
// declares fewer rows than the file has.
func (p *plyBinary) end() error {
	var b [1]byte
	for {
		if _, err := io.ReadFull(p.r, b[:]); err != nil {
			return ignoreEOF(err)
		}
		if c := b[0]; !blank(c) && c != '\n' && c != '\r' {
			return fileio.Faultf("the end of the file", "more data than the header declares")
		}
	}
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// plyText parses ascii data. Words may be spread over lines in any way.
type plyText struct{ lex *lexer }

func newPLYText(r *bufio.Reader, headerLines int) *plyText {
	lex := newLexer(r)
	lex.line = headerLines
	return &plyText{lex: lex}
}

func (p *plyText) word() ([]byte, error) {
	for {
		w, err := p.lex.nextWord()
		if err != nil || w != nil {
			return w, err
		}
		more, err := p.lex.nextLine()
		if err != nil {
			return nil, err
		}
		if !more {
			return nil, io.EOF
		}
	}
}

func (p *plyText) next(t *plyType) (float64, error) {
	w, err := p.word()
	if err != nil {
		return 0, err
	}
	if !t.floating {
		v, err := strconv.ParseInt(string(w), 10, 64)
		if err != nil || float64(v) < t.lo || float64(v) > t.hi {
			return 0, p.lex.fault(fmt.Sprintf("an integer of type %s", t.name), "%s", fileio.Quote(w))
		}
		return float64(v), nil
	}
	// A float is rounded once, from its decimal text; a double keeps its precision until the caller rounds it.
	v, err := parseDecimal(w, int(8*t.size))
	if err != nil && !math.IsInf(v, 0) {
		return 0, p.lex.fault("a number", "%s", fileio.Quote(w))
	}
	return v, nil
}

func (p *plyText) end() error {
	w, err := p.word()
	if err != nil {
		return ignoreEOF(err)
	}
	return p.lex.fault("the end of the file", "%s, more data than the header declares", fileio.Quote(w))
}
