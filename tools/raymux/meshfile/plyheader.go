package meshfile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/raymux/raymux/tools/raymux/fileio"
)

const (
	maxPLYHeader = 1 << 20 // bytes; comments may be long, but not without end
	maxPLYLine   = 1 << 12
)

// plyType is a number type of the format.
type plyType struct {
	name     string
	size     int64
	lo, hi   float64 // range of an integer type
	floating bool
}

var plyTypes = func() map[string]*plyType {
	m := map[string]*plyType{}
	for _, t := range []struct {
		names [2]string
		plyType
	}{
		{[2]string{"char", "int8"}, plyType{size: 1, lo: math.MinInt8, hi: math.MaxInt8}},
		{[2]string{"uchar", "uint8"}, plyType{size: 1, hi: math.MaxUint8}},
		{[2]string{"short", "int16"}, plyType{size: 2, lo: math.MinInt16, hi: math.MaxInt16}},
		{[2]string{"ushort", "uint16"}, plyType{size: 2, hi: math.MaxUint16}},
		{[2]string{"int", "int32"}, plyType{size: 4, lo: math.MinInt32, hi: math.MaxInt32}},
		{[2]string{"uint", "uint32"}, plyType{size: 4, hi: math.MaxUint32}},
		{[2]string{"float", "float32"}, plyType{size: 4, floating: true}},
		{[2]string{"double", "float64"}, plyType{size: 8, floating: true}},
	} {
		shared := t.plyType
		shared.name = t.names[0]
		for _, name := range t.names {
			m[name] = &shared
		}
	}
	return m
}()

// plyProperty is one property of an element: a number, or a list of count numbers.
type plyProperty struct {
	name  string
	count *plyType // type of a list's length; nil for a number
	value *plyType
}

// plyElement is a table of the file.
type plyElement struct {
	name       string
	rows       int64
	properties []plyProperty
}

// minBytes is the least number of bytes that a row of the element takes.
func (e *plyElement) minBytes(ascii bool) int64 {
	var n int64
	for _, p := range e.properties {
		switch {
		case ascii:
			n += 2 // a digit and what separates it from the next; the very last of a file may lack the latter
		case p.count != nil:
			n += p.count.size
		default:
			n += p.value.size
		}
	}
	return n
}

func (e *plyElement) find(name string) *plyProperty {
	for i := range e.properties {
		if e.properties[i].name == name {
			return &e.properties[i]
		}
	}
	return nil
}

type plyHeader struct {
	format   string // ascii, binary_little_endian or binary_big_endian
	elements []*plyElement
	size     int64 // bytes of the header
	lines    int
}

// plyHeaderReader reads the header line by line and leaves the reader exactly at the first byte of the data. Which bytes
// end a line is taken from the first one, because after "end_header\r" a following \n may already be data.
type plyHeaderReader struct {
	r    *bufio.Reader
	crlf bool
	h    plyHeader
}

func (p *plyHeaderReader) fault(expected, found string, args ...any) error {
	return &fileio.Fault{Where: fmt.Sprintf("line %d", p.h.lines), Found: fmt.Sprintf(found, args...), Expected: expected}
}

func (p *plyHeaderReader) readLine() (string, error) {
	p.h.lines++
	var b []byte
	for {
		c, err := p.r.ReadByte()
		if err != nil {
			return "", fileio.AsTruncation(err, fmt.Sprintf("line %d", p.h.lines), "a header that ends with end_header")
		}
		if p.h.size++; p.h.size > maxPLYHeader {
			return "", p.fault(fmt.Sprintf("at most %d bytes", maxPLYHeader), "a longer header")
		}
		switch c {
		case '\n':
			return string(b), nil
		case '\r':
			if p.h.lines == 1 {
				next, err := p.r.Peek(1)
				p.crlf = err == nil && next[0] == '\n'
			}
			if p.crlf {
				continue // the \n follows
			}
			return string(b), nil
		}
		if b = append(b, c); len(b) > maxPLYLine {
			return "", p.fault(fmt.Sprintf("at most %d characters", maxPLYLine), "a longer line")
		}
	}
}

func readPLYHeader(r *bufio.Reader) (*plyHeader, error) {
	p := &plyHeaderReader{r: r}
	const magic = "ply"
	head, err := r.Peek(len(magic))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if string(head) != magic {
		return nil, fileio.Faultf("\"ply\"", "%s at the beginning", fileio.Quote(head))
	}
	if line, err := p.readLine(); err != nil || strings.TrimRight(line, " \t") != magic {
		if err != nil {
			return nil, err
		}
		return nil, p.fault("\"ply\"", "%s", fileio.Quote(line))
	}
	for {
		line, err := p.readLine()
		if err != nil {
			return nil, err
		}
		words := strings.Fields(line)
		if len(words) == 1 && words[0] == "end_header" {
			break
		}
		if err := p.statement(words, line); err != nil {
			return nil, err
		}
	}
	if p.h.format == "" {
		return nil, p.fault("a line \"format ascii 1.0\" or the like", "no format")
	}
	return &p.h, nil
}

func (p *plyHeaderReader) statement(words []string, line string) error {
	if len(words) == 0 {
		return p.fault("a header statement", "an empty line")
	}
	switch {
	case words[0] == "comment" || words[0] == "obj_info":
		return nil
	case words[0] == "format" && len(words) == 3 && p.h.format == "":
		switch words[1] {
		case "ascii", "binary_little_endian", "binary_big_endian":
			if words[2] == "1.0" {
				p.h.format = words[1]
				return nil
			}
		}
		return p.fault("ascii, binary_little_endian or binary_big_endian, version 1.0", "%s", fileio.Quote(line))
	case words[0] == "element" && len(words) == 3:
		return p.element(words[1], words[2])
	case words[0] == "property" && len(words) == 3:
		return p.property(words[2], "", words[1])
	case words[0] == "property" && len(words) == 5 && words[1] == "list":
		return p.property(words[4], words[2], words[3])
	}
	return p.fault("a header statement (format, comment, obj_info, element, property, end_header)", "%s", fileio.Quote(line))
}

func (p *plyHeaderReader) element(name, count string) error {
	rows, err := strconv.ParseInt(count, 10, 64)
	if err != nil || rows < 0 {
		return p.fault("a number of rows", "%s", fileio.Quote(count))
	}
	for _, e := range p.h.elements {
		if e.name == name {
			return p.fault("each element once", "element %s twice", fileio.Quote(name))
		}
	}
	p.h.elements = append(p.h.elements, &plyElement{name: name, rows: rows})
	return nil
}

func (p *plyHeaderReader) property(name, count, value string) error {
	if len(p.h.elements) == 0 {
		return p.fault("an element before its properties", "property %s", fileio.Quote(name))
	}
	const types = "char, uchar, short, ushort, int, uint, float or double"
	e := p.h.elements[len(p.h.elements)-1]
	prop := plyProperty{name: name, value: plyTypes[value]}
	if prop.value == nil {
		return p.fault(types, "type %s", fileio.Quote(value))
	}
	if count != "" {
		prop.count = plyTypes[count]
		if prop.count == nil || prop.count.floating {
			return p.fault("an integer type for the length of a list", "type %s", fileio.Quote(count))
		}
	}
	if e.find(name) != nil {
		return p.fault("each property once", "property %s of %s twice", fileio.Quote(name), fileio.Quote(e.name))
	}
	e.properties = append(e.properties, prop)
	return nil
}
