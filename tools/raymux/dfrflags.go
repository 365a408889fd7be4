package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tools/raymux/npy"
)

// dfrFlags are the flags of the commands on wedge states.
type dfrFlags struct {
	common
	options          chunked.Options
	states, material string
	wavelength       float64
}

func (fs *flagSet) dfr(f *dfrFlags) {
	fs.common(&f.common)
	fs.split(&f.options)
	fs.calibrations(&f.common)
	fs.file("states", "`FILE` of wedge states, .npz, as dfr-states writes it; its optional column active, [M] bool, names those that take part (required)", &f.states)
	fs.file("material", "`FILE` of what the faces are made of, .npz: eta_r, sigma (S/m), mu_r, gain [K] float32, valid [K] bool, and index [faces] int32 unless K is the number of faces (default: faces reflect nothing, gain 1)", &f.material)
	fs.positive("wavelength", "metres", "`LENGTH` of the wave in metres (required)", &f.wavelength)
}

// check validates what can be told from the flags alone. columns are those of the operation.
func (f *dfrFlags) check(fs *flagSet, p *program, columns []string) error {
	switch {
	case f.states == "":
		return usagef("-states is missing: give the .npz file that raymux dfr-states wrote, or one of the same columns")
	case !fs.seen["wavelength"]:
		return usagef("-wavelength is missing: give it in metres")
	}
	return f.common.check(p, columns)
}

// dfrTables are the inputs of a command on wedge states, in host memory.
type dfrTables struct {
	states    scene.DfrStates
	active    []uint8          // nil: all
	materials *scene.Materials // nil: none
}

// count is the number of states.
func (h *dfrTables) count() int64 { return int64(len(h.states.EdgeIndex)) }

// Bytes of a wedge state, in its file and as devices hold it.
const (
	stateBytes     = 88
	heldStateBytes = 160
)

// bytes is the size of the inputs.
func (h *dfrTables) bytes() int64 {
	return stateBytes*h.count() + int64(len(h.active)) + materialBytes(h.materials)
}

// replicated is what every device holds of them.
func (h *dfrTables) replicated() int64 {
	return heldStateBytes*h.count() + int64(len(h.active)) + materialBytes(h.materials)
}

// materialBytes is the size of a table of materials, which may be absent.
func materialBytes(m *scene.Materials) int64 {
	if m == nil {
		return 0
	}
	return int64(17*len(m.EtaR) + 4*len(m.Index))
}

// readDfr reads states and materials.
func (p *program) readDfr(ctx context.Context, f *dfrFlags) (h dfrTables, err error) {
	if h.states, h.active, err = p.readStates(ctx, f.states); err != nil {
		return h, err
	}
	if h.count() == 0 {
		p.note("-states %s: it has no state, so nothing is diffracted", f.states)
	}
	h.materials, err = p.readMaterials(ctx, f.material)
	return h, err
}

// dfrInputs are the inputs of a command on wedge states, on the devices.
type dfrInputs struct {
	states    *scene.StateTable
	materials *scene.MaterialTable
	active    cuda.Slice[uint8]
}

// noteForeign tells of states whose faces are not those of the meshes: they are surfaces without a material.
func (p *program) noteForeign(f *dfrFlags, h dfrTables, faces int) {
	foreign, example := 0, int32(0)
	for i, prim := range h.states.Prim0 {
		if largest := max(prim, h.states.Prim1[i]); int(largest) >= faces {
			foreign, example = foreign+1, largest
		}
	}
	if foreign > 0 {
		p.note("-states %s: %d of %d %s of faces that -mesh %s does not have (found %d, there are %d): they have no material; run dfr-states with these meshes",
			f.states, foreign, h.count(), plural(int(h.count()), "state"), strings.Join(f.meshes, ", "), example, faces)
	}
}

// lanesOf are lanes by what became of them.
type lanesOf struct {
	name  string
	count int64
}

// noteEmpty tells of a call all of whose lanes came to nothing, and why.
func (p *program) noteEmpty(accepted int64, rest ...lanesOf) {
	var why []string
	all := accepted
	for _, r := range rest {
		if all += r.count; r.count > 0 {
			why = append(why, fmt.Sprintf("%s %d", r.name, r.count))
		}
	}
	if accepted == 0 && all > 0 {
		p.note("no lane contributed: %s of %d", strings.Join(why, ", "), all)
	}
}

// uploadDfr brings the inputs to the devices. On a failure it returns what it has, to be closed.
func (e *engine) uploadDfr(ctx context.Context, p *program, f *dfrFlags, h dfrTables) (d dfrInputs, err error) {
	p.noteForeign(f, h, e.faces)
	if d.states, err = e.scene.UploadStates(ctx, h.states); err != nil {
		return d, forFile("-states", f.states, err)
	}
	if d.materials, err = e.uploadMaterials(ctx, f.material, h.materials); err != nil {
		return d, err
	}
	if h.active != nil {
		d.active, err = cuda.Upload(ctx, e.scene.Stream(), h.active)
	}
	return d, err
}

func (e *engine) uploadMaterials(ctx context.Context, file string, m *scene.Materials) (*scene.MaterialTable, error) {
	if m == nil {
		return nil, nil
	}
	table, err := e.scene.UploadMaterials(ctx, *m)
	return table, forFile("-material", file, err)
}

func (d *dfrInputs) close(st *cuda.Stream) error {
	return errors.Join(free(st, d.active), d.states.Close(), d.materials.Close())
}

// gridShape is the shape of values on the cells of a grid.
func gridShape(g scene.Grid) []int { return []int{int(g.Res1), int(g.Res0)} }

// fieldNames are the columns of a complex field on a grid, in the order of the library.
var fieldNames = [6]string{"field_x_re", "field_x_im", "field_y_re", "field_y_im", "field_z_re", "field_z_im"}

// counter is a column of one number.
func counter(name string, value int64) npy.Column { return npy.Longs(name, []int64{value}) }

// power is |E|^2 of a field, formed in float64.
func power(field [6][]float32) []float32 {
	out := make([]float32, len(field[0]))
	for i := range out {
		sum := 0.0
		for _, part := range field {
			sum += float64(part[i]) * float64(part[i])
		}
		out[i] = float32(sum)
	}
	return out
}

// pairs is the number of pairs of a state and a cell.
func pairs(states int64, g scene.Grid) (int64, error) {
	cells := g.Cells()
	if states > 0 && cells > math.MaxInt64/states {
		return 0, usagef("-grid-res: found %d cells; with %d states that makes too many lanes", cells, states)
	}
	return states * cells, nil
}
