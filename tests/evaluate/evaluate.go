// Package evaluate runs kernels that apply device functions to values of a test's choice.
package evaluate

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/ptx"
)

// BlockSize is the threads of a block.
const BlockSize = 128

// Kernel is one of a module, with a thread per value. Params is its parameter for these
// addresses of inputs and outputs.
type Kernel struct {
	Module string
	Find   func(*cuda.Module) (*cuda.Function, error)
	Params func(in, out uint64, count int64) []byte
}

// Rows runs a kernel on the device of st, into memory full of other values, and waits.
func Rows[Out, In any](t testing.TB, st *cuda.Stream, k Kernel, in []In) []Out {
	t.Helper()
	ctx := context.Background()
	text, err := ptx.Module(k.Module)
	require.NoError(t, err)
	module, err := st.Context().LoadModule(text, cuda.JITOptions{})
	require.NoError(t, err)
	defer func() { require.NoError(t, module.Close()) }()
	f, err := k.Find(module)
	require.NoError(t, err)

	var rows []byte
	for i := range in {
		rows = append(rows, cuda.ParamBytes(&in[i])...)
	}
	from, err := cuda.Upload(ctx, st, rows)
	require.NoError(t, err)
	defer func() { require.NoError(t, cuda.Free(from)) }()
	out := make([]Out, len(in))
	size := len(cuda.ParamBytes(&out[0]))
	to, err := cuda.Alloc[byte](st.Context(), size*len(out))
	require.NoError(t, err)
	defer func() { require.NoError(t, cuda.Free(to)) }()
	require.NoError(t, cuda.Fill8(st, to, 0xcd))
	blocks := uint32((len(in) + BlockSize - 1) / BlockSize)
	require.NoError(t, f.Launch(st, cuapi.D1(blocks), cuapi.D1(BlockSize), 0, k.Params(from.Addr(), to.Addr(), int64(len(in)))))
	got, err := cuda.Download(ctx, st, to)
	require.NoError(t, err)
	for i := range out {
		copy(cuda.ParamBytes(&out[i]), got[i*size:])
	}
	return out
}
