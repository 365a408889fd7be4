package scene

import (
	"context"
	"math"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/optixabi"
)

// optixSearch is the search of the OptiX backend: a structure per shape over its
// vertices in the tables, and over them, if there are several, one of instances with
// the identity as transform. An instance of a mesh has a structure of its own, too.
// That costs the memory of a mesh per instance, where a shared structure would need
// an 80-byte entry. In return OptiX tests the very triangles that finalize reads and
// our own tree holds, not a ray moved back with rounding, and a moved instance is
// refitted, rebuilt and followed by replicas as a dynamic mesh is.
type optixSearch struct {
	s        *Scene
	t        *tables
	dev      *optixDevice
	programs *optixPrograms

	meshes    []optixMesh
	instances optixStructure // empty for a single mesh
	from      string         // origin of the structures of the meshes
	freed     bool
}

// optixStructure is an acceleration structure in device memory.
type optixStructure struct {
	memory cuda.Slice[uint8]
	handle optixabi.Traversable
}

// optixMesh is the structure of one shape.
type optixMesh struct {
	optixStructure
	dynamic bool
	// builds and updates count what was done to the structure, for copies to do
	// the same.
	builds, updates int
	area            float64 // of the triangles' boxes at the last build
	box             bounds
}

// spreadAt is how much the area of a mesh's triangles may grow before its structure
// is built anew. It says little about the structure, so it is a wide bound.
const spreadAt = 2

func (s *Scene) newOptixSearch(ctx context.Context, t *tables) (_ search, box bounds, err error) {
	x, err := s.openOptixSearch(t, "built")
	if err != nil {
		return nil, box, err
	}
	for i := range x.meshes {
		x.meshes[i].dynamic = s.meshes[i].dynamic
	}
	if box, err = x.build(ctx); err != nil {
		return nil, box, firstError(err, x.free())
	}
	return x, box, nil
}

// openOptixSearch readies device and programs for a search over t.
func (s *Scene) openOptixSearch(t *tables, origin string) (*optixSearch, error) {
	var dev *optixDevice
	var programs *optixPrograms
	err := s.withFreePool(func() (err error) {
		if dev, err = openOptix(s.ctx.Device(), s.log); err == nil {
			programs, err = dev.programsFor(closestPrograms, levelsOf(t))
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	dev.searches.Add(1)
	return &optixSearch{s: s, t: t, dev: dev, programs: programs, meshes: make([]optixMesh, len(t.shapes)), from: origin}, nil
}

// withFreePool runs f, in which OptiX allocates by itself. What it needs may lie
// unused in our pool: f runs again with the pool emptied if memory is short.
func (s *Scene) withFreePool(f func() error) error {
	err := f()
	if outOfMemory(err) {
		if err = s.ctx.Pool().Trim(); err == nil {
			err = f()
		}
	}
	return err
}

// programsFor returns the programs of a kind for the structures of x. The first call
// on a device compiles them.
func (x *optixSearch) programsFor(kind *programKind) (p *optixPrograms, err error) {
	err = x.s.withFreePool(func() (err error) {
		p, err = x.dev.programsFor(kind, levelsOf(x.t))
		return err
	})
	return p, err
}

// offsets are the first primitives of the shapes, for programs that find themselves
// below instances; zero for a mesh alone.
func (x *optixSearch) offsets() uint64 {
	if len(x.meshes) > 1 {
		return x.t.faceOffsets.Addr()
	}
	return 0
}

// levelsOf is the depth of the structures over t.
func levelsOf(t *tables) int {
	if len(t.shapes) == 1 {
		return 1
	}
	return 2
}

func (x *optixSearch) build(ctx context.Context) (box bounds, err error) {
	for i := range x.meshes {
		if err := x.measure(ctx, i); err != nil {
			return box, err
		}
		if err := x.buildMesh(ctx, i); err != nil {
			return box, err
		}
	}
	if err := x.buildInstances(ctx); err != nil {
		return box, err
	}
	return x.bounds(), x.s.stream.Synchronize(ctx)
}

func (x *optixSearch) bounds() bounds {
	box := emptyBounds()
	for i := range x.meshes {
		box.add(&x.meshes[i].box.lo, &x.meshes[i].box.hi)
	}
	return box
}

// measure waits for the box and the summed area of the triangles' boxes of shape i
// and stores the box. The area is stored as that of the build to come.
func (x *optixSearch) measure(ctx context.Context, i int) (err error) {
	m := &x.meshes[i]
	m.box, m.area, err = x.measured(ctx, i)
	return err
}

func (x *optixSearch) measured(ctx context.Context, i int) (box bounds, area float64, err error) {
	s, h := x.s, x.t.shapes[i]
	n := min(h.faceCount, costParts)
	var areas cuda.Slice[float64]
	var boxes cuda.Slice[float32]
	defer func() { err = firstError(err, release(s, &areas), release(s, &boxes)) }()
	if err := firstError(allocate(s, &areas, n), allocate(s, &boxes, 6*n)); err != nil {
		return box, 0, err
	}
	err = s.ctxDo(func(sc cuda.Scope) error {
		return launchRows(sc, x.dev.faceBoxes, s.stream, int64(n), &faceBoxesParams{
			Vertices: x.t.vertices.Addr(), Faces: x.t.faces.Addr(), Areas: areas.Addr(), Boxes: boxes.Addr(),
			FaceBegin: int64(h.faceOffset), FaceEnd: int64(h.faceOffset + h.faceCount), Count: int64(n),
		})
	})
	if err != nil {
		return box, 0, err
	}
	parts, err := cuda.Download(ctx, s.stream, areas)
	if err != nil {
		return box, 0, err
	}
	corners, err := cuda.Download(ctx, s.stream, boxes)
	if err != nil {
		return box, 0, err
	}
	box = emptyBounds()
	for k, a := range parts {
		area += a
		box.add((*[3]float32)(corners[6*k:]), (*[3]float32)(corners[6*k+3:]))
	}
	return box, area, nil
}

func (x *optixSearch) update(ctx context.Context, edited []int) (box bounds, err error) {
	for _, i := range edited {
		m := &x.meshes[i]
		fresh, area, err := x.measured(ctx, i)
		if err != nil {
			return box, err
		}
		m.box = fresh
		// The driver's structure tells nothing about its quality; the boxes of the
		// triangles at least tell when they have spread.
		if rebuild := !(area <= spreadAt*m.area); rebuild {
			x.s.log.Debug("rebuilding structure", "shape", i, "area", area, "at build", m.area)
			m.area = area
			err = x.buildMesh(ctx, i)
		} else {
			err = x.refitMesh(i)
		}
		if err != nil {
			return box, err
		}
	}
	if err := x.buildInstances(ctx); err != nil {
		return box, err
	}
	return x.bounds(), x.s.stream.Synchronize(ctx)
}

// copyTo moves the structures of static meshes where the driver allows it, and
// builds the others. Instance structures hold addresses and are always built.
func (x *optixSearch) copyTo(ctx context.Context, s *Scene, t *tables) (search, error) {
	out, err := s.openOptixSearch(t, "relocated")
	if err != nil {
		return nil, err
	}
	for i := range x.meshes {
		from, to := &x.meshes[i], &out.meshes[i]
		to.dynamic, to.area, to.box = from.dynamic, from.area, from.box
		moved := false
		if !from.dynamic {
			if moved, err = x.relocate(i, out); err != nil {
				return out, err
			}
		}
		if !moved {
			out.from = "rebuilt"
			if err := out.buildMesh(ctx, i); err != nil {
				return out, err
			}
		}
		to.builds, to.updates = from.builds, from.updates
	}
	return out, out.buildInstances(ctx)
}

// relocate copies the structure of shape i to another scene; false when its device
// does not take it.
func (x *optixSearch) relocate(i int, out *optixSearch) (bool, error) {
	from, to := &x.meshes[i], &out.meshes[i]
	var info optixabi.RelocationInfo
	err := x.dev.do(func() (err error) {
		info, err = x.dev.table.AccelRelocationInfo(x.dev.handle, from.handle)
		return err
	})
	if err != nil {
		return false, err
	}
	fits := false
	err = out.dev.do(func() (err error) {
		fits, err = out.dev.table.RelocationCompatible(out.dev.handle, info)
		return err
	})
	if err != nil || !fits {
		return false, err
	}
	if err := duplicate(out.s, &to.memory, from.memory); err != nil {
		return false, err
	}
	return true, out.dev.do(func() (err error) {
		to.handle, err = out.dev.table.AccelRelocate(out.dev.handle, uintptr(out.s.stream.Handle()), info,
			[]optixabi.RelocateInput{optixabi.RelocateTriangles{}}, buffer(to.memory))
		return err
	})
}

// follow refits or builds what the original has refitted or built.
func (x *optixSearch) follow(ctx context.Context, original search) (bool, error) {
	o, ok := original.(*optixSearch)
	if !ok {
		return false, nil
	}
	for i := range x.meshes {
		m, from := &x.meshes[i], &o.meshes[i]
		var err error
		switch {
		case m.builds != from.builds:
			err = x.buildMesh(ctx, i)
		case m.updates != from.updates:
			err = x.refitMesh(i)
		}
		if err != nil {
			return false, err
		}
		m.builds, m.updates, m.area, m.box = from.builds, from.updates, from.area, from.box
	}
	return true, x.buildInstances(ctx)
}

func (x *optixSearch) handle() optixabi.Traversable {
	if len(x.meshes) == 1 {
		return x.meshes[0].handle
	}
	return x.instances.handle
}

func (x *optixSearch) traverse(at site, st *cuda.Stream, rays rayColumns, winners uint64, begin, count int64) error {
	p := storeClosestParams{Params: closestParams{
		Rays: rays, Winners: winners, FaceOffsets: x.offsets(), Handle: uint64(x.handle()),
	}}
	return x.s.eachLaunch(begin, count, func(begin, count int64) error {
		p.Params.RowBegin = begin
		return x.programs.launch(at.Scope, st, count, func(to uint64) []byte {
			p.To = to
			return cuda.ParamBytes(&p)
		})
	})
}

// traverseBare is traverse by the programs of the benchmark's probe.
func (x *optixSearch) traverseBare(sc cuda.Scope, st *cuda.Stream, rays rayColumns, hits cuda.Slice[float32], begin, count int64) error {
	programs, err := x.programsFor(barePrograms)
	if err != nil {
		return err
	}
	p := storeBareParams{Params: bareParams{Rays: rays, Hits: hits.Addr(), Handle: uint64(x.handle())}}
	return x.s.eachLaunch(begin, count, func(begin, count int64) error {
		p.Params.RowBegin = begin
		return programs.launch(sc, st, count, func(to uint64) []byte {
			p.To = to
			return cuda.ParamBytes(&p)
		})
	})
}

func (x *optixSearch) origin() string { return x.from }

func (x *optixSearch) free() error {
	errs := []error{release(x.s, &x.instances.memory)}
	for i := range x.meshes {
		errs = append(errs, release(x.s, &x.meshes[i].memory))
	}
	if !x.freed {
		x.freed = true
		x.dev.searches.Add(-1)
	}
	return firstError(errs...)
}

func buffer(m cuda.Slice[uint8]) optixabi.Buffer {
	return optixabi.Buffer{Addr: m.Addr(), Size: m.Bytes()}
}

// identity is the transform of an instance whose vertices are in world coordinates.
var identity = [12]float32{0: 1, 5: 1, 10: 1}

// maxVisibility makes an instance visible to every ray.
const maxVisibility = math.MaxUint8
