package scene

import (
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/cuapi"
)

// Sizes of sort.cu.
const (
	sortThreads = 256
	sortTile    = 4096 // pairs per block
	sortDigits  = 256
	sortBits    = 8 // per pass
)

// pairs are up to 2^31 keys with their values, and the memory that sorting them
// takes: as much again, and sortCounters.
type pairs struct {
	keys, otherKeys     cuda.Slice[uint64]
	values, otherValues cuda.Slice[uint32]
	counters            cuda.Slice[uint32]
}

// sortCounters is the number of counters that a sort of n pairs takes.
func sortCounters(n int) int { return sortDigits * (sortTiles(n) + 1) }

func sortTiles(n int) int { return (n + sortTile - 1) / sortTile }

// sortKernels sort pairs. They are loaded when something is sorted for the first
// time.
type sortKernels struct {
	module            *cuda.Module
	count, scan, move *cuda.Function
}

func loadSortKernels(c *cuda.Context) (*sortKernels, error) {
	k := &sortKernels{}
	var err error
	if k.module, err = loadModule(c, sortCountKernel.Module); err != nil {
		return nil, err
	}
	err = functions(k.module, map[string]**cuda.Function{
		sortCountKernel.Name: &k.count, sortScanKernel.Name: &k.scan, sortMoveKernel.Name: &k.move,
	})
	if err != nil {
		return nil, firstError(err, k.module.Close())
	}
	return k, nil
}

// functions looks up kernels of a module.
func functions(m *cuda.Module, all map[string]**cuda.Function) (err error) {
	for name, f := range all {
		if *f, err = m.Function(name); err != nil {
			return err
		}
	}
	return nil
}

// sortPairs enqueues a stable sort of p by keys, which are below 2^bits. The sorted
// pairs are p.keys and p.values then, which may have changed places with the others.
// Cost: three launches per eight bits, each of which moves 32 bytes per pair.
func (s *Scene) sortPairs(sc cuda.Scope, st *cuda.Stream, p *pairs, bits int) error {
	n := p.keys.Len()
	if n < 2 {
		return nil
	}
	k, err := s.kernels.sort.get(func() (*sortKernels, error) { return loadSortKernels(s.ctx) })
	if err != nil {
		return err
	}
	tiles := sortTiles(n)
	launch := func(f *cuda.Function, blocks, threads int, params []byte) error {
		return sc.Launch(f, st, cuapi.Dim3{X: uint32(blocks), Y: 1, Z: 1}, cuapi.Dim3{X: uint32(threads), Y: 1, Z: 1}, 0, params)
	}
	for shift := 0; shift < bits; shift += sortBits {
		if err := launch(k.count, tiles, sortThreads, cuda.ParamBytes(&sortCountParams{
			Keys: p.keys.Addr(), Counters: p.counters.Addr(),
			Count: int64(n), Tiles: int64(tiles), Shift: int64(shift),
		})); err != nil {
			return err
		}
		if err := launch(k.scan, sortDigits, min((tiles+31)/32*32, sortThreads), cuda.ParamBytes(&sortScanParams{
			Counters: p.counters.Addr(), Tiles: int64(tiles),
		})); err != nil {
			return err
		}
		if err := launch(k.move, tiles, sortThreads, cuda.ParamBytes(&sortMoveParams{
			Keys: p.keys.Addr(), Values: p.values.Addr(),
			KeysOut: p.otherKeys.Addr(), ValuesOut: p.otherValues.Addr(), Counters: p.counters.Addr(),
			Count: int64(n), Tiles: int64(tiles), Shift: int64(shift),
		})); err != nil {
			return err
		}
		p.keys, p.otherKeys = p.otherKeys, p.keys
		p.values, p.otherValues = p.otherValues, p.values
	}
	return nil
}
