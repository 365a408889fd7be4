// Package oracle answers ray queries by brute force in float64: every ray
// against every triangle, no tree, no single-precision arithmetic, no code
// shared with the kernels. Tests compare the library with it.
//
// Besides the winner it reports whether a row is ambiguous: whether a
// perturbation of relative size 1e-5 could change the answer. On other rows
// the library must agree exactly in what was hit.
package oracle
