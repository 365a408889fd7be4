package meshfile

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/raymux/raymux/tools/raymux/fileio"
)

// plyReader reads the tables of a .ply file after its header.
type plyReader struct {
	header *plyHeader
	values plyValues
	mesh   Mesh

	vertices int64                // declared number of vertices, known before the faces are read in whatever order
	corners  *plyProperty         // the list of a face's vertices
	axes     map[*plyProperty]int // the coordinates of a vertex
	position [3]float32           // of the vertex being read
}

func readPLY(r io.Reader, size int64) (Mesh, error) {
	br := bufio.NewReaderSize(r, 1<<16)
	h, err := readPLYHeader(br)
	if err != nil {
		return Mesh{}, err
	}
	p := &plyReader{header: h}
	if err := p.check(size); err != nil {
		return Mesh{}, err
	}
	switch h.format {
	case "ascii":
		p.values = newPLYText(br, h.lines)
	case "binary_little_endian":
		p.values = &plyBinary{r: br, order: binary.LittleEndian}
	default:
		p.values = &plyBinary{r: br, order: binary.BigEndian}
	}
	p.mesh.Vertices = make([]float32, 0, 3*p.vertices)
	for _, e := range h.elements {
		if err := p.element(e); err != nil {
			return Mesh{}, err
		}
	}
	return p.mesh, p.values.end()
}

// check finds the tables of the mesh and compares the declared numbers of rows with the size of the file.
func (p *plyReader) check(size int64) error {
	ascii := p.header.format == "ascii"
	left := size - p.header.size
	if ascii {
		left++ // the last number may lack its separator
	}
	var vertex, face *plyElement
	for _, e := range p.header.elements {
		need := e.minBytes(ascii)
		if need > 0 && e.rows > left/need {
			return fileio.Faultf(fmt.Sprintf("at most the %d bytes that are left in the file", max(left, 0)),
				"%d rows of element %s, at least %d bytes each", e.rows, fileio.Quote(e.name), need)
		}
		left -= need * e.rows
		switch e.name {
		case "vertex":
			vertex = e
		case "face":
			face = e
		}
	}
	if vertex == nil || face == nil {
		return fileio.Faultf("elements vertex and face", "a header without one of them")
	}
	if vertex.rows > maxVertices {
		return fileio.Faultf(fmt.Sprintf("at most %d", maxVertices), "%d vertices", vertex.rows)
	}
	p.vertices = vertex.rows
	p.axes = map[*plyProperty]int{}
	for i, name := range []string{"x", "y", "z"} {
		prop := vertex.find(name)
		if prop == nil || prop.count != nil {
			return fileio.Faultf("numbers x, y and z", "an element vertex without number %s", name)
		}
		p.axes[prop] = i
		p.mesh.Rounded = p.mesh.Rounded || prop.value.size == 8
	}
	p.corners = face.find("vertex_indices")
	if p.corners == nil {
		p.corners = face.find("vertex_index")
	}
	if p.corners == nil || p.corners.count == nil || p.corners.value.floating {
		return fileio.Faultf("a list of integers vertex_indices or vertex_index", "an element face without it")
	}
	return nil
}

func (p *plyReader) element(e *plyElement) error {
	if len(e.properties) == 0 {
		return nil // rows without content take no space
	}
	for row := range e.rows {
		for i := range e.properties {
			if err := p.property(e, &e.properties[i], row); err != nil {
				return fileio.AsTruncation(err, rowName(e, row), fmt.Sprintf("%d rows", e.rows))
			}
		}
		if e.name == "vertex" {
			p.mesh.Vertices = append(p.mesh.Vertices, p.position[:]...)
		}
	}
	return nil
}

func rowName(e *plyElement, row int64) string { return fmt.Sprintf("%s %d", e.name, row) }

func (p *plyReader) property(e *plyElement, prop *plyProperty, row int64) error {
	if prop.count == nil {
		v, err := p.values.next(prop.value)
		if err != nil {
			return err
		}
		axis, isAxis := p.axes[prop]
		if !isAxis {
			return nil
		}
		if p.position[axis] = float32(v); !finite(p.position[axis]) {
			return &fileio.Fault{Where: rowName(e, row), Found: fmt.Sprintf("%s = %v", prop.name, v), Expected: "a finite float32"}
		}
		return nil
	}
	n, err := p.values.next(prop.count)
	if err != nil {
		return err
	}
	if n < 0 {
		return &fileio.Fault{Where: rowName(e, row), Found: fmt.Sprintf("a list of %v numbers", n), Expected: "a length >= 0"}
	}
	if prop == p.corners {
		return p.polygon(e, row, int64(n))
	}
	for range int64(n) {
		if _, err := p.values.next(prop.value); err != nil {
			return err
		}
	}
	return nil
}

func (p *plyReader) polygon(e *plyElement, row, corners int64) error {
	if corners < 3 {
		return &fileio.Fault{Where: rowName(e, row), Found: fmt.Sprintf("%d corners", corners), Expected: "at least 3"}
	}
	var f fan
	for range corners {
		v, err := p.values.next(p.corners.value)
		if err != nil {
			return err
		}
		if v < 0 || v >= float64(p.vertices) {
			return &fileio.Fault{Where: rowName(e, row), Found: fmt.Sprintf("vertex %.0f", v),
				Expected: fmt.Sprintf("a vertex from 0 to %d", p.vertices-1)}
		}
		p.mesh.Faces = f.add(p.mesh.Faces, int32(v))
	}
	if len(p.mesh.Faces)/3 > maxFaces {
		return &fileio.Fault{Where: rowName(e, row), Found: "more triangles", Expected: fmt.Sprintf("at most %d", maxFaces)}
	}
	return nil
}
