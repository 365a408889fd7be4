package scene

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/cuapi"
)

// Options of a scene. The zero value is usable.
type Options struct {
	// Backend selects the triangle search at Build.
	Backend Backend
	// Builder makes the search tree of the CUDA backend.
	Builder Builder
	// Stream is where the scene works and, without OnStream, where queries are
	// enqueued. Nil: a new stream, which Close closes.
	Stream *cuda.Stream
	// Replicas are the devices that will hold copies of the scene, which Auto takes
	// into account. For schedulers.
	Replicas []*cuda.Device
	// Logger receives builds and rebuilds at debug level, and the messages of OptiX
	// on a device where this scene is the first to use it. Nil: the logger of the
	// driver (cuda.WithLogger).
	Logger *slog.Logger
}

// state is what a scene accepts.
type state int

const (
	empty  state = iota // no mesh
	staged              // shapes were added since the last Build
	ready
	failed
)

// Scene is a set of triangle meshes on one device and the structures that answer
// queries about them. All methods are safe for use by several goroutines.
type Scene struct {
	ctx       *cuda.Context
	stream    *cuda.Stream
	ownStream bool
	want      Backend
	replicas  []*cuda.Device
	log       *slog.Logger
	kernels   *kernels
	order     order
	turns     turns
	builder   Builder
	device    deviceBuild
	// rowsPerLaunch bounds one launch; tests make it small.
	rowsPerLaunch int64
	// pathHash is the bits of hashes that DedupReflections uses; tests take few.
	pathHash uint64
	// cacheBytes is the size of the device's cache.
	cacheBytes int64
	// forceCopies is the number of copies of sums that AccumulateReflections makes; 0: as
	// many as pay. Tests choose.
	forceCopies int64
	// tubeLanes are the busy and idle lanes of its search; tests choose.
	tubeLanes [2]uint32

	// Changed by the holder of an exclusive turn, read by holders of any turn.
	meshes []*mesh
	tables *tables // nil before the first Build
	mask   []bool  // one per edge of tables
	source source  // of a replica

	// What the getters return, which take no turn.
	mu     sync.Mutex
	status status

	closing sync.Once
	closeOf error
}

// status is the public state of a scene.
type status struct {
	state                   state
	failure                 *FailedError
	pending                 bool // vertices or transforms are staged
	extended                bool // meshes were added after a Build
	version, geometry, mask int64
	shapes, meshes, edges   int
	backend                 Backend
	reason, origin          string
	lo, hi                  [3]float32
}

// New creates an empty scene on c's device. It loads the kernels, which compiles
// them when the driver has not cached them yet. c must stay open until the scene
// is closed.
func New(c *cuda.Context, opts Options) (_ *Scene, err error) {
	if c == nil {
		return nil, badArg("New", "c", "is nil, want a context from Device.Retain")
	}
	if opts.Builder != BuilderAuto && opts.Builder != BuilderSAH {
		return nil, badArg("New", "Options.Builder", "is %d, want BuilderAuto or BuilderSAH", int(opts.Builder))
	}
	s := &Scene{
		ctx: c, stream: opts.Stream, want: opts.Backend, log: opts.Logger,
		replicas:      slices.Clone(opts.Replicas),
		builder:       opts.Builder,
		device:        newDeviceBuild(),
		rowsPerLaunch: maxLaunchRows, pathHash: pathHashBits,
		tubeLanes: [2]uint32{tubeBusyLanes, tubeIdleLanes},
	}
	if s.log == nil {
		s.log = c.Driver().Logger()
	}
	if s.stream != nil {
		if err := s.checkDevice("New", "Options.Stream", s.stream.Context().Device()); err != nil {
			return nil, err
		}
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.release())
		}
	}()
	if s.stream == nil {
		if s.stream, err = c.NewStream(cuda.StreamOptions{}); err != nil {
			return nil, err
		}
		s.ownStream = true
	}
	cache, err := c.Device().Attribute(cuapi.AttrL2CacheSize)
	if err != nil {
		return nil, err
	}
	s.cacheBytes = int64(cache)
	if s.kernels, err = loadKernels(c); err != nil {
		return nil, err
	}
	s.order.own, s.order.lanes = s.stream, map[*cuda.Stream]*lane{}
	if s.order.changed, err = c.NewEvent(cuda.EventOptions{}); err != nil {
		return nil, err
	}
	return s, nil
}

// Close waits for calls in flight and for the scene's work on the device, then
// releases everything. Later calls fail with cuda.ErrClosed. Results that callers
// hold stay valid. Close is idempotent and returns the first failure, also on
// later calls. Close of a nil scene does nothing and returns nil.
func (s *Scene) Close() error {
	if s == nil {
		return nil
	}
	s.closing.Do(func() {
		s.turns.close()
		s.closeOf = s.release()
		s.update(func(st *status) { st.state, st.pending = empty, false })
	})
	return s.closeOf
}

func (s *Scene) release() error {
	var all []error
	if s.order.changed != nil {
		// Queries on other streams must end before their tables are freed.
		all = append(all, s.order.beginChange(), s.stream.Synchronize(context.Background()), s.unfollow())
	}
	for _, m := range s.meshes {
		all = append(all, s.freeStaged(m))
	}
	all = append(all, s.freeTables(s.tables))
	s.tables, s.meshes = nil, nil
	if s.order.changed != nil {
		all = append(all, s.order.close())
	}
	if s.kernels != nil {
		all = append(all, s.kernels.close())
	}
	if s.ownStream {
		all = append(all, s.stream.Close())
	}
	for _, err := range all {
		if err != nil {
			return err
		}
	}
	return nil
}

// AddMesh appends a mesh and returns its shape id. The scene needs a Build before
// it answers again. Host arrays are validated and copied before AddMesh returns;
// device arrays by Build. Errors: *ArgumentError, *LimitError,
// *cuda.WrongDeviceError; the scene is unchanged then. No driver call.
func (s *Scene) AddMesh(m Mesh) (int, error) {
	if err := s.turns.exclude(context.Background()); err != nil {
		return -1, err
	}
	defer s.turns.done(true)
	if err := s.checkRoom(); err != nil {
		return -1, err
	}
	added, err := s.newMesh(m)
	if err != nil {
		return -1, err
	}
	return s.append(added), nil
}

// checkRoom requires room for one more shape.
func (s *Scene) checkRoom() error {
	return checkLimit("shapes", int64(len(s.meshes))+1, maxShapes)
}

// append gives m the next shape id.
func (s *Scene) append(m *mesh) int {
	s.meshes = append(s.meshes, m)
	s.update(func(st *status) {
		st.extended = st.extended || st.state == ready
		if st.state != failed {
			st.state = staged
		}
		st.shapes = len(s.meshes)
		if st.shapes == 1 {
			st.meshes = 0 // that of its master until now, if s was a replica
		}
		if m.instance == nil {
			st.meshes++
		}
	})
	return len(s.meshes) - 1
}

func (s *Scene) update(f func(*status)) {
	s.mu.Lock()
	f(&s.status)
	s.mu.Unlock()
}

func (s *Scene) current() status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status
}

// checkReady refuses calls that need committed geometry.
func (s *Scene) checkReady() error {
	switch st := s.current(); {
	case st.state == ready:
		return nil
	case st.state == failed:
		return st.failure
	case st.extended:
		return errExtended
	}
	return ErrNotReady
}

// shareReady takes a shared turn for a call on committed geometry.
func (s *Scene) shareReady(ctx context.Context) error {
	if err := s.turns.share(ctx); err != nil {
		return err
	}
	if err := s.checkReady(); err != nil {
		s.turns.done(false)
		return err
	}
	return nil
}

// excludeReady is shareReady for a call that changes the scene.
func (s *Scene) excludeReady(ctx context.Context) error {
	if err := s.turns.exclude(ctx); err != nil {
		return err
	}
	if err := s.checkReady(); err != nil {
		s.turns.done(true)
		return err
	}
	return nil
}

// checkDevice requires d, the device of an argument, to be the scene's. An absent
// array has no device and is judged elsewhere.
func (s *Scene) checkDevice(op, arg string, d *cuda.Device) error {
	own := s.ctx.Device()
	if d == nil || d == own {
		return nil
	}
	if d.Driver() != own.Driver() {
		return badArg(op, arg, "belongs to another driver")
	}
	return &cuda.WrongDeviceError{Arg: arg, Want: own.Ordinal(), Have: d.Ordinal()}
}

// checkMemory requires an array argument to be on the scene's device and not freed
// yet: kernels get bare addresses, and the pool may have handed the memory out
// again.
func checkMemory[T cuda.Scalar](s *Scene, op, arg string, v cuda.Slice[T]) error {
	if err := s.checkDevice(op, arg, v.Device()); err != nil {
		return err
	}
	if v.Freed() {
		return badArg(op, arg, "was freed before the call")
	}
	return nil
}

// Context is the context that the scene lives in.
func (s *Scene) Context() *cuda.Context { return s.ctx }

// Stream is the scene's own stream.
func (s *Scene) Stream() *cuda.Stream { return s.stream }

// Version counts Builds, Syncs that committed something and edge masks. It is 1
// after the first Build and never decreases.
func (s *Scene) Version() int64 { return s.current().version }

// GeometryVersion counts Builds and Syncs that committed something.
func (s *Scene) GeometryVersion() int64 { return s.current().geometry }

// EdgeMaskVersion counts Builds, which reset the edge mask, and edge masks.
func (s *Scene) EdgeMaskVersion() int64 { return s.current().mask }

// IsReady reports whether the scene answers queries.
func (s *Scene) IsReady() bool { return s.current().state == ready }

// HasPendingUpdates reports whether a ready scene has vertices or transforms that
// Sync would commit.
func (s *Scene) HasPendingUpdates() bool {
	st := s.current()
	return st.state == ready && st.pending
}

// NumShapes is the number of shape ids in use, of meshes and instances.
func (s *Scene) NumShapes() int { return s.current().shapes }

// NumMeshes is the number of meshes added, without instances.
func (s *Scene) NumMeshes() int { return s.current().meshes }

// NumEdges is the number of edges of the built geometry.
func (s *Scene) NumEdges() int { return s.current().edges }

// Bounds is the smallest axis-aligned box around the committed triangles, in
// metres. Both corners are zero before the first Build.
func (s *Scene) Bounds() (lo, hi [3]float32) {
	st := s.current()
	return st.lo, st.hi
}

// Backend is the backend of the last Build, Auto before it.
func (s *Scene) Backend() Backend { return s.current().backend }

// Origin says where the search structures of the scene come from: "built" by its
// own Build, or as a replica "copied", "relocated" (moved OptiX structures) or
// "rebuilt" from copied geometry. Empty before the first Build.
func (s *Scene) Origin() string { return s.current().origin }

// BackendReason says why that backend was chosen.
func (s *Scene) BackendReason() string { return s.current().reason }
