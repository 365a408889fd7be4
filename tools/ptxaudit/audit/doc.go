// Package audit decides whether the committed PTX is what the repository says
// it is. It reads text only: no compiler, no driver, no library loading.
//
// Three records must agree: ptx/policy.json says how modules are to be
// compiled, ptx/manifest.json says what was compiled from which bytes, and the
// Go sources say which kernels are launched with which parameter structs.
// Check compares all three with the files. Update and Rebuild take a Compiler
// and produce, or reproduce, the modules and the manifest.
package audit
