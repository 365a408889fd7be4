package scene

import "github.com/raymux/raymux/cuda"

// Sizes of build.cuh in bytes.
const (
	forkBytes    = 32
	planBytes    = 32
	clusterBytes = 8
	// keyBits is the size of a key: 21 bits per axis.
	keyBits = 63
	// stateWords is the size of BuildState in 4-byte words; the costs of both trees
	// begin at stateCosts, its counts, two words per level, at stateCounts.
	stateCosts  = 8
	stateCounts = 10
	stateWords  = stateCounts + 2*treeStack
)

// treeScratch is the memory of one build on the device: about 200 bytes per
// triangle.
type treeScratch struct {
	block cuda.Slice[uint8] // all of it

	state                cuda.Slice[uint32]
	forest               forest
	pairs                pairs
	gaps, meet, clusters uint64
	// Where the pairs were, which are not needed by then.
	shapes cuda.Slice[int32]
	queue  uint64
}

// newTreeScratch allocates memory for n triangles, in one block: of something so
// short-lived the pool should not keep a dozen pieces.
func newTreeScratch(s *Scene, n int) (*treeScratch, error) {
	const align = 512
	size := 0
	take := func(bytes int) (offset int) {
		offset = size
		size += (bytes + align - 1) / align * align
		return offset
	}
	leaves := take(forkBytes * n)
	forks := [2]int{take(forkBytes * n), take(forkBytes * n)}
	plans := [2]int{take(planBytes * n), take(planBytes * n)}
	keys := [2]int{take(8 * n), take(8 * n)}
	values := [2]int{take(4 * n), take(4 * n)}
	counters := take(4 * sortCounters(n))
	gaps, meet, clusters := take(n), take(8*n), take(clusterBytes*n)
	state := take(4 * stateWords)
	m := &treeScratch{}
	if err := allocate(s, &m.block, size); err != nil {
		return nil, err
	}
	at := func(offset int) uint64 { return m.block.Addr() + uint64(offset) }
	m.forest = forest{
		Leaves: at(leaves), Forks: [2]uint64{at(forks[0]), at(forks[1])}, Plans: [2]uint64{at(plans[0]), at(plans[1])},
	}
	m.gaps, m.meet, m.clusters, m.queue = at(gaps), at(meet), at(clusters), at(values[0])
	err := firstError(
		cut(&m.state, m.block, state, 4*stateWords),
		cut(&m.pairs.keys, m.block, keys[0], 8*n), cut(&m.pairs.otherKeys, m.block, keys[1], 8*n),
		cut(&m.pairs.values, m.block, values[0], 4*n), cut(&m.pairs.otherValues, m.block, values[1], 4*n),
		cut(&m.pairs.counters, m.block, counters, 4*sortCounters(n)),
		cut(&m.shapes, m.block, keys[0], 4*shapeWords*n))
	if err != nil {
		return nil, firstError(err, m.free(s))
	}
	return m, nil
}

// cut makes *dst the bytes of block at an offset.
func cut[T cuda.Scalar](dst *cuda.Slice[T], block cuda.Slice[uint8], offset, bytes int) error {
	part, err := block.Sub(offset, offset+bytes)
	if err != nil {
		return err
	}
	*dst, err = cuda.Reinterpret[T](part)
	return err
}

func (m *treeScratch) free(s *Scene) error { return release(s, &m.block) }
