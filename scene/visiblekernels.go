package scene

import (
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/ptx"
)

// visibleKind is the operation of a batch of visibleRows.
type visibleKind = uint32

const (
	visibleSegment visibleKind = iota
	visiblePair
	visibleEdge
	visibleChain
	visibleKinds
)

// maxFractions is how many samples of an edge fit in the parameters of a kernel.
const maxFractions = 16

// visibleRows are the rows of a batch of any of the operations. Columns of the
// others are zero.
type visibleRows struct {
	Kind          uint32
	Segments      int32
	IgnoreWidth   int32
	FractionCount uint32
	Fractions     [maxFractions]float32

	Start     uint64
	End       uint64
	OtherEnd  uint64
	Direction uint64
	TMin      uint64
	TMax      uint64
	Length    uint64
	Ignore    uint64
	Active    uint64

	Visible      uint64
	OtherVisible uint64
	Segment      uint64
	Prim         uint64
}

type visibleParams struct {
	Search searchParams
	Rows   visibleRows
}

// Kernels of ptx/kernels/visibility.cu.
var (
	visibleKernel      = ptx.Entry[visibleParams]{Module: "visibility", Name: "visible"}
	visiblePairKernel  = ptx.Entry[visibleParams]{Module: "visibility", Name: "visible_pair"}
	visibleEdgeKernel  = ptx.Entry[visibleParams]{Module: "visibility", Name: "visible_edge"}
	visibleChainKernel = ptx.Entry[visibleParams]{Module: "visibility", Name: "visible_chain"}
)

// loadVisible loads the kernels of the visibility operations.
func (k *kernels) loadVisible(c *cuda.Context) (err error) {
	if k.visibility, err = loadModule(c, "visibility"); err != nil {
		return err
	}
	for kind, find := range []func(*cuda.Module) (*cuda.Function, error){
		visibleSegment: function(visibleKernel), visiblePair: function(visiblePairKernel),
		visibleEdge: function(visibleEdgeKernel), visibleChain: function(visibleChainKernel),
	} {
		if k.visible[kind], err = find(k.visibility); err != nil {
			return err
		}
	}
	return nil
}

func (x *treeSearch) visible(at site, st *cuda.Stream, rows visibleRows, begin, count int64) error {
	p := visibleParams{Rows: rows}
	return x.searchRows(at, st, x.s.kernels.visible[rows.Kind], &p.Search, cuda.ParamBytes(&p), begin, count)
}
