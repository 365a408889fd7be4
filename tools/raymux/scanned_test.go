package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/tests/oracle"
	"github.com/raymux/raymux/tools/raymux/meshfile"
	"github.com/raymux/raymux/tools/raymux/npy"
)

const (
	// meshVariable names a mesh file to use instead of the package.
	meshVariable = "RAYMUX_MESH_FILE"
	// requireVariable, when it is 1, makes a mesh that cannot be fetched a failure.
	requireVariable = "RAYMUX_REQUIRE_MESH"
	// devicesVariable names GPUs to run on instead of two emulated devices, as in package gputest.
	devicesVariable = "RAYMUX_TEST_DEVICES"

	// The Stanford bunny, a scanned mesh, as an npm package in the public domain.
	bunnyPackage = "bunny@1.0.1"
	bunnyFile    = "bunny-1.0.1.tgz"
	bunnyDigest  = "381e02c74b98cf18814d7bec794726ef70b9c67e037273e82054d0043f6ae303"

	bunnyFaces = 3674

	scannedRays = 10_000
)

// TestScannedMesh compares the program with brute force on a real scanned mesh: in float64 every winner is equal, except on
// rows whose margin is below what single precision can decide, which are listed; by the single-precision triangle test
// that defines the winner, every winner is equal. The mesh goes in as .ply and as .obj, with the same result.
func TestScannedMesh(t *testing.T) {
	mesh, given := scannedMesh(t)
	b := newBench(t)
	b.open = func() (*cuda.Driver, error) { return cuda.Open() }
	devices := os.Getenv(devicesVariable)
	if devices == "" {
		devices = "emu:2"
	}
	o, d, tmax := scannedBatch(mesh)
	n := len(tmax)
	b.array(t, "o.npy", npy.Floats("", o, n, 3))
	b.array(t, "d.npy", npy.Floats("", d, n, 3))
	b.array(t, "tmax.npy", npy.Floats("", tmax, n))
	files := []string{given}
	if given == "" {
		b.file(t, "mesh.ply", plyOf(mesh))
		b.file(t, "mesh.obj", objOf(mesh))
		files = []string{"mesh.ply", "mesh.obj"}
	}
	for i, file := range files {
		out := fmt.Sprintf("out%d.npz", i)
		b.succeed(t, intersectCall().with("-mesh", file).with("-tmax", "tmax.npy").with("-devices", devices).
			with("-min-rows", "1").with("-out", out).args(b)...)
		assert.True(t, b.content(t, "out0.npz") == b.content(t, out), "%s gives another result than %s", file, files[0])
	}
	compareWithBruteForce(t, mesh, o, d, tmax, readAnswers(t, b.content(t, "out0.npz"), n))
}

// compareWithBruteForce lists the rows that single precision cannot decide and fails on every other difference.
func compareWithBruteForce(t *testing.T, mesh meshfile.Mesh, o, d, tmax []float32, answers []oracle.Answer) {
	t.Helper()
	ray := func(i int) (_, _ [3]float32, _ float32) {
		return [3]float32(o[3*i:]), [3]float32(d[3*i:]), tmax[i]
	}
	ambiguous, hit := 0, 0
	for i, h := range oracle.New(mesh.Vertices, mesh.Faces).IntersectAll(len(answers), ray) {
		assert.NoError(t, h.Check(answers[i]), "row %d", i)
		switch {
		case h.Ambiguous:
			ambiguous++
			t.Logf("row %d is ambiguous (%s): answered %d, float64 %d", i, h.Why, answers[i].Prim, h.Prim)
		case h.Prim >= 0:
			hit++
		}
	}
	for i, want := range oracle.NewCanonical(mesh.Vertices, mesh.Faces).Winners(len(answers), ray) {
		assert.Equal(t, want, oracle.Closest{Prim: answers[i].Prim, T: answers[i].T}, "row %d", i)
	}
	t.Logf("%d faces, %d rays: %d unambiguous hits, %d ambiguous rows", len(mesh.Faces)/3, len(answers), hit, ambiguous)
	assert.Greater(t, hit, len(answers)/4, "the rays must aim at the mesh")
	assert.Less(t, ambiguous, len(answers)/10)
}

// scannedBatch aims rays from outside and from inside at the mesh: most at random points of its box, some exactly at
// vertices and at middles of edges, where only a tie rule tells which face is hit. A third ends before or at the mesh.
func scannedBatch(m meshfile.Mesh) (o, d, tmax []float32) {
	rng := rand.New(rand.NewPCG(20, 26))
	var lo, hi [3]float32
	for k := range 3 {
		lo[k], hi[k] = m.Vertices[k], m.Vertices[k]
		for i := k; i < len(m.Vertices); i += 3 {
			lo[k], hi[k] = min(lo[k], m.Vertices[i]), max(hi[k], m.Vertices[i])
		}
	}
	vertex := func() [3]float32 { return [3]float32(m.Vertices[3*m.Faces[rng.IntN(len(m.Faces))]:]) }
	for i := range scannedRays {
		var target [3]float32
		switch {
		case i%10 == 8:
			target = vertex()
		case i%10 == 9:
			f := m.Faces[3*rng.IntN(len(m.Faces)/3):]
			for k := range target {
				target[k] = (m.Vertices[3*int(f[0])+k] + m.Vertices[3*int(f[1])+k]) / 2
			}
		default:
			for k := range target {
				target[k] = lo[k] + (hi[k]-lo[k])*rng.Float32()
			}
		}
		spread := float32(3)
		if i%4 == 0 {
			spread = 0.5 // from inside the box
		}
		for k := range 3 {
			from := (lo[k]+hi[k])/2 + spread*(hi[k]-lo[k])*(2*rng.Float32()-1)
			o = append(o, from)
			d = append(d, target[k]-from)
		}
		limit := float32(math.Inf(1))
		if i%3 == 0 {
			limit = 2 * rng.Float32() // the target is at 1
		}
		tmax = append(tmax, limit)
	}
	return o, d, tmax
}

// readAnswers reads the columns that the oracle checks.
func readAnswers(t *testing.T, archive string, n int) []oracle.Answer {
	t.Helper()
	column := func(name string) []float32 {
		r, err := npy.OpenColumn(strings.NewReader(archive), int64(len(archive)), name)
		require.NoError(t, err)
		defer r.Close()
		v, _, err := r.Float32()
		require.NoError(t, err)
		return v
	}
	tt, uv, normal := column("t"), column("uv"), column("geo_n")
	ids := intColumn(t, archive, "prim_id", n)
	answers := make([]oracle.Answer, n)
	for i := range answers {
		answers[i] = oracle.Answer{Prim: int(ids[i]), T: tt[i], B1: uv[2*i], B2: uv[2*i+1], N: [3]float32(normal[3*i:])}
	}
	return answers
}

// intColumn finds an int32 column in an uncompressed archive: the program itself reads no integers.
func intColumn(t *testing.T, archive, name string, n int) []int32 {
	t.Helper()
	at := strings.Index(archive, name+".npy\x93NUMPY")
	require.Positive(t, at, "no column %s", name)
	data := archive[at+len(name)+len(".npy"):]
	data = data[strings.IndexByte(data, '\n')+1:]
	require.GreaterOrEqual(t, len(data), 4*n)
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = int32(binary.LittleEndian.Uint32([]byte(data[4*i : 4*i+4])))
	}
	return ids
}

// scannedMesh is the mesh to use: the file of RAYMUX_MESH_FILE, whose path it returns too, or the bunny from npm.
func scannedMesh(t *testing.T) (meshfile.Mesh, string) {
	t.Helper()
	if path := os.Getenv(meshVariable); path != "" {
		path, err := filepath.Abs(path)
		require.NoError(t, err)
		format, err := meshfile.FormatOf(path)
		require.NoError(t, err)
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		m, err := meshfile.Read(bytes.NewReader(data), int64(len(data)), format)
		require.NoError(t, err)
		return m, path
	}
	data, err := fetchBunny(t)
	switch {
	case err != nil && os.Getenv(requireVariable) == "1":
		t.Fatalf("%s is 1 and there is no scanned mesh: %v; set %s to use a file", requireVariable, err, meshVariable)
	case err != nil:
		t.Skipf("NOT RUN: no scanned mesh to compare with: %v; set %s to use a file", err, meshVariable)
	}
	sum := sha256.Sum256(data)
	require.Equal(t, bunnyDigest, hex.EncodeToString(sum[:]))
	return parseBunny(t, fileOfPackage(t, data, "package/index.js")), ""
}

// fetchBunny gets the package from the registry.
func fetchBunny(t *testing.T) ([]byte, error) {
	t.Helper()
	npm, err := exec.LookPath("npm")
	if err != nil {
		return nil, fmt.Errorf("npm, which fetches %s, is not installed: %w", bunnyPackage, err)
	}
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), npm, "pack", "--loglevel=error", "--fetch-retries=1", "--pack-destination", dir, bunnyPackage)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("npm pack %s: %w: %s", bunnyPackage, err, strings.Join(strings.Fields(stderr.String()), " "))
	}
	return os.ReadFile(filepath.Join(dir, bunnyFile))
}

// A machine without the network skips the comparison and says what npm said; it fails where the mesh is required.
func TestScannedMeshCannotBeFetched(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("NOT RUN: npm is played by a shell script")
	}
	self, err := os.Executable()
	require.NoError(t, err)
	offline := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(offline, "npm"), []byte("#!/bin/sh\necho 'npm error no network' >&2\nexit 1\n"), 0o700))
	for _, c := range []struct {
		name, path, require string
		fails               bool
		want                []string
	}{
		{"offline", offline, "", false, []string{"--- SKIP", "NOT RUN", "npm error no network", meshVariable}},
		{"without npm", t.TempDir(), "0", false, []string{"--- SKIP", "NOT RUN", "not installed", meshVariable}},
		{"offline, required", offline, "1", true, []string{"--- FAIL", requireVariable, "npm error no network", meshVariable}},
		{"without npm, required", t.TempDir(), "1", true, []string{"--- FAIL", requireVariable, "not installed", meshVariable}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestScannedMesh$", "-test.v")
			cmd.Env = append(os.Environ(), "PATH="+c.path, requireVariable+"="+c.require, meshVariable+"=")
			out, err := cmd.CombinedOutput()
			assert.Equal(t, c.fails, err != nil, "%s", out)
			for _, want := range c.want {
				assert.Contains(t, string(out), want)
			}
		})
	}
}

func fileOfPackage(t *testing.T, pkg []byte, name string) string {
	t.Helper()
	unzipped, err := gzip.NewReader(bytes.NewReader(pkg))
	require.NoError(t, err)
	for r := tar.NewReader(unzipped); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			t.Fatalf("no file %s in the package", name)
		}
		require.NoError(t, err)
		if h.Name == name {
			data, err := io.ReadAll(r)
			require.NoError(t, err)
			return string(data)
		}
	}
}

// parseBunny reads the two JSON arrays that the package's script exports.
func parseBunny(t *testing.T, script string) meshfile.Mesh {
	t.Helper()
	list := func(name string, target any) {
		_, text, found := strings.Cut(script, "exports."+name+"=")
		require.True(t, found)
		text, _, _ = strings.Cut(text, "]]")
		require.NoError(t, json.Unmarshal([]byte(text+"]]"), target))
	}
	var positions [][3]float32
	var cells [][3]int32
	list("positions", &positions)
	list("cells", &cells)
	var m meshfile.Mesh
	for _, p := range positions {
		m.Vertices = append(m.Vertices, p[:]...)
	}
	for _, c := range cells {
		m.Faces = append(m.Faces, c[:]...)
	}
	require.Len(t, cells, bunnyFaces)
	return m
}

// plyOf writes a mesh as binary big endian .ply.
func plyOf(m meshfile.Mesh) string {
	b := fmt.Appendf(nil, "ply\nformat binary_big_endian 1.0\nelement vertex %d\nproperty float x\nproperty float y\nproperty float z\n"+
		"element face %d\nproperty list uchar int vertex_indices\nend_header\n", len(m.Vertices)/3, len(m.Faces)/3)
	for _, v := range m.Vertices {
		b = binary.BigEndian.AppendUint32(b, math.Float32bits(v))
	}
	for f := range slices.Chunk(m.Faces, 3) {
		b = append(b, 3)
		for _, v := range f {
			b = binary.BigEndian.AppendUint32(b, uint32(v))
		}
	}
	return string(b)
}

// objOf writes a mesh as .obj, with as many digits as give the same float32 again.
func objOf(m meshfile.Mesh) string {
	var b strings.Builder
	for v := range slices.Chunk(m.Vertices, 3) {
		fmt.Fprintf(&b, "v %v %v %v\n", v[0], v[1], v[2])
	}
	for f := range slices.Chunk(m.Faces, 3) {
		fmt.Fprintf(&b, "f %d %d %d\n", f[0]+1, f[1]+1, f[2]+1)
	}
	return b.String()
}
