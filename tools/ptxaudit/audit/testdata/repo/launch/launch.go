// Package launch is a fixture: a Go program table.
package launch

import "github.com/raymux/raymux/ptx"

const module = "box"

type span struct{ Begin, End int32 }

type boxParams struct {
	Boxes uint64
	Count uint64
	Range span
	Scale [3]float32
	Flags int32
}

var (
	boxKernel  = ptx.Entry[boxParams]{Module: module, Name: "box_test"}
	idleKernel = ptx.Entry[struct{}]{Module: module, Name: "idle"}
)

type loaded interface{ Function(name string) error }

func run(m loaded) error {
	if err := m.Function(boxKernel.Name); err != nil {
		return err
	}
	return m.Function(idleKernel.Name)
}
