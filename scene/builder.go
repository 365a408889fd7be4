package scene

import (
	"fmt"
	"math"
)

// Builder is how the CUDA backend builds its search tree. Results do not depend on
// it.
type Builder int

// Builders of Options.
const (
	// BuilderAuto builds on the device, in a millisecond or two per million triangles,
	// and the trees of a few triangles on the host.
	BuilderAuto Builder = iota
	// BuilderSAH builds on the host, in about two processor-seconds per million
	// triangles. Rays visit a few per cent fewer nodes, which is worth it for static
	// scenes that answer many rays.
	BuilderSAH
)

// String is the lower-case name.
func (b Builder) String() string {
	switch b {
	case BuilderAuto:
		return "auto"
	case BuilderSAH:
		return "sah"
	}
	return fmt.Sprintf("Builder(%d)", int(b))
}

// The trees that a build on the device knows.
const (
	treeByBits     = iota // of common bits of neighbouring keys
	treeByNearness        // of nearest neighbours along the curve
	treeCheaper           // both are built, and the one with the smaller cost is taken
)

const byHostName = "host"

var byDeviceNames = [2]string{treeByBits: "device, by bits", treeByNearness: "device, by nearness"}

// deviceBuild is what the builder on the device may do. Tests change it.
type deviceBuild struct {
	least  int   // triangles; fewer are built on the host
	tree   int64 // one of those above
	levels int   // that the tree may have
	mark   func(stage string) error
}

// deviceBuildLeast is where the launches of a build on the device take as long as
// the host needs.
const deviceBuildLeast = 256

func newDeviceBuild() deviceBuild {
	return deviceBuild{
		least: deviceBuildLeast, tree: treeCheaper, levels: treeStack,
		mark: func(string) error { return nil },
	}
}

// chosen names the tree that was taken, given the words of a build's state.
func (d *deviceBuild) chosen(state []uint32) string {
	tree := d.tree
	if tree == treeCheaper {
		tree = treeByBits
		if cost := state[stateCosts:]; math.Float32frombits(cost[1]) < math.Float32frombits(cost[0]) {
			tree = treeByNearness
		}
	}
	return byDeviceNames[tree]
}
