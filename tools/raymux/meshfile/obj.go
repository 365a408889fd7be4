package meshfile

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"

	"github.com/raymux/raymux/tools/raymux/fileio"
)

// objIgnored are the statements of the format that describe no polygon: attributes, grouping, materials, display, points
// and lines. Free-form surfaces are not among them, because skipping one would lose geometry without a word.
var objIgnored = map[string]bool{
	"vt": true, "vn": true, "vp": true,
	"g": true, "s": true, "o": true, "mg": true,
	"usemtl": true, "mtllib": true, "usemap": true, "maplib": true,
	"bevel": true, "c_interp": true, "d_interp": true, "lod": true, "shadow_obj": true, "trace_obj": true,
	"p": true, "l": true,
}

// objReader collects the polygons of an .obj file.
type objReader struct {
	lex     *lexer
	mesh    Mesh
	maxRef  int64 // largest vertex number that a face names, from 1
	maxLine int   // its line
}

func readOBJ(r io.Reader) (Mesh, error) {
	o := &objReader{lex: newLexer(bufio.NewReaderSize(r, 1<<16))}
	o.lex.comment, o.lex.joinLines = '#', true
	for {
		more, err := o.lex.nextLine()
		if err != nil {
			return Mesh{}, err
		}
		if !more {
			break
		}
		if err := o.statement(); err != nil {
			return Mesh{}, err
		}
	}
	// A face may name a vertex that comes after it, so numbers are checked when all vertices are known.
	if n := int64(len(o.mesh.Vertices) / 3); o.maxRef > n {
		return Mesh{}, &fileio.Fault{Where: fmt.Sprintf("line %d", o.maxLine), Found: fmt.Sprintf("vertex %d", o.maxRef),
			Expected: fmt.Sprintf("a vertex from 1 to %d, the file's number of vertices", n)}
	}
	return o.mesh, nil
}

func (o *objReader) statement() error {
	word, err := o.lex.nextWord()
	if err != nil || word == nil {
		return err
	}
	switch {
	case len(word) == 1 && word[0] == 'v':
		return o.vertex()
	case len(word) == 1 && word[0] == 'f':
		return o.face()
	case objIgnored[string(word)]:
		return nil
	}
	return o.lex.fault("a statement of a polygon mesh (v, vt, vn, f, g, o, s, usemtl, ...)", "%s", fileio.Quote(word))
}

// vertex reads x y z. What may follow, a weight or a colour, is skipped.
func (o *objReader) vertex() error {
	for _, axis := range []string{"x", "y", "z"} {
		v, err := o.lex.number(axis)
		if err != nil {
			return err
		}
		o.mesh.Vertices = append(o.mesh.Vertices, v)
	}
	if len(o.mesh.Vertices)/3 > maxVertices {
		return o.lex.fault(fmt.Sprintf("at most %d", maxVertices), "more vertices")
	}
	return nil
}

func (o *objReader) face() error {
	var f fan
	line := o.lex.line
	for {
		word, err := o.lex.nextWord()
		if err != nil {
			return err
		}
		if word == nil {
			break
		}
		ref, err := o.corner(word)
		if err != nil {
			return err
		}
		if ref > o.maxRef {
			o.maxRef, o.maxLine = ref, line
		}
		o.mesh.Faces = f.add(o.mesh.Faces, int32(ref-1))
	}
	if f.corners < 3 {
		return o.lex.fault("at least 3", "a face with %d corners", f.corners)
	}
	if len(o.mesh.Faces)/3 > maxFaces {
		return o.lex.fault(fmt.Sprintf("at most %d", maxFaces), "more triangles")
	}
	return nil
}

// corner reads v, v/vt, v//vn or v/vt/vn and returns the vertex number, from 1. Negative numbers count back from the
// latest vertex.
func (o *objReader) corner(word []byte) (int64, error) {
	const form = "a corner v, v/vt, v//vn or v/vt/vn"
	number, rest, _ := bytes.Cut(word, []byte{'/'})
	ref, err := strconv.ParseInt(string(number), 10, 64)
	if err != nil || bytes.Count(rest, []byte{'/'}) > 1 {
		return 0, o.lex.fault(form, "%s", fileio.Quote(word))
	}
	for part, more := rest, len(rest) > 0; more; {
		var p []byte
		p, part, more = bytes.Cut(part, []byte{'/'})
		if _, err := strconv.ParseInt(string(p), 10, 64); err != nil && len(p) > 0 {
			return 0, o.lex.fault(form, "%s", fileio.Quote(word))
		}
	}
	have := int64(len(o.mesh.Vertices) / 3)
	switch {
	case ref > maxVertices:
		return 0, o.lex.fault(fmt.Sprintf("a vertex from 1 to %d", maxVertices), "vertex %d", ref)
	case ref > 0:
		return ref, nil
	case ref < 0 && ref >= -have:
		return have + 1 + ref, nil
	}
	return 0, o.lex.fault(fmt.Sprintf("a vertex number from 1, or from -%d to -1 counted back from here", have),
		"vertex %d", ref)
}
