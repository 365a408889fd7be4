// Package scene answers ray queries about triangle meshes on one device.
//
// A [Scene] belongs to one [cuda.Context]. Meshes are added, [Scene.Build] makes
// tables and a search tree of them, and queries read columns of rays from
// device memory and write columns of results there:
//
//	sc, err := scene.New(ctx, scene.Options{})
//	id, err := sc.AddMesh(scene.Mesh{Vertices: v, Faces: f})
//	err = sc.Build(context.Background())
//	hits, err := sc.Intersect(context.Background(), scene.Rays{O: o, D: d}, scene.All)
//
// # Ids
//
// Meshes and instances are numbered 0, 1, 2, ... in the order of AddMesh and
// AddInstance: the shape id. Faces, vertices and edges are numbered per shape and,
// in shape order, over the whole scene. All ids are int32; -1 means none.
//
// # The machine
//
// A scene is empty, staged (shapes were added since the last Build), ready,
// ready with pending updates, or failed. Queries are legal when it is ready and
// see the geometry of the last Build or Sync. A refused call changes nothing. If
// the device fails in the middle of a Build or Sync the scene is failed and only
// Build helps.
//
//	AddMesh, AddInstance                       any state; staged
//	Build                                      any state with a mesh; ready
//	UpdateMeshVertices, SetInstanceTransform   ready; pending updates
//	Sync                                       ready; commits the pending updates
//	queries, read-backs, edge mask             ready
//
// # Answers
//
// A query finds one winner per row, the primitive with the smallest parameter and
// then the smallest id, and a second kernel computes every returned number from
// the winner alone. Both use only correctly rounded operations in a fixed order.
// Row i depends on row i of the input and on the scene, on nothing else: batches
// may be cut anywhere, and every device and the emulator return the same bits.
//
// # Waves
//
// Some queries carry fields. [Scene.TraceReflEPCField] and [Scene.TraceDfrPaths] give that
// of single paths, over walls and over edges; [Scene.AccumulateReflections],
// [Scene.AccumDfrDirect] and [Scene.AccumDfrCoherentDirect] add up on a [Grid]. They read
// tables that are uploaded once: what surfaces are made of ([Scene.UploadMaterials]) and
// which edges diffract ([Scene.DfrStates], [Scene.UploadStates]). Sums are sums of
// integers, so that they have the same bits in any order, too.
//
// EPC is equivalent-path correction: it puts the exact specular path in the place of one
// that a ray has found, over the same surfaces. The direct path of a channel is the
// caller's: where [Scene.Visible] finds it free, its field is lambda/(4 pi L) exp(-j k L)
// along the unit vector across the path next to the polarization. Fields of direct,
// reflected and diffracted paths add up with their phases. Polarizations are along x
// unless said otherwise; that of an upright antenna is (0,0,1).
//
// # Backends
//
// Which triangle a ray meets is found by our own tree ([CUDA]) or by [OptiX]; the
// second kernel is the same. [Auto] takes OptiX where all devices have ray-tracing
// cores. OptiX has no rule for ties: rows whose ray meets an edge or a vertex may
// name another triangle; on all others both give the same bits. Scenes of one
// [cuda.Driver] share what OptiX compiles for a device until the driver is closed.
//
// # Order and threads
//
// Queries are enqueued on the scene's stream or on the stream of [OnStream] and
// return without waiting for the device. Any number of goroutines may query one
// scene. Calls that change the scene wait until no query is being submitted, and
// the device orders the work: a change never disturbs an earlier query, and a
// later query sees it. The calling thread's current context is never changed.
//
// # Schedulers
//
// What is marked "For schedulers" are the parts of which a query on several
// devices is put together, as package multi does it: copies of a scene on other
// devices, a query that is validated but not launched ([Scene.PrepareIntersect]
// and its siblings give a [Call], or for sums on grids a [GridCall]), and its
// two kernels on some of the rows ([Call.Search], [Call.Finalize]). Programs
// that ask [Scene.Intersect] do not need them.
package scene
