package multi

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/cuda/emu"
	"github.com/raymux/raymux/cuda/wrap"
	"github.com/raymux/raymux/tests/gputest"
)

func TestMultiPolicyTransport(t *testing.T) {
	works := Link{Access: true}
	for _, c := range []struct {
		direct, copied time.Duration
		want           chunked.Transport
	}{{0, 0, chunked.Direct}, {15, 10, chunked.Direct}, {16, 10, chunked.Copy}, {5, 10, chunked.Direct}} {
		l := works
		l.DirectTime, l.CopyTime = c.direct, c.copied
		require.Equal(t, c.want, l.choose(), "%d against %d", c.direct, c.copied)
	}
	require.Equal(t, chunked.Host, Link{}.choose(), "no access")
	for _, corrupt := range []Link{{Access: true, CopyWrong: 1}, {Access: true, WriteWrong: 1}, {Access: true, ReadWrong: 1}, {Access: true, Err: ErrClosed}} {
		require.Equal(t, chunked.Host, corrupt.choose(), corrupt.Trouble())
	}
	of := func(all ...chunked.Transport) (links []Link) {
		for _, x := range all {
			links = append(links, Link{Transport: x})
		}
		return links
	}
	require.Equal(t, chunked.Direct, weakest(nil))
	require.Equal(t, chunked.Direct, weakest(of(chunked.Direct, chunked.Direct)))
	require.Equal(t, chunked.Copy, weakest(of(chunked.Direct, chunked.Copy, chunked.Direct)))
	require.Equal(t, chunked.Host, weakest(of(chunked.Host, chunked.Copy, chunked.Direct)))
}

// The probe moves what it says: every row is read across the link and its winner written
// there, by the kernel and by the copies alike.
func TestMultiPolicyTransportProbe(t *testing.T) {
	rig := gputest.Open(t, 2, nil)
	const n = 1000
	var ends [2]*endpoint
	for i := range ends {
		var err error
		ends[i], err = newEndpoint(rig.Context(t, i), 256, n)
		require.NoError(t, err)
		defer func() { require.NoError(t, ends[i].close()) }()
	}
	for _, pair := range [][2]int{{0, 1}, {1, 0}} {
		a, b := ends[pair[0]], ends[pair[1]]
		require.NoError(t, a.ctx.EnablePeer(b.ctx))
		require.NoError(t, b.pattern(b.rows, 7))
		require.NoError(t, a.pattern(a.rows, 9))
		direct, copied, err := a.rule(b)
		require.NoError(t, err)
		require.Positive(t, direct)
		require.Positive(t, copied)
		theirs, err := cuda.Download(bg, b.stream, b.rows)
		require.NoError(t, err)
		mine, err := cuda.Download(bg, a.stream, a.rows)
		require.NoError(t, err)
		require.Equal(t, theirs, mine, "the inputs arrived, and the winners went back")

		p := split(b.rows, n)
		require.NoError(t, b.pattern(p[2], 11)) // what the copies brought
		params := peerRowsParams{Origins: p[0].Addr(), Directions: p[1].Addr(), Winners: p[2].Addr(), Count: n - 1}
		require.NoError(t, a.across.Launch(a.stream, cuapi.D1(4), cuapi.D1(256), 0, cuda.ParamBytes(&params)))
		require.NoError(t, a.stream.Synchronize(bg))
		rows, err := cuda.Download(bg, b.stream, b.rows)
		require.NoError(t, err)
		for i := range n - 1 {
			want := rows[3*i] ^ rows[3*i+1] ^ rows[3*i+2] ^ rows[3*n+3*i] ^ rows[3*n+3*i+1] ^ rows[3*n+3*i+2]
			require.Equal(t, want, rows[6*n+i], "row %d", i)
		}
		require.NotEqual(t, theirs[len(theirs)-1], rows[len(rows)-1], "the row behind the last one is not written")
	}
}

// Every call of a probe that fails is reported, and leaves nothing behind.
func TestMultiResilienceTransportProbeFailsCleanly(t *testing.T) {
	for _, name := range []string{"EventCreate", "EventRecord", "EventElapsedTime", "LaunchKernel", "MemcpyPeerAsync", "MemcpyDtoDAsync"} {
		for k := 1; k <= 40; k++ {
			e, err := emu.New(2)
			require.NoError(t, err)
			ledger := wrap.NewLedger(e)
			fault := wrap.NewFault(ledger)
			drv, err := cuda.OpenAPI(fault)
			require.NoError(t, err)
			var ctxs []*cuda.Context
			for _, d := range drv.Devices() {
				c, err := d.Retain()
				require.NoError(t, err)
				ctxs = append(ctxs, c)
			}
			require.NoError(t, fault.FailCall(name, k, cuapi.ErrorInvalidValue))
			links, err := testLinks(ctxs, 16, 16)
			fired := fault.Fired() > 0
			fault.Reset()
			if fired && err == nil {
				bad := 0
				for _, l := range links {
					if l.Err != nil {
						bad++
						require.ErrorIs(t, l.Err, cuapi.ErrorInvalidValue, "%s %d, %d -> %d", name, k, l.From, l.To)
						require.Equal(t, chunked.Host, l.Transport)
					}
				}
				require.Equal(t, 1, bad, "%s %d", name, k)
			}
			if !fired {
				require.NoError(t, err)
				for _, l := range links {
					require.Positive(t, l.DirectTime)
					require.Positive(t, l.CopyTime)
				}
			}
			for _, c := range ctxs {
				require.NoError(t, c.Close())
			}
			require.NoError(t, drv.Close())
			require.NoError(t, ledger.Check())
			if !fired {
				break
			}
		}
	}
}
