package scene

import (
	"context"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/ptx"
)

type accumFloatParams struct {
	Pool    uint64
	Legs    uint64
	Power   uint64
	Factor  float64
	Cells   cells
	Key     uint32
	States  uint32
	Pairs   uint32
	PerPair uint32
	OneMore uint32
	Lanes   uint32
}

// accumFloatKernel is in ptx/kernels/accumfloat.cu.
var accumFloatKernel = ptx.Entry[accumFloatParams]{Module: "accumfloat", Name: "accum_float"}

// accumFloatKernels are loaded by the first AccumDfrFloat.
type accumFloatKernels struct {
	module *cuda.Module
	lanes  *cuda.Function
}

func loadAccumFloatKernels(c *cuda.Context) (*accumFloatKernels, error) {
	k := &accumFloatKernels{}
	var err error
	if k.module, err = loadModule(c, accumFloatKernel.Module); err != nil {
		return nil, err
	}
	if err = functions(k.module, map[string]**cuda.Function{accumFloatKernel.Name: &k.lanes}); err != nil {
		return nil, firstError(err, k.module.Close())
	}
	return k, nil
}

// AccumDfrFloat enqueues on st the direct samples of AccumDfrDirect, all of them, with a
// thread for each, that adds its contribution to power by a float atomic. For benchmarks,
// which need something to compare exact sums with: results differ from run to run, and the
// more samples a cell has, the more of them are rounded away. power has a value for each
// cell; Active, Materials and Window are ignored.
func (s *Scene) AccumDfrFloat(st *cuda.Stream, states *StateTable, g Grid, o DfrDirectOptions, power cuda.Slice[float32]) error {
	const op = "AccumDfrFloat"
	if states == nil || states.count == 0 {
		return badArg(op, "states", "is empty, want a table with states from UploadStates")
	}
	if err := firstError(g.check(op), checkWavelength(op, o.Wavelength)); err != nil {
		return err
	}
	if int64(power.Len()) != g.Cells() {
		return badArg(op, "power", "has %d values, want %d, one for each cell", power.Len(), g.Cells())
	}
	if o.KellerSamples != 0 {
		return badArg(op, "KellerSamples", "is %d, want direct samples", o.KellerSamples)
	}
	lanes, err := o.lanes(op, int64(states.count), g.Cells())
	if err != nil {
		return err
	}
	q := dfrQuery{states: states, grid: g, options: o, total: lanes}
	return s.enqueueRows(op, st, lanes, 0, lanes, func(sc cuda.Scope) error {
		exact, err := q.params(s, RowColumn{})
		if err != nil {
			return err
		}
		x, err := s.tracer(context.Background())
		if err != nil {
			return err
		}
		k, err := s.kernels.accumFloat.get(func() (*accumFloatKernels, error) { return loadAccumFloatKernels(s.ctx) })
		if err != nil {
			return err
		}
		if err := cuda.Fill32(st, power, 0); err != nil {
			return err
		}
		p := accumFloatParams{
			Pool: x.pool.Addr(), Legs: exact.Legs, Power: power.Addr(), Factor: exact.Factor, Cells: exact.Cells, Key: exact.Key,
			States: exact.StatesCount, Pairs: exact.Pairs, PerPair: exact.PerPair, OneMore: exact.OneMore,
			Lanes: uint32(lanes),
		}
		blocks := cuapi.Dim3{X: uint32((lanes + blockSize - 1) / blockSize), Y: 1, Z: 1}
		return sc.Launch(k.lanes, st, blocks, cuapi.Dim3{X: blockSize, Y: 1, Z: 1}, x.shared, cuda.ParamBytes(&p))
	})
}
