package workload

import (
	"fmt"
	"slices"
	"strings"
)

// Kind names what the scene of a configuration is made of.
type Kind string

// Kinds of scene.
const (
	KindGrid      Kind = "grid"
	KindCloud     Kind = "cloud"
	KindGridCloud Kind = "grid_and_cloud" // mesh 0 is the grid, mesh 1 the cloud
)

// Seeds of the generator. The cloud and the plane rays share a seed and use different streams.
const (
	SceneSeed  = 20260727
	VolumeSeed = 20260728
)

// Names of the configurations.
const (
	Light   = "light"
	Compute = "compute"
	Mini    = "mini"
)

// Config describes one workload. It is a plain value: the arrays are generated on request.
type Config struct {
	Name      string
	Note      string // one line for the record
	Kind      Kind
	Cells     int     // of the grid along each axis, 0 without a grid
	Triangles int     // of the cloud, 0 without a cloud
	HalfEdge  float32 // of the cloud's triangles

	RayCount     int // rows of the batch
	MaxBounces   int // of reflection chains
	AccumSamples int // of one accumulation
	ChunkRows    int // of a streamed call
	Digests      Digests
}

// Span is the side of the grid and of the cube that holds the cloud's centres.
const Span = 2.0

// configs in the order in which they run.
//
// Mini is sized for the emulator, which executes in the order of 10^8 lane instructions per second on two cores. Its
// cloud has the projected density of the compute cloud (triangles * halfEdge^2 is the same), so about the same share
// of the rays hits; the first half of its rows are plane rays, the second half volume rays.
var configs = []Config{
	{
		Name: Light, Note: "planar grid of 191 x 191 cells, rays from below, one bounce",
		Kind: KindGrid, Cells: 191,
		RayCount: 1 << 22, MaxBounces: 1, AccumSamples: 1 << 13, ChunkRows: 1 << 19,
		Digests: Digests{
			Vertices:   "6e792ece70c414d8e7952f9933df49f8787344e43ba75d407279665ee20347ea",
			Faces:      "dca064c6d8721e3042b63deb8c9fbd480b1b636878509764e727bd1bf7f9f8ac",
			Origins:    "b3c8979af7b3163a28dc24b692244f997f11f48a4f2177cc46b37137630ee4ac",
			Directions: "e96f993fa3131c017705a7fb510019084304f0b25fca4f8f2201a86a02e67166",
		},
	},
	{
		Name: Compute, Note: "cloud of 2097152 independent triangles, incoherent rays from inside, four bounces",
		Kind: KindCloud, Triangles: 1 << 21, HalfEdge: 0.005,
		RayCount: 1 << 22, MaxBounces: 4, AccumSamples: 1 << 26, ChunkRows: 1 << 19,
		Digests: Digests{
			Vertices:   "56aed2970212a9f8a237d25640df39bfebec93289e399ba99acce24cc5a628cf",
			Faces:      "a2704af424b57b698ee1014fce83ca8087b2f6ee91d7abfb95200278c2750ac6",
			Origins:    "6d37ed94d8b108b566bda10021edaffc3e7ff659ec86bb01af45390b36d70200",
			Directions: "55f2b30fe166e1587b7131450fd3190c6a3a2557acfe55247d8f019df45ab7ba",
		},
	},
	{
		Name: Mini, Note: "grid of 16 x 16 cells inside a cloud of 2048 triangles, half plane and half volume rays",
		Kind: KindGridCloud, Cells: 16, Triangles: 2048, HalfEdge: 0.16,
		RayCount: 1 << 12, MaxBounces: 2, AccumSamples: 1 << 10, ChunkRows: 1 << 10,
		Digests: Digests{
			Vertices:   "b0d75f13cb969283f5c4aa906d8efa29df0db788b6cf96aec258df17d802677a",
			Faces:      "f8f4c3421b3eaf6728fc7e512ea9f42f378462e185d71f76e64d545874dbb3ef",
			Origins:    "064e4e03b3c3ae60642042ddf75f43bb5d3c96842f9d608a79f20c67ab40eebc",
			Directions: "9859d3c012166c4c74c84828b37ead4340f921249d907b49550cc36365833deb",
		},
	},
}

// Configs returns every configuration in the order in which they run.
func Configs() []Config { return slices.Clone(configs) }

// Find returns the configuration of a name.
func Find(name string) (Config, error) {
	names := make([]string, len(configs))
	for i, c := range configs {
		if c.Name == name {
			return c, nil
		}
		names[i] = c.Name
	}
	return Config{}, fmt.Errorf("workload: no configuration %q; there are %s", name, strings.Join(names, ", "))
}

// Meshes generates the scene, in the order in which the meshes are added.
func (c Config) Meshes() []Mesh {
	var meshes []Mesh
	if c.Cells > 0 {
		meshes = append(meshes, Grid(c.Cells, Span))
	}
	if c.Triangles > 0 {
		meshes = append(meshes, Cloud(SceneSeed, c.Triangles, c.HalfEdge, Span))
	}
	return meshes
}

// Rays generates a batch of n rows; RayCount rows give the pinned digests. Row i does not depend on n, except in a
// scene of both kinds, whose first n/2 rows are plane rays and whose others are volume rays.
func (c Config) Rays(n int) Rays {
	r := newRays(n)
	plane := 0
	switch c.Kind {
	case KindGrid:
		plane = n
	case KindGridCloud:
		plane = n / 2
	}
	fillPlane(SceneSeed, Rays{r.Origins[:3*plane], r.Directions[:3*plane]})
	fillVolume(VolumeSeed, Rays{r.Origins[3*plane:], r.Directions[3*plane:]})
	return r
}

// DigestOf returns the digests of generated arrays, to be compared with those of a configuration.
func DigestOf(meshes []Mesh, rays Rays) Digests {
	vertices, faces := make([][]float32, len(meshes)), make([][]int32, len(meshes))
	for i, m := range meshes {
		vertices[i], faces[i] = m.Vertices, m.Faces
	}
	return Digests{
		Vertices:   DigestFloats(vertices...),
		Faces:      DigestInts(faces...),
		Origins:    DigestFloats(rays.Origins),
		Directions: DigestFloats(rays.Directions),
	}
}
