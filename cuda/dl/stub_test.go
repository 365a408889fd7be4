//go:build nocuda

package dl

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestStub(t *testing.T) {
	lib, err := Open([]string{"libcuda.so.1"}, Options{})
	assert.Nil(t, lib)
	assert.ErrorIs(t, err, ErrUnsupportedPlatform)
	assert.Empty(t, Getenv("PATH"))
	assert.Panics(t, func() { Call(1) })
	assert.Panics(t, func() { NewCallback(func() uintptr { return 0 }) })
}
