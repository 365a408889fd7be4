package scene

import (
	"math"
	"slices"

	"github.com/raymux/raymux/cuda"
)

// Mesh is a triangle mesh in world coordinates, in metres. Vertices and faces are
// given either both on the host or both on the scene's device; either way the
// scene keeps copies. Index-degenerate and zero-area faces are legal: they keep
// their ids and are never hit. Nothing is culled by winding.
type Mesh struct {
	// Vertices holds x, y, z of each vertex: 3V finite values, V >= 1.
	Vertices []float32
	// Faces holds the three vertex numbers of each face: 3F values in [0,V),
	// F >= 1. Their order gives the direction of the face normal.
	Faces []int32
	// DeviceVertices and DeviceFaces replace Vertices and Faces. Build validates
	// and copies them, in the order of the scene's stream; they must stay valid
	// until then.
	DeviceVertices cuda.Slice[float32]
	DeviceFaces    cuda.Slice[int32]
	// NoEdges keeps the mesh out of every edge query. It still blocks rays.
	NoEdges bool
	// Dynamic allows UpdateMeshVertices. Faces never change.
	Dynamic bool
}

// mesh is a Mesh or an instance of one inside a scene: a shape.
type mesh struct {
	vertexCount, faceCount int
	noEdges, dynamic       bool

	instance *instance // nil for a Mesh

	// Host copies. faces is nil until Build has copied device geometry. vertices
	// are the committed ones, and nil when only the device has them, as it has
	// those of instances.
	vertices []float32
	faces    []int32
	// Device geometry that Build has not copied yet.
	fromVertices cuda.Slice[float32]
	fromFaces    cuda.Slice[int32]

	// Staged vertices, on the host or on the device, or neither.
	staged       []float32
	stagedDevice cuda.Slice[float32]

	topology *topology // nil until the first Build; empty for NoEdges
}

func (m *mesh) pending() bool {
	return m.staged != nil || !m.stagedDevice.IsNil() || m.instance != nil && m.instance.staged != nil
}

// newMesh validates m as far as the host can and copies host arrays.
func (s *Scene) newMesh(m Mesh) (*mesh, error) {
	const op = "AddMesh"
	onDevice := !m.DeviceVertices.IsNil() || !m.DeviceFaces.IsNil()
	onHost := m.Vertices != nil || m.Faces != nil
	vertices, faces := len(m.Vertices), len(m.Faces)
	vertexArg, faceArg := "Vertices", "Faces"
	if onDevice {
		if onHost {
			return nil, badArg(op, "Mesh", "has host and device geometry; give one of them")
		}
		vertexArg, faceArg = "DeviceVertices", "DeviceFaces"
		vertices, faces = m.DeviceVertices.Len(), m.DeviceFaces.Len()
		if err := checkMemory(s, op, vertexArg, m.DeviceVertices); err != nil {
			return nil, err
		}
		if err := checkMemory(s, op, faceArg, m.DeviceFaces); err != nil {
			return nil, err
		}
	}
	if vertices == 0 || vertices%3 != 0 {
		return nil, badArg(op, vertexArg, "has %d values, want 3 for each of at least one vertex", vertices)
	}
	if faces == 0 || faces%3 != 0 {
		return nil, badArg(op, faceArg, "has %d values, want 3 for each of at least one face", faces)
	}
	if err := checkLimit("vertices", int64(vertices/3), maxVertices); err != nil {
		return nil, err
	}
	if err := checkLimit("faces", int64(faces/3), maxFaces); err != nil {
		return nil, err
	}
	out := &mesh{
		vertexCount: vertices / 3, faceCount: faces / 3,
		noEdges: m.NoEdges, dynamic: m.Dynamic,
	}
	if onDevice {
		out.fromVertices, out.fromFaces = m.DeviceVertices, m.DeviceFaces
		return out, nil
	}
	if err := checkVertices(op, vertexArg, m.Vertices); err != nil {
		return nil, err
	}
	if err := checkFaces(op, faceArg, m.Faces, out.vertexCount); err != nil {
		return nil, err
	}
	out.vertices, out.faces = slices.Clone(m.Vertices), slices.Clone(m.Faces)
	return out, nil
}

// checkVertices names the first vertex that is not finite.
func checkVertices(op, arg string, v []float32) error {
	for i, x := range v {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			return badVertex(op, arg, i/3)
		}
	}
	return nil
}

// checkFaces names the first face with a vertex number outside [0,vertices).
func checkFaces(op, arg string, f []int32, vertices int) error {
	for i, v := range f {
		if v < 0 || int(v) >= vertices {
			return badArg(op, arg, "face %d has the vertex number %d, want 0 to %d", i/3, v, vertices-1)
		}
	}
	return nil
}

func badVertex(op, arg string, vertex int) error {
	return badArg(op, arg, "vertex %d is not finite", vertex)
}

func badFace(op, arg string, face, vertices int) error {
	return badArg(op, arg, "face %d has a vertex number outside [0,%d)", face, vertices)
}
