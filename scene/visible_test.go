package scene_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/scene"
)

func TestVisibleQuick(t *testing.T) {
	r := build(t, meshT())
	v, err := r.Visible(background, scene.Segments{
		Start: toDevice(r, []float32{.25, .25, -1, .25, .25, -1}), End: toDevice(r, []float32{.25, .25, 1, .25, .25, -.5}),
	})
	require.NoError(t, err)
	assert.Equal(t, []uint8{0, 1}, toHost(r, v.Visible))
	require.NoError(t, v.Close())
}
