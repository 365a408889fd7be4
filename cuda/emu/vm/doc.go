// Package vm loads PTX text and runs it on a machine written in Go.
//
// # Loading
//
// Load parses a module, checks every directive, instruction and modifier, and compiles each
// function to a table of operations over columns: a virtual register is a column of 32 values, one
// per lane of a warp, and one operation works on whole columns. Constants, special registers and
// addresses of symbols are columns too, so that an operation needs no cases for its operands.
// Basic blocks are laid out anew so that forward edges lead to higher positions and every loop is
// contiguous with its header first.
//
// # Running
//
// The lanes of a warp are partitioned in groups, each with one position. The group at the lowest
// position of the deepest call runs; groups that meet merge; a group at a loop header waits for
// lanes that are still inside the loop. With the layout above this reconverges lanes no later than
// at immediate post-dominators, and since groups are independent of each other, lanes that
// wait for lanes of their own warp make progress: a group that jumps backward too often while others
// could run is put aside. Warp-wide operations with a member mask wait until all live lanes of the mask
// have arrived. Warps of a block take turns on one goroutine, blocks are spread over several.
//
// # Checks
//
// Every access is checked: bounds, alignment, freed memory, bytes never written (global, shared and
// local), stores to constants, memory of devices without peer access. Conflicting accesses to shared memory
// between barriers are found on request. A fault names kernel, PTX line, lane, thread, address and
// the nearest allocation.
//
// # Arithmetic
//
// Results are those of the PTX specification to the bit wherever it defines them: IEEE 754
// operations in all rounding modes, subnormals kept unless .ftz asks otherwise. A single-precision
// result that is not a number is 0x7fffffff; a double-precision one is the first NaN operand made
// quiet, else 0xfff8000000000000. Approximate instructions (.approx, ex2, lg2, sin, cos, tanh, rcp,
// rsqrt) return the result of double precision rounded to nearest, which lies within their
// documented error and differs from the bits of any given chip.
//
// # Limits
//
// Memory accesses of a block take effect in program order, so fences do nothing. A block that waits
// for a block that has not started waits until the launch is cancelled. Clocks count instructions.
// printf prints nothing. Half-precision arithmetic, textures, and instructions above sm_75 are refused by Load.
package vm
