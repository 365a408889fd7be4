package optixtest

import (
	"encoding/binary"

	"github.com/raymux/raymux/optixabi"
	"github.com/raymux/raymux/tests/oracle"
)

// visibleLaunch is the launch parameters of the visibility programs.
type visibleLaunch struct {
	Kind                                                                uint32
	Segments, IgnoreWidth                                               int32
	FractionCount                                                       uint32
	Fractions                                                           [16]float32
	Start, End, OtherEnd, Direction, TMin, TMax, Length, Ignore, Active uint64
	Visible, OtherVisible, Segment, Prim                                uint64
	FaceOffsets, Handle                                                 uint64
	RowBegin                                                            int64
}

// Kinds of a visibleLaunch.
const (
	visibleSegment = iota
	visiblePair
	visibleEdge
	visibleChain
)

// whole is a brute-force searcher over all meshes, whose ids are those of the scene.
func (r *Rig) whole(h optixabi.Traversable, faceOffsets uint64) *oracle.Canonical {
	meshes := r.meshes(h)
	if (faceOffsets != 0) != (len(meshes) > 1) {
		r.Errorf("%d meshes, face offsets at %#x", len(meshes), faceOffsets)
	}
	var vertices []float32
	var faces []int32
	for k, m := range meshes {
		if faceOffsets != 0 {
			if got := r.words(faceOffsets+4*uint64(k), 1)[0]; int(got) != len(faces)/3 {
				r.Errorf("mesh %d starts at face %d, not %d", k, got, len(faces)/3)
			}
		}
		first := uint32(len(vertices) / 3)
		for _, v := range r.words(m.Indices, 3*int(m.NumTriangles)) {
			faces = append(faces, int32(first+v))
		}
		vertices = append(vertices, r.floats(m.Vertices, 3*int(m.NumVertices))...)
	}
	return oracle.NewCanonical(vertices, faces)
}

// point is point i of a column.
func (r *Rig) point(column uint64, i int64) [3]float32 {
	return [3]float32(r.floats(column+12*uint64(i), 3))
}

// ignored is ignore list i of a launch.
func (r *Rig) ignored(p visibleLaunch, i int64) []int32 {
	if p.Ignore == 0 {
		return nil
	}
	list := make([]int32, p.IgnoreWidth)
	for k, w := range r.words(p.Ignore+4*uint64(i)*uint64(p.IgnoreWidth), len(list)) {
		list[k] = int32(w)
	}
	return list
}

func finite(p [3]float32) bool {
	sum := p[0] - p[0] + p[1] - p[1] + p[2] - p[2]
	return sum == 0
}

func (r *Rig) answerVisible(p visibleLaunch, rows int) {
	brute := r.whole(optixabi.Traversable(p.Handle), p.FaceOffsets)
	for row := p.RowBegin; row < p.RowBegin+int64(rows); row++ {
		active := p.Active == 0 || r.read(p.Active+uint64(row), 1)[0] != 0
		flag := func(column uint64, visible bool) {
			b := byte(0)
			if visible && active {
				b = 1
			}
			r.Write(column+uint64(row), []byte{b})
		}
		switch p.Kind {
		case visibleSegment:
			flag(p.Visible, brute.Visible(r.point(p.Start, row), r.point(p.End, row), r.ignored(p, row)...))
		case visiblePair:
			start, a, b := r.point(p.Start, row), r.point(p.End, row), r.point(p.OtherEnd, row)
			valid := finite(start) && finite(a) && finite(b)
			flag(p.Visible, valid && brute.Visible(start, a, r.ignored(p, row)...))
			flag(p.OtherVisible, valid && brute.Visible(start, b, r.ignored(p, row)...))
		case visibleEdge:
			edge := oracle.EdgeRow{
				Source: r.point(p.Start, row), Position: r.point(p.End, row), Direction: r.point(p.Direction, row),
				TMin: r.floats(p.TMin+4*uint64(row), 1)[0], TMax: r.floats(p.TMax+4*uint64(row), 1)[0],
			}
			flag(p.Visible, brute.VisibleEdge(edge, p.Fractions[:p.FractionCount]))
		case visibleChain:
			answer := oracle.Polyline{Segment: -1, Prim: -1}
			if active {
				answer = r.chain(brute, p, row)
			}
			flag(p.Visible, answer.AllVisible)
			r.Write(p.Segment+4*uint64(row), binary.LittleEndian.AppendUint32(nil, uint32(answer.Segment)))
			r.Write(p.Prim+4*uint64(row), binary.LittleEndian.AppendUint32(nil, uint32(answer.Prim)))
		default:
			r.Errorf("no operation has kind %d", p.Kind)
		}
	}
}

func (r *Rig) chain(brute *oracle.Canonical, p visibleLaunch, row int64) oracle.Polyline {
	segments := int64(p.Segments)
	var points [][3]float32
	var ignore [][]int32
	for i := range segments + 1 {
		points = append(points, r.point(p.Start, row*(segments+1)+i))
		if i < segments {
			ignore = append(ignore, r.ignored(p, row*segments+i))
		}
	}
	return brute.VisibleChain(points, int(int32(r.words(p.Length+4*uint64(row), 1)[0])), ignore)
}
