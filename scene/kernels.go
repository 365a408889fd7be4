package scene

import (
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/ptx"
)

const (
	// maxLaunchRows is the most rows of one launch.
	maxLaunchRows = 1 << 30
	// blockSize is the threads per block of every kernel.
	blockSize = 128
)

// kernels are the loaded modules and functions of one context.
type kernels struct {
	geometry, intersect, reflect *cuda.Module

	validateMesh, faceNormals, transformVertices    *cuda.Function
	placeTriangles, nodeBoxes, writeNodes, treeCost *cuda.Function
	traverse, traverseMarked, finalize              *cuda.Function
	traceChains, finalizeChains                     *cuda.Function

	visibility *cuda.Module
	visible    [visibleKinds]*cuda.Function

	// Loaded by the first caller that needs them.
	sort     once[*sortKernels]
	dedup    once[*dedupKernels]
	build    once[*buildKernels]
	epc      once[*epcKernels]
	reflGrid once[*reflGridKernels]
	words    once[*wordKernels]
	coherent once[*coherentKernels]
	accumDfr once[*accumDfrKernels]
	dfrPaths once[*dfrPathKernels]

	accumFloat once[*accumFloatKernels] // of benchmarks
}

func loadKernels(c *cuda.Context) (*kernels, error) {
	k := &kernels{}
	if err := k.load(c); err != nil {
		// The first failure is the one that the caller can act on.
		_ = k.close()
		return nil, err
	}
	return k, nil
}

func (k *kernels) load(c *cuda.Context) (err error) {
	if k.geometry, err = loadModule(c, "geometry"); err != nil {
		return err
	}
	if k.intersect, err = loadModule(c, "intersect"); err != nil {
		return err
	}
	if k.validateMesh, err = k.geometry.Function(validateMeshKernel.Name); err != nil {
		return err
	}
	if k.faceNormals, err = k.geometry.Function(faceNormalsKernel.Name); err != nil {
		return err
	}
	if k.transformVertices, err = k.geometry.Function(transformVerticesKernel.Name); err != nil {
		return err
	}
	if k.placeTriangles, err = k.geometry.Function(placeTrianglesKernel.Name); err != nil {
		return err
	}
	if k.nodeBoxes, err = k.geometry.Function(nodeBoxesKernel.Name); err != nil {
		return err
	}
	if k.writeNodes, err = k.geometry.Function(writeNodesKernel.Name); err != nil {
		return err
	}
	if k.treeCost, err = k.geometry.Function(treeCostKernel.Name); err != nil {
		return err
	}
	if k.traverse, err = k.intersect.Function(traverseKernel.Name); err != nil {
		return err
	}
	if k.traverseMarked, err = k.intersect.Function(traverseMarkedKernel.Name); err != nil {
		return err
	}
	if k.finalize, err = k.intersect.Function(finalizeKernel.Name); err != nil {
		return err
	}
	if err = k.loadVisible(c); err != nil {
		return err
	}
	if k.reflect, err = loadModule(c, "reflect"); err != nil {
		return err
	}
	if k.traceChains, err = k.reflect.Function(traceChainsKernel.Name); err != nil {
		return err
	}
	k.finalizeChains, err = k.reflect.Function(finalizeChainsKernel.Name)
	return err
}

// searches lists the kernels that walk the tree.
func (k *kernels) searches() []*cuda.Function {
	return append([]*cuda.Function{k.traverse, k.traverseMarked, k.traceChains}, k.visible[:]...)
}

func loadModule(c *cuda.Context, name string) (*cuda.Module, error) {
	text, err := ptx.Module(name)
	if err != nil {
		return nil, err
	}
	return c.LoadModule(text, cuda.JITOptions{})
}

func (k *kernels) close() error {
	var first error
	if dedup, made := k.dedup.take(); made {
		first = dedup.module.Close()
	}
	if sort, made := k.sort.take(); made {
		first = firstError(first, sort.module.Close())
	}
	if accum, made := k.accumDfr.take(); made {
		first = firstError(first, accum.module.Close())
	}
	if accum, made := k.accumFloat.take(); made {
		first = firstError(first, accum.module.Close())
	}
	if words, made := k.words.take(); made {
		first = firstError(first, words.module.Close())
	}
	if build, made := k.build.take(); made {
		first = firstError(first, build.module.Close())
	}
	if epc, made := k.epc.take(); made {
		first = firstError(first, epc.module.Close())
	}
	if reflGrid, made := k.reflGrid.take(); made {
		first = firstError(first, reflGrid.module.Close())
	}
	if dfrPaths, made := k.dfrPaths.take(); made {
		first = firstError(first, dfrPaths.module.Close())
	}
	if coherent, made := k.coherent.take(); made {
		first = firstError(first, coherent.module.Close())
	}
	for _, m := range []*cuda.Module{k.geometry, k.intersect, k.visibility, k.reflect} {
		if m != nil {
			first = firstError(first, m.Close())
		}
	}
	return first
}

// eachLaunch calls f for pieces of [begin, begin+count) that fit one launch.
func (s *Scene) eachLaunch(begin, count int64, f func(begin, count int64) error) error {
	for count > 0 {
		n := min(count, s.rowsPerLaunch)
		if err := f(begin, n); err != nil {
			return err
		}
		begin += n
		count -= n
	}
	return nil
}

// launchRows enqueues a kernel with one thread per row.
func launchRows[P any](sc cuda.Scope, f *cuda.Function, st *cuda.Stream, count int64, p *P) error {
	grid := cuapi.Dim3{X: uint32((count + blockSize - 1) / blockSize), Y: 1, Z: 1}
	return sc.Launch(f, st, grid, cuapi.Dim3{X: blockSize, Y: 1, Z: 1}, 0, cuda.ParamBytes(p))
}
