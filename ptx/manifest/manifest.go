// Package manifest holds the types of ptx/manifest.json, the record of where
// each committed PTX module comes from. It is read by package ptx, which
// verifies a module before it hands it out, and written by tools/ptxaudit.
package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// Schema is the number of the manifest format that this package reads.
const Schema = 1

// Manifest is the whole record.
type Manifest struct {
	Schema    int        `json:"schema"`
	Toolchain Toolchain  `json:"toolchain"`
	External  []External `json:"external"`
	Modules   []Module   `json:"modules"`
}

// Toolchain names the compiler that produced every module.
type Toolchain struct {
	// NVRTC is the version as major.minor.build.
	NVRTC string `json:"nvrtc"`
	// Library and Builtins are the SHA-256 digests of the compiler library and
	// of the library that it loads for its built-in functions.
	Library  string `json:"libnvrtc_sha256"`
	Builtins string `json:"libnvrtc_builtins_sha256"`
	// OptixHeaders and CUDAHeaders are versions of header sets that a module
	// includes, or "none".
	OptixHeaders string `json:"optix_headers"`
	CUDAHeaders  string `json:"cuda_headers"`
}

// External is a header from outside the repository that a module reaches,
// through the copy at Path.
type External struct {
	Origin string `json:"origin"`
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
}

// Module is one compiled module.
type Module struct {
	Name   string `json:"name"`
	Source string `json:"source"`
	// ProgramName is the file name that the compiler was told; it is fixed
	// because it may show in the PTX.
	ProgramName string   `json:"program_name"`
	Sources     []Source `json:"sources"`
	// Options is the complete option vector, in order.
	Options []string `json:"options"`
	PTX     PTX      `json:"ptx"`
	// Entries are the kernels, sorted.
	Entries []string `json:"entries"`
	// Params has one element per entry, in the order of Entries.
	Params []Params `json:"params"`
	// Imports are functions that the module calls but does not define, sorted.
	Imports []string `json:"imports"`
}

// Source is one file of a module's include closure. Digest and size are those
// of the text with LF line ends.
type Source struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
	Bytes  int    `json:"bytes"`
}

// PTX is a compiled text, by its exact bytes.
type PTX struct {
	Path        string `json:"path"`
	SHA256      string `json:"sha256"`
	Bytes       int    `json:"bytes"`
	ISAVersion  string `json:"isa_version"`
	Target      string `json:"target"`
	AddressSize int    `json:"address_size"`
}

// Params is the parameter block of one entry: a struct passed by value.
// Without parameters Struct is empty and Bytes 0.
type Params struct {
	Entry  string  `json:"entry"`
	Struct string  `json:"struct"`
	Bytes  int     `json:"bytes"`
	Fields []Field `json:"fields"`
}

// Field is one field of a parameter struct as the compiler laid it out; fields
// of nested structs are listed one by one under dotted names.
type Field struct {
	Name   string `json:"name"`
	Offset int    `json:"offset"`
	Bytes  int    `json:"bytes"`
	// Kind is "float", "int", "uint" or "pointer"; of an array, its element's.
	Kind string `json:"kind"`
}

// Parse reads a manifest. It refuses unknown fields, trailing data and other
// schemas, so that an edited manifest cannot carry what nothing checks.
func Parse(data []byte) (*Manifest, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	var m Manifest
	if err := dec.Decode(&m); err != nil {
		return nil, fmt.Errorf("PTX manifest: %w", err)
	}
	if _, err := dec.Token(); err != io.EOF { // More takes a bracket for an end
		return nil, fmt.Errorf("PTX manifest: data after the closing brace")
	}
	if m.Schema != Schema {
		return nil, fmt.Errorf("PTX manifest: schema %d, this program reads schema %d", m.Schema, Schema)
	}
	return &m, nil
}

// Encode returns the one text form of a manifest: indented JSON and a newline.
func (m *Manifest) Encode() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(m); err != nil {
		return nil, fmt.Errorf("PTX manifest: %w", err)
	}
	return b.Bytes(), nil
}

// Module returns the module of that name, or nil.
func (m *Manifest) Module(name string) *Module {
	for i := range m.Modules {
		if m.Modules[i].Name == name {
			return &m.Modules[i]
		}
	}
	return nil
}
