package cuda_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/cuapi"
)

// raw is device memory with a copy of its contents in Go memory.
type raw struct {
	u    *unit
	at   cuapi.DevicePtr
	want []byte
}

func newRaw(t *testing.T, api cuapi.API, u *unit, n int, seed uint64) *raw {
	r := &raw{u: u, want: randomBytes(n, seed)}
	u.in(func() {
		var code cuapi.Result
		r.at, code = api.MemAlloc(uint64(n))
		require.Equal(t, cuapi.Success, code)
		require.Equal(t, cuapi.Success, api.MemcpyHtoD(r.at, r.want))
		// A copy from pageable memory may return before its last part arrives.
		require.Equal(t, cuapi.Success, api.CtxSynchronize())
	})
	t.Cleanup(func() { u.in(func() { require.Equal(t, cuapi.Success, api.MemFree(r.at)) }) })
	return r
}

// TestHardwareCopies makes random copies of every kind between two devices and
// the host, at any offset and of any size, beside a model in Go memory.
func TestHardwareCopies(t *testing.T) {
	api, us := units(t, 2)
	const size = 6<<20 + 11
	var mem [4]*raw
	for i := range mem {
		mem[i] = newRaw(t, api, us[i%2], size, uint64(i))
	}
	var host []byte
	us[0].in(func() {
		var r cuapi.Result
		host, r = api.MemHostAlloc(size, cuapi.MemHostAllocPortable)
		require.Equal(t, cuapi.Success, r)
	})
	defer us[0].in(func() { assert.Equal(t, cuapi.Success, api.MemFreeHost(host)) })

	rng := rand.New(rand.NewPCG(1, 2))
	span := func() (int, int) {
		n := 1 + rng.IntN(1<<(1+rng.IntN(22)))
		return rng.IntN(size - n), n
	}
	for round := range 60 {
		m := mem[rng.IntN(4)]
		other := mem[rng.IntN(4)]
		for other == m {
			other = mem[rng.IntN(4)]
		}
		s := m.u.s.Handle()
		at, n := span()
		from := rng.IntN(size - n)
		dst, src := m.at+cuapi.DevicePtr(at), other.at+cuapi.DevicePtr(from)
		value := rng.Uint32()
		model := func(v []byte) { copy(m.want[at:at+n], v) }
		words := n / 4
		aligned := at &^ 3
		kinds := []func() (string, cuapi.Result){
			func() (string, cuapi.Result) {
				v := randomBytes(n, uint64(round))
				model(v)
				return "MemcpyHtoD", api.MemcpyHtoD(dst, v)
			},
			func() (string, cuapi.Result) {
				copy(host[from:from+n], randomBytes(n, uint64(round)))
				model(host[from : from+n])
				return "MemcpyHtoDAsync", api.MemcpyHtoDAsync(dst, host[from:from+n], s)
			},
			func() (string, cuapi.Result) {
				got := make([]byte, n)
				r := api.MemcpyDtoH(got, dst)
				assert.True(t, bytes.Equal(m.want[at:at+n], got), "MemcpyDtoH")
				return "MemcpyDtoH", r
			},
			func() (string, cuapi.Result) {
				r := api.MemcpyDtoHAsync(host[from:from+n], dst, s)
				require.Equal(t, cuapi.Success, api.StreamSynchronize(s))
				assert.True(t, bytes.Equal(m.want[at:at+n], host[from:from+n]), "MemcpyDtoHAsync")
				return "MemcpyDtoHAsync", r
			},
			func() (string, cuapi.Result) {
				model(bytes.Repeat([]byte{byte(value)}, n))
				return "MemsetD8", api.MemsetD8(dst, uint8(value), uint64(n))
			},
			func() (string, cuapi.Result) {
				model(bytes.Repeat([]byte{byte(value)}, n))
				return "MemsetD8Async", api.MemsetD8Async(dst, uint8(value), uint64(n), s)
			},
			func() (string, cuapi.Result) {
				copy(m.want[aligned:], bytes.Repeat(binary.LittleEndian.AppendUint32(nil, value), words))
				return "MemsetD32", api.MemsetD32(m.at+cuapi.DevicePtr(aligned), value, uint64(words))
			},
			func() (string, cuapi.Result) {
				copy(m.want[aligned:], bytes.Repeat(binary.LittleEndian.AppendUint32(nil, value), words))
				return "MemsetD32Async", api.MemsetD32Async(m.at+cuapi.DevicePtr(aligned), value, uint64(words), s)
			},
			func() (string, cuapi.Result) {
				model(other.want[from : from+n])
				if m.u == other.u {
					return "MemcpyDtoD", api.MemcpyDtoD(dst, src, uint64(n))
				}
				return "MemcpyPeer", api.MemcpyPeer(dst, m.u.c.Handle(), src, other.u.c.Handle(), uint64(n))
			},
			func() (string, cuapi.Result) {
				model(other.want[from : from+n])
				if m.u == other.u {
					return "MemcpyDtoDAsync", api.MemcpyDtoDAsync(dst, src, uint64(n), s)
				}
				return "MemcpyPeerAsync", api.MemcpyPeerAsync(dst, m.u.c.Handle(), src, other.u.c.Handle(), uint64(n), s)
			},
		}
		kind := kinds[round%len(kinds)]
		m.u.in(func() {
			name, r := kind()
			require.Equal(t, cuapi.Success, r, "%s of %d bytes", name, n)
			require.Equal(t, cuapi.Success, api.CtxSynchronize())
		})
	}
	for i, m := range mem {
		m.u.in(func() {
			got := make([]byte, size)
			require.Equal(t, cuapi.Success, api.MemcpyDtoH(got, m.at))
			assert.True(t, bytes.Equal(m.want, got), "buffer %d", i)
		})
	}
	us[0].in(func() {
		m := mem[0]
		assert.Equal(t, cuapi.ErrorInvalidValue, api.MemsetD32(m.at+1, 1, 4), "not aligned")
	})
}

// TestHardwareTransfers sends random arrays through the staging buffers, whose
// parts are of 4 MiB, in parts and whole, and copies between the devices.
func TestHardwareTransfers(t *testing.T) {
	_, us := units(t, 2)
	sizes := []int{0, 1, 3, 4<<20 - 1, 4 << 20, 4<<20 + 1, 13<<20 + 7}
	for i, n := range sizes {
		u, other := us[i%2], us[(i+1)%2]
		want := randomBytes(n, uint64(i))
		x, err := cuda.Upload(bg, u.s, want)
		require.NoError(t, err)
		assert.True(t, bytes.Equal(want, download(u, x)), "%d bytes", n)
		y := newSlice[uint8](other, n)
		require.NoError(t, cuda.CopyAsync(u.s, y, x))
		u.wait()
		assert.True(t, bytes.Equal(want, download(other, y)), "%d bytes to the other device", n)
		require.NoError(t, cuda.Fill8(other.s, y, 7))
		assert.True(t, bytes.Equal(bytes.Repeat([]byte{7}, n), download(other, y)))
		if n > 100 {
			part, err := x.Sub(3, n-5)
			require.NoError(t, err)
			require.NoError(t, cuda.CopyIn(bg, u.s, part, want[8:]))
			copy(want[3:], want[8:])
			assert.True(t, bytes.Equal(want, download(u, x)), "a part of %d bytes", n)
		}
		require.NoError(t, cuda.Free(x))
	}
	floats := upload(us[0], []float64{1.5, -2})
	assert.Equal(t, []float64{1.5, -2}, download(us[0], floats))
}
