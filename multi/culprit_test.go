package multi

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/cuda/emu"
	"github.com/raymux/raymux/cuda/wrap"
	"github.com/raymux/raymux/offload"
	"github.com/raymux/raymux/scene"
)

// faulty is a set of two emulated devices with a scene, whose driver calls can be made to fail.
func faulty(t *testing.T) (*Scene, *wrap.Fault) {
	t.Helper()
	e, err := emu.New(2)
	require.NoError(t, err)
	fault := wrap.NewFault(e)
	drv, err := cuda.OpenAPI(fault)
	require.NoError(t, err)
	s := quick(t, drv, []int{0, 1}, anyFloor())
	build(t, s, soup(rngOf(170), 12))
	return s, fault
}

// A master that is lost while the chunks of a remote are brought over is named, and not the
// remote: who leaves that out has gained nothing.
func TestALostMasterIsNamed(t *testing.T) {
	for _, transport := range []chunked.Transport{chunked.Direct, chunked.Copy, chunked.Host} {
		for call := 1; call < 20; call++ {
			t.Run(fmt.Sprintf("%v, call %d", transport, call), func(t *testing.T) {
				s, fault := faulty(t)
				sights := randomSights(rngOf(171), 23, 12)
				in := scene.Segments{Start: upload(t, s.Stream(), sights.points[0]), End: upload(t, s.Stream(), sights.points[1])}
				defer func() { _ = errors.Join(cuda.Free(in.Start), cuda.Free(in.End)) }() // of a device that is lost
				s.transport, s.opts.ChunkRays = transport, 4
				first := true
				_, err := s.Visible(bg, in, Offload(func(context.Context, int64, offload.Chunk[*scene.Visibility]) error {
					if first {
						fault.FailDevice(0, call, cuapi.ErrorLaunchFailed)
					}
					first = false
					return nil
				}))
				require.ErrorIs(t, err, cuda.ErrDeviceLost)
				require.Error(t, s.master().ctx.Lost())
				var at *DeviceError
				require.ErrorAs(t, err, &at)
				require.Equal(t, 0, at.Position, "%v", err)
			})
		}
	}
}

// What fails behind a chunk that the consumer has does not make it one to be delivered again.
func TestAFailedStreamStartsBehindWhatWasDelivered(t *testing.T) {
	s, fault := faulty(t)
	rays, free := randomBatch(rngOf(172), 23).rays(t, s.Stream())
	defer free()
	s.opts.ChunkRays = 4
	_, err := s.Intersect(bg, rays, scene.All, Offload(func(context.Context, int64, offload.Chunk[*scene.Hits]) error {
		fault.FailDevice(0, 1, cuapi.ErrorInvalidValue)
		return nil
	}))
	fault.Reset()
	var told *offload.StreamError
	require.ErrorAs(t, err, &told)
	require.Len(t, told.Delivered, 1)
	require.NotEqual(t, told.Delivered[0].Begin, told.FailedStart)
}

func TestAWrongMaskIsOfNoDevice(t *testing.T) {
	s, _ := faulty(t)
	err := s.SetEdgeMask(make([]bool, 1))
	var wrong *scene.ArgumentError
	require.ErrorAs(t, err, &wrong)
	var at *DeviceError
	require.False(t, errors.As(err, &at), "%v", err)
}
