package multi

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/scene"
)

// Driver calls that fail during a calibration, on either device: the error is returned, no
// weight is stored, floors are back, and the set answers as before.
func TestMultiResilienceFaultsOfCalibration(t *testing.T) {
	x := newBroken(t, 2, chunked.Direct)
	x.opts.MinRaysPerDevice = 1000
	op := IntersectOp(scene.All, 24)
	want, err := x.Plan(op, 33)
	require.NoError(t, err)
	probe := Probe{Rays: 9, Repeats: 1}
	for device := range 2 {
		failed := 0
		for k := 1; ; k += 1 + k/2 {
			x.fault.FailDevice(cuapi.Device(device), k, cuapi.ErrorInvalidValue)
			_, err := x.CalibrateDevices(bg, probe)
			fired := x.fault.Fired() > 0
			x.fault.Reset()
			if err == nil {
				delete(x.split.calibrated, op.Key)
				x.split.latest = nil
				if fired {
					continue // what failed was put right, as giving memory back is
				}
				break
			}
			require.True(t, fired, "call %d: %v", k, err)
			require.ErrorIs(t, err, cuapi.ErrorInvalidValue, "call %d", k)
			failed++
			require.True(t, x.IsReady())
			have, err := x.Plan(op, 33)
			require.NoError(t, err)
			require.Equal(t, want, have, "call %d", k)
			x.requireHealthy(t, "after a calibration that failed")
		}
		require.Greater(t, failed, 8, "device %d", device)
	}
	x.close(t)
}

// A device that is lost during a calibration is named.
func TestMultiResilienceCalibrationLosesADevice(t *testing.T) {
	x := newBroken(t, 2, chunked.Copy)
	x.fault.FailDevice(1, 200, cuapi.ErrorLaunchFailed)
	_, err := x.CalibrateDevices(bg, Probe{Rays: 9, Repeats: 1})
	require.ErrorIs(t, err, cuda.ErrDeviceLost)
	rest, err := x.RebuildWithout(bg, 1)
	require.NoError(t, err)
	x.Scene = rest
	x.requireHealthy(t, "without the lost device")
	x.free()
	require.NoError(t, rest.Close())
}
