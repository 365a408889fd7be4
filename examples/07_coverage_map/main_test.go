package main

import (
	"context"
	"image/color"
	"image/png"
	"log"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/plot/palette/moreland"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"

	"github.com/raymux/raymux/multi"
)

func Example() {
	dir, err := os.MkdirTemp("", "coverage")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := run(true, settings{columns: 24, rays: 20_000, bounces: 2}, filepath.Join(dir, "map.png")); err != nil {
		log.Fatal(err)
	}
	// Output:
	// 12 buildings, 96 edges that diffract, 432 cells
	// above -90 dB: 54 % of the streets, without diffraction 54 %
	// above -105 dB: 60 % of the streets, without diffraction 60 %
	// above -120 dB: 73 % of the streets, without diffraction 61 %
}

// Without reflections the map is that of free space where the transmitter is seen, and dark behind buildings, but for what
// their edges scatter.
func TestFreeSpaceAndShadow(t *testing.T) {
	drv, err := open(true)
	require.NoError(t, err)
	defer drv.Close()
	sc, err := multi.New(drv, []int{0}, multi.Options{})
	require.NoError(t, err)
	defer sc.Close()
	g, err := coverage(context.Background(), sc, settings{columns: 24, rays: 20_000})
	require.NoError(t, err)
	d := g.total()
	cell := func(x, y float64) int { return int(y/north*float64(g.rows))*g.columns + int(x/east*float64(g.columns)) }
	for _, at := range [][2]float64{{62, 41}, {52, 26}, {37, 41}} {
		c := cell(at[0], at[1])
		x, y := d.X(c%g.columns)-float64(transmitter[0]), d.Y(c/g.columns)-float64(transmitter[1])
		free := math.Pow(wavelength/(4*math.Pi), 2) / (x*x + y*y + math.Pow(float64(transmitter[2])-receiverHeight, 2))
		require.InEpsilon(t, free, g.rays[c], .15, "%v", at)
	}
	for _, at := range [][2]float64{{117, 80}, {3, 10}, {87, 14}} {
		c := cell(at[0], at[1])
		require.Zero(t, g.rays[c], "%v", at)
		require.Less(t, d.values[c], -100.0)
	}
	require.Positive(t, g.edges[cell(92, 66)], "around the corner of a building")
	require.True(t, math.IsNaN(d.values[cell(70, 28)]), "nothing is shown in a building")
}

func TestPicture(t *testing.T) {
	path := filepath.Join(t.TempDir(), "map.png")
	d := decibels{columns: 4, rows: 3, values: []float64{-60, -70, -80, -90, -100, -110, -120, math.Inf(-1), math.NaN(), 0, -130, -140}}
	require.NoError(t, write(path, d))
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	picture, err := png.Decode(f)
	require.NoError(t, err)
	require.Greater(t, picture.Bounds().Dx(), picture.Bounds().Dy())
}

// What is weaker than the scale has the colour of its end, and cells that nothing reaches have another.
func TestWeakIsNotSilent(t *testing.T) {
	scale := moreland.ExtendedBlackBody()
	scale.SetMin(weakest)
	scale.SetMax(strongest)
	has := func(value float64, c color.Color) bool {
		street, err := streetPlot(decibels{columns: 1, rows: 1, values: []float64{value}}, scale.Palette(256))
		require.NoError(t, err)
		canvas := vgimg.New(300, 200)
		street.Draw(draw.New(canvas))
		bounds := canvas.Image().Bounds()
		for i := range bounds.Dx() * bounds.Dy() {
			if color.NRGBAModel.Convert(canvas.Image().At(i%bounds.Dx(), i/bounds.Dx())) == c {
				return true
			}
		}
		return false
	}
	require.True(t, has(math.Inf(-1), silent))
	for _, value := range []float64{weakest - 10, weakest, strongest, math.NaN()} {
		require.False(t, has(value, silent), "%v", value)
	}
}

func TestRefusals(t *testing.T) {
	require.ErrorContains(t, run(true, settings{columns: 10, rays: 1}, "x.png"), "a multiple of 4")
}
