// Package fieldcheck evaluates the kernels' functions of media and fields at values of a
// test's choice.
package fieldcheck

import (
	"testing"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/ptx"
	"github.com/raymux/raymux/tests/evaluate"
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

// Evaluate runs the functions on the device of st.
func Evaluate(t testing.TB, st *cuda.Stream, in []Input) []Output {
	t.Helper()
	return evaluate.Rows[Output](t, st, evaluate.Kernel{
		Module: kernel.Module,
		Find:   func(m *cuda.Module) (*cuda.Function, error) { return m.Function(kernel.Name) },
		Params: func(in, out uint64, count int64) []byte {
			return cuda.ParamBytes(&checkFieldParams{in, out, count})
		},
	}, in)
}
