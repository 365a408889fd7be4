// Package ptx holds the compiled kernels. Each module is CUDA C++ under
// ptx/kernels, compiled once to PTX text, committed, and embedded here; the
// digests in manifest.json say from which sources, options and compiler it
// came. Module verifies a text against its digest before it hands it out, so a
// program runs the bytes that the manifest names or stops.
//
// # Declaring a launch
//
// Go code that launches a kernel declares it beside the launch, as a plain
// value with the parameter struct as type argument:
//
//	type traverseParams struct {
//		Nodes, Rays, Winners uint64 // addresses
//		RowBegin, Count      int64
//	}
//
//	var traverseKernel = ptx.Entry[traverseParams]{Module: "trace", Name: "traverse_closest"}
//
// and gets the function under traverseKernel.Name. The declaration does no
// work. Its purpose is that `go run ./tools/ptxaudit check` can read it, which
// compares every declaration in the repository with the manifest:
//
//   - the module exports the kernel, and every exported kernel is declared
//     somewhere (tests count);
//   - the struct has the size of the kernel's parameter block, and the name of
//     the C struct apart from case and underscores;
//   - field by field it has the offset, size, kind and, with the same
//     freedom, name of the C struct. Pointers are uint64 in Go; other fields
//     are fixed-size numbers, arrays of them, or structs of the same package.
//     A field named _ stands for any padding field. A kernel without
//     parameters is an Entry[struct{}].
//
// On the C side a kernel is extern "C" and takes one struct by value, or
// nothing:
//
//	extern "C" __global__ void traverse_closest(const TraverseParams p)
//
// # Adding or changing a module
//
// List it in policy.json, then run `go run ./tools/ptxaudit update`. Nothing
// else writes the .ptx files and the manifest. docs/ptx.md tells the rest.
package ptx
