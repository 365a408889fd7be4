// Package fieldcheck evaluates the kernels' functions of media and fields at values of a
// test's choice.
package fieldcheck

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/ptx"
)

// Input is one evaluation.
type Input struct {
	EtaR, Sigma, MuR, Gain float32
	LossPerSigma           float64 // 1/(w eps0)
	Wavelength             float64
	Cosine, Length         float32
	A                      [3]float32    // becomes transverse to K
	K, N                   [3]float32    // unit vectors
	Field                  [3][2]float32 // transverse to K: real and imaginary parts
	_                      [3]float32
}

// Output is what the functions return.
type Output struct {
	TE, TM     [2]float32    // coefficients of the medium at Cosine
	Phase      [2]float32    // of Length
	Transverse [3]float32    // A, made transverse to K
	Next       [3]float32    // K, reflected off N
	Field      [3][2]float32 // Field, reflected off N and the medium
}

type checkFieldParams struct {
	In    uint64
	Out   uint64
	Count int64
}

// Kernel of ptx/kernels/fieldcheck.cu.
var kernel = ptx.Entry[checkFieldParams]{Module: "fieldcheck", Name: "check_field"}

const blockSize = 128

// Evaluate runs the functions on the device of st.
func Evaluate(t testing.TB, st *cuda.Stream, in []Input) []Output {
	t.Helper()
	ctx := context.Background()
	text, err := ptx.Module(kernel.Module)
	require.NoError(t, err)
	module, err := st.Context().LoadModule(text, cuda.JITOptions{})
	require.NoError(t, err)
	defer func() { require.NoError(t, module.Close()) }()
	f, err := module.Function(kernel.Name)
	require.NoError(t, err)

	var rows []byte
	for i := range in {
		rows = append(rows, cuda.ParamBytes(&in[i])...)
	}
	from, err := cuda.Upload(ctx, st, rows)
	require.NoError(t, err)
	defer func() { require.NoError(t, cuda.Free(from)) }()
	out := make([]Output, len(in))
	size := len(cuda.ParamBytes(&out[0]))
	to, err := cuda.Alloc[byte](st.Context(), size*len(out))
	require.NoError(t, err)
	defer func() { require.NoError(t, cuda.Free(to)) }()
	require.NoError(t, cuda.Fill8(st, to, 0xcd))
	p := checkFieldParams{In: from.Addr(), Out: to.Addr(), Count: int64(len(in))}
	require.NoError(t, f.Launch(st, cuapi.D1(uint32((len(in)+blockSize-1)/blockSize)), cuapi.D1(blockSize), 0, cuda.ParamBytes(&p)))
	got, err := cuda.Download(ctx, st, to)
	require.NoError(t, err)
	for i := range out {
		copy(cuda.ParamBytes(&out[i]), got[i*size:])
	}
	return out
}
