package multi

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/cuda/emu"
	"github.com/raymux/raymux/cuda/wrap"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tests/gputest"
)

// linkRx is receivers of whom every device has many.
const linkRx = 41

// linkPaths is a path export with so many receivers.
type linkPaths struct {
	pathInputs
	tables radioTables
}

func newLinkPaths(t testing.TB, most *Scene, faces int) (l linkPaths, free func()) {
	t.Helper()
	rng := rngOf(101)
	l.tables = newTables(t, most, cornerStates(faces), faces)
	in, freeInputs := newPathInputs(t, rng, most.Stream())
	l.pathInputs = in
	rx := make([]float32, 3*linkRx)
	for i := range rx {
		rx[i] = -1.3 - rng.Float32()
	}
	l.rx = upload(t, most.Stream(), rx)
	require.NoError(t, most.Stream().Synchronize(bg))
	return l, func() {
		require.NoError(t, cuda.Free(l.rx))
		freeInputs()
		l.tables.close(t)
	}
}

func (l linkPaths) ask(s *Scene, layout scene.DfrPathLayout, opts ...scene.CallOption) (*scene.DfrPaths, error) {
	return s.TraceDfrPaths(bg, l.tx, l.rx, l.tables.states, scene.DfrPathOptions{
		Wavelength: .1, Materials: l.tables.materials, Active: l.active, TxPower: l.power, TxPolarization: l.polarization,
		Layout: layout, EdgeMode: scene.EdgeFresnel,
	}, opts...)
}

// answer is the columns of a call that fills memory full of other values.
func (l linkPaths) answer(t testing.TB, s *Scene, layout scene.DfrPathLayout, opts ...scene.CallOption) map[string][]byte {
	t.Helper()
	p, err := l.ask(s, layout)
	require.NoError(t, err)
	for _, column := range []cuda.Slice[float32]{p.Delay, p.Field, p.P0} {
		require.NoError(t, cuda.Fill8(s.Stream(), column, 0x5a))
	}
	for _, column := range []cuda.Slice[int32]{p.TxID, p.RxID, p.EdgeID} {
		require.NoError(t, cuda.Fill8(s.Stream(), column, 0x5a))
	}
	require.NoError(t, cuda.Fill8(s.Stream(), p.Status, 0x5a))
	p, err = l.ask(s, layout, append(opts, scene.Into(p))...)
	require.NoError(t, err)
	defer func() { require.NoError(t, p.Close()) }()
	return bytesOf(t, s.Stream(), p)
}

// Rows of remotes are those of one device, whatever was in the memory before, and remotes hold
// nothing.
func TestMultiPathsOverLinks(t *testing.T) {
	rng := rngOf(102)
	_, sets, faces := fleet(t, rng)
	l, free := newLinkPaths(t, sets[len(sets)-1], faces)
	defer free()
	for _, layout := range []scene.DfrPathLayout{scene.SourceLane, scene.Compact} {
		want := l.answer(t, sets[0], layout)
		valid := binary.LittleEndian.Uint64(want["Count"])
		require.Positive(t, valid)
		require.Less(t, int(valid), pathTx*linkRx*pathStates)
		for _, s := range sets[1:] {
			for round := range 6 {
				s.transport, s.opts.Weights = chunked.Direct, nil
				if round > 0 {
					s.opts.Weights = randomWeights(rng, len(s.devices))
				}
				what := fmt.Sprintf("%v, %d devices, weights %v", layout, len(s.devices), s.opts.Weights)
				var info CallInfo
				require.Equal(t, want, l.answer(t, s, layout, Info(&info)), what)
				if gputest.Native() {
					continue // sizes of a GPU's allocator are rounded
				}
				before := poolUse(s)
				p, err := l.ask(s, layout, Info(&info))
				require.NoError(t, err)
				require.NoError(t, p.Close())
				for k, r := range s.replicas {
					held := int64(r.ctx.Pool().Stats().HighWater - before[k])
					require.Equal(t, before[k], r.ctx.Pool().Stats().BytesInUse, what)
					if k > 0 {
						require.Zero(t, held, "%s, device %d", what, k)
						require.Zero(t, info.HighWater[k], "%s, device %d", what, k)
					}
				}
			}
		}
	}
}

// kernelSpy knows the searches among the launches.
type kernelSpy struct {
	precedence
	names    map[cuapi.Function]string
	filled   uint64   // words
	searches [][]byte // parameters
	places   []int    // among the launches
}

func (s *kernelSpy) clear() {
	s.precedence.clear()
	s.filled, s.searches, s.places = 0, nil, nil
}

func (s *kernelSpy) MemsetD32Async(dst cuapi.DevicePtr, v uint32, n uint64, st cuapi.Stream) cuapi.Result {
	s.mu.Lock()
	if !s.counts || n%scene.SearchCounters != 0 { // these are rows
		s.filled += n
	}
	s.mu.Unlock()
	return s.precedence.MemsetD32Async(dst, v, n, st)
}

func (s *kernelSpy) ModuleGetFunction(m cuapi.Module, name string) (cuapi.Function, cuapi.Result) {
	f, r := s.API.ModuleGetFunction(m, name)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names[f] = name
	return f, r
}

func (s *kernelSpy) LaunchKernel(f cuapi.Function, grid, block cuapi.Dim3, shared uint32, st cuapi.Stream, params []byte) cuapi.Result {
	s.mu.Lock()
	if s.names[f] == "trace_dfr_paths" {
		s.searches = append(s.searches, slices.Clone(params))
		s.places = append(s.places, len(s.launches))
	}
	s.mu.Unlock()
	return s.precedence.LaunchKernel(f, grid, block, shared, st, params)
}

// filled is how many of these searches store little.
func filled(searches [][]byte) (n int) {
	for _, params := range searches {
		n += int(binary.LittleEndian.Uint32(params[len(params)-8:]))
	}
	return n
}

// The master fills the rows of remotes that store them over a link, before those begin, so that
// they store no more than they have to. Rows that are copied are whole.
func TestMultiPathsStoreLittleOverLinks(t *testing.T) {
	e, err := emu.New(2)
	require.NoError(t, err)
	spy := &kernelSpy{precedence: precedence{API: e, counts: true}, names: map[cuapi.Function]string{}}
	spy.clear()
	drv, err := cuda.OpenAPI(spy)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, drv.Close()) })
	s := quick(t, drv, []int{0, 1}, anyFloor())
	m := room(rngOf(103))
	build(t, s, m)
	l, free := newLinkPaths(t, s, len(m.Faces)/3)
	defer free()
	all := []float64{1, 1}
	for _, c := range []struct {
		name                    string
		transport               chunked.Transport
		weights                 []float64
		chunk                   int64
		layout                  scene.DfrPathLayout
		fills, searches, filled int
	}{
		{"direct", chunked.Direct, all, 0, scene.SourceLane, 3, 2, 1},
		{"compact", chunked.Direct, all, 0, scene.Compact, 3, 2, 1},
		{"chunks", chunked.Direct, all, 150, scene.SourceLane, 3, 4, 2},
		{"remote alone", chunked.Direct, []float64{0, 1}, 0, scene.SourceLane, 3, 1, 1},
		{"master alone", chunked.Direct, []float64{1, 0}, 0, scene.SourceLane, 0, 1, 0},
		{"copy", chunked.Copy, all, 0, scene.SourceLane, 0, 5, 0},
		{"host", chunked.Host, all, 0, scene.SourceLane, 0, 5, 0},
	} {
		s.transport, s.opts.Weights, s.opts.ChunkRays = c.transport, c.weights, c.chunk
		spy.clear()
		var info CallInfo
		p, err := l.ask(s, c.layout, Info(&info))
		require.NoError(t, err)
		require.NoError(t, p.Close())
		const words = 10 // of delay, field and point
		if c.fills == 0 {
			require.Zero(t, spy.filled, c.name)
		} else {
			require.EqualValues(t, words*info.Plan.Shards[1].Len(), spy.filled, c.name)
		}
		require.Len(t, spy.searches, c.searches, c.name)
		require.Equal(t, c.filled, filled(spy.searches), c.name)
		require.Equal(t, c.fills, spy.fills, c.name)
		for _, k := range spy.places {
			require.Subset(t, spy.launches[k].behind, []int{-1, -2, -3}[:c.fills], c.name)
		}
	}
}

// Whatever call of whichever device fails, the first error is kept, and nothing is left
// behind.
func TestMultiPathsFaults(t *testing.T) {
	e, err := emu.New(2)
	require.NoError(t, err)
	ledger := wrap.NewLedger(e)
	fault := wrap.NewFault(ledger)
	drv, err := cuda.OpenAPI(fault)
	require.NoError(t, err)
	s, err := create(drv, []int{0, 1}, anyFloor(), 16)
	require.NoError(t, err)
	m := room(rngOf(104))
	build(t, s, m)
	l, free := newLinkPaths(t, s, len(m.Faces)/3)
	want := l.answer(t, s, scene.SourceLane)
	for device := range 2 {
		failed := 0
		for k := 1; ; k++ {
			what := fmt.Sprintf("device %d, call %d", device, k)
			before := poolUse(s)
			fault.FailDevice(cuapi.Device(device), k, cuapi.ErrorInvalidValue)
			p, err := l.ask(s, scene.SourceLane)
			fired := fault.Fired() > 0
			fault.Reset()
			if err == nil {
				_ = p.Close() // which may have met the failure
			} else {
				require.True(t, fired, "%s: %v", what, err)
				require.ErrorIs(t, err, cuapi.ErrorInvalidValue, what)
				failed++
			}
			require.Equal(t, before, poolUse(s), what)
			require.True(t, s.IsReady(), what)
			if !fired {
				break
			}
		}
		require.Greater(t, failed, 2)
	}
	require.Equal(t, want, l.answer(t, s, scene.SourceLane))
	free()
	require.NoError(t, s.Close())
	require.NoError(t, drv.Close())
	require.NoError(t, ledger.Check())
}
