package scene

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// walkLanes shows visit every lane that the threads of a launch do, as accumdfr.cu divides them,
// with the arithmetic of the device.
func (p *accumDfrParams) walkLanes(visit func(lane uint32)) {
	for place := range p.Visited {
		at := p.Begin + p.spreadPlace(p.First+place)
		if p.Chunk != 0 {
			rounds := ((p.End-1-p.Begin-place)/p.Pairs+1-1)/32 + 1
			chunks := p.Coarse + (rounds-p.Coarse*p.Chunk+p.Fine-1)/p.Fine
			for chunk := range chunks {
				first, length := chunk*p.Chunk, p.Chunk
				if chunk >= p.Coarse {
					first, length = p.Coarse*p.Chunk+(chunk-p.Coarse)*p.Fine, p.Fine
				}
				for thread := range uint32(32) {
					lane := p.Begin + place + (first*32+thread)*p.Pairs
					for end := min(p.End, lane+length*p.Step); lane < end; lane += p.Step {
						visit(lane)
					}
				}
			}
			continue
		}
		for member := range p.Group {
			for lane := at + member*p.Pairs; lane < p.End; lane += p.Step {
				visit(lane)
			}
		}
	}
}

func (p *accumDfrParams) spreadPlace(at uint32) uint32 {
	if group := at / 32; p.Spread != 0 && group < p.Groups {
		return group*p.Spread%p.Groups*32 + at%32
	}
	return at
}

// A window, and how it is cut into launches.
type dividedLanes struct {
	q       dfrQuery
	at      []int64 // and where the last launch ends
	threads int64
	small   bool
	k       accumDfrKernels
}

func randomDivision(rng *rand.Rand, states, cells, lanes int64) (d dividedLanes) {
	d.q.states, d.q.grid = &StateTable{count: int(states)}, Grid{Res0: int32(cells), Res1: 1}
	if d.q.options.DirectSamples = lanes; cells == 1 && rng.IntN(2) == 0 {
		d.q.options = DfrDirectOptions{KellerSamples: lanes}
	}
	d.q.total = lanes
	begin := int64(0)
	if rng.IntN(2) == 0 {
		begin = rng.Int64N(lanes)
	}
	d.q.lanes = lanes - begin
	if rng.IntN(2) == 0 {
		d.q.lanes = 1 + rng.Int64N(d.q.lanes)
	}
	d.at = []int64{begin, begin + d.q.lanes}
	for range rng.IntN(5) {
		d.at = append(d.at, begin+rng.Int64N(d.q.lanes+1))
	}
	slices.Sort(d.at)
	d.threads = 128 * (1 + rng.Int64N(1<<rng.IntN(11)))
	d.small = rng.IntN(2) == 0
	d.k = accumDfrKernels{fanRounds: fanRounds, fanNodes: fanNodes, leastRounds: leastRounds, leastChunk: leastChunk, searchRounds: searchRounds}
	if rng.IntN(2) == 0 {
		d.k = accumDfrKernels{fanRounds: 1, leastRounds: 1, leastChunk: 1, searchRounds: 1 + rng.Int64N(8)}
	}
	return d
}

// launches shows the parameters of each launch.
func (d *dividedLanes) launches(t *testing.T, launch func(p *accumDfrParams)) {
	t.Helper()
	require.NoError(t, d.q.cut(d.at[:len(d.at)-1]))
	pairs := d.q.pairs()
	for i, begin := range d.at[1:] {
		part := d.q.part(d.at[i], begin-d.at[i])
		if part.pairs == 0 {
			continue
		}
		p := accumDfrParams{Pairs: uint32(min(pairs, d.q.total))}
		if d.q.terms().chunkCounters() > 0 {
			p.Taken = 1
		}
		p.take(part)
		p.divide(&d.k, part.lanes, d.threads, d.small, !d.q.azimuths())
		launch(&p)
	}
}

// Launches do every lane of a window once, whatever the lanes, pairs, cuts and threads are.
func TestLanesAreDoneOnce(t *testing.T) {
	rng := rand.New(rand.NewPCG(61, 67))
	inTurn, whole := 0, 0
	for round := range 6000 {
		states := 1 + rng.Int64N(1<<rng.IntN(15))
		cells := int64(1)
		if rng.IntN(2) == 0 {
			cells = 1 + rng.Int64N(1<<rng.IntN(8))
		}
		d := randomDivision(rng, states, cells, 1+rng.Int64N(1<<(4+rng.IntN(14))))
		done := make([]uint8, d.q.total)
		d.launches(t, func(p *accumDfrParams) {
			p.walkLanes(func(lane uint32) { done[lane]++ })
			if p.Chunk != 0 {
				inTurn++
			}
		})
		if d.q.byPair {
			whole++
		}
		for lane, n := range done {
			want := uint8(0)
			if l := int64(lane); l >= d.q.begin && l < d.q.begin+d.q.lanes {
				want = 1
			}
			if n == want {
				continue
			}
			require.Fail(t, "not once", "round %d, lane %d of %d and %d from %d on, %d states, %d cells, cut at %v: %d", round, lane, d.q.total, d.q.lanes, d.q.begin, states, cells, d.at, n)
		}
	}
	require.Greater(t, inTurn, 50)
	require.Greater(t, whole, 50)
}

// Numbers of lanes, and what is added to them, fit in 32 bits.
func TestLanesDoNotOverflow(t *testing.T) {
	rng := rand.New(rand.NewPCG(71, 73))
	inTurn, whole := 0, 0
	for round := range 20000 {
		states := 1 + rng.Int64N(1<<rng.IntN(22))
		cells := int64(1)
		if rng.IntN(2) == 0 {
			cells = 1 + rng.Int64N(1<<rng.IntN(22))
		}
		lanes := int64(math.MaxInt32)
		if rng.IntN(2) == 0 {
			lanes = 1 + rng.Int64N(lanes)
		}
		d := randomDivision(rng, states, cells, lanes)
		if rng.IntN(2) == 0 { // a launch of few lanes
			d.at = []int64{d.at[0], d.at[0] + min(d.q.lanes, 1+rng.Int64N(10000)), d.at[len(d.at)-1]}
		}
		d.launches(t, func(p *accumDfrParams) {
			begin, end, pairs, group := int64(p.Begin), int64(p.End), int64(p.Pairs), int64(p.Group)
			last := begin + pairs - 1 + (group-1)*pairs // the first lane of a thread
			if p.Chunk != 0 {
				inTurn++
				rounds := ((end-begin-1)/pairs)/32 + 1
				last = begin + pairs - 1 + (32*(rounds+mostChunk)+31)*pairs + mostChunk*int64(p.Step)
			}
			for what, n := range map[string]int64{
				"threads": int64(p.Visited) * group, "the first lane": last, "a step": group * pairs, "the lane behind": end - 1 + int64(p.Step),
				"a group": int64(p.Spread) * int64(p.Groups), "a place": int64(p.First) + int64(p.Visited),
			} {
				require.Less(t, n, int64(1)<<32, "round %d: %s of %d from %d on, %d states, %d cells, cut at %v: %+v", round, what, d.q.lanes, d.q.begin, states, cells, d.at, p)
			}
			require.Positive(t, group)
			require.True(t, group%32 == 0 || group&(group-1) == 0 && group < 32)
		})
		if d.q.byPair {
			whole++
		}
	}
	require.Greater(t, inTurn, 500)
	require.Greater(t, whole, 500)
}

// The groups of all counts of pairs are permuted.
func TestGroupsArePermuted(t *testing.T) {
	product := uint32(1)
	for _, prime := range []uint32{37, 41, 43, 47, 53} {
		product *= prime
		require.Greater(t, spreadOf(product), prime)
	}
	for groups := uint32(1); groups < 300; groups++ {
		p := accumDfrParams{Spread: spreadOf(groups), Groups: groups}
		seen := map[uint32]bool{}
		for at := range 32*groups + 40 {
			seen[p.spreadPlace(at)] = true
		}
		require.Len(t, seen, int(32*groups+40))
	}
}
