package main

import (
	"errors"
	"fmt"

	"github.com/raymux/raymux/bench/record"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
)

// contender is another tracer on the master, timed in the same rounds: the other backend, or the probe that has OptiX
// answer alone, which is what ratios refer to.
type contender struct {
	name   string
	run    func() (release func() error, err error)
	scene  *scene.Scene // nil for the probe
	differ int64        // words that differ from the result of the chosen backend
}

// openContenders prepares the other backend and, where OptiX is one of the two, the probe. An explicit choice of the
// CUDA backend leaves OptiX alone.
func (s *trial) openContenders() error {
	if s.backend == scene.CUDA {
		return nil
	}
	other := scene.OptiX
	if s.single.Backend() == scene.OptiX {
		other = scene.CUDA
	}
	master := s.host.contexts[0]
	second, err := scene.New(master, scene.Options{Backend: other})
	if err != nil {
		return err
	}
	s.later(second.Close)
	err = load(second, s.meshes)
	if errors.Is(err, scene.ErrBackendUnavailable) {
		s.alone = err
		return nil
	}
	if err != nil {
		return err
	}
	s.contenders = append(s.contenders, contender{name: other.String(), run: calls(second, s.batch), scene: second})
	optix := second
	if other == scene.CUDA {
		optix = s.single
	}
	hits, err := cuda.Alloc[float32](master, 4*int(s.rowCount()))
	if err != nil {
		return err
	}
	s.later(func() error { return cuda.Free(hits) })
	s.contenders = append(s.contenders, contender{name: record.TracerBare, run: func() (func() error, error) {
		return func() error { return nil }, optix.TraverseBare(s.stream, s.batch, hits, 0, s.rowCount())
	}})
	return nil
}

// calls is the timed call of a tracer: every column.
func calls(t tracer, batch scene.Rays) func() (func() error, error) {
	return func() (func() error, error) {
		hits, err := t.Intersect(background, batch, scene.All)
		if err != nil {
			return nil, err
		}
		return hits.Close, nil
	}
}

// compare counts the words in which the other backend's result differs. Where rays meet edges the backends may name
// different triangles, so a difference is reported and fails nothing.
func (s *trial) compare(reference []words) error {
	for i := range s.contenders {
		c := &s.contenders[i]
		if c.scene == nil {
			continue
		}
		hits, err := c.scene.Intersect(background, s.batch, scene.All)
		if err != nil {
			return err
		}
		err = s.countDifferences(c, reference, hits)
		if err = errors.Join(err, hits.Close()); err != nil {
			return err
		}
	}
	return nil
}

func (s *trial) countDifferences(c *contender, reference []words, hits *scene.Hits) error {
	if err := idle(s.host.contexts)(); err != nil {
		return err
	}
	columns, err := hitWords(hits)
	if err != nil {
		return err
	}
	for at, column := range columns {
		want, err := reference[at].download(background, s.stream)
		if err != nil {
			return err
		}
		have, err := column.download(background, s.stream)
		if err != nil {
			return err
		}
		c.differ += mismatches(want, have)
	}
	return nil
}

// recordTracers makes the record's entries; the first is the chosen backend.
func (s *trial) recordTracers(times []samples) []record.Tracer {
	if len(s.contenders) == 0 {
		return nil
	}
	if info, err := scene.InspectOptiX(s.host.contexts[0].Device(), nil); err == nil {
		abi := int(info.ABI)
		s.record.Software.OptiXABI = &abi
	}
	list := []record.Tracer{{Name: s.single.Backend().String(), Single: times[0].timing()}}
	for i, c := range s.contenders {
		t := record.Tracer{Name: c.name, Single: times[len(times)-len(s.contenders)+i].timing()}
		if c.scene != nil {
			t.DifferingWords = &c.differ
		}
		list = append(list, t)
	}
	return list
}

// printTracers prints the backend, and the tracers on one device side by side, each as a multiple of the probe.
func (s *trial) printTracers(list []record.Tracer) {
	fmt.Fprintf(s.out, "backend, %s: %v (%s)\n", s.config.Name, s.single.Backend(), s.single.BackendReason())
	if s.alone != nil {
		fmt.Fprintf(s.out, "no other tracer is timed: %v\n", s.alone)
	}
	if len(list) == 0 {
		return
	}
	bare := list[len(list)-1].Single.MinNS
	for _, t := range list {
		note := ""
		if t.DifferingWords != nil {
			note = fmt.Sprintf(", %d words differ", *t.DifferingWords)
		}
		fmt.Fprintf(s.out, "tracer, %s intersect, 1 GPU: %-10s %9s ms, %.3f times bare OptiX%s\n", s.config.Name, t.Name,
			fmt.Sprintf("%.3f", float64(t.Single.MinNS)/1e6), float64(t.Single.MinNS)/float64(bare), note)
	}
}
