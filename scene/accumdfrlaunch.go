package scene

import (
	"context"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/cuapi"
)

const (
	// copyBytes bounds the memory of private copies of a grid, so that they stay in the
	// cache of the device, and dfrCopies their number. copyLanes is how many lanes of a
	// launch are worth a copy.
	copyBytes = 8 << 20
	dfrCopies = 1024
	copyLanes = 1024
	// The warps of a pair take chunks of its rounds in turn if there are leastRounds for each: of
	// up to mostChunk rounds, which take time, too, and at last, for fineRounds of each warp, of
	// fineChunk, so that all end at about the same time. A call of so many pairs that warps have
	// one each needs no counters of chunks.
	leastRounds           = 32
	leastChunk, mostChunk = 2, 32
	fineRounds, fineChunk = 8, 2
	chunkedPairs          = 2048
	// Where lanes search, pairs differ so much in time that there are searchWaves times as
	// many warps as the device holds, of searchRounds to twice as many rounds.
	searchRounds, searchWaves = 32, 4
	// A warp collects the triangles near its pair when each of its threads has fanRounds
	// lanes, or smallFanRounds in trees of so few nodes that it looks at all of them: at a few
	// nodes, and more where it has many lanes.
	fanRounds, smallFanRounds = 32, 4
	smallTree                 = 8
	fanNodes, nodeRounds      = 8, 8
	// Parts of a call have whole pairs where these have fewer than partLanes lanes. Groups of
	// partPairs neighbours stay together.
	partLanes = 4096
	partPairs = 32
)

// dfrPart is what a launch does of the lanes [begin, end): those of the pairs [first, first+pairs),
// in the order in which all pairs are taken.
type dfrPart struct {
	begin, end, first, pairs int64
	lanes                    int64 // about as many; of every pair no more than it has
	spread, groups           uint32
}

// part is the part of a call that has the lanes [begin, begin+count). Where threads do few lanes
// of each of many pairs, finding what is near a pair takes much of the time: launches have
// about as many lanes, but of whole pairs each, which are spread over the grid, so that parts take
// the same time.
func (q *dfrQuery) part(begin, count int64) dfrPart {
	pairs := min(q.pairs(), q.total)
	if !q.byPair {
		return dfrPart{begin: begin, end: begin + count, pairs: min(count, pairs), lanes: count}
	}
	at := func(lane int64) int64 { return (lane - q.begin) * pairs / q.lanes }
	p := dfrPart{begin: q.begin, end: q.begin + q.lanes, first: at(begin), groups: uint32(pairs / partPairs)}
	p.pairs, p.spread = at(begin+count)-p.first, spreadOf(p.groups)
	p.lanes = p.pairs * (q.lanes / pairs) // not count, with which few pairs would get more threads than they have lanes
	return p
}

// spreadOf is a factor that permutes so many groups: neighbours come to lie apart, and the
// product of both fits in 32 bits.
func spreadOf(groups uint32) uint32 {
	for _, prime := range []uint32{37, 41, 43, 47, 53, 59} {
		if groups%prime != 0 {
			return prime
		}
	}
	return 61 // as the product of all exceeds 32 bits
}

// take names the lanes and pairs of a part.
func (p *accumDfrParams) take(part dfrPart) {
	p.Begin, p.End = uint32(part.begin), uint32(part.end)
	p.First, p.Visited = uint32(part.first), uint32(part.pairs)
	p.Spread, p.Groups = part.spread, part.groups
}

// launchCopies is launch for lanes that hit any cell: they are divided over copies of the
// grid, or all would wait for the same few words.
func (p *accumDfrParams) launchCopies(on *Scene, sc cuda.Scope, st *cuda.Stream, f *cuda.Function, part dfrPart) error {
	words := p.Words
	defer func() { p.Words = words }()
	n := copiesFor(part.lanes, p.Readout.Cells)
	p.Copies = uint32(n)
	if n == 1 {
		return p.launch(on, sc, st, f, part)
	}
	pool, each := on.ctx.Pool(), p.Readout.Cells*wordsPerSum
	copies, err := cuda.PoolAlloc[int64](pool, st, int(n*each))
	if err != nil {
		return err
	}
	p.Words = copies.Addr()
	err = cuda.Fill32(st, copies, 0)
	if err == nil {
		err = p.launch(on, sc, st, f, part)
	}
	if err == nil {
		err = on.foldCopies(sc, st, words, copies, each)
	}
	return firstError(err, cuda.PoolFree(pool, st, copies))
}

// launch enqueues a part of the call.
func (p *accumDfrParams) launch(on *Scene, sc cuda.Scope, st *cuda.Stream, f *cuda.Function, part dfrPart) error {
	if part.pairs == 0 {
		return nil
	}
	x, err := on.tracer(context.Background())
	if err != nil {
		return err
	}
	resident, err := x.resident(f)
	if err != nil {
		return err
	}
	k, err := on.accumDfrKernels()
	if err != nil {
		return err
	}
	p.Pool, p.Slots = x.pool.Addr(), x.slots.Addr()
	p.take(part)
	p.divide(k, part.lanes, resident*blockSize, x.plan.levels[len(x.plan.levels)-1] <= smallTree, f == k.cells)
	blocks := (int64(p.Visited)*int64(p.Group) + blockSize - 1) / blockSize
	return sc.Launch(f, st, cuapi.Dim3{X: uint32(blocks), Y: 1, Z: 1}, cuapi.Dim3{X: blockSize, Y: 1, Z: 1}, x.shared, cuda.ParamBytes(p))
}

// divide says how so many lanes are divided over threads, of which the device holds so
// many at a time. small: the tree is.
func (p *accumDfrParams) divide(k *accumDfrKernels, lanes, threads int64, small, cells bool) {
	perPair := lanes / int64(p.Visited)
	p.Group = threadsOfPair(lanes, int64(p.Visited), threads)
	fan := int64(k.fanRounds)
	inTurn := p.Taken != 0
	switch rounds := min(max(lanes/(searchWaves*threads), k.searchRounds), 2*k.searchRounds, perPair/32); {
	case small:
		fan = min(fan, smallFanRounds)
		if p.Group < 32 && perPair >= 32*smallFanRounds {
			p.Group = 32
		}
	case cells && rounds >= k.searchRounds && perPair/rounds >= int64(p.Group):
		p.Group, inTurn = uint32(perPair/rounds&^31), false
	}
	rounds := perPair / int64(p.Group)
	p.FanNodes = 0
	if rounds >= fan {
		p.FanNodes = uint32(k.fanNodes + rounds/nodeRounds)
	}
	p.Step, p.Chunk = p.Group*p.Pairs, 0
	if inTurn && p.Group > 32 && rounds >= k.leastRounds {
		p.Step = 32 * p.Pairs
		p.Chunk = uint32(max(min(rounds/8, 8+rounds/32, mostChunk), k.leastChunk))
		p.Fine = min(p.Chunk, fineChunk)
		p.Coarse = uint32(max(perPair-fineRounds*int64(p.Group), 0)/32) / p.Chunk
	}
}

// threadsOfPair is how many threads the lanes of a pair are divided over, so that so many
// threads are filled: whole warps, or a power of two.
func threadsOfPair(lanes, pairs, threads int64) uint32 {
	n := min(max(threads/pairs, 1), (lanes+pairs-1)/pairs)
	if n >= 32 {
		return uint32(n - n%32)
	}
	for n&(n-1) != 0 {
		n &= n - 1
	}
	return uint32(n)
}
