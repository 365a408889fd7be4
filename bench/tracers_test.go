package main

import (
	"bytes"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/bench/record"
	"github.com/raymux/raymux/bench/workload"
	"github.com/raymux/raymux/optixabi/fakeoptix"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tests/optixtest"
)

// Where OptiX runs, the other backend and OptiX alone are timed in the same rounds, whichever backend is chosen, and a
// choice of CUDA leaves OptiX alone.
func TestContenders(t *testing.T) {
	for _, c := range []struct {
		backend scene.Backend
		names   []string
	}{
		{scene.Auto, []string{"cuda", "optix", record.TracerBare}},
		{scene.OptiX, []string{"optix", "cuda", record.TracerBare}},
		{scene.CUDA, nil},
	} {
		t.Run(c.backend.String(), func(t *testing.T) {
			r := optixtest.Open(t, 1, fakeoptix.Config{}) // without ray-tracing cores, so that auto is cuda
			h := &host{driver: r.Driver, devices: []int{0}, allocs: new(atomic.Uint64)}
			require.NoError(t, h.retain())
			defer func() { require.NoError(t, h.close()) }()
			config, err := workload.Find(workload.Mini)
			require.NoError(t, err)
			var out bytes.Buffer
			s := &trial{
				run: &run{
					options: options{rays: 64, backend: c.backend, repeat: 2}, host: h, out: &out,
					record: &record.Record{Configs: map[string]record.Config{}},
				},
				config: config,
			}
			defer func() { require.NoError(t, s.close()) }()
			s.generate()
			require.NoError(t, s.open())
			k, err := s.task(intersect())
			require.NoError(t, err)
			times, err := k.time()
			require.NoError(t, err)
			checked, err := k.check()
			require.NoError(t, err)
			require.Empty(t, s.failures)
			require.Len(t, k.rows(times, checked), 1)

			list := k.recordTracers(times)
			var names []string
			for i, tracer := range list {
				names = append(names, tracer.Name)
				require.Len(t, tracer.Single.SamplesNS, 2)
				require.Equal(t, 2, tracer.Rounds)
				if tracer.DifferingWords != nil {
					require.Equal(t, 1, i)
					require.Zero(t, *tracer.DifferingWords)
				}
			}
			require.Equal(t, c.names, names)
			k.printTracers(list)
			chains := s.contenders(reflections(2))
			if c.names == nil {
				require.Empty(t, chains)
				require.Zero(t, r.Calls(""))
				return
			}
			require.NotNil(t, list[1].DifferingWords)
			require.Len(t, chains, 1, "OptiX alone finds closest hits and nothing else")
			require.Equal(t, c.names[1], chains[0].name)
			k, err = s.task(reflections(2))
			require.NoError(t, err)
			times, err = k.time()
			require.NoError(t, err)
			_, err = k.check()
			require.NoError(t, err)
			require.Empty(t, s.failures)
			list = k.recordTracers(times)
			require.Len(t, list, 2)
			require.Equal(t, record.OperationReflections, list[1].Operation)
			require.Zero(t, *list[1].DifferingWords)
			k.printTracers(list)
			require.Regexp(t, "tracer, mini trace_reflections, 1 GPU: "+c.names[0]+` +\d+\.\d+ ms, \d+\.\d+ times `+c.names[1]+"\n", out.String())
			require.Equal(t, 105, *s.record.Software.OptiXABI)
			require.Regexp(t, `tracer, mini intersect, 1 GPU: optix_bare +\d+\.\d+ ms, 1\.000 times bare OptiX`, out.String())
		})
	}
}
