//go:build ((linux && (amd64 || arm64)) || (windows && amd64)) && !nocuda

package fakeoptix

// supported is whether this build can call C functions.
const supported = true
