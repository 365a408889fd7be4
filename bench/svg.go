package main

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// frame maps values to a drawing: rows by their logarithm to base 2, speed-ups linearly from 0.
type frame struct{ low, high, top float64 }

func frameOf(lines []curve) frame {
	f := frame{low: math.Inf(1), high: math.Inf(-1), top: 1}
	for _, c := range lines {
		for i, n := range c.rows {
			f.low, f.high = min(f.low, math.Log2(n)), max(f.high, math.Log2(n))
			f.top = max(f.top, c.measured[i], c.model[i])
		}
	}
	f.low, f.high, f.top = math.Floor(f.low), math.Ceil(f.high), math.Ceil(2*f.top)/2
	if f.low == f.high {
		f.high++
	}
	return f
}

func (f frame) x(rows float64) float64 {
	return plotLeft + (math.Log2(rows)-f.low)/(f.high-f.low)*plotInnerWidth
}

func (f frame) y(speedup float64) float64 {
	return plotTop + (1-speedup/f.top)*plotInnerHeight
}

// drawCurves draws measured speed-ups as points joined by lines, and the model's as dashed lines.
func drawCurves(title string, lines []curve) string {
	var b strings.Builder
	f := frameOf(lines)
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", plotWidth, plotHeight)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`+"\n", plotWidth, plotHeight)
	text(&b, plotWidth/2, 22, "middle", title)
	for v := 0.0; v <= f.top; v += 0.5 {
		y, colour := f.y(v), "#ddd"
		if v == 1 {
			colour = "#666" // as fast as one device
		}
		fmt.Fprintf(&b, `<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="%s"/>`+"\n", plotLeft, y, plotLeft+plotInnerWidth, y, colour)
		text(&b, plotLeft-8, y+4, "end", fmt.Sprintf("%.1f", v))
	}
	foot := float64(plotTop + plotInnerHeight)
	for e := f.low; e <= f.high; e++ {
		x := f.x(math.Exp2(e))
		fmt.Fprintf(&b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#666"/>`+"\n", x, foot, x, foot+4)
		fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" text-anchor="middle">2<tspan dy="-4" font-size="9">%.0f</tspan></text>`+"\n", x, foot+20, e)
	}
	// Curves dip on the left, so that the right is free.
	text(&b, plotLeft+plotInnerWidth, f.y(.5)+16, "end", "below 1.0: a call so short that dividing it costs more than the other devices save")
	text(&b, plotLeft+plotInnerWidth/2, foot+38, "middle", "rows of a call (points: measured, dashed: model)")
	for i, c := range lines {
		c.draw(&b, f, palette[i%len(palette)])
		// The legend has two columns.
		x, y := plotLeft+float64(i%2)*plotInnerWidth/2, foot+62+18*float64(i/2)
		fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="4" fill="%s"/>`+"\n", x+4, y-4, palette[i%len(palette)])
		text(&b, x+16, y, "start", c.name)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func (c curve) draw(b *strings.Builder, f frame, colour string) {
	path := func(values []float64, dash string) {
		var points []string
		for i, v := range values {
			points = append(points, fmt.Sprintf("%.1f,%.1f", f.x(c.rows[i]), f.y(v)))
		}
		fmt.Fprintf(b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="1.5"%s/>`+"\n", strings.Join(points, " "), colour, dash)
	}
	path(c.measured, "")
	path(c.model, ` stroke-dasharray="6 4"`)
	for i, v := range c.measured {
		fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`+"\n", f.x(c.rows[i]), f.y(v), colour)
	}
}

// text writes one line at a place; anchor says which of its ends is there.
func text(b *strings.Builder, x, y float64, anchor, s string) {
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>`+"\n", x, y, anchor, html.EscapeString(s))
}
