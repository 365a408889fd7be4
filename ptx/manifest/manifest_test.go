package manifest_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/ptx/manifest"
)

func TestParseTakesOneDocument(t *testing.T) {
	text := fmt.Sprintf(`{"schema": %d}`, manifest.Schema)
	m, err := manifest.Parse([]byte(text + "\n"))
	require.NoError(t, err)
	require.Equal(t, manifest.Schema, m.Schema)
	for _, behind := range []string{"{}", "}", "]", "x"} {
		_, err := manifest.Parse([]byte(text + behind))
		assert.ErrorContains(t, err, "closing brace", behind)
	}
}
