package scene

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/optixabi"
)

// Build makes tables and a search tree of all shapes, with what is staged applied.
// It resets the edge mask to all true.
//
// Geometry that is refused (*ArgumentError, *LimitError), a lack of memory and
// the end of ctx leave the scene as it was. Any other failure of the device makes
// it failed. Cost: an upload of what is on the host; the edges of meshes, which the
// host lists; a tree build on the device, milliseconds per million triangles and about
// 200 bytes per triangle for its time (see Options.Builder; the first use of OptiX in
// a process takes a second or so more). Build waits for the device.
func (s *Scene) Build(ctx context.Context) error {
	if err := s.turns.exclude(ctx); err != nil {
		return err
	}
	defer s.turns.done(true)
	if len(s.meshes) == 0 {
		return ErrNoMesh
	}
	backend, reason, err := s.ResolveBackend()
	if err != nil {
		return err
	}
	start := time.Now()
	parts, err := s.gather(ctx)
	if err != nil {
		return s.fail("Build", err)
	}
	t, box, err := s.newTables(ctx, backend, parts)
	if err != nil {
		return s.fail("Build", err)
	}
	if err := firstError(s.order.beginChange(), s.order.endChange()); err != nil {
		return s.fail("Build", firstError(err, s.freeTables(t)))
	}
	old := s.tables
	s.tables = t
	s.source.tables = nil // a replica no more
	s.mask = make([]bool, t.edgeCount)
	for i := range s.mask {
		s.mask[i] = true
	}
	var freed error
	for i, m := range s.meshes {
		if m.instance != nil {
			m.instance.transform = m.instance.current()
		}
		m.vertices, m.faces, m.topology = parts[i].vertices, parts[i].faces, parts[i].topology
		m.fromVertices, m.fromFaces = cuda.Slice[float32]{}, cuda.Slice[int32]{}
		freed = firstError(freed, s.freeStaged(m))
	}
	if err := firstError(freed, s.freeTables(old)); err != nil {
		return s.fail("Build", err)
	}
	s.update(func(st *status) {
		st.state, st.failure, st.pending = ready, nil, false
		st.version++
		st.geometry++
		st.mask++
		st.edges = t.edgeCount
		st.backend, st.reason, st.origin = backend, reason, t.search.origin()
		st.lo, st.hi = box.lo, box.hi
	})
	s.log.Debug("built scene", "faces", t.faceCount, "edges", t.edgeCount, "backend", backend, "why", reason,
		"took", time.Since(start))
	return nil
}

// fail turns the scene into a failed one, unless the error left nothing behind.
func (s *Scene) fail(op string, err error) error {
	var arg *ArgumentError
	var limit *LimitError
	if errors.As(err, &arg) || errors.As(err, &limit) || outOfMemory(err) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return s.failed(op, err)
}

// outOfMemory reports whether an error speaks of full memory, ours or that of OptiX.
func outOfMemory(err error) bool {
	return errors.Is(err, cuda.ErrOutOfMemory) ||
		errors.Is(err, optixabi.ErrorDeviceOutOfMemory) || errors.Is(err, optixabi.ErrorHostOutOfMemory)
}

func (s *Scene) failed(op string, err error) error {
	s.update(func(st *status) {
		st.state, st.failure = failed, &FailedError{Op: op, Cause: err}
	})
	return err
}

// part is the geometry of one shape that Build works with. Vertices are on the host
// or, in device, on the device, where they stay. An instance shares faces and topology
// with its owner and has neither.
type part struct {
	vertices []float32
	device   cuda.Slice[float32]
	faces    []int32
	topology *topology
}

// gather collects validated geometry of every shape.
func (s *Scene) gather(ctx context.Context) ([]part, error) {
	var vertices, faces int64
	for _, m := range s.meshes {
		vertices += int64(m.vertexCount)
		faces += int64(m.faceCount)
	}
	if err := firstError(checkLimit("vertices", vertices, maxVertices), checkLimit("faces", faces, maxFaces)); err != nil {
		return nil, err
	}
	if err := s.validateDeviceMeshes(ctx); err != nil {
		return nil, err
	}
	parts := make([]part, len(s.meshes))
	for i, m := range s.meshes {
		if m.instance != nil {
			continue // extractAll shares what its owner has
		}
		var err error
		parts[i] = part{faces: m.faces, topology: m.topology}
		if parts[i].vertices, parts[i].device, err = s.currentVertices(i); err != nil {
			return nil, err
		}
		if m.faces == nil {
			if parts[i].faces, err = cuda.Download(ctx, s.stream, m.fromFaces); err != nil {
				return nil, err
			}
		}
	}
	return parts, extractAll(s.meshes, parts)
}

// currentVertices is mesh i's vertices with staged ones applied, where they are.
func (s *Scene) currentVertices(i int) (host []float32, device cuda.Slice[float32], err error) {
	m := s.meshes[i]
	switch {
	case m.staged != nil:
		return m.staged, device, nil
	case !m.stagedDevice.IsNil():
		return nil, m.stagedDevice, nil
	case m.vertices != nil:
		return m.vertices, device, nil
	case !m.fromVertices.IsNil():
		return nil, m.fromVertices, nil
	}
	device, err = s.tables.vertexRange(i)
	return nil, device, err
}

func (t *tables) vertexRange(i int) (cuda.Slice[float32], error) {
	h := t.shapes[i]
	return t.vertices.Sub(3*h.vertexOffset, 3*(h.vertexOffset+h.vertexCount))
}

// extractAll lists the edges of the meshes that were not built before, in
// parallel, and gives instances faces and edges of their owners.
func extractAll(meshes []*mesh, parts []part) error {
	errs := make([]error, len(parts))
	var wg sync.WaitGroup
	for i := range parts {
		p := &parts[i]
		if p.topology != nil || meshes[i].instance != nil {
			continue
		}
		if meshes[i].noEdges {
			p.topology = &topology{}
			continue
		}
		wg.Go(func() {
			p.topology, errs[i] = extractEdges(p.faces, meshes[i].vertexCount)
		})
	}
	wg.Wait()
	if err := firstError(errs...); err != nil {
		return err
	}
	var edges int64
	for i, m := range meshes {
		if m.instance != nil {
			owner := parts[m.instance.owner]
			parts[i] = part{faces: owner.faces, topology: owner.topology}
		}
		edges += int64(len(parts[i].topology.edges))
	}
	return checkLimit("edges", edges, maxEdges)
}

// newTables uploads the geometry, builds its search and waits until both are
// complete.
func (s *Scene) newTables(ctx context.Context, backend Backend, parts []part) (t *tables, box bounds, err error) {
	t, faces, ids, offsets := layOut(s.meshes, parts)
	defer func() {
		if err != nil {
			err = firstError(err, s.freeTables(t))
			t = nil
		}
	}()
	err = firstError(
		s.placeVertices(ctx, t, parts),
		upload(ctx, s, &t.faces, faces),
		upload(ctx, s, &t.shapeIDs, ids),
		upload(ctx, s, &t.faceOffsets, offsets),
		allocate(s, &t.normals, 3*t.faceCount))
	if err != nil {
		return t, box, err
	}
	if err := s.derive(t); err != nil {
		return t, box, err
	}
	t.search, box, err = s.newSearch(ctx, backend, t)
	return t, box, err
}

// layOut joins the parts into global tables.
func layOut(meshes []*mesh, parts []part) (t *tables, faces, ids, offsets []int32) {
	t = &tables{shapes: make([]shape, len(parts))}
	for i, p := range parts {
		h := shape{
			vertexOffset: t.vertexCount, vertexCount: meshes[i].vertexCount,
			faceOffset: t.faceCount, faceCount: len(p.faces) / 3,
			edgeOffset: t.edgeCount, topology: p.topology,
		}
		t.shapes[i] = h
		t.vertexCount += h.vertexCount
		t.faceCount += h.faceCount
		t.edgeCount += len(p.topology.edges)
	}
	ids = make([]int32, 0, t.faceCount)
	for i := range parts {
		offsets = append(offsets, int32(t.shapes[i].faceOffset))
		for range t.shapes[i].faceCount {
			ids = append(ids, int32(i))
		}
	}
	return t, globalFaces(t, parts), ids, offsets
}

// globalFaces is the faces of all parts with global vertex ids.
func globalFaces(t *tables, parts []part) []int32 {
	faces := make([]int32, 0, 3*t.faceCount)
	for i, p := range parts {
		first := int32(t.shapes[i].vertexOffset)
		for _, v := range p.faces {
			faces = append(faces, first+v)
		}
	}
	return faces
}

// noFault is what the validation kernel leaves when it finds nothing.
const noFault = math.MaxUint64

// validateDeviceMeshes checks geometry that is on the device, one launch per mesh.
// The answers are read before anything else is enqueued.
func (s *Scene) validateDeviceMeshes(ctx context.Context) error {
	for i, m := range s.meshes {
		if m.fromFaces.IsNil() {
			continue
		}
		err := firstError(
			checkMemory(s, "Build", "DeviceVertices", m.fromVertices),
			checkMemory(s, "Build", "DeviceFaces", m.fromFaces))
		if err == nil {
			err = s.validateOnDevice(ctx, "Build", m.fromVertices, m.fromFaces)
		}
		if err != nil {
			var arg *ArgumentError
			if errors.As(err, &arg) {
				return badArg(arg.Op, arg.Arg, "mesh %d: %s", i, arg.Detail)
			}
			return err
		}
	}
	return nil
}

// validateOnDevice waits for one kernel that checks vertices and, unless absent,
// faces.
func (s *Scene) validateOnDevice(ctx context.Context, op string, vertices cuda.Slice[float32], faces cuda.Slice[int32]) (err error) {
	var faults cuda.Slice[uint64]
	if err := upload(ctx, s, &faults, []uint64{noFault, noFault}); err != nil {
		return err
	}
	defer func() { err = firstError(err, release(s, &faults)) }()
	p := validateMeshParams{
		Vertices: vertices.Addr(), Faces: faces.Addr(),
		FirstBadVertex: faults.Addr(), FirstBadFace: faults.Addr() + 8,
		VertexCount: int64(vertices.Len() / 3), FaceCount: int64(faces.Len() / 3),
	}
	err = s.ctxDo(func(sc cuda.Scope) error {
		return s.eachLaunch(0, max(p.VertexCount, p.FaceCount), func(begin, count int64) error {
			p.RowBegin, p.Count = begin, count
			return launchRows(sc, s.kernels.validateMesh, s.stream, count, &p)
		})
	})
	if err != nil {
		return err
	}
	found, err := cuda.Download(ctx, s.stream, faults)
	if err != nil {
		return err
	}
	if found[0] != noFault {
		return badVertex(op, "DeviceVertices", int(found[0]))
	}
	if found[1] != noFault {
		return badFace(op, "DeviceFaces", int(found[1]), int(p.VertexCount))
	}
	return nil
}
