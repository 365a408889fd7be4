package vm

import "strings"

type tokenKind uint8

const (
	tokEOF    tokenKind = iota
	tokWord             // names, opcodes with their modifiers, directives (leading dot)
	tokNumber           // as written
	tokString           // without the quotes
	tokPunct            // one character
)

type token struct {
	kind tokenKind
	text string
	line int
}

func isWordStart(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '$' || c == '%'
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isWordPart(c byte) bool { return isWordStart(c) && c != '%' || isDigit(c) }

// lexer cuts the text into tokens on demand, so that memory stays bounded by the text.
type lexer struct {
	src  string
	pos  int
	line int
}

// next returns the next token; malformed text yields a *LoadError.
func (l *lexer) next() (token, error) {
	if err := l.skipBlank(); err != nil {
		return token{}, err
	}
	if l.pos >= len(l.src) {
		return token{kind: tokEOF, line: l.line, text: "end of text"}, nil
	}
	start, c := l.pos, l.src[l.pos]
	at := func(i int) byte {
		if i < len(l.src) {
			return l.src[i]
		}
		return 0
	}
	switch {
	case isWordStart(c) || c == '.' && isWordStart(at(l.pos+1)):
		l.pos++
		for l.pos < len(l.src) {
			switch n := at(l.pos + 1); {
			case isWordPart(l.src[l.pos]):
				l.pos++
			case l.src[l.pos] == '.' && isWordPart(n):
				l.pos += 2
			case l.src[l.pos] == ':' && n == ':' && isWordPart(at(l.pos+2)):
				l.pos += 3
			default:
				return token{tokWord, l.src[start:l.pos], l.line}, nil
			}
		}
		return token{tokWord, l.src[start:l.pos], l.line}, nil
	case isDigit(c):
		hex := c == '0' && strings.IndexByte("xXfFdD", at(l.pos+1)) >= 0
		for l.pos < len(l.src) {
			c := l.src[l.pos]
			exponent := !hex && (c == '+' || c == '-') && (l.src[l.pos-1] == 'e' || l.src[l.pos-1] == 'E')
			if !isWordPart(c) && c != '.' && !exponent {
				break
			}
			l.pos++
		}
		return token{tokNumber, l.src[start:l.pos], l.line}, nil
	case c == '"':
		end := strings.IndexAny(l.src[l.pos+1:], "\"\n")
		if end < 0 || l.src[l.pos+1+end] == '\n' {
			return token{}, &LoadError{Line: l.line, Msg: "string is not closed"}
		}
		l.pos += end + 2
		return token{tokString, l.src[start+1 : l.pos-1], l.line}, nil
	case c < 0x21 || c > 0x7e:
		return token{}, &LoadError{Line: l.line, Msg: "unexpected byte " + quoteByte(c)}
	}
	l.pos++
	return token{tokPunct, l.src[start:l.pos], l.line}, nil
}

func quoteByte(c byte) string {
	const hex = "0123456789abcdef"
	return "0x" + string([]byte{hex[c>>4], hex[c&15]})
}

// skipBlank passes over white space and comments.
func (l *lexer) skipBlank() error {
	for l.pos < len(l.src) {
		switch c := l.src[l.pos]; {
		case c == '\n':
			l.line++
			l.pos++
		case c == ' ' || c == '\t' || c == '\r':
			l.pos++
		case strings.HasPrefix(l.src[l.pos:], "//"):
			if end := strings.IndexByte(l.src[l.pos:], '\n'); end >= 0 {
				l.pos += end
			} else {
				l.pos = len(l.src)
			}
		case strings.HasPrefix(l.src[l.pos:], "/*"):
			end := strings.Index(l.src[l.pos+2:], "*/")
			if end < 0 {
				return &LoadError{Line: l.line, Msg: "comment is not closed"}
			}
			l.line += strings.Count(l.src[l.pos:l.pos+2+end], "\n")
			l.pos += end + 4
		default:
			return nil
		}
	}
	return nil
}
