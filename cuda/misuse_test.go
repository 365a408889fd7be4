package cuda_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/cuapi"
)

func TestMisuseIsRefusedBeforeAnyDriverCall(t *testing.T) {
	v := newEnv(t)
	other := newEnv(t)
	one, grid := cuapi.D1(1), cuapi.D1(1)
	sub, err := v.a[0].Sub(1, 3)
	require.NoError(t, err)
	var absent cuda.Slice[int32]
	bytes, err := cuda.Alloc[uint8](v.c[0], 7)
	require.NoError(t, err)
	closedStream, err := v.c[0].NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	require.NoError(t, closedStream.Close())
	closedEvent, err := v.c[0].NewEvent(cuda.EventOptions{})
	require.NoError(t, err)
	plainEvent, err := v.c[0].NewEvent(cuda.EventOptions{})
	require.NoError(t, err)
	require.NoError(t, closedEvent.Close())
	closedModule, err := v.c[0].LoadModule([]byte("x"), cuda.JITOptions{})
	require.NoError(t, err)
	closedFunc, err := closedModule.Function("k")
	require.NoError(t, err)
	require.NoError(t, closedModule.Close())
	freed, err := cuda.Alloc[int32](v.c[0], 8)
	require.NoError(t, err)
	require.NoError(t, cuda.Free(freed))
	closedPin, err := cuda.AllocPinned[int32](v.c[0], 8)
	require.NoError(t, err)
	require.NoError(t, closedPin.Close())
	closedCtx, err := v.c[0].Device().Retain()
	require.NoError(t, err)
	require.NoError(t, closedCtx.Close())
	sc, err := v.c[0].Enter()
	require.NoError(t, err)
	defer func() { assert.NoError(t, sc.Exit()) }()

	wrong := func(arg string, want, have int) any { return &cuda.WrongDeviceError{Arg: arg, Want: want, Have: have} }
	for name, c := range map[string]struct {
		err  error
		want any // error to match with errors.Is, *WrongDeviceError, or text of an ArgumentError
	}{
		"launch: stream of another device": {v.f[0].Launch(v.s[1], grid, one, 0, nil), wrong("s", 0, 1)},
		"launch: stream of another driver": {v.f[0].Launch(other.s[0], grid, one, 0, nil), "s: belongs to another driver"},
		"launch: nil stream":               {v.f[0].Launch(nil, grid, one, 0, nil), "s: is a nil stream"},
		"launch: nil function":             {(*cuda.Function)(nil).Launch(v.s[0], grid, one, 0, nil), "nil function"},
		"launch: empty grid":               {v.f[0].Launch(v.s[0], cuapi.Dim3{X: 1, Y: 0, Z: 1}, one, 0, nil), "grid: 1 x 0 x 1"},
		"launch: empty block":              {v.f[0].Launch(v.s[0], grid, cuapi.Dim3{}, 0, nil), "block: 0 x 0 x 0"},
		"launch: block too large":          {v.f[0].Launch(v.s[0], grid, cuapi.D1(513), 0, nil), "allows 512 threads"},
		"launch: block wraps around":       {v.f[0].Launch(v.s[0], grid, cuapi.Dim3{X: 1 << 22, Y: 1 << 22, Z: 1 << 22}, 0, nil), "allows 512 threads"},
		"launch: closed stream":            {v.f[0].Launch(closedStream, grid, one, 0, nil), cuda.ErrClosed},
		"scope: zero":                      {cuda.Scope{}.Launch(v.f[0], v.s[0], grid, one, 0, nil), "zero Scope"},
		"scope: stream of another device":  {sc.Launch(v.f[1], v.s[1], grid, one, 0, nil), wrong("s", 0, 1)},
		"scope: stream of another driver":  {sc.Launch(v.f[0], other.s[0], grid, one, 0, nil), "s: belongs to another driver"},
		"scope: closed stream":             {sc.Launch(v.f[0], closedStream, grid, one, 0, nil), cuda.ErrClosed},
		"scope: closed module":             {sc.Launch(closedFunc, v.s[0], grid, one, 0, nil), cuda.ErrClosed},
		"record: event of another device":  {sc.Record(v.s[0], v.e[1]), wrong("e", 0, 1)},
		"record: event of another driver":  {sc.Record(v.s[0], other.e[0]), "e: belongs to another driver"},
		"record: closed event":             {sc.Record(v.s[0], closedEvent), cuda.ErrClosed},
		"record: nil event":                {sc.Record(v.s[0], nil), "e: is nil"},
		"wait: closed event":               {sc.Wait(v.s[0], closedEvent), cuda.ErrClosed},
		"wait: event of another driver":    {sc.Wait(v.s[0], other.e[0]), "another driver"},
		"stream: closed":                   {second(closedStream.Query()), cuda.ErrClosed},
		"event: closed":                    {second(closedEvent.Query()), cuda.ErrClosed},
		"since: other device":              {second(v.e[0].Since(v.e[1])), wrong("start", 0, 1)},
		"since: other driver":              {second(v.e[0].Since(other.e[0])), "start: belongs to another driver"},
		"since: without timing":            {second(v.e[0].Since(plainEvent)), "Timing"},
		"module: closed":                   {second(closedModule.Function("k")), cuda.ErrClosed},
		"module: empty":                    {second(v.c[0].LoadModule(nil, cuda.JITOptions{})), "image: is empty"},
		"module: level":                    {second(v.c[0].LoadModule([]byte("x"), cuda.JITOptions{OptLevel: 6})), "OptLevel: 6"},
		"occupancy: no threads":            {second(v.f[0].Occupancy(0, 0)), "at least 1"},
		"context: closed":                  {second(closedCtx.NewStream(cuda.StreamOptions{})), cuda.ErrClosed},
		"context: closed, alloc":           {second(cuda.Alloc[int32](closedCtx, 4)), cuda.ErrClosed},
		"peer: itself":                     {v.c[0].EnablePeer(v.c[0]), "same device"},
		"peer: nil":                        {v.c[0].EnablePeer(nil), "to: is nil"},
		"peer: other driver":               {v.c[0].EnablePeer(other.c[1]), "another driver"},
		"alloc: negative":                  {second(cuda.Alloc[int32](v.c[0], -1)), "-1 values of 4 bytes"},
		"alloc: overflow":                  {second(cuda.Alloc[int64](v.c[0], math.MaxInt)), "values of 8 bytes"},
		"alloc: nil context":               {second(cuda.Alloc[int32](nil, 1)), "c: is nil"},
		"pool alloc: other device":         {second(cuda.PoolAlloc[int32](v.c[0].Pool(), v.s[1], 1)), wrong("s", 0, 1)},
		"pool alloc: other driver":         {second(cuda.PoolAlloc[int32](v.c[0].Pool(), other.s[0], 1)), "s: belongs to another driver"},
		"pool alloc: closed stream":        {second(cuda.PoolAlloc[int32](v.c[0].Pool(), closedStream, 1)), cuda.ErrClosed},
		"pool alloc: nil pool":             {second(cuda.PoolAlloc[int32](nil, v.s[0], 1)), "p: is nil"},
		"pool free: other pool":            {cuda.PoolFree(v.c[1].Pool(), v.s[1], v.a[0]), "not memory of this pool"},
		"pool free: other device":          {cuda.PoolFree(v.c[0].Pool(), v.s[1], v.a[0]), wrong("st", 0, 1)},
		"pool free: other driver":          {cuda.PoolFree(v.c[0].Pool(), other.s[0], v.a[0]), "st: belongs to another driver"},
		"pool free: closed stream":         {cuda.PoolFree(v.c[0].Pool(), closedStream, v.a[0]), cuda.ErrClosed},
		"free: part":                       {cuda.Free(sub), "only the whole array"},
		"free: twice":                      {cuda.Free(freed), cuda.ErrClosed},
		"copy in: freed":                   {cuda.CopyIn(bg, v.s[0], freed, make([]int32, 8)), cuda.ErrClosed},
		"copy in: length":                  {cuda.CopyIn(bg, v.s[0], v.a[0], make([]int32, 7)), "src: has length 7, dst has 8"},
		"copy in: other device":            {cuda.CopyIn(bg, v.s[0], v.a[1], make([]int32, 8)), wrong("dst", 0, 1)},
		"copy in: absent":                  {cuda.CopyIn(bg, v.s[0], absent, nil), "dst: is absent"},
		"copy in: closed stream":           {cuda.CopyIn(bg, closedStream, v.a[0], make([]int32, 8)), cuda.ErrClosed},
		"copy out: length":                 {cuda.CopyOut(bg, v.s[0], make([]int32, 9), v.a[0]), "dst: has length 9, src has 8"},
		"copy out: other device":           {cuda.CopyOut(bg, v.s[0], make([]int32, 8), v.a[1]), wrong("src", 0, 1)},
		"upload: nil stream":               {second(cuda.Upload(bg, nil, []int32{1})), "s: is a nil stream"},
		"download: absent":                 {second(cuda.Download(bg, v.s[0], absent)), "src: is absent"},
		"copy: other stream":               {cuda.CopyAsync(v.s[1], v.a[0], v.a[0]), wrong("dst", 1, 0)},
		"copy: stream of another driver":   {cuda.CopyAsync(other.s[0], v.a[0], v.a[1]), "s: belongs to another driver"},
		"copy: overlap":                    {cuda.CopyAsync(v.s[0], v.a[0], v.a[0]), "overlap"},
		"copy: length":                     {cuda.CopyAsync(v.s[0], v.a[1], sub), "src: has length 2, dst has 8"},
		"copy: freed":                      {cuda.CopyAsync(v.s[0], v.a[1], freed), cuda.ErrClosed},
		"copy: other driver":               {cuda.CopyAsync(v.s[0], v.a[0], other.a[0]), "another driver"},
		"fill: other device":               {cuda.Fill8(v.s[0], v.a[1], 1), wrong("dst", 0, 1)},
		"fill: odd size":                   {cuda.Fill32(v.s[0], bytes, 1), "4-byte words"},
		"reinterpret: odd size":            {second(cuda.Reinterpret[int32](bytes)), "4-byte values"},
		"pinned: none":                     {second(cuda.AllocPinned[int32](v.c[0], 0)), "at least 1"},
		"pinned: closed":                   {cuda.CopyInPinned(v.s[0], v.a[0], closedPin, 0), cuda.ErrClosed},
		"pinned: offset":                   {cuda.CopyInPinned(v.s[0], v.a[0], v.pin, 1), "1 given for 8 values"},
		"pinned: negative offset":          {cuda.CopyOutPinned(v.s[0], v.pin, -1, v.a[0]), "-1 given"},
		"pinned: other device":             {cuda.CopyOutPinned(v.s[0], v.pin, 0, v.a[1]), wrong("src", 0, 1)},
		"wrap: null":                       {second(cuda.Wrap[int32](v.c[0], 0, 1, nil)), "addr: is 0"},
		"wrap: misaligned":                 {second(cuda.Wrap[int32](v.c[0], 1<<20+2, 1, nil)), "not a multiple"},
		"device: range":                    {second(v.drv.Device(2)), "devices 0 to 1"},
		"can access: other driver":         {second(v.c[0].Device().CanAccessPeer(other.c[0].Device())), "same driver"},
	} {
		switch want := c.want.(type) {
		case error:
			if wd, ok := want.(*cuda.WrongDeviceError); ok {
				var have *cuda.WrongDeviceError
				if assert.ErrorAs(t, c.err, &have, name) {
					assert.Equal(t, wd, have, name)
					assert.ErrorIs(t, c.err, cuda.ErrWrongDevice, name)
				}
				continue
			}
			assert.ErrorIs(t, c.err, want, name)
		case string:
			var ae *cuda.ArgumentError
			if assert.ErrorAs(t, c.err, &ae, name) {
				assert.ErrorContains(t, c.err, want, name)
			}
		}
	}
}

func second[T any](_ T, err error) error { return err }

// TestRefusalsMakeNoDriverCall counts calls over the cheap refusals again: the
// table above builds its errors before it can look.
func TestRefusalsMakeNoDriverCall(t *testing.T) {
	v := newEnv(t)
	closed, err := v.c[0].NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	freed, err := cuda.Alloc[int32](v.c[0], 8)
	require.NoError(t, err)
	require.NoError(t, cuda.Free(freed))
	v.api.takeCalls()
	for name, f := range map[string]func() error{
		"launch on another device":  func() error { return v.f[0].Launch(v.s[1], cuapi.D1(1), cuapi.D1(1), 0, nil) },
		"launch on a closed stream": func() error { return v.f[0].Launch(closed, cuapi.D1(1), cuapi.D1(1), 0, nil) },
		"upload to a closed stream": func() error { return second(cuda.Upload(bg, closed, []int32{1})) },
		"copy of freed memory":      func() error { return cuda.CopyAsync(v.s[0], v.a[0], freed) },
		"copy in of wrong length":   func() error { return cuda.CopyIn(bg, v.s[0], v.a[0], nil) },
		"download of other device":  func() error { return second(cuda.Download(bg, v.s[0], v.a[1])) },
		"free twice":                func() error { return cuda.Free(freed) },
		"fill on another device":    func() error { return cuda.Fill32(v.s[1], v.a[0], 0) },
		"record on another device":  func() error { return v.s[0].Record(v.e[1]) },
	} {
		assert.Error(t, f(), name)
		assert.Empty(t, v.api.takeCalls(), name)
	}
}
