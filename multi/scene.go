package multi

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
)

// Scene is one scene on several devices. It is used as a scene.Scene is;
// buffers of a call live on the master. Calls from several goroutines take
// turns to submit, in the order in which they asked; their work on the devices
// overlaps.
//
// Errors of a call are those of package scene, wrapped in a *DeviceError when
// they come from a device, and ErrClosed, and a *DivergedError (ErrDiverged)
// after a mutation that failed half way.
type Scene struct {
	drv       *cuda.Driver
	devices   []int
	opts      Options
	ctxs      []*cuda.Context
	replicas  []*replica
	links     []Link
	transport chunked.Transport
	atomics   bool    // remotes may add to memory of the master
	warmed    [2]bool // by an earlier Build, for scenes of one mesh and of several

	executions atomic.Int64 // calls that were divided or cut
	timed      struct {
		sync.Mutex
		open map[*recorder]struct{} // with events that nobody has read
	}

	split    splits // weights that calibrations chose
	plans    plans  // of the last calls
	grid     gridExecution
	turn     turn
	closed   atomic.Bool
	closeErr error // of the first Close; guarded by turn
	diverged atomic.Pointer[DivergedError]
}

// replica is the complete scene on one device.
type replica struct {
	set               *Scene
	position, ordinal int
	ctx               *cuda.Context
	scene             *scene.Scene
	// stream is where a remote searches: the stream of its scene, so that searches
	// and changes of the scene are in order by themselves.
	stream *cuda.Stream
	// Once they were needed: by rows, of a remote, and by accumulations.
	pipe     *pipe
	exchange *exchange

	// Of the master, made when first needed: entry marks the point in the caller's
	// stream after which a call may begin, consumed what a hook has done with a slot.
	entry    *cuda.Event
	consumed []*cuda.Event
}

func (r *replica) fail(op string, err error) error { return r.failChunk(op, chunked.Chunk{}, err) }

// failChunk is fail for what was done to the rows of a chunk.
func (r *replica) failChunk(op string, c chunked.Chunk, err error) error {
	if err == nil {
		return nil
	}
	at := r.culprit(err)
	return newDeviceError(at.position, at.ordinal, op, c.Range(), err)
}

// culprit is the device of which an error tells, of what was done for the sake of r: a chunk of
// a remote also needs streams of the master. Where r is lost, others only find that out.
func (r *replica) culprit(err error) *replica {
	var told *cuda.Error
	if r.ctx.Lost() != nil || !errors.As(err, &told) {
		return r
	}
	for _, other := range r.set.replicas {
		if other.ordinal == told.Device {
			return other
		}
	}
	return r
}

// blame is fail for the error of a call, which need not be of the device: of an argument or a
// context that ended, it stays as it is.
func (r *replica) blame(op string, err error) error {
	if err == nil {
		return nil
	}
	var told *DeviceError
	if errors.As(err, &told) || !scene.OfDevice(err) {
		return err
	}
	return r.fail(op, err)
}

func (r *replica) release() error {
	var errs []error
	if r.pipe != nil {
		errs = append(errs, r.pipe.close())
	}
	errs = append(errs, r.exchange.close(r))
	for _, e := range append(r.consumed, r.entry) {
		errs = append(errs, e.Close())
	}
	if r.scene != nil {
		errs = append(errs, r.scene.Close())
	}
	err := firstError(errs)
	if errors.Is(err, cuda.ErrDeviceLost) { // what was there is gone
		return nil
	}
	return r.fail("closing", err)
}

func (s *Scene) master() *replica { return s.replicas[0] }

// begin takes the turn for a call that needs a usable set.
func (s *Scene) begin(ctx context.Context) (done func(), err error) {
	done, err = s.turn.take(ctx)
	if err != nil {
		return nil, err
	}
	if s.closed.Load() {
		done()
		return nil, ErrClosed
	}
	return done, nil
}

// beginReady also refuses a diverged set.
func (s *Scene) beginReady(ctx context.Context) (done func(), err error) {
	done, err = s.begin(ctx)
	if err != nil {
		return nil, err
	}
	if d := s.diverged.Load(); d != nil {
		done()
		return nil, d
	}
	for _, r := range s.replicas {
		if err := r.ctx.Lost(); err != nil {
			done()
			return nil, r.fail("a call", err)
		}
	}
	return done, nil
}

// alone asks the master for what needs no other device.
func alone[R any](ctx context.Context, s *Scene, op string, ask func(master *scene.Scene) (R, error)) (answer R, err error) {
	done, err := s.beginReady(ctx)
	if err != nil {
		return answer, err
	}
	defer done()
	answer, err = ask(s.master().scene)
	return answer, s.master().blame(op, err)
}

// AddMesh appends a mesh and returns its shape id. Geometry on a device must
// be on the master. The scene has to be built again before it answers.
func (s *Scene) AddMesh(m scene.Mesh) (int, error) {
	done, err := s.begin(context.Background())
	if err != nil {
		return -1, err
	}
	defer done()
	id, err := s.master().scene.AddMesh(m)
	return id, s.master().blame("AddMesh", err)
}

// AddInstance appends a moved copy of a static mesh and returns its shape id; see
// scene.Scene.AddInstance. The scene has to be built again before it answers.
func (s *Scene) AddInstance(owner int, transform [16]float32, dynamic bool) (int, error) {
	done, err := s.begin(context.Background())
	if err != nil {
		return -1, err
	}
	defer done()
	return s.master().scene.AddInstance(owner, transform, dynamic)
}

// Build builds the master's scene and copies its finished tables and tree to
// every replica, so a build is paid once and all devices search the same
// tree. It recovers a diverged set.
//
// Errors: scene.ErrNoMesh, *scene.LimitError, ErrClosed, the *DeviceError of what failed, in
// a *DivergedError once the master has changed. Cost: one build on the master, then
// scene-sized peer copies; it waits for them.
func (s *Scene) Build(ctx context.Context) error {
	done, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer done()
	if err := s.warm(ctx); err != nil {
		return err
	}
	if err := s.master().scene.Build(ctx); err != nil {
		return s.master().blame("Build", err)
	}
	return s.replicate(ctx, "Build")
}

// UpdateMeshVertices stages new vertices ([V,3], metres) of a dynamic mesh;
// queries see them after Sync.
func (s *Scene) UpdateMeshVertices(id int, vertices []float32) error {
	done, err := s.beginReady(context.Background())
	if err != nil {
		return err
	}
	defer done()
	return s.master().scene.UpdateMeshVertices(id, vertices)
}

// UpdateMeshVerticesDevice stages new vertices that are already on the master;
// see scene.Scene.UpdateMeshVerticesDevice.
func (s *Scene) UpdateMeshVerticesDevice(ctx context.Context, id int, vertices cuda.Slice[float32]) error {
	done, err := s.beginReady(ctx)
	if err != nil {
		return err
	}
	defer done()
	return s.master().blame("UpdateMeshVerticesDevice", s.master().scene.UpdateMeshVerticesDevice(ctx, id, vertices))
}

// SetInstanceTransform stages a new transform of a dynamic instance; queries see
// it after Sync. See scene.Scene.AddInstance for its form.
func (s *Scene) SetInstanceTransform(id int, transform [16]float32) error {
	done, err := s.beginReady(context.Background())
	if err != nil {
		return err
	}
	defer done()
	return s.master().scene.SetInstanceTransform(id, transform)
}

// Sync commits staged vertices and transforms on every device. Replicas receive the
// finished vertices of instances as they do those of meshes.
//
// Errors: those of a call, and a *DivergedError when it fails half way. Cost: a refit on every device and a peer copy of the vertices to each; where
// the master decided to rebuild its tree, scene-sized copies instead; nothing
// when nothing is staged.
func (s *Scene) Sync(ctx context.Context) error {
	done, err := s.beginReady(ctx)
	if err != nil {
		return err
	}
	defer done()
	m := s.master().scene
	if !m.HasPendingUpdates() {
		return m.Sync(ctx)
	}
	if err := m.Sync(ctx); err != nil {
		err = s.master().blame("Sync", err)
		if m.IsReady() {
			return err // nothing was committed anywhere
		}
		return s.diverge("Sync", err)
	}
	return s.replicate(ctx, "Sync")
}

// SetEdgeMask sets which edges take part in edge queries, on every device: one value per edge.
// Errors: as for Sync.
func (s *Scene) SetEdgeMask(mask []bool) error {
	done, err := s.beginReady(context.Background())
	if err != nil {
		return err
	}
	defer done()
	for _, r := range s.replicas {
		if err := r.scene.SetEdgeMask(mask); err != nil {
			err = r.blame("SetEdgeMask", err)
			if r.position == 0 {
				return err // refused before anything changed
			}
			return s.diverge("SetEdgeMask", err)
		}
	}
	return s.lockStep("SetEdgeMask")
}

// replicate copies the master's scene to the remotes and compares versions. The
// master has changed by now, so it does not stop when ctx ends.
func (s *Scene) replicate(ctx context.Context, op string) error {
	ctx = context.WithoutCancel(ctx)
	for _, r := range s.replicas[1:] {
		if err := r.scene.Replicate(ctx, s.master().scene); err != nil {
			return s.diverge(op, r.fail("copying the scene to the replica", err))
		}
	}
	if err := s.lockStep(op); err != nil {
		return err
	}
	s.diverged.Store(nil)
	return nil
}

// lockStep requires the same version counters everywhere.
func (s *Scene) lockStep(op string) error {
	type versions struct{ all, geometry, mask int64 }
	of := func(r *replica) versions {
		return versions{r.scene.Version(), r.scene.GeometryVersion(), r.scene.EdgeMaskVersion()}
	}
	want := of(s.master())
	for _, r := range s.replicas[1:] {
		if have := of(r); have != want {
			return s.diverge(op, r.fail("comparing versions", fmt.Errorf("versions %+v, the master has %+v", have, want)))
		}
	}
	return nil
}

func (s *Scene) diverge(op string, err error) error {
	if len(s.replicas) == 1 {
		return err // nothing to diverge from: the plain scene has its own state
	}
	d := &DivergedError{op, err}
	s.diverged.Store(d)
	return d
}
