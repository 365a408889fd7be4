// Command 03_picture looks at a landscape: one ray per pixel, shaded by the
// normal of what it hits. The picture is the same on any device; it runs on the
// first GPU, or on an emulated device with -emu.
package main

import (
	"context"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"log"
	"math"
	"os"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/multi"
	"github.com/raymux/raymux/scene"
)

const (
	width, height = 720, 360
	cells         = 220 // of the landscape, along each side
)

func main() {
	emu := flag.Bool("emu", false, "run on an emulated device")
	out := flag.String("out", "landscape.png", "picture to write")
	flag.Parse()
	if err := run(*emu, *out); err != nil {
		log.Fatal(err)
	}
}

func run(emu bool, out string) error {
	drv, err := open(emu)
	if err != nil {
		return err
	}
	defer drv.Close()
	sc, err := multi.New(drv, []int{0}, multi.Options{})
	if err != nil {
		return err
	}
	defer sc.Close()
	if _, err := sc.AddMesh(landscape()); err != nil {
		return err
	}
	ctx := context.Background()
	if err := sc.Build(ctx); err != nil {
		return err
	}
	origins, directions := camera()
	o, err := cuda.Upload(ctx, sc.Stream(), origins)
	if err != nil {
		return err
	}
	defer cuda.Free(o)
	d, err := cuda.Upload(ctx, sc.Stream(), directions)
	if err != nil {
		return err
	}
	defer cuda.Free(d)
	hits, err := sc.Intersect(ctx, scene.Rays{O: o, D: d}, scene.Geometric)
	if err != nil {
		return err
	}
	defer hits.Close()
	t, err := cuda.Download(ctx, sc.Stream(), hits.T)
	if err != nil {
		return err
	}
	n, err := cuda.Download(ctx, sc.Stream(), hits.GeoN)
	if err != nil {
		return err
	}
	return write(out, t, n)
}

// elevation of the landscape at a point, in metres.
func elevation(x, y float64) float64 {
	h := 0.0
	for k, a := 1.0, 0.22; k < 40; k, a = k*1.9, a*0.52 {
		h += a * math.Sin(k*(1.1*x+0.37*y)+k) * math.Cos(k*(0.45*x-1.3*y)+2*k)
	}
	return h
}

// landscape is a grid over [-2,2] x [0,4].
func landscape() scene.Mesh {
	m := scene.Mesh{NoEdges: true}
	for j := range cells + 1 {
		for i := range cells + 1 {
			x, y := 4*float64(i)/cells-2, 4*float64(j)/cells
			m.Vertices = append(m.Vertices, float32(x), float32(y), float32(elevation(x, y)))
		}
	}
	at := func(i, j int) int32 { return int32(j*(cells+1) + i) }
	for j := range cells {
		for i := range cells {
			a, b, c, d := at(i, j), at(i+1, j), at(i, j+1), at(i+1, j+1)
			m.Faces = append(m.Faces, a, b, d, a, d, c)
		}
	}
	return m
}

// camera is one ray per pixel, row by row from the top, looking along +y and
// a little down.
func camera() (origins, directions []float32) {
	for j := range height {
		for i := range width {
			x := (float64(i) + .5 - width/2) / height
			z := (height/2 - float64(j) - .5) / height
			origins = append(origins, 0, -1.6, 1.1)
			directions = append(directions, float32(x), 1.15, float32(z-.42))
		}
	}
	return origins, directions
}

// write shades each pixel: light from the left, haze with distance.
func write(path string, t, n []float32) error {
	img := image.NewRGBA(image.Rect(0, 0, width, height))
	for i := range t {
		sky := float64(i/width) / height
		c := [3]float64{.55 + .3*sky, .68 + .22*sky, .86 + .1*sky}
		if !math.IsInf(float64(t[i]), 1) {
			light := math.Max(0, -.62*float64(n[3*i])-.35*float64(n[3*i+1])+.7*float64(n[3*i+2]))
			haze := math.Min(1, float64(t[i])/7)
			for k, ground := range [3]float64{.46, .44, .36} {
				c[k] = (ground*(.25+.95*light))*(1-haze) + c[k]*haze
			}
		}
		img.Set(i%width, i/width, color.RGBA{level(c[0]), level(c[1]), level(c[2]), 255})
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := png.Encode(f, img); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

func level(v float64) uint8 { return uint8(math.Round(255 * math.Min(1, math.Max(0, v)))) }

func open(emu bool) (*cuda.Driver, error) {
	if emu {
		return cuda.OpenEmulator(1)
	}
	drv, err := cuda.Open()
	if err != nil {
		return nil, fmt.Errorf("%w; -emu runs on an emulated device", err)
	}
	return drv, nil
}
