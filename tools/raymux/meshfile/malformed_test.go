package meshfile_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/raymux/raymux/tools/raymux/meshfile"
)

func TestRefusesDamagedOBJ(t *testing.T) {
	const v = "v 0 0 0\nv 1 0 0\nv 0 1 0\n"
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "an empty mesh (0 vertices, no faces)"},
		{"no faces", v, "an empty mesh (3 vertices, no faces)"},
		{"index out of range", v + "f 1 2 4\n", "line 4: found vertex 4; expected a vertex from 1 to 3"},
		{"index zero", v + "f 0 1 2\n", "line 4: found vertex 0; expected a vertex number from 1, or from -3 to -1"},
		{"negative out of range", v + "f -4 1 2\n", "line 4: found vertex -4"},
		{"index of 33 bit", v + "f 1 2 4294967297\n", "found vertex 4294967297"},
		{"index of 80 bit", v + "f 1 2 999999999999999999999999\n", "expected a corner"},
		{"corner of words", v + "f a b c\n", `line 4: found "a"; expected a corner v, v/vt, v//vn or v/vt/vn`},
		{"corner of four numbers", v + "f 1/1/1/1 2 3\n", "expected a corner"},
		{"texture is a word", v + "f 1/x 2 3\n", "expected a corner"},
		{"two corners", v + "f 1 2\n", "line 4: found a face with 2 corners; expected at least 3"},
		{"two coordinates", "v 0 0\n", "line 1: found the end of the line; expected z"},
		{"not a number", "v 0 0 zero\n", `line 1: found "zero"; expected z, a number`},
		{"NaN", "v nan 0 0\n", `line 1: found "nan"; expected x, a finite float32`},
		{"infinite", "v 0 inf 0\n", "expected y, a finite float32"},
		{"Go's digit separator", "v 0 0 1_0\n", `line 1: found "1_0"; expected z, a number`},
		{"hexadecimal", "v 0x1p3 0 0\n", `line 1: found "0x1p3"; expected x, a number`},
		{"beyond float32", "v 0 1e39 0\n", "expected y, a finite float32"},
		{"free-form surface", v + "surf 0 1 0 1 1 2 3\n", `line 4: found "surf"`},
		{"binary file", "\x00\x01\x02\x03", "expected a statement of a polygon mesh"},
		{"endless word", strings.Repeat("v", 1<<20), "a word of more than 256 characters"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := read([]byte(c.text), meshfile.OBJ)
			requireFault(t, err, c.want)
		})
	}
}

func TestRefusesDamagedPLY(t *testing.T) {
	vertices := []string{"0 0 0", "1 0 0", "0 1 0"}
	good := plyText("float", vertices, []string{"3 0 1 2"})
	edit := func(old, new string) string {
		if !strings.Contains(good, old) {
			t.Fatalf("no %q to replace", old)
		}
		return strings.Replace(good, old, new, 1)
	}
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", `found "" at the beginning`},
		{"other file", "solid x", `found "sol" at the beginning`},
		{"first line goes on", "plyx\n" + good[4:], `line 1: found "plyx"`},
		{"header only", good[:40], "a header that ends with end_header"},
		{"endless line", "ply\n" + strings.Repeat("c", 1<<20), "expected at most 4096 characters"},
		{"endless header", "ply\n" + strings.Repeat("comment a\n", 200_000), "a longer header"},
		{"no format", edit("format ascii 1.0\n", ""), "no format"},
		{"other format", edit("ascii 1.0", "binary_middle_endian 1.0"), "binary_middle_endian"},
		{"other version", edit("ascii 1.0", "ascii 2.0"), "ascii 2.0"},
		{"statement", edit("element vertex", "elephant vertex"), `line 3: found "elephant vertex 3"`},
		{"empty line", edit("element vertex", "\nelement vertex"), "an empty line"},
		{"property first", edit("element vertex 3\n", ""), "an element before its properties"},
		{"type", edit("property float y", "property quad y"), `type "quad"`},
		{"type of length", edit("list uchar", "list float"), "an integer type for the length"},
		{"property twice", edit("property float y", "property float x"), `property "x" of "vertex" twice`},
		{"element twice", edit("element face", "element vertex"), `element "vertex" twice`},
		{"no z", edit("property float z", "property float w"), "without number z"},
		{"list for x", edit("property float x", "property list uchar float x"), "without number x"},
		{"no faces", edit("element face", "element edge"), "elements vertex and face"},
		{"no index list", edit("vertex_indices", "corners"), "an element face without it"},
		{"float indices", edit("uchar int", "uchar float"), "an element face without it"},
		{"negative count", edit("vertex 3", "vertex -3"), `found "-3"; expected a number of rows`},
		{"huge count", edit("vertex 3", "vertex 4000000000000000000"), `4000000000000000000 rows of element "vertex", at least 6 bytes each`},
		{"count of 80 bit", edit("vertex 3", "vertex 999999999999999999999999"), "a number of rows"},
		{"empty mesh", plyText("float", vertices, nil), "an empty mesh (3 vertices, no faces)"},
		{"index out of range", edit("3 0 1 2", "3 0 1 3"), "face 0: found vertex 3; expected a vertex from 0 to 2"},
		{"negative index", edit("3 0 1 2", "3 0 1 -1"), "face 0: found vertex -1"},
		{"two corners", edit("3 0 1 2", "2 0 1"), "face 0: found 2 corners"},
		{"length out of range", edit("3 0 1 2", "300 0 1 2"), `found "300"; expected an integer of type uchar`},
		{"index with fraction", edit("3 0 1 2", "3 0 1.5 2"), `found "1.5"; expected an integer of type int`},
		{"word", edit("1 0 0", "1 zero 0"), `line 11: found "zero"; expected a number`},
		{"NaN", edit("1 0 0", "1 nan 0"), "vertex 1: found y = NaN; expected a finite float32"},
		{"Go's digit separator", edit("1 0 0", "1_0 0 0"), `line 11: found "1_0"; expected a number`},
		{"hexadecimal", edit("1 0 0", "0X1p3 0 0"), `line 11: found "0X1p3"; expected a number`},
		{"beyond float32", edit("1 0 0", "1 1e39 0"), "vertex 1: found y = +Inf"},
		{"truncated", strings.TrimSuffix(good, " 2"), "face 0: found the end of the file; expected 1 rows"},
		{"more data", good + "\n3 0 1 2", "more data than the header declares"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := read([]byte(c.text), meshfile.PLY)
			requireFault(t, err, c.want)
		})
	}
}

func TestRefusesDamagedBinaryPLY(t *testing.T) {
	good := fixture(t, "little.ply")
	head := "ply\nformat binary_big_endian 1.0\nelement vertex 3\nproperty float x\nproperty float y\nproperty float z\n" +
		"element face 1\nproperty list char int vertex_indices\nend_header\n"
	nan := make([]byte, 36)
	binary.BigEndian.PutUint32(nan[4:], math.Float32bits(float32(math.NaN())))
	for _, c := range []struct {
		name string
		file []byte
		want string
	}{
		{"truncated", good[:len(good)-1], "face 4: found the end of the file"},
		{"half", good[:len(good)-140], "rows of element"},
		{"more data", append(bytes.Clone(good), 7), "more data than the header declares"},
		{"NaN", append([]byte(head), append(nan, 3, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2)...), "vertex 0: found y = NaN"},
		{"negative length", append([]byte(head), append(make([]byte, 36), 0xff)...), "face 0: found a list of -1 numbers"},
		{"face beyond", append([]byte(head), append(make([]byte, 36), 3, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 0, 0, 2)...), "found vertex 2130706434"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := read(c.file, meshfile.PLY)
			requireFault(t, err, c.want)
		})
	}
}

func TestRefusesDamagedSTL(t *testing.T) {
	one := [9]float32{0, 0, 0, 1, 0, 0, 0, 1, 0}
	good := binarySTL("", one, one)
	huge := binarySTL("")
	binary.LittleEndian.PutUint32(huge[80:], math.MaxUint32)
	inf := one
	inf[4] = float32(math.Inf(1))
	facet := "facet normal 0 0 1 outer loop vertex 0 0 0 vertex 1 0 0 vertex 0 1 0 endloop endfacet "
	for _, c := range []struct {
		name string
		file []byte
		want string
	}{
		{"empty", nil, "0 bytes that begin with"},
		{"short", make([]byte, 83), "83 bytes that begin with"},
		{"no triangles", binarySTL("nothing"), "an empty mesh"},
		{"truncated", good[:len(good)-1], "found 183 bytes; expected 184 bytes for the 2 triangles"},
		{"longer", append(bytes.Clone(good), 0), "found 185 bytes; expected 184"},
		{"huge count", huge, "for the 4294967295 triangles"},
		{"infinite", binarySTL("", one, inf), "triangle 1: found coordinate +Inf"},
		{"ascii without facets", []byte("solid nothing\nendsolid nothing\n"), "an empty mesh"},
		{"ascii ends early", []byte("solid x\n" + facet), `found the end of the file; expected "facet" or "endsolid"`},
		{"ascii ends in a facet", []byte("solid x\n" + facet[:40]), "the end of the file"},
		{"ascii polygon", []byte("solid x\n" + strings.Replace(facet, "endloop", "vertex 1 1 0 endloop", 1)), `found "vertex"; expected "endloop"`},
		{"ascii word", []byte("solid x\n" + strings.Replace(facet, "vertex 1", "vertex one", 1)), `line 2: found "one"; expected a coordinate, a number`},
		{"ascii NaN", []byte("solid x\n" + strings.Replace(facet, "vertex 1", "vertex nan", 1)), "a finite float32"},
		{"ascii keyword", []byte("solid x\n" + strings.Replace(facet, "outer", "inner", 1)), `found "inner"; expected "outer"`},
		{"ascii after the end", []byte("solid x\n" + facet + "endsolid\ntext"), `found "text"; expected "solid"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := read(c.file, meshfile.STL)
			requireFault(t, err, c.want)
		})
	}
}
