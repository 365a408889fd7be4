package scene_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/optixabi"
	"github.com/raymux/raymux/scene"
)

func TestErrorsOfDevices(t *testing.T) {
	for _, err := range []error{
		&cuda.Error{Op: "cuLaunchKernel", Code: cuapi.ErrorIllegalAddress},
		fmt.Errorf("scene: Build: %w", &cuda.Error{Op: "cuMemAlloc", Code: cuapi.ErrorOutOfMemory}),
		fmt.Errorf("scene: Build: %w", &optixabi.Error{Op: "optixAccelBuild", Code: optixabi.ErrorDeviceOutOfMemory}),
		errors.Join(context.Canceled, &cuda.Error{Op: "cuEventSynchronize", Code: cuapi.ErrorECCUncorrectable}),
	} {
		require.True(t, scene.OfDevice(err), "%v", err)
	}
	for _, err := range []error{nil, context.Canceled, scene.ErrNotReady, &scene.ArgumentError{Op: "Intersect", Arg: "rays"}, cuda.ErrClosed} {
		require.False(t, scene.OfDevice(err), "%v", err)
	}
}
