package scene

import (
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/ptx"
)

// sumParts is PARTS of words.cuh.
const sumParts = 16

type accumulators struct {
	At    [sumParts]uint64
	Count int64
}

// accumulatorsOf are the first sumParts of parts.
func accumulatorsOf(parts []cuda.Slice[uint8]) (a accumulators) {
	for i, p := range parts[:min(len(parts), sumParts)] {
		a.At[i] = p.Addr()
		a.Count++
	}
	return a
}

type sumAccumulatorsParams struct {
	Dst      uint64
	Parts    accumulators
	Sums64   int64
	Sums32   int64
	Maxima32 int64
	RowBegin int64
	Count    int64
}

type foldCopiesParams struct {
	Sums      uint64
	Copies    uint64
	Words     int64
	CopyCount int64
	RowBegin  int64
	Count     int64
}

// Kernels of ptx/kernels/words.cu.
var (
	sumAccumulatorsKernel = ptx.Entry[sumAccumulatorsParams]{Module: "words", Name: "sum_accumulators"}
	foldCopiesKernel      = ptx.Entry[foldCopiesParams]{Module: "words", Name: "fold_copies"}
)

// foldGroup is FOLD of words.cu.
const foldGroup = 16

// wordsPerSum are the 64-bit words of an exact sum of float32 values.
const wordsPerSum = 6

// wordKernels add accumulators. They are loaded by the first call over a grid.
type wordKernels struct {
	module    *cuda.Module
	sum, fold *cuda.Function
}

func loadWordKernels(c *cuda.Context) (*wordKernels, error) {
	k := &wordKernels{}
	var err error
	if k.module, err = loadModule(c, sumAccumulatorsKernel.Module); err != nil {
		return nil, err
	}
	err = functions(k.module, map[string]**cuda.Function{
		sumAccumulatorsKernel.Name: &k.sum, foldCopiesKernel.Name: &k.fold,
	})
	if err != nil {
		return nil, firstError(err, k.module.Close())
	}
	return k, nil
}

func (s *Scene) wordKernels() (*wordKernels, error) {
	return s.kernels.words.get(func() (*wordKernels, error) { return loadWordKernels(s.ctx) })
}

// addAccumulators enqueues dst += src on st.
func (s *Scene) addAccumulators(sc cuda.Scope, st *cuda.Stream, dst, src cuda.Slice[uint8], size accumulatorSize) error {
	return s.sumAccumulators(sc, st, dst, []cuda.Slice[uint8]{dst, src}, size)
}

// sumAccumulators enqueues on st that dst is the sum of parts, of which it may be the
// first.
func (s *Scene) sumAccumulators(sc cuda.Scope, st *cuda.Stream, dst cuda.Slice[uint8], parts []cuda.Slice[uint8], size accumulatorSize) error {
	k, err := s.wordKernels()
	if err != nil {
		return err
	}
	p := sumAccumulatorsParams{Dst: dst.Addr(), Sums64: size.sums64, Sums32: size.sums32, Maxima32: size.maxima32}
	for {
		p.Parts = accumulatorsOf(parts)
		err := s.eachLaunch(0, size.sums64+size.sums32+size.maxima32, func(begin, count int64) error {
			p.RowBegin, p.Count = begin, count
			return launchRows(sc, k.sum, st, count, &p)
		})
		if err != nil || len(parts) <= sumParts {
			return err
		}
		// What was summed is the first of those that are left.
		parts = append([]cuda.Slice[uint8]{dst}, parts[sumParts:]...)
	}
}

// foldCopies enqueues on st the sum of copies of so many 64-bit words, which is added to
// sums.
func (s *Scene) foldCopies(sc cuda.Scope, st *cuda.Stream, sums uint64, copies cuda.Slice[int64], words int64) error {
	k, err := s.wordKernels()
	if err != nil {
		return err
	}
	n := int64(copies.Len()) / words
	return s.eachLaunch(0, words*((n+foldGroup-1)/foldGroup), func(begin, count int64) error {
		return launchRows(sc, k.fold, st, count, &foldCopiesParams{
			Sums: sums, Copies: copies.Addr(), Words: words, CopyCount: n, RowBegin: begin, Count: count,
		})
	})
}
