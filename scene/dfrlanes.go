package scene

import (
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/cuapi"
)

// laneCall is LaneCall of utdlane.cuh.
type laneCall struct {
	Pool         uint64
	States       uint64
	Media        media
	Lambda       float64
	LossPerSigma float64
	EdgeMode     uint32
	Unused       uint32
}

// dfrLanes is what the lanes of an operation with the fields of wedges have in common.
type dfrLanes struct {
	op         string
	states     *StateTable
	materials  *MaterialTable // may be nil
	wavelength float64
	mode       EdgeMode
	open       bool // nothing is in the way
}

// set takes the arguments, which it validates.
func (l *dfrLanes) set(op string, s *Scene, states *StateTable, wavelength float64, materials *MaterialTable, mode EdgeMode) error {
	*l = dfrLanes{op: op, states: states, materials: materials, wavelength: wavelength, mode: mode}
	if states == nil {
		return badArg(op, "states", "is nil, want a table from UploadStates")
	}
	if mode > EdgeFresnel {
		return badArg(op, "EdgeMode", "is %d, want EdgeInterior or EdgeFresnel", uint8(mode))
	}
	if err := checkWavelength(op, wavelength); err != nil {
		return err
	}
	_, err := l.tables(s)
	return err
}

// tables is the parameters but for the tree, for kernels on the device of s.
func (l *dfrLanes) tables(s *Scene) (laneCall, error) {
	c := laneCall{Lambda: l.wavelength, LossPerSigma: lossPerSigma(l.wavelength), EdgeMode: uint32(l.mode)}
	states, err := l.states.on(l.op, s)
	if err != nil {
		return c, err
	}
	c.States = states.Addr()
	if l.materials != nil {
		c.Media, err = l.materials.media(l.op, s)
	}
	return c, err
}

// on is the parameters for kernels on the device of s, and what they trace with.
func (l *dfrLanes) on(s *Scene, x *treeSearch) (laneCall, error) {
	c, err := l.tables(s)
	if !l.open {
		c.Pool = x.pool.Addr()
	}
	return c, err
}

// lanesOfBlock is how many lanes a block of a kernel of run_lanes takes, of so many in all:
// the more, the fuller its rounds, as long as there are blocks for the whole device. Of
// more lanes for each of its threads than most the last rounds, which are not full, do not
// matter. All blocks take as many, so that the device is full until the end.
func (x *treeSearch) lanesOfBlock(f *cuda.Function, lanes, most int64) (int64, error) {
	resident, err := x.resident(f)
	if err != nil {
		return 0, err
	}
	rounds := max(1, (lanes+resident*blockSize-1)/(resident*blockSize))
	waves := (rounds + most - 1) / most
	return (rounds + waves - 1) / waves * blockSize, nil
}

// launchTracing enqueues so many blocks of a kernel whose threads trace, each for itself.
func (x *treeSearch) launchTracing(sc cuda.Scope, st *cuda.Stream, f *cuda.Function, blocks int64, params []byte) error {
	return sc.Launch(f, st, cuapi.Dim3{X: uint32(blocks), Y: 1, Z: 1}, cuapi.Dim3{X: blockSize, Y: 1, Z: 1}, x.shared, params)
}
