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

func (r *Rig) answerReflect(p reflectLaunch, rows int) {
	brute := r.whole(optixabi.Traversable(p.Handle), p.FaceOffsets)
	if p.Vertices == 0 || p.Faces == 0 {
		r.Errorf("the programs are given no geometry: %+v", p)
	}
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
