package meshfile

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/raymux/raymux/tools/raymux/fileio"
)

const (
	stlPrefix   = 84 // bytes before the first triangle of a binary file: 80 of any text, the number of triangles
	stlTriangle = 50 // bytes of a triangle: a normal, three corners, two bytes of attributes
)

// welder numbers positions: equal ones get the same vertex.
type welder struct {
	mesh Mesh
	ids  map[[3]float32]int32
}

// add appends a corner to the faces. Adding +0 makes -0 the same key and the same coordinate as +0.
func (w *welder) add(p [3]float32) {
	for i := range p {
		p[i] += 0
	}
	id, known := w.ids[p]
	if !known {
		id = int32(len(w.mesh.Vertices) / 3)
		w.ids[p] = id
		w.mesh.Vertices = append(w.mesh.Vertices, p[:]...)
	}
	w.mesh.Faces = append(w.mesh.Faces, id)
}

// readSTL tells binary from ascii by the size of the file, not by its first word: binary files whose text begins with
// "solid" are common.
func readSTL(r io.Reader, size int64) (Mesh, error) {
	br := bufio.NewReaderSize(r, 1<<16)
	w := &welder{ids: map[[3]float32]int32{}}
	head, err := br.Peek(stlPrefix)
	if err != nil && !errors.Is(err, io.EOF) {
		return Mesh{}, err
	}
	ascii := bytes.EqualFold(head[:min(5, len(head))], []byte("solid"))
	if len(head) == stlPrefix {
		n := int64(binary.LittleEndian.Uint32(head[80:]))
		fits := size == stlPrefix+n*stlTriangle
		if !fits && !ascii {
			return Mesh{}, fileio.Faultf(fmt.Sprintf("%d bytes for the %d triangles that the file declares (or an ascii file, "+
				"which begins with \"solid\")", stlPrefix+n*stlTriangle, n), "%d bytes", size)
		}
		if fits {
			err := w.binary(br, n)
			return w.mesh, err
		}
	}
	if !ascii {
		return Mesh{}, fileio.Faultf(fmt.Sprintf("an .stl file: %d bytes or more, or text that begins with \"solid\"", stlPrefix),
			"%d bytes that begin with %s", size, fileio.Quote(head))
	}
	err = w.ascii(br)
	return w.mesh, err
}

func (w *welder) binary(r io.Reader, triangles int64) error {
	if triangles > maxFaces {
		return fileio.Faultf(fmt.Sprintf("at most %d", maxFaces), "%d triangles", triangles)
	}
	if _, err := io.CopyN(io.Discard, r, stlPrefix); err != nil {
		return err
	}
	var b [stlTriangle]byte
	for t := range triangles {
		if _, err := io.ReadFull(r, b[:]); err != nil {
			return fileio.AsTruncation(err, triangleName(t), fmt.Sprintf("%d triangles", triangles))
		}
		for corner := range 3 {
			var p [3]float32
			for axis := range p {
				p[axis] = math.Float32frombits(binary.LittleEndian.Uint32(b[12+12*corner+4*axis:]))
				if !finite(p[axis]) {
					return &fileio.Fault{Where: triangleName(t), Found: fmt.Sprintf("coordinate %v", p[axis]), Expected: "a finite float32"}
				}
			}
			w.add(p)
		}
	}
	return nil
}

func triangleName(t int64) string { return fmt.Sprintf("triangle %d", t) }
