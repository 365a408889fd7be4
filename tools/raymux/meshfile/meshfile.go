package meshfile

import (
	"io"
	"math"
	"path/filepath"
	"strings"

	"github.com/raymux/raymux/tools/raymux/fileio"
)

const (
	maxVertices = math.MaxInt32
	// maxFaces is the scene's limit for all meshes together; a single file beyond it is refused while it is read.
	maxFaces = 1 << 29
)

// Mesh is a triangle mesh as a file holds it: at least one face, every index in range, every coordinate finite.
type Mesh struct {
	Vertices []float32 // 3 per vertex, x y z
	Faces    []int32   // 3 per triangle, indices of vertices
	Rounded  bool      // the file holds float64 positions, which were rounded
}

// Format is the kind of a mesh file.
type Format string

// The formats that [Read] understands.
const (
	OBJ Format = "obj"
	PLY Format = "ply"
	STL Format = "stl"
)

// FormatOf tells the format from a file's name, whatever the case of its extension. Another extension is a [*fileio.Fault].
func FormatOf(name string) (Format, error) {
	ext := filepath.Ext(name)
	switch f := Format(strings.TrimPrefix(strings.ToLower(ext), ".")); f {
	case OBJ, PLY, STL:
		return f, nil
	}
	found := "a name without extension"
	if ext != "" {
		found = "extension " + fileio.Quote(ext)
	}
	return "", fileio.Faultf(".obj, .ply or .stl", "%s", found)
}

// Read reads a mesh of size bytes.
func Read(r io.Reader, size int64, format Format) (Mesh, error) {
	var m Mesh
	var err error
	switch format {
	case OBJ:
		m, err = readOBJ(r)
	case PLY:
		m, err = readPLY(r, size)
	default:
		m, err = readSTL(r, size)
	}
	if err != nil {
		return Mesh{}, err
	}
	if len(m.Faces) == 0 {
		return Mesh{}, fileio.Faultf("at least one face", "an empty mesh (%d vertices, no faces)", len(m.Vertices)/3)
	}
	return m, nil
}

// fan turns the corners of one polygon into triangles.
type fan struct {
	first, prev int32
	corners     int
}

// add appends the next corner, and from the third on a triangle to faces.
func (f *fan) add(faces []int32, corner int32) []int32 {
	f.corners++
	if f.corners == 1 {
		f.first = corner
	}
	if f.corners >= 3 {
		faces = append(faces, f.first, f.prev, corner)
	}
	f.prev = corner
	return faces
}

func finite(v float32) bool { return v-v == 0 }
