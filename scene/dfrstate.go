package scene

// DfrStates are wedges with a source each, on the host: structure of arrays, one entry per
// pair of an edge and a source. Scene.DfrStates makes them of the edges of a scene.
//
// The edge is the part EdgePos + t*e, TMin <= t <= TMax, of a line, with e the unit vector
// of EdgeDir. Angles around it are counted from face 0 through free space to face n, which
// is at ExteriorAngle: with t0 = n0 X e, the direction from the edge into face 0, the
// direction q has the angle atan2(q.n0, q.t0).
type DfrStates struct {
	EdgeIndex     []int32   // GlobalEdgeID of the edge, [S]
	EdgePos       []float32 // reference point in metres, [S,3]
	EdgeDir       []float32 // direction of any length, [S,3]
	TMin, TMax    []float32 // ends along e, in metres, [S]
	N0, N1        []float32 // unit normals of face 0 and face n, away from the solid, [S,3]
	Prim0, Prim1  []int32   // GlobalPrimID of face 0 and face n, or -1, [S]
	ExteriorAngle []float32 // angle of free space in radians, [S]
	Src           []float32 // position of the source in metres, [S,3]
	SrcPower      []float32 // linear power of the source, [S]
	// Count is how many states there are; columns may be longer. 0: all of EdgeIndex.
	Count int
}
