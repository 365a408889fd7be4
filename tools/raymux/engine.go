package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/multi"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tools/raymux/fileio"
	"github.com/raymux/raymux/tools/raymux/meshfile"
)

// engine is an open driver and a scene over the chosen devices.
type engine struct {
	drv      *cuda.Driver
	ordinals []int
	backend  scene.Backend // as asked for
	scene    *multi.Scene
	faces    int // of the meshes
	// streamed: results leave the devices chunk by chunk, because the options limit the chunks.
	streamed bool
	spool    *fileio.Spool // of a streamed result
	out      string        // the output that the spool is for
}

// forBackend names the flag when the tracer that was asked for cannot run here.
func forBackend(backend scene.Backend, err error) error {
	if errors.Is(err, scene.ErrBackendUnavailable) {
		return fmt.Errorf("-backend %s: %w; -backend auto takes one that can run", backend, err)
	}
	return err
}

func parseBackend(s string) (scene.Backend, error) {
	b, err := scene.ParseBackend(s)
	if err != nil {
		return 0, errors.New("use auto, cuda or optix")
	}
	return b, nil
}

// openEngine opens the devices. A program that runs whatever it is given takes devices that differ or have no link between
// them too, with a note; results are the same. An explicit -transport direct insists on the links.
func (p *program) openEngine(ctx context.Context, list deviceList, backend scene.Backend, options chunked.Options) (*engine, error) {
	p.progress("opening devices")
	drv, ordinals, err := p.openDriver(list)
	if err != nil {
		return nil, err
	}
	e := &engine{drv: drv, ordinals: ordinals, streamed: options.ChunkRays > 0 || options.MemoryBudget > 0}
	if options.Weights != nil {
		err := chunked.CheckWeights("-weights", options.Weights, len(ordinals))
		var option *chunked.OptionError
		if errors.As(err, &option) {
			return nil, errors.Join(usagef("%s: %s", option.Option, option.Reason), e.close(ctx))
		}
	}
	e.scene, err = multi.New(drv, ordinals, multi.Options{
		Options:           options,
		AllowNoPeerAccess: options.Transport != chunked.Direct,
		AllowMixedDevices: true,
		Backend:           backend,
		Logger:            p.logger(),
	})
	if err != nil {
		return nil, errors.Join(forBackend(backend, err), e.close(ctx))
	}
	e.backend = backend
	return e, nil
}

// close releases the devices. After an interrupt it does not, because that would wait for a kernel that may run for
// minutes; the end of the process releases them as well.
func (e *engine) close(ctx context.Context) error {
	if ctx.Err() != nil {
		return nil
	}
	var err error
	if e.scene != nil {
		err = e.scene.Close()
	}
	return errors.Join(err, e.drv.Close())
}

// edges says whether a command reads the edges of the meshes, which take time and memory.
type edges bool

const (
	withEdges    edges = true
	withoutEdges edges = false
)

// load adds the meshes, in order, and builds the scene.
func (e *engine) load(ctx context.Context, meshes []meshfile.Mesh, edges edges) error {
	for _, m := range meshes {
		if _, err := e.scene.AddMesh(scene.Mesh{Vertices: m.Vertices, Faces: m.Faces, NoEdges: !bool(edges)}); err != nil {
			return fmt.Errorf("-mesh: %w", err)
		}
		e.faces += len(m.Faces) / 3
	}
	err := e.scene.Build(ctx)
	var limit *scene.LimitError // each mesh is small enough, all of them are not
	if errors.As(err, &limit) {
		return fmt.Errorf("-mesh: %w", err)
	}
	return forBackend(e.backend, err)
}

// describeDevices names the devices of the set, for -info.
func (e *engine) describeDevices() string {
	names := make([]string, len(e.ordinals))
	for i, d := range e.ordinals {
		names[i] = fmt.Sprintf("dev%d", d)
		if dev, err := e.drv.Device(d); err == nil {
			names[i] += " " + dev.Name()
		}
	}
	return strings.Join(names, ", ")
}
