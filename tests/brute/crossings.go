package brute

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/ptx"
)

// Tree is the search tree of a scene, and how much shared memory a block needs to search it.
type Tree struct {
	Pool   uint64
	Shared uint32
}

// Crossings searches the tree for all crossings of the rays, with a thread for every row. It
// counts how often each triangle was met, and how many triangles each thread has met; of
// every row it stores -1.
func Crossings(t testing.TB, st *cuda.Stream, tree Tree, rays Rays, winners cuda.Slice[int32], met, by cuda.Slice[uint32]) {
	t.Helper()
	text, err := ptx.Module(checkSharedKernel.Module)
	require.NoError(t, err)
	module, err := st.Context().LoadModule(text, cuda.JITOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, module.Close()) })
	f, err := module.Function(checkSharedKernel.Name)
	require.NoError(t, err)
	rows := winners.Len()
	require.NoError(t, f.Launch(st, cuapi.D1(uint32((rows+blockSize-1)/blockSize)), cuapi.D1(blockSize), tree.Shared,
		cuda.ParamBytes(&checkSharedParams{
			Search:  searchParams{Pool: tree.Pool, Count: int64(rows), BusyLanes: 22, IdleLanes: 6},
			Rays:    rays.columns(),
			Winners: winners.Addr(), Met: met.Addr(), By: by.Addr(),
		})))
}
