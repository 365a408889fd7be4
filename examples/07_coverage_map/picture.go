package main

import (
	"fmt"
	"image/color"
	"math"
	"os"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/palette"
	"gonum.org/v1/plot/palette/moreland"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// Path gains at the ends of the colour bar, in dB. What lies beyond has the colour of the end.
const weakest, strongest = -140, -60

// Colours that no path gain has, of buildings and of cells that nothing reaches.
var wall, silent = color.Gray{Y: 105}, color.NRGBA{R: 60, G: 110, B: 90, A: 255}

// decibels are path gains in dB on the cells of the map, a field as plotter.HeatMap draws it.
type decibels struct {
	columns, rows int
	values        []float64 // row by row from the south; -Inf where nothing arrives, NaN where there is nothing to show
}

func (d decibels) Dims() (columns, rows int) { return d.columns, d.rows }
func (d decibels) X(i int) float64           { return (float64(i) + .5) * east / float64(d.columns) }
func (d decibels) Y(j int) float64           { return (float64(j) + .5) * north / float64(d.rows) }

// Z leaves below the weakest only what nothing reaches, so that this gets a colour of its own.
func (d decibels) Z(i, j int) float64 {
	v := d.values[j*d.columns+i]
	if math.IsInf(v, -1) {
		return v
	}
	return max(v, weakest)
}

// enlarged has so many cells in place of each along both axes. A picture scales its pixels smoothly, and would blur cells.
func (d decibels) enlarged(factor int) decibels {
	e := decibels{columns: factor * d.columns, rows: factor * d.rows}
	for j := range e.rows {
		for i := range e.columns {
			e.values = append(e.values, d.Z(i/factor, j/factor))
		}
	}
	return e
}

// write draws the map, the buildings, the transmitter and a colour bar to a PNG file.
func write(path string, d decibels) error {
	plot.DefaultFont.Variant, plotter.DefaultFont.Variant = "Sans", "Sans"
	colours := moreland.ExtendedBlackBody()
	colours.SetMin(weakest)
	colours.SetMax(strongest)
	street, err := streetPlot(d, colours.Palette(256))
	if err != nil {
		return err
	}
	const width, height, bar = 8.6 * vg.Inch, 5.9 * vg.Inch, 1.1 * vg.Inch
	canvas := vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(110))
	all := draw.New(canvas)
	street.Draw(draw.Crop(all, 0, -bar, 0, 0))
	scale, err := barPlot(colours)
	if err != nil {
		return err
	}
	scale.Draw(draw.Crop(all, width-bar, -.1*vg.Inch, 0, 0))
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if _, err := (vgimg.PngCanvas{Canvas: canvas}).WriteTo(f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// streetPlot is the map with axes in metres.
func streetPlot(d decibels, colours palette.Palette) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = "Path gain 1.5 m above the ground, 3.5 GHz"
	p.Title.Padding = 6
	p.X.Label.Text, p.Y.Label.Text = "east, m", "north, m"
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, east, 0, north
	p.X.Tick.Marker, p.Y.Tick.Marker = every(20, 10), every(20, 10)
	p.X.Padding, p.Y.Padding = 0, 0

	heat := plotter.NewHeatMap(d.enlarged(max(1, 960/d.columns)), colours)
	heat.Min, heat.Max = weakest, strongest
	scale := colours.Colors()
	heat.Underflow, heat.Overflow = silent, scale[len(scale)-1]
	heat.NaN, heat.Rasterized = wall, true
	p.Add(heat)

	for _, b := range buildings {
		box, err := plotter.NewPolygon(plotter.XYs{
			{X: float64(b.x0), Y: float64(b.y0)}, {X: float64(b.x1), Y: float64(b.y0)},
			{X: float64(b.x1), Y: float64(b.y1)}, {X: float64(b.x0), Y: float64(b.y1)},
		})
		if err != nil {
			return nil, err
		}
		box.Color = wall
		box.LineStyle = draw.LineStyle{Color: color.White, Width: 1}
		p.Add(box)
	}
	heights, err := buildingHeights()
	if err != nil {
		return nil, err
	}
	mast, name, err := mast()
	if err != nil {
		return nil, err
	}
	p.Add(heights, mast, name)
	return p, nil
}

// buildingHeights writes the height of each building on its roof.
func buildingHeights() (*plotter.Labels, error) {
	at := plotter.XYLabels{}
	for _, b := range buildings {
		at.XYs = append(at.XYs, plotter.XY{X: float64(b.x0+b.x1) / 2, Y: float64(b.y0+b.y1) / 2})
		at.Labels = append(at.Labels, fmt.Sprintf("%v m", b.height))
	}
	return labels(at, color.White, draw.XCenter)
}

// mast marks the transmitter.
func mast() (*plotter.Scatter, *plotter.Labels, error) {
	x, y := float64(transmitter[0]), float64(transmitter[1])
	dot, err := plotter.NewScatter(plotter.XYs{{X: x, Y: y}})
	if err != nil {
		return nil, nil, err
	}
	dot.GlyphStyle = draw.GlyphStyle{Color: color.Black, Radius: 4, Shape: draw.CircleGlyph{}}
	name, err := labels(plotter.XYLabels{
		XYs:    plotter.XYs{{X: x + 1.6, Y: y}},
		Labels: []string{fmt.Sprintf("transmitter, %v m", transmitter[2])},
	}, color.Black, draw.XLeft)
	return dot, name, err
}

func labels(at plotter.XYLabels, c color.Color, align text.XAlignment) (*plotter.Labels, error) {
	l, err := plotter.NewLabels(at)
	if err != nil {
		return nil, err
	}
	for i := range l.TextStyle {
		l.TextStyle[i].Color = c
		l.TextStyle[i].Font.Size = 9
		l.TextStyle[i].XAlign, l.TextStyle[i].YAlign = align, draw.YCenter
	}
	return l, nil
}

// barPlot is the scale of the colours, and under it the colour of what nothing reaches.
func barPlot(colours palette.ColorMap) (*plot.Plot, error) {
	const low, high = weakest - 7, weakest - 3
	none, err := plotter.NewPolygon(plotter.XYs{{X: 0, Y: low}, {X: 1, Y: low}, {X: 1, Y: high}, {X: 0, Y: high}})
	if err != nil {
		return nil, err
	}
	none.Color, none.LineStyle.Width = silent, 0
	word, err := labels(plotter.XYLabels{XYs: plotter.XYs{{X: .5, Y: (low + high) / 2}}, Labels: []string{"none"}}, color.White, draw.XCenter)
	if err != nil {
		return nil, err
	}
	p := plot.New()
	p.HideX()
	p.Title.Text = "path gain,\ndB"
	p.Title.Padding = 6
	p.Y.Tick.Marker = plot.TickerFunc(func(_, top float64) []plot.Tick { return every(20, 10).Ticks(weakest, top) })
	p.Y.Padding = 2
	p.Add(&plotter.ColorBar{ColorMap: colours, Vertical: true, Colors: 256}, none, word)
	return p, nil
}

// every puts a labelled tick at the multiples of one step, and a small one at those of another.
func every(labelled, small float64) plot.Ticker {
	return plot.TickerFunc(func(low, high float64) (ticks []plot.Tick) {
		for v := math.Ceil(low/small) * small; v <= high; v += small {
			t := plot.Tick{Value: v}
			if math.Mod(v, labelled) == 0 {
				t.Label = fmt.Sprintf("%.0f", v)
			}
			ticks = append(ticks, t)
		}
		return ticks
	})
}
