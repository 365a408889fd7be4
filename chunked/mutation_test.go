package chunked_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/raymux/raymux/chunked"
	"github.com/stretchr/testify/require"
)

// A plan with any of these mistakes is noticed by the invariants: whatever the
// call is, if the mistake changes its plan at all, the change is a violation.
func TestChunkedBrokenPlans(t *testing.T) {
	mistakes := map[string]func(*rand.Rand, *chunked.Plan){
		"a row of a shard goes to its neighbour": func(rng *rand.Rand, p *chunked.Plan) {
			if k := rng.IntN(len(p.Shards)); k > 0 && p.Shards[k].Len() > 0 && p.Shards[k-1].Len() > 0 {
				p.Shards[k-1].End++
				p.Shards[k].Begin++
			}
		},
		"a chunk is missing": func(rng *rand.Rand, p *chunked.Plan) {
			if len(p.Chunks) > 0 {
				p.Chunks = slices.Delete(p.Chunks, 0, 1)
			}
		},
		"a chunk comes twice": func(rng *rand.Rand, p *chunked.Plan) {
			if len(p.Chunks) > 0 {
				p.Chunks = append(p.Chunks, p.Chunks[rng.IntN(len(p.Chunks))])
			}
		},
		"a chunk ends early": func(rng *rand.Rand, p *chunked.Plan) {
			if len(p.Chunks) > 0 {
				p.Chunks[rng.IntN(len(p.Chunks))].End--
			}
		},
		"chunks overlap": func(rng *rand.Rand, p *chunked.Plan) {
			if len(p.Chunks) > 0 {
				p.Chunks[rng.IntN(len(p.Chunks))].Begin--
			}
		},
		"a chunk is on another device": func(rng *rand.Rand, p *chunked.Plan) {
			if len(p.Chunks) > 0 && len(p.Devices) > 1 {
				c := &p.Chunks[rng.IntN(len(p.Chunks))]
				c.Position = (c.Position + 1) % len(p.Devices)
			}
		},
		"two chunks are submitted in the wrong order": func(rng *rand.Rand, p *chunked.Plan) {
			if n := len(p.Chunks); n > 1 {
				i := rng.IntN(n - 1)
				p.Chunks[i], p.Chunks[i+1] = p.Chunks[i+1], p.Chunks[i]
			}
		},
		"two chunks are retired in the wrong order": func(rng *rand.Rand, p *chunked.Plan) {
			if n := len(p.Chunks); n > 1 {
				i := rng.IntN(n - 1)
				p.Chunks[i].Retire, p.Chunks[i+1].Retire = p.Chunks[i+1].Retire, p.Chunks[i].Retire
			}
		},
		"a slot is used too early": func(rng *rand.Rand, p *chunked.Plan) {
			if len(p.Chunks) > 0 {
				p.Chunks[rng.IntN(len(p.Chunks))].Slot++
			}
		},
		"a record slot is used too early": func(rng *rand.Rand, p *chunked.Plan) {
			if len(p.Chunks) > 0 {
				p.Chunks[rng.IntN(len(p.Chunks))].Record++
			}
		},
		"another size": func(rng *rand.Rand, p *chunked.Plan) {
			for k, n := range p.ChunkRows {
				if n > 1 && p.Source != chunked.SourceBudget {
					p.ChunkRows[k]--
				}
			}
		},
		"smaller chunks than the budget allows": func(rng *rand.Rand, p *chunked.Plan) {
			for k, n := range p.ChunkRows {
				if n > p.Shards[k].Len() && p.Source == chunked.SourceBudget {
					p.ChunkRows[k]--
				}
			}
		},
		"more memory than the budget": func(rng *rand.Rand, p *chunked.Plan) {
			if p.Budget > 0 && p.Rows > 0 {
				p.PerDevice[rng.IntN(len(p.Devices))].Peak = p.Budget + 1
			}
		},
		"another kind": func(rng *rand.Rand, p *chunked.Plan) {
			p.Kind = map[bool]chunked.Kind{true: chunked.KindDirect, false: chunked.KindMaster}[p.Kind.Whole()]
		},
		"no slot for the next result": func(rng *rand.Rand, p *chunked.Plan) { p.RecordSlots++ },
		"another set of devices":      func(rng *rand.Rand, p *chunked.Plan) { p.Devices[0]++ },
	}
	for name, spoil := range mistakes {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(5, 6))
			spoiled := 0
			for range 3000 {
				in := randomInput(rng)
				p, err := chunked.BuildPlan(in)
				if err != nil {
					continue
				}
				before := p
				before.Shards, before.Chunks, before.ChunkRows = slices.Clone(p.Shards), slices.Clone(p.Chunks), slices.Clone(p.ChunkRows)
				before.PerDevice, before.Devices = slices.Clone(p.PerDevice), slices.Clone(p.Devices)
				spoil(rng, &p)
				if same(before, p) {
					continue
				}
				spoiled++
				require.Error(t, violation(in, p), "%v\nwas\n%v", p, before)
			}
			require.Greater(t, spoiled, 20)
		})
	}
}

func same(a, b chunked.Plan) bool {
	return a.Kind == b.Kind && a.RecordSlots == b.RecordSlots && slices.Equal(a.Devices, b.Devices) && slices.Equal(a.Shards, b.Shards) &&
		slices.Equal(a.Chunks, b.Chunks) && slices.Equal(a.ChunkRows, b.ChunkRows) && slices.Equal(a.PerDevice, b.PerDevice)
}
