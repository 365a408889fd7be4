//go:build nocuda || !((linux && (amd64 || arm64)) || (windows && amd64))

package fakeoptix

// supported is whether this build can call C functions.
const supported = false
