package scene

import (
	"context"

	"github.com/raymux/raymux/cuda"
)

// DfrPathStatus says why a row of DfrPaths has no path; the first reason that applies.
type DfrPathStatus uint8

// Values of Status.
const (
	DfrValid          DfrPathStatus = 0 // there is a path
	DfrInactive       DfrPathStatus = 1 // the state is not active
	DfrNotFinite      DfrPathStatus = 2 // a position, a polarization or the state is not finite
	DfrDegenerate     DfrPathStatus = 3 // an end too close to the edge or its line, or the state is no wedge
	DfrOffEdge        DfrPathStatus = 4 // the point of diffraction is beyond the ends of the edge
	DfrInside         DfrPathStatus = 5 // the transmitter is inside the wedge
	DfrSourceOccluded DfrPathStatus = 6 // something blocks the leg from the transmitter
	DfrTargetOccluded DfrPathStatus = 7 // something blocks the leg to the receiver
	DfrNoField        DfrPathStatus = 8 // the field is zero or not finite
)

// DfrPaths is the result of TraceDfrPaths: one row for each transmitter, receiver and
// state, n = Transmitters*Receivers*States. A row without a path has its reason in Status,
// ids of -1, Delay = +inf and zeros.
type DfrPaths struct {
	Transmitters, Receivers, States int // of the call; States after StateLimit
	Layout                          DfrPathLayout

	Status cuda.Slice[uint8]   // a DfrPathStatus, [n]
	Delay  cuda.Slice[float32] // of the path in seconds, [n]
	Field  cuda.Slice[float32] // complex vector at the receiver, real part first, [n,3,2]
	P0     cuda.Slice[float32] // point of diffraction in metres, [n,3]
	TxID   cuda.Slice[int32]   // [n]
	RxID   cuda.Slice[int32]   // [n]
	EdgeID cuda.Slice[int32]   // EdgeIndex of the state, [n]
	// Count is the number of rows with a path, [1].
	Count cuda.Slice[int64]

	block
}

// Rows is the number of rows, with and without a path.
func (p *DfrPaths) Rows() int { return int(p.rows) }

// ReadCount copies Count to the host. It waits for the stream of the call.
func (p *DfrPaths) ReadCount(ctx context.Context) (int64, error) {
	n, err := cuda.Download(ctx, p.stream, p.Count)
	if err != nil {
		return 0, err
	}
	return n[0], nil
}

// Close returns the memory to the pool, for work that follows on the stream of the call
// that filled it. Close is idempotent, and of nil it does nothing.
func (p *DfrPaths) Close() error {
	if p == nil {
		return nil
	}
	return p.close()
}

func (p *DfrPaths) memory() *block {
	if p == nil {
		return nil
	}
	return &p.block
}

// place points the columns into the block.
func (p *DfrPaths) place(starts []int64) (err error) {
	bytes := func(i int) int64 { return p.rows * int64(dfrPathLayout[i]) }
	if p.Status, err = column[uint8](&p.block, starts[0], bytes(0)); err != nil {
		return err
	}
	for i, dst := range [...]*cuda.Slice[float32]{&p.Delay, &p.Field, &p.P0} {
		if *dst, err = column[float32](&p.block, starts[1+i], bytes(1+i)); err != nil {
			return err
		}
	}
	for i, dst := range [...]*cuda.Slice[int32]{&p.TxID, &p.RxID, &p.EdgeID} {
		if *dst, err = column[int32](&p.block, starts[4+i], bytes(4+i)); err != nil {
			return err
		}
	}
	p.Count, err = column[int64](&p.block, starts[len(dfrPathLayout)], 8)
	return err
}
