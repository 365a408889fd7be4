package npy

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/raymux/raymux/tools/raymux/fileio"
)

// parseDict reads the header's text: a Python dictionary with exactly the keys descr, fortran_order and shape, in any
// order and spacing, and nothing but white space after it.
func parseDict(text string) (Header, error) {
	p := &dictParser{rest: text}
	h, err := p.dict()
	if err != nil {
		return Header{}, err
	}
	return h, nil
}

type dictParser struct{ rest string }

const dictForm = "a dictionary {'descr': ..., 'fortran_order': ..., 'shape': ...}"

func (p *dictParser) fault(expected string) error {
	found := "the end of the header"
	if p.rest != "" {
		found = fileio.Quote(p.rest)
	}
	return &fileio.Fault{Where: "header", Found: found, Expected: expected}
}

// take consumes token if it comes next, after white space.
func (p *dictParser) take(token string) bool {
	p.rest = strings.TrimLeft(p.rest, " \t\r\n")
	rest, ok := strings.CutPrefix(p.rest, token)
	if ok {
		p.rest = rest
	}
	return ok
}

func (p *dictParser) dict() (Header, error) {
	var h Header
	seen := map[string]bool{}
	if !p.take("{") {
		return h, p.fault(dictForm)
	}
	for !p.take("}") {
		key, ok := p.str()
		if !ok || !p.take(":") {
			return h, p.fault(dictForm)
		}
		if seen[key] {
			return h, &fileio.Fault{Where: "header", Found: "key " + fileio.Quote(key) + " twice", Expected: dictForm}
		}
		seen[key] = true
		if err := p.entry(&h, key); err != nil {
			return h, err
		}
		if !p.take(",") {
			if p.take("}") {
				break
			}
			return h, p.fault("',' or '}'")
		}
	}
	for _, key := range []string{"descr", "fortran_order", "shape"} {
		if !seen[key] {
			return h, &fileio.Fault{Where: "header", Found: "no key '" + key + "'", Expected: dictForm}
		}
	}
	if strings.TrimLeft(p.rest, " \t\r\n") != "" {
		return h, p.fault("nothing after the dictionary")
	}
	return h, nil
}

func (p *dictParser) entry(h *Header, key string) error {
	switch key {
	case "descr":
		if p.take("[") {
			return &fileio.Fault{Where: "header", Found: "a structured dtype", Expected: "a plain number type"}
		}
		s, ok := p.str()
		if !ok {
			return p.fault("a dtype string")
		}
		h.DType = s
	case "fortran_order":
		switch {
		case p.take("True"):
			h.Fortran = true
		case p.take("False"):
			h.Fortran = false
		default:
			return p.fault("True or False")
		}
	case "shape":
		return p.shape(h)
	default:
		return &fileio.Fault{Where: "header", Found: "key " + fileio.Quote(key), Expected: dictForm}
	}
	return nil
}

// str reads a quoted string. The strings of a valid header hold no escapes, so a backslash ends the match.
func (p *dictParser) str() (string, bool) {
	for _, quote := range []string{"'", "\""} {
		if p.take(quote) {
			s, rest, ok := strings.Cut(p.rest, quote)
			if !ok || strings.ContainsAny(s, "\\\n") {
				return "", false
			}
			p.rest = rest
			return s, true
		}
	}
	return "", false
}

func (p *dictParser) shape(h *Header) error {
	if !p.take("(") {
		return p.fault("a shape such as (4, 3)")
	}
	for !p.take(")") {
		p.take("") // skip white space
		n := len(p.rest) - len(strings.TrimLeft(p.rest, "-+0123456789"))
		digits := p.rest[:n]
		d, err := strconv.ParseInt(digits, 10, 64)
		if err != nil || d < 0 {
			if n == 0 {
				return p.fault("a dimension")
			}
			return &fileio.Fault{Where: "header", Found: "dimension " + fileio.Quote(digits),
				Expected: "a number >= 0 that fits into 64 bits"}
		}
		p.rest = p.rest[n:]
		p.take("L") // Python 2 wrote long integers so
		if h.Shape = append(h.Shape, d); len(h.Shape) > maxRank {
			return &fileio.Fault{Where: "header", Found: "more dimensions", Expected: fmt.Sprintf("at most %d", maxRank)}
		}
		if !p.take(",") {
			if p.take(")") {
				break
			}
			return p.fault("',' or ')'")
		}
	}
	return nil
}
