// Package dl opens shared libraries at run time and calls C functions by
// address, without cgo. It is the only package that imports purego.
//
// What it adds to the bare loader calls:
//
//   - a search in a fixed order (bare names through the system loader, then
//     full paths), whose failure lists every path tried with its cause;
//   - the loader's error text is read on the thread that made the failing
//     call, so that concurrent opens never swap their messages;
//   - files that cannot work are named as such: empty files that a container
//     runtime left behind, libraries for another machine, the link-time stubs
//     of the CUDA toolkit;
//   - no library is ever taken from the working folder, and a program that
//     runs with raised privileges ignores the environment.
//
// Libraries stay loaded: the ones this package is for own threads.
//
// With the build tag nocuda, and on platforms for which no GPU driver exists,
// the package compiles to a stub whose Open returns ErrUnsupportedPlatform;
// the resulting binary is static.
package dl
