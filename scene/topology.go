package scene

import (
	"cmp"
	"slices"
)

// edge is one record of a mesh, in the mesh's own vertex and face numbers.
type edge struct {
	v0, v1       int32 // v0 < v1
	face0, face1 int32 // face1 is -1 on a boundary
	opposite0    int32
	opposite1    int32 // -1 on a boundary
}

// edgeBytes is the size of an edge.
const edgeBytes = 24

// topology is what a mesh's faces say about its edges. It never changes.
type topology struct {
	edges []edge
}

// incidence is one side of a face, filed under its smaller vertex: the larger
// vertex, and 3*face + corner.
type incidence struct {
	other, corner int32
}

// extractEdges lists the edges of a mesh: one record for a side that belongs to
// one face, and one for every pair of the faces that share a side. Records are
// ordered by (v0, v1) and then by the faces. Faces that repeat a vertex are
// ignored. Meshes with too many records are refused: m faces on one side give
// m(m-1)/2 of them.
func extractEdges(faces []int32, vertices int) (*topology, error) {
	starts, sides := fileSides(faces, vertices)

	// Counted first: the records are allocated once, and a hopeless count is
	// refused before that.
	var records, most int64
	for v := range vertices {
		bucket := sides[starts[v]:starts[v+1]]
		sortSides(bucket)
		for group := range groups(bucket) {
			m := int64(len(group))
			records += max(1, m*(m-1)/2)
			most = max(most, m)
		}
	}
	if err := checkEdges(records, int64(len(faces)/3), most); err != nil {
		return nil, err
	}

	edges := make([]edge, 0, records)
	for v := range vertices {
		for group := range groups(sides[starts[v]:starts[v+1]]) {
			edges = appendGroup(edges, faces, int32(v), group)
		}
	}
	return &topology{edges: edges}, nil
}

// fileSides puts every side of every face into the bucket of its smaller vertex,
// in the order of the faces. Bucket v is sides[starts[v]:starts[v+1]].
func fileSides(faces []int32, vertices int) (starts []int32, sides []incidence) {
	starts = make([]int32, vertices+1)
	eachSide(faces, func(lo, _, _ int32) { starts[lo+1]++ })
	for v := range vertices {
		starts[v+1] += starts[v]
	}
	sides = make([]incidence, starts[vertices])
	next := slices.Clone(starts)
	eachSide(faces, func(lo, hi, corner int32) {
		sides[next[lo]] = incidence{other: hi, corner: corner}
		next[lo]++
	})
	return starts, sides
}

func eachSide(faces []int32, f func(lo, hi, corner int32)) {
	for c := int32(0); int(c) < len(faces); c += 3 {
		a, b, d := faces[c], faces[c+1], faces[c+2]
		if a == b || b == d || d == a {
			continue
		}
		f(min(a, b), max(a, b), c)
		f(min(b, d), max(b, d), c+1)
		f(min(d, a), max(d, a), c+2)
	}
}

// sortSides orders a bucket by (other, corner). Buckets are short, a handful of
// faces around a vertex, except around the hub of a fan.
func sortSides(bucket []incidence) {
	const long = 24
	if len(bucket) > long {
		slices.SortFunc(bucket, func(a, b incidence) int {
			return cmp.Or(cmp.Compare(a.other, b.other), cmp.Compare(a.corner, b.corner))
		})
		return
	}
	// Corners already ascend, and insertion keeps equal keys in order.
	for i := 1; i < len(bucket); i++ {
		x := bucket[i]
		j := i
		for ; j > 0 && bucket[j-1].other > x.other; j-- {
			bucket[j] = bucket[j-1]
		}
		bucket[j] = x
	}
}

// groups yields the runs of equal other vertices of a sorted bucket.
func groups(bucket []incidence) func(yield func([]incidence) bool) {
	return func(yield func([]incidence) bool) {
		for len(bucket) > 0 {
			n := 1
			for n < len(bucket) && bucket[n].other == bucket[0].other {
				n++
			}
			if !yield(bucket[:n]) {
				return
			}
			bucket = bucket[n:]
		}
	}
}

func appendGroup(edges []edge, faces []int32, v0 int32, group []incidence) []edge {
	v1 := group[0].other
	if len(group) == 1 {
		f, o := faceAndOpposite(faces, group[0].corner)
		return append(edges, edge{v0: v0, v1: v1, face0: f, face1: -1, opposite0: o, opposite1: -1})
	}
	for i, a := range group {
		f0, o0 := faceAndOpposite(faces, a.corner)
		for _, b := range group[i+1:] {
			f1, o1 := faceAndOpposite(faces, b.corner)
			edges = append(edges, edge{v0: v0, v1: v1, face0: f0, face1: f1, opposite0: o0, opposite1: o1})
		}
	}
	return edges
}

// faceAndOpposite splits an incidence's corner into its face and the vertex that
// is not on the side.
func faceAndOpposite(faces []int32, corner int32) (face, opposite int32) {
	face = corner / 3
	return face, faces[3*face+(corner%3+2)%3]
}
