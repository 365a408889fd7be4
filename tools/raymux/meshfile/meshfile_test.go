package meshfile_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/tools/raymux/fileio"
	"github.com/raymux/raymux/tools/raymux/meshfile"
)

// The files of testdata come from plyfile and trimesh: see ../make_fixtures.py. All hold a square pyramid.
func fixture(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	return b
}

var (
	pyramidVertices = []float32{0, 0, 0, 2, 0, 0, 2, 2, 0, 0, 2, 0, 1, 1, 1.5}
	pyramidFaces    = []int32{0, 3, 2, 0, 2, 1, 0, 1, 4, 1, 2, 4, 2, 3, 4, 3, 0, 4}
)

func read(b []byte, f meshfile.Format) (meshfile.Mesh, error) {
	return meshfile.Read(bytes.NewReader(b), int64(len(b)), f)
}

// corners are the positions of all corners, which do not depend on how vertices are numbered.
func corners(m meshfile.Mesh) []float32 {
	var p []float32
	for _, i := range m.Faces {
		p = append(p, m.Vertices[3*i:3*i+3]...)
	}
	return p
}

func TestReadsWhatOthersWrite(t *testing.T) {
	want := corners(meshfile.Mesh{Vertices: pyramidVertices, Faces: pyramidFaces})
	for _, name := range []string{"ascii.ply", "little.ply", "big.ply", "double.ply", "trimesh.ply", "trimesh.obj",
		"trimesh.stl", "trimesh_ascii.stl"} {
		t.Run(name, func(t *testing.T) {
			format, err := meshfile.FormatOf(name)
			require.NoError(t, err)
			m, err := read(fixture(t, name), format)
			require.NoError(t, err)
			assert.Equal(t, want, corners(m))
			assert.Len(t, m.Vertices, 15, "equal corners of .stl are one vertex")
			if format != meshfile.STL {
				assert.Equal(t, pyramidVertices, m.Vertices)
				assert.Equal(t, pyramidFaces, m.Faces)
			}
			assert.Equal(t, name == "double.ply", m.Rounded)
		})
	}
}

func TestLineEndings(t *testing.T) {
	for _, name := range []string{"ascii.ply", "trimesh.obj", "trimesh_ascii.stl"} {
		for _, eol := range []string{"\r\n", "\r"} {
			format, err := meshfile.FormatOf(name)
			require.NoError(t, err)
			b := bytes.ReplaceAll(fixture(t, name), []byte("\n"), []byte(eol))
			m, err := read(b, format)
			require.NoError(t, err, "%s %q", name, eol)
			assert.Len(t, m.Faces, len(pyramidFaces))
		}
	}
	// The first byte of binary data may look like the end of a line.
	for _, eol := range []string{"\n", "\r\n", "\r"} {
		head := strings.Join([]string{"ply", "format binary_little_endian 1.0", "element vertex 3", "property uchar x",
			"property uchar y", "property uchar z", "element face 1", "property list uchar uchar vertex_index", "end_header", ""}, eol)
		m, err := read(append([]byte(head), 10, 13, 10, 1, 2, 3, 4, 5, 6, 3, 2, 1, 0), meshfile.PLY)
		require.NoError(t, err, "%q", eol)
		assert.Equal(t, []float32{10, 13, 10, 1, 2, 3, 4, 5, 6}, m.Vertices)
		assert.Equal(t, []int32{2, 1, 0}, m.Faces)
	}
}

func TestOBJ(t *testing.T) {
	for _, c := range []struct {
		name, text string
		faces      []int32
	}{
		{"forms of a corner", "v 0 0 0\nv 1 0 0\nv 0 1 0\nvt 0 0\nvn 0 0 1\nf 1 2 3\nf 1/1 2/1 3/1\nf 1//1 2//1 3//1\nf 1/1/1 2/1/1 3/1/1\n",
			[]int32{0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2}},
		{"negative numbers count from the latest vertex", "v 0 0 0\nv 1 0 0\nv 0 1 0\nf -3 -2 -1\nv 5 5 5\nf -4/7 -3/-1 -1\n",
			[]int32{0, 1, 2, 0, 1, 3}},
		{"vertices after the face", "f 1 2 3\nv 0 0 0\nv 1 0 0\nv 0 1 0", []int32{0, 1, 2}},
		{"pentagon", "v 0 0 0\nv 1 0 0\nv 2 1 0\nv 1 2 0\nv 0 1 0\nf 2 3 4 5 1\n", []int32{1, 2, 3, 1, 3, 4, 1, 4, 0}},
		{"weights, colours, comments, continuation", "# made by hand\nv 0 0 0 1 # w\nv 1 0 0 .5 .5 .5\n\n  v 0 1e0 \\\n 0\nf 1 \\\r\n2 3 # face\n",
			[]int32{0, 1, 2}},
		{"ignored statements", "mtllib a.mtl\no thing\ng a b\nusemtl red\ns off\nv 0 0 0\nv 1 0 0\nv 0 1 0\np 1\nl 1 2\nf 3 2 1\n", []int32{2, 1, 0}},
		{"degenerate faces are legal", "v 0 0 0\nv 1 0 0\nf 1 1 2\n", []int32{0, 0, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := read([]byte(c.text), meshfile.OBJ)
			require.NoError(t, err)
			assert.Equal(t, c.faces, m.Faces)
		})
	}
}

// A decimal that lies between two float32 so that rounding it to float64 first would give the other one.
func TestTextIsRoundedOnce(t *testing.T) {
	const tie = "1.00000017881393432617187499" // just below the middle of 1+2^-23 and 1+2^-22
	want := float32(1 + 1.0/(1<<23))
	obj, err := read([]byte("v "+tie+" 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n"), meshfile.OBJ)
	require.NoError(t, err)
	assert.Equal(t, want, obj.Vertices[0])
	ply, err := read([]byte(plyText("float", []string{tie + " 0 0", "1 0 0", "0 1 0"}, []string{"3 0 1 2"})), meshfile.PLY)
	require.NoError(t, err)
	assert.Equal(t, want, ply.Vertices[0])
}

func plyText(coordinate string, vertices, faces []string) string {
	return fmt.Sprintf("ply\nformat ascii 1.0\nelement vertex %d\nproperty %s x\nproperty %[2]s y\nproperty %[2]s z\n"+
		"element face %d\nproperty list uchar int vertex_indices\nend_header\n%s\n%s", len(vertices), coordinate, len(faces),
		strings.Join(vertices, "\n"), strings.Join(faces, "\n"))
}

func binarySTL(header string, triangles ...[9]float32) []byte {
	b := make([]byte, 80)
	copy(b, header)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(triangles)))
	for _, t := range triangles {
		b = append(b, make([]byte, 12)...)
		for _, v := range t {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
		b = append(b, 0, 0)
	}
	return b
}

func TestSTL(t *testing.T) {
	negZero := float32(math.Copysign(0, -1))
	m, err := read(binarySTL("solid but binary", [9]float32{0, 0, 0, 1, 0, 0, 0, 1, 0},
		[9]float32{0, 1, negZero, 1, 0, 0, 1, 1, 0}), meshfile.STL)
	require.NoError(t, err)
	assert.Equal(t, []int32{0, 1, 2, 2, 1, 3}, m.Faces, "-0 and +0 are one position")
	assert.Len(t, m.Vertices, 12)
	for _, v := range m.Vertices {
		assert.False(t, math.Signbit(float64(v)))
	}
	m, err = read([]byte("SOLID a name with facet\nFacet Normal nan nan nan OUTER loop vertex 0 0 0 vertex 1 0 0\nvertex 0 1 0\nendloop endfacet\n"+
		"endsolid a name\nsolid\nfacet normal 0 0 1\nouter loop\nvertex 0 0 1\nvertex 1 0 0\nvertex 0 1 0\nendloop\nendfacet\nendsolid"), meshfile.STL)
	require.NoError(t, err)
	assert.Equal(t, []int32{0, 1, 2, 3, 1, 2}, m.Faces)
}

func TestFormatOf(t *testing.T) {
	for name, want := range map[string]meshfile.Format{"a.obj": meshfile.OBJ, "b/c.PLY": meshfile.PLY, "x.y.Stl": meshfile.STL} {
		f, err := meshfile.FormatOf(name)
		require.NoError(t, err)
		assert.Equal(t, want, f)
	}
	for _, name := range []string{"mesh", "mesh.gltf", "mesh.ply.gz", "ply"} {
		_, err := meshfile.FormatOf(name)
		requireFault(t, err, "expected .obj, .ply or .stl")
	}
}

func requireFault(t *testing.T, err error, want string) {
	t.Helper()
	var fault *fileio.Fault
	require.ErrorAs(t, err, &fault)
	assert.Contains(t, err.Error(), want)
	assert.NotContains(t, err.Error(), "\n")
}

var errDisk = errors.New("input/output error")

func TestReadErrorsAreNotDamage(t *testing.T) {
	for _, name := range []string{"ascii.ply", "little.ply", "trimesh.obj", "trimesh.stl", "trimesh_ascii.stl"} {
		b := fixture(t, name)
		format, err := meshfile.FormatOf(name)
		require.NoError(t, err)
		for _, n := range []int{0, 2, len(b) / 2, len(b) - 1} {
			_, err := meshfile.Read(&failing{r: bytes.NewReader(b[:n])}, int64(len(b)), format)
			require.ErrorIs(t, err, errDisk, "%s after %d bytes", name, n)
			var fault *fileio.Fault
			assert.False(t, errors.As(err, &fault))
		}
	}
}

// failing ends in an error of the disk instead of the end of the file.
type failing struct{ r *bytes.Reader }

func (f *failing) Read(p []byte) (int, error) {
	if f.r.Len() == 0 {
		return 0, errDisk
	}
	return f.r.Read(p)
}

// FuzzRead feeds damaged meshes of every format to the readers: what they accept must be a valid mesh.
func FuzzRead(f *testing.F) {
	for _, name := range []string{"ascii.ply", "little.ply", "big.ply", "double.ply", "trimesh.obj", "trimesh.stl", "trimesh_ascii.stl"} {
		format, err := meshfile.FormatOf(name)
		require.NoError(f, err)
		f.Add(string(format), fixture(f, name))
	}
	f.Fuzz(func(t *testing.T, format string, b []byte) {
		m, err := read(b, meshfile.Format(format))
		if err != nil {
			return
		}
		if len(m.Faces) == 0 || len(m.Faces)%3 != 0 || len(m.Vertices)%3 != 0 {
			t.Fatalf("%d vertex and %d face values", len(m.Vertices), len(m.Faces))
		}
		for _, i := range m.Faces {
			if i < 0 || int(i) >= len(m.Vertices)/3 {
				t.Fatalf("index %d of %d vertices", i, len(m.Vertices)/3)
			}
		}
		for _, v := range m.Vertices {
			if v-v != 0 {
				t.Fatalf("coordinate %v", v)
			}
		}
	})
}
