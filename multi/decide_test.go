package multi

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func repeated(v ...time.Duration) [][]time.Duration {
	out := make([][]time.Duration, len(v))
	for p := range v {
		out[p] = slices.Repeat([]time.Duration{v[p]}, 9)
	}
	return out
}

func TestMultiPolicyCoverage(t *testing.T) {
	for _, c := range []struct {
		n, order int
		percent  float64
	}{{9, 1, 99.61}, {15, 3, 99.26}, {25, 7, 98.54}, {9, 2, 96.09}} {
		require.InDelta(t, c.percent, 100*coverage(c.n, c.order), .005, "%d, %d", c.n, c.order)
	}
	for n, order := range map[int]int{1: 0, 5: 0, 6: 1, 8: 1, 9: 2, 12: 3, 15: 4, 20: 6, 25: 8} {
		require.Equal(t, order, orderOf(n), "%d rounds", n)
	}
	require.Greater(t, orderOf(5000), 2400, "large counts must not underflow")
	require.InDelta(t, math.Log(1.02), gainThreshold, 1e-15)
}

// The joint level of the three looks: with a median at the threshold each look may err on
// either side, and all of them together in at most 5 %.
func TestMultiPolicyJointLevel(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	wrong := 0
	const runs = 40000
	for range runs {
		d := make([]float64, looks[len(looks)-1].pairs)
		for i := range d {
			d[i] = gainThreshold + rng.NormFloat64()
		}
		for at := range looks {
			if v, _, done := verdictOf(d, at); done {
				if v != VerdictInconclusive {
					wrong++
				}
				break
			}
		}
	}
	require.Less(t, float64(wrong)/runs, .05)
	require.Greater(t, float64(wrong)/runs, .01, "looks that never decide are of no use")
}

func TestMultiPolicyVerdict(t *testing.T) {
	gain := []float64{.60, .61, .59, .62, .58, .61, .60, .63, .57}
	v, iv, done := verdictOf(gain, 0)
	require.True(t, done)
	require.Equal(t, VerdictShard, v)
	require.Equal(t, [2]float64{.57, .63}, [2]float64{iv.Low, iv.High})

	loss := []float64{-.05, .01, -.02, .00, -.01, -.03, .01, -.04, .00}
	v, iv, done = verdictOf(loss, 0)
	require.True(t, done)
	require.Equal(t, VerdictMaster, v)
	require.Equal(t, .01, iv.High)

	var noise []float64
	for i := range 25 {
		noise = append(noise, .10*float64(1-2*(i%2))*-1)
	}
	for at := range looks {
		v, _, done = verdictOf(noise, at)
		require.Equal(t, VerdictInconclusive, v)
		require.Equal(t, at == 2, done)
	}
	// Exactly at the threshold is neither above nor below it.
	v, _, done = verdictOf(slices.Repeat([]float64{gainThreshold}, 9), 0)
	require.Equal(t, VerdictInconclusive, v)
	require.False(t, done)
}

func TestMultiPolicyThroughput(t *testing.T) {
	_, w, contended := throughput(repeated(2*time.Second, time.Second), []bool{true, false})
	require.InDeltaSlice(t, []float64{2. / 3, 4. / 3}, w, 1e-12)
	require.Equal(t, []bool{false, false}, contended)

	slow := repeated(30100*time.Microsecond, 17*time.Millisecond)
	medians, w, _ := throughput(slow, []bool{true, false})
	require.InDeltaSlice(t, []float64{.7219, 1.2781}, w, 5e-5)
	require.Equal(t, []time.Duration{30100 * time.Microsecond, 17 * time.Millisecond}, medians)
	_, w, contended = throughput(slow, []bool{true, true})
	require.Equal(t, []float64{1, 1}, w)
	require.Equal(t, []bool{false, true}, contended)

	// A proven difference of four percent is adopted, one that the rounds do not prove is not.
	_, w, contended = throughput(repeated(104*time.Millisecond, 100*time.Millisecond), []bool{true, true})
	require.InDelta(t, 1.04, w[1]/w[0], 1e-12)
	require.Equal(t, []bool{false, false}, contended)
	noisy := repeated(104*time.Millisecond, 100*time.Millisecond)
	for i := range 4 {
		noisy[1][i] = 110 * time.Millisecond
	}
	_, w, _ = throughput(noisy, []bool{true, true})
	require.Equal(t, []float64{1, 1}, w)
	// Fewer than six rounds prove nothing.
	few := [][]time.Duration{{9, 9, 9, 9, 9}, {5, 5, 5, 5, 5}}
	_, w, contended = throughput(few, []bool{true, true})
	require.Equal(t, []float64{1, 1}, w)
	require.Equal(t, []bool{false, false}, contended)
	require.Equal(t, time.Duration(15), median([]time.Duration{30, 10, 20, 10}))
}

func TestMultiPolicyModel(t *testing.T) {
	m := Model{MasterRow: .303, RemoteRow: .303, LinkRow: 24 / 52.72e9 * 1e9, Fixed: .4e6, Rows: 4194304}
	m.solve()
	require.InDelta(t, .4552, m.LinkRow, 5e-5)
	require.InDelta(t, .2738, m.Share, 5e-5)
	require.InDelta(t, 1.377, m.SpeedUp, 5e-4)
	m.Fixed = 1.3e6
	m.solve()
	require.Zero(t, m.Share)
	require.Equal(t, 1., m.SpeedUp)
	require.Contains(t, m.String(), "no share pays")
}

func TestMultiPolicyShares(t *testing.T) {
	w := []float64{1, 2, 1}
	require.Equal(t, []float64{1, .5, .25}, scaleRemotes(w, .25))
	require.Equal(t, []float64{1, 2, 1}, w)
	require.Equal(t, .75, remoteShare(w))
	require.InDeltaSlice(t, []float64{.4, .4, .2}, splitOf(w, .6), 1e-15)
}
