package main

import (
	"bytes"
	"encoding/binary"
	"math"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/bench/record"
	"github.com/raymux/raymux/bench/workload"
	"github.com/raymux/raymux/optixabi/fakeoptix"
	"github.com/raymux/raymux/tests/optixtest"
	"github.com/raymux/raymux/tests/oracle"
)

// scanFixture is a mesh file that other programs wrote.
var scanFixture = filepath.Join("..", "tools", "raymux", "meshfile", "testdata", "trimesh.ply")

// byColumn returns the cells of a study's row by column name.
func byColumn(t *testing.T, s record.Study, row int) map[string]any {
	t.Helper()
	require.Len(t, s.Rows[row], len(s.Columns))
	cells := map[string]any{}
	for i, c := range s.Columns {
		cells[c.Name] = s.Rows[row][i]
	}
	return cells
}

func TestStudies(t *testing.T) {
	out, _, r := benchmark(t, exitDone, "--devices", "emu:1", "--study", "all", "--mesh", scanFixture)
	require.Contains(t, out, "study geometry: ")
	require.Contains(t, out, "study batch_fit: ")
	require.Contains(t, out, "study dispatch: NOT MEASURED")
	require.Contains(t, out, "study scaling: NOT MEASURED")
	require.Contains(t, out, "all checks passed")
	studies := map[string]record.Study{}
	for _, s := range r.Studies {
		studies[s.ID] = s
	}

	geometry := studies["geometry"]
	require.Len(t, geometry.Rows, 8, "four scenes, two kinds of rays")
	for i := range geometry.Rows {
		cells := byColumn(t, geometry, i)
		require.Equal(t, 81.0, cells["rows"], "the largest square within 96 rows")
		require.Positive(t, cells["hits"])
		require.Positive(t, cells["cuda"])
		require.Positive(t, cells["cuda_search"])
		require.Nil(t, cells["optix"])
		require.Nil(t, cells["search_ratio"])
		require.Nil(t, cells["differing_winners"])
	}
	require.Equal(t, "city", byColumn(t, geometry, 0)["scene"])
	require.Equal(t, filepath.Base(scanFixture), byColumn(t, geometry, 2)["scene"])

	batches, fit := studies["batches"], studies["batch_fit"]
	require.Len(t, batches.Rows, 6, "three sizes, two tracers")
	require.Len(t, fit.Rows, 2)
	require.Equal(t, "cuda_search", byColumn(t, fit, 1)["tracer"])

	builds := studies["builds"]
	require.Len(t, builds.Rows, 8, "four scenes, two trees")
	for i := range builds.Rows {
		cells := byColumn(t, builds, i)
		require.Positive(t, cells["search"])
		if i%2 == 0 {
			require.Equal(t, "cuda", cells["tracer"])
			require.Positive(t, cells["build"])
			require.Positive(t, cells["refit"])
		} else {
			require.Equal(t, "cuda_host_tree", cells["tracer"])
			require.Nil(t, cells["build"])
		}
	}
}

// The hits of the study are those of the canonical test, with and without OptiX in the comparison.
func TestGeometryStudyAgainstBruteForce(t *testing.T) {
	optix := optixtest.Open(t, 1, fakeoptix.Config{})
	h := &host{driver: optix.Driver, devices: []int{0}, allocs: new(atomic.Uint64)}
	require.NoError(t, h.retain())
	defer func() { require.NoError(t, h.close()) }()
	r := &run{options: options{rays: 256, repeat: 2}, host: h, record: &record.Record{}}
	city := workload.City(workload.SceneSeed, 1)
	rows, err := r.compare(geometry{"city", city})
	require.NoError(t, err)
	require.Empty(t, r.failures)

	lo, hi := city.Box()
	canonical := oracle.NewCanonical(city.Vertices, city.Faces)
	for i, rays := range []workload.Rays{workload.CameraRays(lo, hi, 16), workload.BoxRays(workload.VolumeSeed, lo, hi, 256)} {
		ids, hits := make([]byte, 0, 4*rays.Len()), 0.0
		for k := range rays.Len() {
			prim, _ := canonical.Winner([3]float32(rays.Origins[3*k:]), [3]float32(rays.Directions[3*k:]), float32(math.Inf(1)))
			ids = binary.LittleEndian.AppendUint32(ids, uint32(prim))
			if prim >= 0 {
				hits++
			}
		}
		cells := rows[i]
		require.Equal(t, hits, cells[4])
		require.Zero(t, cells[5], "the emulated OptiX answers by brute force too")
		for _, time := range cells[6:13] {
			require.Positive(t, time)
		}
		require.Equal(t, digestBytes(ids), cells[13])
	}
}

// Every backend has its times and its search.
func TestBuildStudyOfBothBackends(t *testing.T) {
	optix := optixtest.Open(t, 1, fakeoptix.Config{})
	h := &host{driver: optix.Driver, devices: []int{0}, allocs: new(atomic.Uint64)}
	require.NoError(t, h.retain())
	defer func() { require.NoError(t, h.close()) }()
	r := &run{options: options{rays: 16, repeat: 2}, host: h, record: &record.Record{}}
	rows, err := r.builds(geometry{"city", workload.City(workload.SceneSeed, 1)})
	require.NoError(t, err)
	require.Empty(t, r.failures)
	require.Len(t, rows, 3)
	for i, name := range []string{"cuda", "optix", "cuda_host_tree"} {
		require.Equal(t, name, rows[i][2])
		require.Positive(t, rows[i][5])
		if i < 2 {
			require.Positive(t, rows[i][3])
			require.NotNil(t, rows[i][4])
		}
	}
}

// Where nothing is hit, a comparison of times is one of nothing.
func TestGeometryStudyIsNotVacuous(t *testing.T) {
	h := &host{allocs: new(atomic.Uint64)}
	require.NoError(t, h.emulate(1, ""))
	require.NoError(t, h.retain())
	defer func() { require.NoError(t, h.close()) }()
	r := &run{options: options{rays: 16, repeat: 1}, host: h}
	_, err := r.compare(geometry{"empty", workload.Mesh{Vertices: []float32{0, 0, 0, 1, 0, 0, 2, 0, 0}, Faces: []int32{0, 1, 2}}})
	require.NoError(t, err)
	require.Len(t, r.failures, 2)
	require.Contains(t, r.failures[0], "vacuous")
}

func TestFitLine(t *testing.T) {
	rows := []int{1 << 10, 1 << 14, 1 << 18, 1 << 22}
	times := make([]float64, len(rows))
	for i, n := range rows {
		times[i] = 250_000 + 0.75*float64(n)
	}
	l := fitLine(rows, times)
	require.InDelta(t, 250_000, l.fixed, 1e-6)
	require.InDelta(t, 0.75, l.perRow, 1e-12)
	require.InDelta(t, 0, l.worst, 1e-12)

	// Two points that no line meets at two sizes each: the relative residuals balance.
	l = fitLine([]int{1, 1, 2, 2}, []float64{1, 3, 2, 6})
	require.InDelta(t, 0, l.fixed, 1e-12)
	require.InDelta(t, 1.2, l.perRow, 1e-12) // minimises (x-1)^2 + (x/3-1)^2
	require.InDelta(t, 0.6, l.worst, 1e-12)
}

func TestReadMesh(t *testing.T) {
	m, err := readMesh(scanFixture)
	require.NoError(t, err)
	require.Positive(t, m.NumTriangles())
	for _, path := range []string{"mesh.txt", "absent.ply"} {
		_, err := readMesh(path)
		require.ErrorContains(t, err, path)
	}
	require.Error(t, func() error { _, err := readMesh("study_test.go"); return err }())
}

func TestPrintStudy(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, printStudy(&out, record.Study{
		ID: "a", Description: "what it is",
		Columns: columns("scene", "-", "time", "ms", "x_sha256", "-"),
		Rows:    [][]any{{"city", 0.123456, "ff"}, {"grid", nil, "ee"}, {"count", 1158500.0, ""}},
	}))
	require.Equal(t, "study a: what it is\nscene  time, ms\ncity   0.1235\ngrid   --\ncount  1158500\n", out.String())
}
