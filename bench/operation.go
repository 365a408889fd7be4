package main

import (
	"github.com/raymux/raymux/bench/record"
	"github.com/raymux/raymux/bench/workload"
	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/scene"
)

// operation is a kind of call that rows measure.
type operation struct {
	name string     // in the record
	plan chunked.Op // what a planner knows of it
	// bounces are 0 for closest hits.
	bounces int
	// call enqueues it. A streamed call has no outcome.
	call func(t target, batch scene.Rays, opts ...scene.CallOption) (outcome, error)
	// prepare validates and allocates, and enqueues nothing.
	prepare func(s *scene.Scene, batch scene.Rays) (*scene.Call, error)
	// verify compares the answers with what is known without a tracer.
	verify func(s *trial, a answers) []string
}

// outcome is the result of a call.
type outcome struct {
	result  scene.Reusable
	columns func() ([]column, error)
	close   func() error
}

// operations of a configuration, in the order in which they are measured.
func operations(c workload.Config) []operation {
	return []operation{intersect(), reflections(c.MaxBounces)}
}

// intersect asks for every column.
func intersect() operation {
	return operation{
		name: record.OperationIntersect,
		plan: intersectOp(),
		call: func(t target, batch scene.Rays, opts ...scene.CallOption) (outcome, error) {
			hits, err := t.Intersect(background, batch, scene.All, opts...)
			if err != nil || hits == nil {
				return outcome{close: func() error { return nil }}, err
			}
			return outcome{hits, func() ([]column, error) { return hitColumns(hits) }, hits.Close}, nil
		},
		prepare: func(s *scene.Scene, batch scene.Rays) (*scene.Call, error) {
			_, call, err := s.PrepareIntersect(background, batch, scene.All)
			return call, err
		},
		verify: func(s *trial, a answers) []string {
			s.first = a
			return expectations[s.config.Name].verify(a, s.rays)
		},
	}
}

// reflections asks for the core columns of chains.
func reflections(bounces int) operation {
	return operation{
		name: record.OperationReflections,
		plan: reflectionsOp(bounces), bounces: bounces,
		call: func(t target, batch scene.Rays, opts ...scene.CallOption) (outcome, error) {
			chains, err := t.TraceReflections(background, batch, bounces, scene.ChainCore, opts...)
			if err != nil || chains == nil {
				return outcome{close: func() error { return nil }}, err
			}
			return outcome{chains, func() ([]column, error) { return chainColumns(chains) }, chains.Close}, nil
		},
		prepare: func(s *scene.Scene, batch scene.Rays) (*scene.Call, error) {
			_, call, err := s.PrepareReflections(background, batch, bounces, scene.ChainCore)
			return call, err
		},
		verify: func(s *trial, a answers) []string {
			return verifyChains(a, s.first, bounces)
		},
	}
}

// timed is an operation on a tracer as a variant to time.
func (op operation) timed(t target, batch scene.Rays) variant {
	return variant{run: func() (func() error, error) {
		out, err := op.call(t, batch)
		return out.close, err
	}}
}

// wireBytes is the size of what a search writes for one row, which is what a remote row sends back.
func (op operation) wireBytes(s *scene.Scene, batch scene.Rays) (float64, error) {
	call, err := op.prepare(s, batch)
	if err != nil {
		return 0, err
	}
	_, out := call.Columns()
	var bytes uint64
	for _, column := range out {
		bytes += column.Data.Bytes()
	}
	return float64(bytes) / float64(call.Rows), call.Abandon()
}
