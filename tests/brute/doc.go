// Package brute answers queries on a device by testing every triangle, so that tests
// can compare every row of a large batch with a search that has no tree. It judges
// triangles by the library's own canonical test; package oracle, on the host, shares
// nothing with the kernels and takes longer.
package brute
