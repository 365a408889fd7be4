// Package utdcheck evaluates the kernels' theory of diffraction at values of a test's
// choice.
package utdcheck

import (
	"testing"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/ptx"
	"github.com/raymux/raymux/tests/evaluate"
)

// Complex is a complex number as kernels store it.
type Complex [2]float64

// Value is the number.
func (z Complex) Value() complex128 { return complex(z[0], z[1]) }

// SinCos is the sine and the cosine of an angle.
type SinCos struct{ Sin, Cos float64 }

// Values are arguments of functions of a few numbers.
type Values struct {
	Turns, Radians           float64 // of sine and cosine
	X, Y                     float64 // of the angle of a direction; Y <= 0 where X + jY is looked at
	T                        float64 // of the auxiliary functions (its magnitude), and of the tail of an edge
	V1, V2                   float64 // of the factor of an edge
	Psi, Theta, Parameter    float64 // of a term
	EtaR, Loss, MuR, Gain, C float64 // of the reflection of a medium at the cosine C
}

// Evaluated is what the functions return.
type Evaluated struct {
	Turns, Radians SinCos
	Angle          float64
	Root, Inverse  Complex // of X + jY
	Auxiliary      Complex // f + jg
	Tail, Factor   Complex
	Term           Complex // sg h (f + jg)
	TE, TM         Complex
}

// Record is a stored state of a wedge.
type Record struct {
	Point, Direction, N0, N1 [3]float32
	TMin, TMax, Theta        float32
}

// Wedge is a wedge in double precision.
type Wedge struct {
	Point, Direction, N0, N1 [3]float64
	TMin, TMax, Theta        float64
}

// Recognized is the wedge of a record, and why it is none.
type Recognized struct {
	Wedge  Wedge
	Status int32
	_      int32
}

// Medium is what a face is made of.
type Medium struct{ EtaR, Sigma, MuR, Gain float32 }

// Modes of the ends of an edge.
const (
	Interior uint32 = iota
	Fresnel
)

// Row is one path over one wedge.
type Row struct {
	Wedge                        Wedge
	Source, Target, Polarization [3]float64
	Wavelength, LossPerSigma     float64 // 1/(w eps0)
	Medium0, MediumN             Medium
	Reflects0, ReflectsN         uint32 // 0: the face has no medium
	EdgeMode                     uint32
	_                            uint32
}

// Path is the geometry of a row.
type Path struct {
	Point                      [3]float64
	T                          float64
	SourceLength, TargetLength float64
	Length, Spread             float64
	SinB, CosB                 float64
	SourceR, SourcePhi         [3]float64
	TargetR, TargetPhi         [3]float64
}

// Operator is the 2x2 operator [[Phi, Cross], [-Cross, Beta]] of a face.
type Operator struct{ Phi, Beta, Cross Complex }

// Diffracted is what becomes of a row. Without a path of status 0 the rest is zero.
type Diffracted struct {
	Path                     Path
	SourceAngle, TargetAngle float64
	Operator0, OperatorN     Operator
	Field                    [3]Complex
	Status                   int32
	_                        int32
}

type checkUtdParams struct {
	In    uint64
	Out   uint64
	Count int64
}

// Kernels of ptx/kernels/utdcheck.cu.
var (
	functionsKernel = ptx.Entry[checkUtdParams]{Module: "utdcheck", Name: "check_utd_functions"}
	recordsKernel   = ptx.Entry[checkUtdParams]{Module: "utdcheck", Name: "check_utd_records"}
	fieldKernel     = ptx.Entry[checkUtdParams]{Module: "utdcheck", Name: "check_utd_field"}
)

// Functions evaluates the functions of a few numbers on the device of st.
func Functions(t testing.TB, st *cuda.Stream, in []Values) []Evaluated {
	t.Helper()
	return run[Evaluated](t, st, func(m *cuda.Module) (*cuda.Function, error) { return m.Function(functionsKernel.Name) }, in)
}

// Records turns stored states into wedges.
func Records(t testing.TB, st *cuda.Stream, in []Record) []Recognized {
	t.Helper()
	return run[Recognized](t, st, func(m *cuda.Module) (*cuda.Function, error) { return m.Function(recordsKernel.Name) }, in)
}

// Field computes the diffracted field of rows.
func Field(t testing.TB, st *cuda.Stream, in []Row) []Diffracted {
	t.Helper()
	return run[Diffracted](t, st, func(m *cuda.Module) (*cuda.Function, error) { return m.Function(fieldKernel.Name) }, in)
}

// run evaluates a kernel of the module.
func run[Out, In any](t testing.TB, st *cuda.Stream, find func(*cuda.Module) (*cuda.Function, error), in []In) []Out {
	t.Helper()
	return evaluate.Rows[Out](t, st, evaluate.Kernel{
		Module: functionsKernel.Module,
		Find:   find,
		Params: func(in, out uint64, count int64) []byte {
			return cuda.ParamBytes(&checkUtdParams{in, out, count})
		},
	}, in)
}
