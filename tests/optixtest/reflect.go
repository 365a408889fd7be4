package optixtest

import (
	"encoding/binary"

	"github.com/raymux/raymux/optixabi"
	"github.com/raymux/raymux/tests/oracle"
)

// reflectLaunch is the launch parameters of the programs that follow reflections.
type reflectLaunch struct {
	O, D, TMax, Active, Vertices, Faces, PrimIDs, FaceOffsets, Handle uint64
	RowBegin, Bounces                                                 int64
}

// merged is a brute-force searcher over all meshes as one, whose ids are those of the
// scene.
func (r *Rig) merged(meshes []optixabi.TriangleArray) *oracle.Canonical {
	var vertices []float32
	var faces []int32
	for _, m := range meshes {
		base := int32(len(vertices) / 3)
		for _, v := range r.words(m.Indices, 3*int(m.NumTriangles)) {
			faces = append(faces, base+int32(v))
		}
		vertices = append(vertices, r.floats(m.Vertices, 3*int(m.NumVertices))...)
	}
	return oracle.NewCanonical(vertices, faces)
}

func (r *Rig) answerReflect(p reflectLaunch, rows int) {
	meshes := r.meshes(optixabi.Traversable(p.Handle))
	if (p.FaceOffsets != 0) != (len(meshes) > 1) {
		r.Errorf("%d meshes, face offsets at %#x", len(meshes), p.FaceOffsets)
	}
	if p.Vertices == 0 || p.Faces == 0 {
		r.Errorf("the programs are given no geometry: %+v", p)
	}
	brute := r.merged(meshes)
	begin, bounces := uint64(p.RowBegin), int(p.Bounces)
	out := make([]byte, 0, 4*bounces*rows)
	r.each(p.O, p.D, p.TMax, begin, rows, func(i int, o, d [3]float32, tmax float32) {
		var chain []oracle.Reflection
		if p.Active == 0 || r.read(p.Active+begin+uint64(i), 1)[0] != 0 {
			chain = brute.Reflect(o, d, tmax, bounces)
		}
		for k := range bounces {
			id := int32(-1)
			if k < len(chain) {
				id = int32(chain[k].Prim)
			}
			out = binary.LittleEndian.AppendUint32(out, uint32(id))
		}
	})
	r.Write(p.PrimIDs+uint64(4*bounces)*begin, out)
}
