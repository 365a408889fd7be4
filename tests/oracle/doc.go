// Package oracle answers queries by brute force: every ray against every triangle,
// no tree, no code shared with the kernels. Tests compare the library with it.
//
// [Oracle] computes in float64. Besides the answer it reports whether a row is
// ambiguous: whether a perturbation of relative size 1e-5 could change it. On other
// rows the library must agree exactly in what was hit, what is visible, and what
// reflects.
//
// [Canonical] computes in single precision, in the order of operations that defines
// the results, so that the library must agree bit by bit on every row, ambiguous or
// not.
package oracle
