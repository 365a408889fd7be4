package optixabi

import (
	"fmt"
	"unsafe"
)

// SBTRecordPackHeader writes the first SBTRecordHeaderSize bytes of a record
// of the shader binding table into host memory. Program data follows them.
func (t *Table) SBTRecordPackHeader(g ProgramGroup, dst []byte) error {
	if len(dst) < SBTRecordHeaderSize {
		return fmt.Errorf("optixabi: a record has room for %d bytes, its header needs %d: %w", len(dst), SBTRecordHeaderSize, ErrorInvalidValue)
	}
	b := getBlock()
	defer b.put()
	return callError(fnSbtRecordPackHeader, t.call(fnSbtRecordPackHeader, b, uintptr(g), b.host(dst)), "")
}

// Launch enqueues width x height x depth raygen programs on a stream. params
// is the device memory of the launch parameters, which are read when the
// launch runs. Launches of one pipeline must not overlap. It allocates
// nothing.
func (t *Table) Launch(p Pipeline, stream uintptr, params Buffer, sbt *ShaderBindingTable, width, height, depth uint32) error {
	b := getBlock()
	b.sbt = *sbt
	code := t.call(fnLaunch, b, uintptr(p), stream, uintptr(params.Addr), uintptr(params.Size),
		uintptr(unsafe.Pointer(&b.sbt)), uintptr(width), uintptr(height), uintptr(depth))
	b.put()
	return callError(fnLaunch, code, "")
}
