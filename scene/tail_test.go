package scene

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/cuda/wrap"
	"github.com/raymux/raymux/tests/gputest"
)

// tailRig is a scene whose calls of 64 rows and more are done in two parts, and rays.
type tailRig struct {
	t      *testing.T
	s      *Scene
	rays   Rays
	ledger *wrap.Ledger
	fault  *wrap.Fault
}

// tailRigRows leaves no gaps between columns.
const tailRigRows = 512

func newTailRig(t *testing.T) *tailRig {
	r := &tailRig{t: t}
	ctx := context.Background()
	g := gputest.Open(t, 1, func(api cuapi.API) cuapi.API {
		r.ledger = wrap.NewLedger(api)
		r.fault = wrap.NewFault(r.ledger)
		return r.fault
	})
	c, err := g.Devices[0].Retain()
	require.NoError(t, err)
	r.s, err = New(c, Options{Backend: CUDA})
	require.NoError(t, err)
	v, f := soup(81, 300, 0.5)
	_, err = r.s.AddMesh(Mesh{Vertices: v, Faces: f, NoEdges: true})
	require.NoError(t, err)
	require.NoError(t, r.s.Build(ctx))
	require.False(t, r.s.tables.search.longRays())
	r.s.tables.search.(*treeSearch).plan.cost = manyVisits // as if there were many more triangles
	rng := rand.New(rand.NewPCG(82, 1))
	o, d := make([]float32, 3*tailRigRows), make([]float32, 3*tailRigRows)
	for i := range o {
		o[i], d[i] = rng.Float32(), rng.Float32()-0.5
	}
	r.rays.O, err = cuda.Upload(ctx, r.s.stream, o)
	require.NoError(t, err)
	r.rays.D, err = cuda.Upload(ctx, r.s.stream, d)
	require.NoError(t, err)
	require.NoError(t, r.s.stream.Synchronize(ctx))
	t.Cleanup(func() {
		require.NoError(t, cuda.Free(r.rays.O))
		require.NoError(t, cuda.Free(r.rays.D))
		require.NoError(t, r.s.Close())
		require.NoError(t, c.Close())
		require.NoError(t, r.ledger.Check())
	})
	return r
}

// hits are all columns of Intersect, chains those of TraceReflections, poisoned before.
func (r *tailRig) hits(st *cuda.Stream) ([]uint8, error) {
	h, err := r.s.Intersect(context.Background(), r.rays, All, OnStream(st))
	if err != nil {
		return nil, err
	}
	return r.bytes(st, h.block.memory, h)
}

func (r *tailRig) chains(st *cuda.Stream) ([]uint8, error) {
	h, err := r.s.TraceReflections(context.Background(), r.rays, 3, ChainAll, OnStream(st))
	if err != nil {
		return nil, err
	}
	return r.bytes(st, h.block.memory, h)
}

func (r *tailRig) bytes(st *cuda.Stream, memory cuda.Slice[uint8], result Reusable) ([]uint8, error) {
	out, err := cuda.Download(context.Background(), st, memory)
	if err == nil {
		err = cuda.Fill8(st, memory, 0x5a)
	}
	return out, firstError(err, result.Close())
}

// The bits are those of one launch, on any stream and from several goroutines.
func TestLastRowsOnAStreamOfTheirOwn(t *testing.T) {
	r := newTailRig(t)
	ask := map[string]func(*cuda.Stream) ([]uint8, error){"hits": r.hits, "chains": r.chains}
	want := map[string][]uint8{}
	for name, f := range ask {
		_, err := f(r.s.stream) // memory of the pool is poisoned from here on
		require.NoError(t, err)
		want[name], err = f(r.s.stream)
		require.NoError(t, err)
	}
	require.Empty(t, r.s.tails)
	r.s.tailRows = 64
	for name, f := range ask {
		got, err := f(r.s.stream)
		require.NoError(t, err)
		require.Equal(t, want[name], got, name)
	}
	require.Len(t, r.s.tails, 1)

	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			st, err := r.s.ctx.NewStream(cuda.StreamOptions{})
			if !assert.NoError(t, err) {
				return
			}
			for range 5 {
				for name, f := range ask {
					got, err := f(st)
					assert.NoError(t, err)
					assert.Equal(t, want[name], got, name)
				}
			}
			assert.NoError(t, firstError(st.Synchronize(context.Background()), st.Close()))
		})
	}
	wg.Wait()
	require.LessOrEqual(t, len(r.s.tails), 4)
}

// Whatever call fails, the caller's stream ends after the other one, nothing is left, and
// the next call works.
func TestEveryFailingCallOfACallInTwoParts(t *testing.T) {
	r := newTailRig(t)
	_, err := r.hits(r.s.stream)
	require.NoError(t, err)
	want, err := r.hits(r.s.stream)
	require.NoError(t, err)
	inUse := r.s.ctx.Pool().Stats().BytesInUse
	r.s.tailRows = 64
	failed := 0
	for k := 1; ; k++ {
		r.fault.FailAt(k, cuapi.ErrorInvalidValue)
		h, err := r.s.Intersect(context.Background(), r.rays, All)
		fired := r.fault.Fired() > 0
		r.fault.Reset()
		if err != nil {
			failed++
			require.ErrorIs(t, err, cuapi.ErrorInvalidValue, "call %d", k)
		} else {
			require.NoError(t, h.Close())
		}
		require.Equal(t, inUse, r.s.ctx.Pool().Stats().BytesInUse, "call %d", k)
		got, err := r.hits(r.s.stream)
		require.NoError(t, err, "after call %d", k)
		require.Equal(t, want, got, "after call %d", k)
		if !fired {
			break
		}
	}
	require.Greater(t, failed, 10)
}
