package multi

import (
	"bytes"
	"log/slog"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tests/gputest"
)

// The master builds with the builder of the options, once for all replicas, and the
// answers are the same.
func TestBuilderOfTheSet(t *testing.T) {
	r := gputest.Open(t, 2, nil)
	rng := rand.New(rand.NewPCG(21, 1))
	mesh, rays := soup(rng, 400), randomBatch(rng, 300)
	var answers []words
	for builder, by := range map[scene.Builder]string{scene.BuilderAuto: "device", scene.BuilderSAH: "host"} {
		var log bytes.Buffer
		opts := anyFloor()
		opts.Backend, opts.Builder, opts.AllowNoPeerAccess = scene.CUDA, builder, true
		opts.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		s := newScene(t, r.Driver, ordinals(r, 2), opts)
		_, err := s.AddMesh(mesh)
		require.NoError(t, err)
		require.NoError(t, s.Build(bg))
		answers = append(answers, answer(t, s, rays, scene.All))
		built := bytes.Count(log.Bytes(), []byte("built search tree"))
		assert.Equal(t, 1, built, "%s", &log)
		assert.Regexp(t, `"?built search tree"? by="?`+by, log.String())
	}
	require.Equal(t, answers[0], answers[1])
}
