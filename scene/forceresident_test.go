package scene

import "testing"

// ForceResident makes AccumDfrDirect believe that so many of its blocks run at the same
// time: with few, each of their threads does many lanes. Warps that keep to a pair collect
// the triangles near it and take its rounds in turn, however few lanes they have.
func (s *Scene) ForceResident(t testing.TB, blocks int64) {
	t.Helper()
	k, err := s.accumDfrKernels()
	if err != nil {
		t.Fatal(err)
	}
	x, err := s.tracer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	k.fanRounds, k.leastRounds, k.leastChunk = 1, 1, 1
	k.fanNodes, k.searchRounds = fanNodes, searchRounds
	x.residency.mu.Lock()
	defer x.residency.mu.Unlock()
	x.residency.blocks[k.cells], x.residency.blocks[k.azimuths] = blocks, blocks
}

// ForceMoreWarps makes AccumDfrDirect do so many rounds in a warp where lanes search,
// until the next ForceResident.
func (s *Scene) ForceMoreWarps(t testing.TB, rounds int64) {
	t.Helper()
	k, err := s.accumDfrKernels()
	if err != nil {
		t.Fatal(err)
	}
	k.searchRounds = rounds
}

// ForceFanNodes makes warps of AccumDfrDirect look at so many nodes and some more for what is
// near their pair, until the next ForceResident.
func (s *Scene) ForceFanNodes(t testing.TB, nodes int64) {
	t.Helper()
	k, err := s.accumDfrKernels()
	if err != nil {
		t.Fatal(err)
	}
	k.fanNodes = nodes
}
