package main

import (
	"context"
	"errors"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
)

// radio is a scene, on one device or on several, that answers the operations on grids and paths.
type radio interface {
	AddMesh(scene.Mesh) (int, error)
	Build(context.Context) error
	Stream() *cuda.Stream
	Close() error
	UploadStates(context.Context, scene.DfrStates) (*scene.StateTable, error)
	UploadMaterials(context.Context, scene.Materials) (*scene.MaterialTable, error)
	AccumDfrDirect(context.Context, *scene.StateTable, scene.Grid, scene.DfrDirectOptions, ...scene.CallOption) (*scene.DfrAccum, error)
	AccumDfrCoherentDirect(context.Context, *scene.StateTable, scene.Grid, scene.DfrCoherentOptions, ...scene.CallOption) (*scene.DfrCoherentAccum, error)
	AccumulateReflections(context.Context, scene.Rays, scene.Grid, scene.ReflGridOptions, ...scene.CallOption) (*scene.ReflGrids, error)
	TraceDfrPaths(ctx context.Context, tx, rx cuda.Slice[float32], states *scene.StateTable, o scene.DfrPathOptions, opts ...scene.CallOption) (*scene.DfrPaths, error)
	TraceReflections(context.Context, scene.Rays, int, scene.ChainFields, ...scene.CallOption) (*scene.Chains, error)
	TraceReflEPC(context.Context, scene.EPCRows, scene.EPCOptions, ...scene.CallOption) (*scene.EPCPaths, error)
	TraceReflEPCField(context.Context, scene.EPCRows, scene.EPCFieldOptions, ...scene.CallOption) (*scene.EPCFields, error)
}

// stage is a scene or a set with what the operations on grids and paths need beside it.
type stage struct {
	radio
	states    *scene.StateTable // nil until use
	materials *scene.MaterialTable
}

// openStage builds an empty scene, which is closed with the stage.
func openStage(t radio, mesh scene.Mesh, m scene.Materials) (s *stage, err error) {
	s = &stage{radio: t}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
			s = nil
		}
	}()
	if _, err = t.AddMesh(mesh); err != nil {
		return s, err
	}
	if err = t.Build(background); err != nil {
		return s, err
	}
	s.materials, err = t.UploadMaterials(background, m)
	return s, err
}

// use uploads the states of the calls that follow.
func (s *stage) use(states scene.DfrStates) (err error) {
	if err := s.forget(); err != nil {
		return err
	}
	s.states, err = s.UploadStates(background, states)
	return err
}

// forget gives the states back.
func (s *stage) forget() error {
	if s.states == nil {
		return nil
	}
	err := s.states.Close()
	s.states = nil
	return err
}

func (s *stage) close() error { return errors.Join(s.forget(), s.materials.Close(), s.radio.Close()) }
