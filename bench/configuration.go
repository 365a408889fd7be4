package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/raymux/raymux/bench/record"
	"github.com/raymux/raymux/bench/workload"
	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
)

// trial holds what one configuration needs on the devices.
type trial struct {
	*run
	config workload.Config
	meshes []workload.Mesh
	rays   workload.Rays
	stream *cuda.Stream // of the master, for the ray buffers
	batch  scene.Rays   // the rays on the master
	single *scene.Scene
	forced deviceSet // the set with equal shares; nil with one device
	policy deviceSet // the set with the defaults; nil where every operation has the forced plan

	others    others
	described record.Config // what the record says of the configuration so far
	first     answers       // of the closest hits, which reflections begin with
	repeated  []repeatable  // what a spread measures again
	opened
}

// configuration runs one configuration: generate, build, time, check, record. Device memory is free again afterwards.
func (r *run) configuration(c workload.Config) (err error) {
	s := &trial{run: r, config: c}
	defer func() { err = errors.Join(err, s.close()) }()
	s.describe(s.generate())
	if s.accumOnly {
		return firstOf(s.accumulation, s.spread)
	}
	if err := s.open(); err != nil {
		return err
	}
	for _, op := range operations(c) {
		t, err := s.task(op)
		if err != nil {
			return err
		}
		if err := t.run(); err != nil {
			return fmt.Errorf("%s: %w", op.name, err)
		}
		s.repeated = append(s.repeated, t)
	}
	s.printBackend()
	if s.forced == nil {
		return s.accumulation()
	}
	return firstOf(s.calibrated, s.streamed, s.accumulation, s.spread)
}

// firstOf does one thing after the other, up to the first that fails.
func firstOf(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (s *trial) close() error { return s.release(s.host.contexts...) }

// generate makes the workload and compares its digests with the pinned ones.
func (s *trial) generate() workload.Digests {
	n := int64(s.config.RayCount)
	if s.options.rays > 0 {
		n = s.options.rays
	}
	s.meshes, s.rays = s.config.Meshes(), s.config.Rays(int(n))
	found, want := workload.DigestOf(s.meshes, s.rays), s.config.Digests
	if n != int64(s.config.RayCount) { // another batch, the same scene
		want.Origins, want.Directions = found.Origins, found.Directions
	}
	if found != want {
		s.fail(s.config.Name, "the workload is not the pinned one: %+v, expected %+v", found, want)
	}
	return found
}

// rowCount is the number of rows of the batch.
func (s *trial) rowCount() int64 { return int64(s.rays.Len()) }

// open uploads the rays and builds the scene on the master, and the set once per mode with a plan of its own.
func (s *trial) open() error {
	if err := s.openMaster(); err != nil {
		return err
	}
	if len(s.host.devices) > 1 {
		if err := s.openSets(); err != nil {
			return err
		}
	}
	if err := s.openOthers(); err != nil {
		return err
	}
	return idle(s.host.contexts)()
}

// openMaster uploads the rays and builds the scene on the master.
func (s *trial) openMaster() (err error) {
	master := s.host.contexts[0]
	if s.stream, err = master.NewStream(cuda.StreamOptions{}); err != nil {
		return err
	}
	s.later(s.stream.Close)
	if s.batch.O, err = cuda.Upload(background, s.stream, s.rays.Origins); err != nil {
		return err
	}
	s.later(func() error { return cuda.Free(s.batch.O) })
	if s.batch.D, err = cuda.Upload(background, s.stream, s.rays.Directions); err != nil {
		return err
	}
	s.later(func() error { return cuda.Free(s.batch.D) })
	if s.single, err = scene.New(master, scene.Options{Backend: s.backend, Builder: s.host.builder()}); err != nil {
		return err
	}
	s.later(s.single.Close)
	return load(s.single, s.meshes)
}

// openSets makes the set of the forced mode, and that of the policy mode if it plans any operation otherwise.
func (s *trial) openSets() (err error) {
	if s.forced, err = s.openSet(record.Forced); err != nil {
		return err
	}
	for _, op := range operations(s.config) {
		forced, err := s.plan(op, record.Forced)
		if err != nil {
			return err
		}
		policy, err := s.plan(op, record.Policy)
		if err != nil {
			return err
		}
		if !samePlan(forced, policy) {
			s.policy, err = s.openSet(record.Policy)
			return err
		}
	}
	return nil
}

func (s *trial) openSet(mode record.Mode) (deviceSet, error) {
	set, err := openSet(s.host, s.options, mode, s.config.ChunkRows, s.warnings)
	if err != nil {
		return nil, err
	}
	s.later(set.Close)
	return set, load(set, s.meshes)
}

// plan says how the batch would run on a set under the options of a mode.
func (s *trial) plan(op operation, mode record.Mode) (chunked.Plan, error) {
	return planOf(s.forced, s.options, mode, op.plan, s.rowCount())
}

// samePlan reports whether two plans of a call are one.
func samePlan(a, b chunked.Plan) bool {
	return a.Kind == b.Kind && slices.Equal(a.Shards, b.Shards) && slices.Equal(a.Chunks, b.Chunks)
}
