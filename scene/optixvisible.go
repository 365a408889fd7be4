package scene

import "github.com/raymux/raymux/cuda"

func (x *optixSearch) visible(at site, st *cuda.Stream, rows visibleRows, begin, count int64) error {
	programs, err := x.programsFor(visiblePrograms)
	if err != nil {
		return err
	}
	p := storeVisibleParams{Params: optixVisibleParams{Rows: rows, FaceOffsets: x.offsets(), Handle: uint64(x.handle())}}
	return x.s.eachLaunch(begin, count, func(begin, count int64) error {
		p.Params.RowBegin = begin
		return programs.launch(at.Scope, st, count, func(to uint64) []byte {
			p.To = to
			return cuda.ParamBytes(&p)
		})
	})
}
