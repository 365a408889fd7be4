package main

import (
	"errors"
	"fmt"

	"github.com/raymux/raymux/bench/record"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
)

// others are the tracers on the master beside the chosen one.
type others struct {
	second *scene.Scene        // the other backend; nil where there is none
	optix  *scene.Scene        // that of the two which is OptiX
	hits   cuda.Slice[float32] // for the results of OptiX alone
	none   error               // why there is no other backend
}

// contender is another tracer on the master, timed in the same rounds: the other backend, or the probe that has OptiX
// answer alone, which is what ratios refer to.
type contender struct {
	name string
	variant
	scene  *scene.Scene // nil for the probe
	differ int64        // values that differ from the result of the chosen backend
}

// openOthers prepares the other backend and, where OptiX is one of the two, the probe. An explicit choice of the CUDA
// backend leaves OptiX alone.
func (s *trial) openOthers() error {
	if s.backend == scene.CUDA {
		return nil
	}
	backend := scene.OptiX
	if s.single.Backend() == scene.OptiX {
		backend = scene.CUDA
	}
	master := s.host.contexts[0]
	second, err := scene.New(master, scene.Options{Backend: backend, Builder: s.host.builder()})
	if err != nil {
		return err
	}
	s.later(second.Close)
	err = load(second, s.meshes)
	if unavailable(err) {
		s.others.none = err
		return nil
	}
	if err != nil {
		return err
	}
	s.others.second, s.others.optix = second, second
	if backend == scene.CUDA {
		s.others.optix = s.single
	}
	if s.others.hits, err = cuda.Alloc[float32](master, 4*int(s.rowCount())); err != nil {
		return err
	}
	s.later(func() error { return cuda.Free(s.others.hits) })
	return nil
}

// contenders of an operation. The probe finds closest hits and nothing else.
func (s *trial) contenders(op operation) []contender {
	o := s.others
	if o.second == nil {
		return nil
	}
	list := []contender{{name: o.second.Backend().String(), variant: op.timed(o.second, s.batch), scene: o.second}}
	if op.name == record.OperationIntersect {
		list = append(list, contender{name: record.TracerBare, variant: variant{run: func() (func() error, error) {
			return func() error { return nil }, o.optix.TraverseBare(s.stream, s.batch, o.hits, 0, s.rowCount())
		}}})
	}
	return list
}

// compare counts the values in which the other backend's result differs. Where rays meet edges the backends may name
// different triangles, so a difference is reported and fails nothing.
func (s *task) compare(reference []column) error {
	for i := range s.contenders {
		c := &s.contenders[i]
		if c.scene == nil {
			continue
		}
		out, err := s.op.call(c.scene, s.batch)
		if err != nil {
			return err
		}
		err = s.countDifferences(c, reference, out)
		if err = errors.Join(err, out.close()); err != nil {
			return err
		}
	}
	return nil
}

func (s *task) countDifferences(c *contender, reference []column, out outcome) error {
	if err := idle(s.host.contexts)(); err != nil {
		return err
	}
	columns, err := out.columns()
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
		c.differ += mismatches(want, have, column.size)
	}
	return nil
}

// recordTracers makes the record's entries; the first is the chosen backend.
func (s *task) recordTracers(times []samples) []record.Tracer {
	if len(s.contenders) == 0 {
		return nil
	}
	if info, err := scene.InspectOptiX(s.host.contexts[0].Device(), nil); err == nil {
		abi := int(info.ABI)
		s.record.Software.OptiXABI = &abi
	}
	operation := s.op.name
	if operation == record.OperationIntersect {
		operation = "" // what tracers were compared by at first
	}
	list := []record.Tracer{{Operation: operation, Name: s.single.Backend().String(), Rounds: len(times[0].ns), Calls: times[0].calls, Single: times[0].timing()}}
	for i, c := range s.contenders {
		own := times[len(times)-len(s.contenders)+i]
		t := record.Tracer{Operation: operation, Name: c.name, Rounds: len(own.ns), Calls: own.calls, Single: own.timing()}
		if c.scene != nil {
			t.DifferingWords = &c.differ
		}
		list = append(list, t)
	}
	return list
}

// printBackend says what traced, and why nothing else did.
func (s *trial) printBackend() {
	fmt.Fprintf(s.out, "backend, %s: %v (%s)\n", s.config.Name, s.single.Backend(), s.single.BackendReason())
	if s.others.none != nil {
		fmt.Fprintf(s.out, "no other tracer is timed: %v\n", s.others.none)
	}
}

// printTracers prints the tracers on one device side by side, each as a multiple of the last, which is
// OptiX alone, or where that does not exist the other backend.
func (s *task) printTracers(list []record.Tracer) {
	if len(list) == 0 {
		return
	}
	last := list[len(list)-1]
	title := last.Name
	if title == record.TracerBare {
		title = "bare OptiX"
	}
	for _, t := range list {
		note := ""
		if t.DifferingWords != nil {
			note = fmt.Sprintf(", %d values differ", *t.DifferingWords)
		}
		fmt.Fprintf(s.out, "tracer, %s, 1 GPU: %-10s %9s ms, %.3f times %s%s\n", s.where, t.Name,
			fmt.Sprintf("%.3f", float64(t.Single.MinNS)/1e6), float64(t.Single.MinNS)/float64(last.Single.MinNS), title, note)
	}
}
