package meshfile

import (
	"bufio"
	"bytes"
	"fmt"

	"github.com/raymux/raymux/tools/raymux/fileio"
)

// ascii reads the solids of a text file; several become one mesh. Keywords may be in any case and lines of any length.
func (w *welder) ascii(r *bufio.Reader) error {
	s := &stlText{lex: newLexer(r), out: w}
	inSolid := false
	for {
		word, err := s.word()
		if err != nil {
			return err
		}
		switch {
		case word == nil && !inSolid:
			return nil
		case !inSolid && is(word, "solid"):
			inSolid = true
			// The rest of the line is a name.
			if err := s.skipLine(); err != nil {
				return err
			}
		case inSolid && is(word, "facet"):
			if err := s.facet(); err != nil {
				return err
			}
		case inSolid && is(word, "endsolid"):
			inSolid = false
			if err := s.skipLine(); err != nil {
				return err
			}
		case inSolid:
			return s.unexpected(word, "\"facet\" or \"endsolid\"")
		default:
			return s.unexpected(word, "\"solid\"")
		}
	}
}

func is(word []byte, keyword string) bool { return bytes.EqualFold(word, []byte(keyword)) }

// stlText reads the facets of a text file.
type stlText struct {
	lex *lexer
	out *welder
}

// word is the next word of the file, or nil at its end.
func (s *stlText) word() ([]byte, error) {
	for {
		w, err := s.lex.nextWord()
		if err != nil || w != nil {
			return w, err
		}
		if more, err := s.lex.nextLine(); err != nil || !more {
			return nil, err
		}
	}
}

func (s *stlText) skipLine() error {
	_, err := s.lex.nextLine()
	return err
}

func (s *stlText) unexpected(word []byte, expected string) error {
	if word == nil {
		return s.lex.fault(expected, "the end of the file")
	}
	return s.lex.fault(expected, "%s", fileio.Quote(word))
}

func (s *stlText) expect(keywords ...string) error {
	for _, k := range keywords {
		word, err := s.word()
		if err != nil {
			return err
		}
		if !is(word, k) {
			return s.unexpected(word, fmt.Sprintf("%q", k))
		}
	}
	return nil
}

// facet reads what follows "facet". The stored normal is skipped: the order of the corners defines the normal, and many
// programs write zeros or worse here.
func (s *stlText) facet() error {
	if err := s.expect("normal"); err != nil {
		return err
	}
	for range 3 {
		if word, err := s.word(); err != nil || word == nil {
			if err != nil {
				return err
			}
			return s.unexpected(nil, "a normal")
		}
	}
	if err := s.expect("outer", "loop"); err != nil {
		return err
	}
	for range 3 {
		if err := s.expect("vertex"); err != nil {
			return err
		}
		var p [3]float32
		for axis := range p {
			word, err := s.word()
			if err != nil {
				return err
			}
			if word == nil {
				return s.unexpected(nil, "a coordinate")
			}
			if p[axis], err = s.lex.parseFloat(word, "a coordinate"); err != nil {
				return err
			}
		}
		s.out.add(p)
	}
	if len(s.out.mesh.Faces)/3 > maxFaces {
		return s.lex.fault(fmt.Sprintf("at most %d", maxFaces), "more triangles")
	}
	return s.expect("endloop", "endfacet")
}
