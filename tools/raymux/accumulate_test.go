package main

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/raymux/raymux/tools/raymux/npy"
)

// accumulateBench has a floor of relative permittivity 4, a ray straight down and one aslant. What they bring to a grid are
// test cases of the specification.
func accumulateBench(t *testing.T) *bench {
	t.Helper()
	b := newBench(t)
	b.file(t, "floor.obj", floorMesh)
	b.array(t, "o.npy", npy.Floats("", []float32{-.25, -.25, 1}, 1, 3))
	b.array(t, "down.npy", npy.Floats("", []float32{0, 0, -1}, 1, 3))
	b.array(t, "high.npy", npy.Floats("", []float32{0, 0, 2}, 1, 3))
	b.array(t, "aslant.npy", npy.Floats("", []float32{1, 0, -1}, 1, 3))
	b.array(t, "limit.npy", npy.Floats("", []float32{2}, 1))
	b.table(t, "glass.npz", materialColumns(4, 1)...)
	b.table(t, "black.npz", materialColumns(4, 0)...)
	return b
}

const floorMesh = "v -10 -10 0\nv 10 -10 0\nv 10 10 0\nv -10 10 0\nf 1 2 3 4\n"

// materialColumns is one material for two faces.
func materialColumns(eta float32, valid uint8) []npy.Column {
	return []npy.Column{
		npy.Floats("eta_r", []float32{eta}, 1), npy.Floats("sigma", []float32{0}, 1), npy.Floats("mu_r", []float32{1}, 1),
		npy.Floats("gain", []float32{1}, 1), npy.Bools("valid", []uint8{valid}, 1), npy.Ints("index", []int32{0, 0}, 2),
	}
}

func accumulateCall() call {
	return call{"accumulate", [][2]string{{"-mesh", "floor.obj"}, {"-origins", "o.npy"}, {"-directions", "down.npy"}, {"-material", "glass.npz"},
		{"-devices", "emu:1"}, {"-wavelength", "12.566370614359172"}, {"-solid-angle", "1"}, {"-grid-position", "2"},
		{"-grid-min", "-2,-2"}, {"-grid-max", "2,2"}, {"-grid-res", "2,2"}, {"-out", "out.npz"}}}
}

func aslantCall() call {
	return accumulateCall().with("-origins", "high.npy").with("-directions", "aslant.npy").with("-wavelength", "0.1").with("-solid-angle", "1e-4").
		with("-grid-position", "1").with("-grid-min", ".5,-2.5").with("-grid-max", "4.5,1.5").with("-grid-res", "4,4").
		with("-polarization", "0,0,1").with("-include-los", "true")
}

func TestAccumulate(t *testing.T) {
	b := accumulateBench(t)
	r := b.succeed(t, accumulateCall().args(b)...)
	assert.Empty(t, r.out+r.err)
	b.within(t, 1e-6, "out.npz", "power", 1.0/36, 0, 0, 0)
	b.within(t, 1e-6, "out.npz", "field_x_re", -.0117895336, 0, 0, 0)
	b.within(t, 1e-6, "out.npz", "field_x_im", .166249164, 0, 0, 0)
	for _, name := range fieldNames[2:] {
		assert.Equal(t, make([]float64, 4), b.values(t, "out.npz", name))
	}
	assert.Equal(t, []float64{1, 0, 0, 0}, b.values(t, "out.npz", "cell_count"))
	assert.Equal(t, []float64{1}, b.values(t, "out.npz", "count"))
	whole := b.content(t, "out.npz")
	for name, c := range map[string]call{
		"given transmitter": accumulateCall().with("-tx", "-.25,-.25,1"),
		"on the remote":     accumulateCall().with("-devices", "emu:2").with("-weights", "0,1").with("-min-rows", "1").with("-min-lanes", "1"),
		"copied":            accumulateCall().with("-devices", "emu:2").with("-weights", "0,1").with("-min-rows", "1").with("-min-lanes", "1").with("-transport", "copy"),
		"in chunks":         accumulateCall().with("-chunk-rows", "1"),
	} {
		b.succeed(t, c.args(b)...)
		assert.Equal(t, whole, b.content(t, "out.npz"), name)
	}

	// The direct wave in cell 8 and the reflected one in cell 10.
	cells := func(direct, reflected float64) []float64 {
		out := make([]float64, 16)
		out[8], out[10] = direct, reflected
		return out
	}
	b.succeed(t, aslantCall().args(b)...)
	b.within(t, 1e-5, "out.npz", "power", cells(8.955612e-9, 3.71880962e-10)...)
	b.within(t, 1e-5, "out.npz", "field_x_re", cells(4.19584475e-5, 1.22040118e-5)...)
	b.within(t, 1e-5, "out.npz", "field_z_im", cells(-5.21276767e-5, -6.08297429e-6)...)
	b.succeed(t, aslantCall().with("-include-los").with("-fields", "power").with("-bounces", "2").args(b)...)
	b.within(t, 1e-5, "out.npz", "power", cells(0, 3.71880962e-10)...)
	assert.NotContains(t, b.content(t, "out.npz"), "field")
	for name, c := range map[string]call{
		"no bounces":           aslantCall().with("-bounces", "0"),
		"an absorbing floor":   aslantCall().with("-material", "black.npz"),
		"a ray that ends soon": aslantCall().with("-tmax", "limit.npy"),
	} {
		b.succeed(t, c.args(b)...)
		b.within(t, 1e-5, "out.npz", "power", cells(8.955612e-9, 0)...)
		assert.Equal(t, []float64{1}, b.values(t, "out.npz", "count"), name)
	}
}

// A path twice as long has a quarter of the power; the transmitter is where -tx says, whatever the rays' origins.
func TestAccumulateTransmitter(t *testing.T) {
	b := accumulateBench(t)
	c := aslantCall().with("-bounces", "0").with("-fields", "field_z_re,field_z_im")
	b.succeed(t, c.with("-tx", "-1,0,3").args(b)...)
	// The image is 2 sqrt 2 from the cell: twice the phase, and the amplitude stays, for it comes from the solid angle.
	re, im := 4.19584475e-5, -5.21276767e-5
	length := math.Hypot(re, im)
	assert.InDelta(t, (re*re-im*im)/length, b.values(t, "out.npz", "field_z_re")[8], 1e-9)
	assert.InDelta(t, 2*re*im/length, b.values(t, "out.npz", "field_z_im")[8], 1e-9)
}

// Sums that leave something out say so.
func TestAccumulateTellsWhatIsLeftOut(t *testing.T) {
	b := accumulateBench(t)
	for gain, want := range map[float32]string{5000: "too large for exact sums", 3e38: "no finite numbers"} {
		b.table(t, "loud.npz", append(without(materialColumns(4, 1), "gain"), npy.Floats("gain", []float32{gain}, 1))...)
		r := b.succeed(t, accumulateCall().with("-material", "loud.npz").args(b)...)
		assert.Contains(t, r.err, "raymux: note: contributions that are "+want, gain)
		assert.Equal(t, []float64{0}, b.values(t, "out.npz", "count"))
	}
}

// Sums of nothing say so.
func TestAccumulateTellsThatNothingContributed(t *testing.T) {
	b := accumulateBench(t)
	r := b.succeed(t, accumulateCall().with("-material", "black.npz").args(b)...)
	assert.Contains(t, r.err, "raymux: note: no ray contributed: none of 1 crosses the grid after a face")
	assert.Equal(t, []float64{0}, b.values(t, "out.npz", "count"))
}

func TestAccumulatePlanAndInfo(t *testing.T) {
	b := accumulateBench(t)
	r := b.succeed(t, accumulateCall().with("-out").with("-plan", "true").args(b)...)
	assert.Contains(t, r.out, "accumulate_reflections  rows=1")
	assert.Empty(t, r.outputFiles)
	// A ray of 24 B and a material of 17 B and 4 B per face go in; 4 cells of 32 B and a number come out.
	r = b.succeed(t, accumulateCall().with("-info", "true").args(b)...)
	for _, want := range []string{"upload", "trace", "download", "host to master 49, master to host 136"} {
		assert.Contains(t, r.err, want)
	}
}
