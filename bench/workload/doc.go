// Package workload generates the benchmark's geometry and rays from integers and correctly rounded arithmetic alone, so
// that every machine and every language produces the same bits, and pins the SHA-256 digest of every array.
//
// # Generator
//
// draw(seed, stream, i) is SplitMix64 with random access: element i of a stream costs the same wherever i lies, so a
// batch may be generated in any order and on any number of cores. From a draw follow a uniform value in [0, 1) on a
// grid of 2^-24 ([Unit]), exact in float32, and an approximately standard normal value ([Stream.Normal]), exact in
// float64: a sum of 64 random bits, recentred, plus a uniform fraction.
//
// # Rounding
//
// Every operation of a formula rounds once, to float32 or to float64 as the formula says. The Go compiler may fuse a
// product with an addition on some architectures, and an explicit conversion forbids it: that is why the code writes
// float64(x*x) and float32(u*s) where the conversion looks redundant. Removing one changes the digests on arm64 only.
//
// # Configurations
//
// [Light] is a planar grid hit by coherent rays from below (bound by transfers when split over devices), [Compute] a
// cloud of two million small triangles with incoherent rays from inside (bound by traversal), and [Mini] both in
// miniature: one scene of a small grid and a small cloud, sized for devices that are emulated on the host.
package workload
