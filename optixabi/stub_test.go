//go:build nocuda

package optixabi_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/raymux/raymux/optixabi"
	"github.com/raymux/raymux/optixabi/fakeoptix"
)

// TestNoCalls: a build that cannot call C says so.
func TestNoCalls(t *testing.T) {
	_, err := optixabi.Open(optixabi.Options{})
	assert.ErrorIs(t, err, optixabi.ErrUnsupportedPlatform)
	assert.True(t, optixabi.Unavailable(err))
	_, err = fakeoptix.New(fakeoptix.Config{})
	assert.ErrorIs(t, err, optixabi.ErrUnsupportedPlatform)
}
