// Command 04_visibility asks what a source sees past a screen: points, the two
// ends of a reflection, an edge, and whole paths. It runs on the first GPU, or
// on an emulated device with -emu.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/multi"
	"github.com/raymux/raymux/scene"
)

// A screen of two triangles, 2 m by 2 m, in the plane x = 0.
var screen = scene.Mesh{
	Vertices: []float32{0, -1, 0, 0, 1, 0, 0, 1, 2, 0, -1, 2},
	Faces:    []int32{0, 1, 2, 0, 2, 3},
}

func main() {
	emu := flag.Bool("emu", false, "run on an emulated device")
	flag.Parse()
	if err := run(*emu); err != nil {
		log.Fatal(err)
	}
}

func run(emu bool) error {
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
	if _, err := sc.AddMesh(screen); err != nil {
		return err
	}
	ctx := context.Background()
	if err := sc.Build(ctx); err != nil {
		return err
	}
	for _, ask := range []func(context.Context, *multi.Scene) error{points, pairs, edges, chains} {
		if err := ask(ctx, sc); err != nil {
			return err
		}
	}
	return nil
}

// points looks at a point behind the screen, one on it, and one beside it. The first is
// asked for twice: the second time the triangles of the screen do not count.
func points(ctx context.Context, sc *multi.Scene) error {
	start, err := cuda.Upload(ctx, sc.Stream(), []float32{-3, .5, 1, -3, .5, 1, -3, .5, 1, -3, .5, 1})
	if err != nil {
		return err
	}
	defer cuda.Free(start)
	end, err := cuda.Upload(ctx, sc.Stream(), []float32{3, .5, 1, 3, .5, 1, 0, .5, 1, 3, 5, 1})
	if err != nil {
		return err
	}
	defer cuda.Free(end)
	// Two ids for each of the four rows; -1 fills up.
	ignore, err := cuda.Upload(ctx, sc.Stream(), []int32{-1, -1, 0, 1, -1, -1, -1, -1})
	if err != nil {
		return err
	}
	defer cuda.Free(ignore)
	v, err := sc.Visible(ctx, scene.Segments{Start: start, End: end, Ignore: ignore})
	if err != nil {
		return err
	}
	defer v.Close()
	visible, err := cuda.Download(ctx, sc.Stream(), v.Visible)
	if err != nil {
		return err
	}
	fmt.Println("points: behind, behind but for the screen, on it, beside it:", visible)
	return nil
}

// pairs asks for both legs of a reflection at a point in front of the screen: back to the
// source, and on to a receiver behind the screen.
func pairs(ctx context.Context, sc *multi.Scene) error {
	start, err := cuda.Upload(ctx, sc.Stream(), []float32{-1, .5, 0})
	if err != nil {
		return err
	}
	defer cuda.Free(start)
	source, err := cuda.Upload(ctx, sc.Stream(), []float32{-3, .5, 1})
	if err != nil {
		return err
	}
	defer cuda.Free(source)
	receiver, err := cuda.Upload(ctx, sc.Stream(), []float32{3, .5, 1})
	if err != nil {
		return err
	}
	defer cuda.Free(receiver)
	v, err := sc.VisiblePair(ctx, scene.SegmentPairs{Start: start, EndA: source, EndB: receiver})
	if err != nil {
		return err
	}
	defer v.Close()
	a, err := cuda.Download(ctx, sc.Stream(), v.VisibleA)
	if err != nil {
		return err
	}
	b, err := cuda.Download(ctx, sc.Stream(), v.VisibleB)
	if err != nil {
		return err
	}
	fmt.Println("pair: to the source", a, "to the receiver", b)
	return nil
}

// edges looks at the top of the screen, and at an edge of the same direction that the
// screen hides. Each is Position + t*Direction with t from TMin to TMax.
func edges(ctx context.Context, sc *multi.Scene) error {
	source, err := cuda.Upload(ctx, sc.Stream(), []float32{-3, .5, 1, -3, .5, 1})
	if err != nil {
		return err
	}
	defer cuda.Free(source)
	position, err := cuda.Upload(ctx, sc.Stream(), []float32{0, -1, 2, 1, -.5, .5})
	if err != nil {
		return err
	}
	defer cuda.Free(position)
	direction, err := cuda.Upload(ctx, sc.Stream(), []float32{0, 1, 0, 0, 1, 0})
	if err != nil {
		return err
	}
	defer cuda.Free(direction)
	from, err := cuda.Upload(ctx, sc.Stream(), []float32{0, 0})
	if err != nil {
		return err
	}
	defer cuda.Free(from)
	to, err := cuda.Upload(ctx, sc.Stream(), []float32{2, 1})
	if err != nil {
		return err
	}
	defer cuda.Free(to)
	v, err := sc.VisibleEdge(ctx, scene.EdgeSamples{Source: source, Position: position, Direction: direction, TMin: from, TMax: to})
	if err != nil {
		return err
	}
	defer v.Close()
	visible, err := cuda.Download(ctx, sc.Stream(), v.AnyVisible)
	if err != nil {
		return err
	}
	fmt.Println("edges: top of the screen, behind it:", visible)
	return nil
}

// chains checks two paths of two segments to the receiver: one over the screen, and one
// through it.
func chains(ctx context.Context, sc *multi.Scene) error {
	points, err := cuda.Upload(ctx, sc.Stream(), []float32{
		-3, .5, 1, 0, .5, 2.5, 3, .5, 1,
		-3, .5, 1, -1, .5, 1, 3, .5, 1,
	})
	if err != nil {
		return err
	}
	defer cuda.Free(points)
	length, err := cuda.Upload(ctx, sc.Stream(), []int32{2, 2})
	if err != nil {
		return err
	}
	defer cuda.Free(length)
	v, err := sc.VisibleChain(ctx, scene.Polylines{Points: points, Length: length, Segments: 2})
	if err != nil {
		return err
	}
	defer v.Close()
	visible, err := cuda.Download(ctx, sc.Stream(), v.AllVisible)
	if err != nil {
		return err
	}
	segment, err := cuda.Download(ctx, sc.Stream(), v.FirstBlockedSegment)
	if err != nil {
		return err
	}
	triangle, err := cuda.Download(ctx, sc.Stream(), v.FirstBlockedPrim)
	if err != nil {
		return err
	}
	fmt.Println("chains: visible", visible, "first blocked segment", segment, "by triangle", triangle)
	return nil
}

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
