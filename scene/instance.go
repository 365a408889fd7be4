package scene

import (
	"context"
	"math"
	"slices"

	"github.com/raymux/raymux/cuda"
)

// affine is the upper three rows of a transform: x' = A x + c, each row of A
// followed by its part of c.
type affine [12]float32

// instance is what makes a mesh of a scene the copy of another one.
type instance struct {
	owner     int // shape id of a static mesh
	transform affine
	staged    *affine // by SetInstanceTransform; nil: nothing is staged
}

// current is the transform with a staged one applied.
func (in *instance) current() affine {
	if in.staged != nil {
		return *in.staged
	}
	return in.transform
}

// AddInstance appends a copy of a mesh, moved by a transform, and returns its shape
// id. The scene needs a Build before it answers again. owner is the shape id of a
// static mesh; NoEdges is the owner's. With dynamic set, SetInstanceTransform may
// move the instance later.
//
// transform is row-major and acts on columns: v' = A v + c, where A is its upper
// left 3x3 and c the first three values of its last column. All values are finite,
// the last row is (0,0,0,1), and |det A| is more than 1e-12 of the cube of the
// largest |A_ij|. Mirroring is legal: face normals follow the moved vertices.
//
// An instance is a shape like a mesh, with its own vertices, faces and edges. Its
// vertices are computed on the device, as
//
//	x' = fma(a00, x, fma(a01, y, fma(a02, z, c0)))
//
// and likewise y' and z', in float32. Build refuses an instance of which a vertex
// leaves the range of float32.
//
// Errors: *ArgumentError, *LimitError; the scene is unchanged then. No driver call.
// Cost: the device memory of a mesh, also for the search: no structure is shared
// with the owner, so that every backend finds the same triangles of the tables.
func (s *Scene) AddInstance(owner int, transform [16]float32, dynamic bool) (int, error) {
	const op = "AddInstance"
	if err := s.turns.exclude(context.Background()); err != nil {
		return -1, err
	}
	defer s.turns.done(true)
	if err := s.checkRoom(); err != nil {
		return -1, err
	}
	if owner < 0 || owner >= len(s.meshes) {
		return -1, badArg(op, "owner", "is %d, want the id of one of %d shapes", owner, len(s.meshes))
	}
	of := s.meshes[owner]
	if of.instance != nil {
		return -1, badArg(op, "owner", "shape %d is an instance; name its owner, mesh %d", owner, of.instance.owner)
	}
	if of.dynamic {
		return -1, badArg(op, "owner", "mesh %d is dynamic; only static meshes have instances", owner)
	}
	by, err := checkTransform(op, transform)
	if err != nil {
		return -1, err
	}
	return s.append(&mesh{
		vertexCount: of.vertexCount, faceCount: of.faceCount,
		noEdges: of.noEdges, dynamic: dynamic,
		instance: &instance{owner: owner, transform: by},
	}), nil
}

// SetInstanceTransform stages a new transform, as AddInstance takes it, for a dynamic
// instance. Queries see it after Sync; of several calls before it the last one
// counts. Errors: *ArgumentError; the scene is unchanged then. No driver call.
func (s *Scene) SetInstanceTransform(id int, transform [16]float32) error {
	const op = "SetInstanceTransform"
	if err := s.excludeReady(context.Background()); err != nil {
		return err
	}
	defer s.turns.done(true)
	if id < 0 || id >= len(s.meshes) {
		return badArg(op, "id", "is %d, want the id of one of %d shapes", id, len(s.meshes))
	}
	m := s.meshes[id]
	if m.instance == nil {
		return badArg(op, "id", "shape %d is a mesh, which UpdateMeshVertices moves; want an instance", id)
	}
	if !m.dynamic {
		return badArg(op, "id", "instance %d is static; add it with dynamic set", id)
	}
	by, err := checkTransform(op, transform)
	if err != nil {
		return err
	}
	m.instance.staged = &by
	s.update(func(st *status) { st.pending = true })
	return nil
}

// leastDeterminant is the least |det A|, as a part of the cube of the largest |A_ij|,
// above which a transform is taken.
const leastDeterminant = 1e-12

func checkTransform(op string, m [16]float32) (affine, error) {
	const arg = "transform"
	for i, v := range m {
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return affine{}, badArg(op, arg, "is %v in row %d, column %d; want finite values", v, i/4, i%4)
		}
	}
	if last := [4]float32(m[12:]); last != [4]float32{3: 1} {
		return affine{}, badArg(op, arg, "has the last row %v, want [0 0 0 1]; the matrix is row-major and acts on columns", last)
	}
	// Products of three float32 are far from the ends of float64.
	a := func(i, j int) float64 { return float64(m[4*i+j]) }
	det := a(0, 0)*(a(1, 1)*a(2, 2)-a(1, 2)*a(2, 1)) -
		a(0, 1)*(a(1, 0)*a(2, 2)-a(1, 2)*a(2, 0)) +
		a(0, 2)*(a(1, 0)*a(2, 1)-a(1, 1)*a(2, 0))
	largest := 0.0
	for i := range 9 {
		largest = max(largest, math.Abs(a(i/3, i%3)))
	}
	if least := leastDeterminant * largest * largest * largest; !(math.Abs(det) > least) {
		return affine{}, badArg(op, arg, "is singular: |det A| is %g, want more than %g", math.Abs(det), least)
	}
	return affine(m[:12]), nil
}

// move is the computation of the vertices of instance shape, to wherever they are
// needed.
type move struct {
	shape int
	to    cuda.Slice[float32]
}

// moveInstances computes vertices from those of the owners in t, and waits for the
// word that says whether all are finite.
func (s *Scene) moveInstances(ctx context.Context, op string, t *tables, moves []move) (err error) {
	if len(moves) == 0 {
		return nil
	}
	var fault cuda.Slice[uint64]
	if err := upload(ctx, s, &fault, []uint64{noFault}); err != nil {
		return err
	}
	defer func() { err = firstError(err, release(s, &fault)) }()
	err = s.ctxDo(func(sc cuda.Scope) error {
		for _, m := range moves {
			if err := s.moveInstance(sc, t, m, fault.Addr()); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	found, err := cuda.Download(ctx, s.stream, fault)
	if err != nil || found[0] == noFault {
		return err
	}
	shape, vertex := found[0]>>32, found[0]&math.MaxUint32
	return badArg(op, "transform", "moves vertex %d of instance %d out of the range of float32", vertex, shape)
}

func (s *Scene) moveInstance(sc cuda.Scope, t *tables, m move, fault uint64) error {
	in := s.meshes[m.shape].instance
	from, err := t.vertexRange(in.owner)
	if err != nil {
		return err
	}
	return s.eachLaunch(0, int64(s.meshes[m.shape].vertexCount), func(begin, count int64) error {
		return launchRows(sc, s.kernels.transformVertices, s.stream, count, &transformVerticesParams{
			Vertices: from.Addr(), Moved: m.to.Addr(), FirstBad: fault,
			Rows: in.current(), Shape: int32(m.shape), RowBegin: begin, Count: count,
		})
	})
}

// placeVertices fills the vertex table of t: meshes from where their vertices are,
// instances from their owners.
func (s *Scene) placeVertices(ctx context.Context, t *tables, parts []part) error {
	if err := allocate(s, &t.vertices, 3*t.vertexCount); err != nil {
		return err
	}
	var moves []move
	for i := 0; i < len(parts); i++ {
		to, err := t.vertexRange(i)
		if err != nil {
			return err
		}
		switch {
		case s.meshes[i].instance != nil:
			moves = append(moves, move{i, to})
		case parts[i].vertices == nil:
			if err := cuda.CopyAsync(s.stream, to, parts[i].device); err != nil {
				return err
			}
		default:
			last, err := s.uploadVertices(ctx, t, parts, i)
			if err != nil {
				return err
			}
			i = last
		}
	}
	return s.moveInstances(ctx, "Build", t, moves)
}

// uploadVertices copies the vertices of part i and of those that follow it on the
// host at once, and returns the last of them.
func (s *Scene) uploadVertices(ctx context.Context, t *tables, parts []part, i int) (last int, err error) {
	vertices := parts[i].vertices
	for last = i; last+1 < len(parts) && parts[last+1].vertices != nil; last++ {
		if last == i {
			vertices = slices.Clone(vertices)
		}
		vertices = append(vertices, parts[last+1].vertices...)
	}
	begin := 3 * t.shapes[i].vertexOffset
	to, err := t.vertices.Sub(begin, begin+len(vertices))
	if err != nil {
		return last, err
	}
	return last, cuda.CopyIn(ctx, s.stream, to, vertices)
}
