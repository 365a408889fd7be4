package multi

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Verdict is what a calibration decided.
type Verdict string

// Verdicts of a calibration.
const (
	VerdictShard        Verdict = "shard"        // the split gains at least two percent
	VerdictMaster       Verdict = "master"       // it does not
	VerdictInconclusive Verdict = "inconclusive" // 25 pairs could not tell: the master alone
)

// gainThreshold is ln 1.02. A split has to gain more than that, because a call that the
// master answers alone disturbs no other device.
const gainThreshold = 0.0198026272961797

// contendedRatio is by how much devices of one product may differ before the difference
// is put down to somebody else's work.
const contendedRatio = 1.05

// look is a time at which pairs are judged: after so many, by the order-th values from
// either end.
type look struct{ pairs, order int }

// looks have a joint level of 95 %: each is stricter than that alone, because three
// chances to be wrong add up.
var looks = [...]look{{9, 1}, {15, 3}, {25, 7}}

// coverage is the probability that the median lies between the order-th smallest and the
// order-th largest of n values, whatever their distribution.
func coverage(n, order int) float64 {
	below := 0.0
	for i := range order {
		below += math.Exp(logFactorial(n) - logFactorial(i) - logFactorial(n-i) - float64(n)*math.Ln2)
	}
	return 1 - 2*below
}

func logFactorial(n int) float64 {
	v, _ := math.Lgamma(float64(n) + 1)
	return v
}

// orderOf is the largest order of n values with a coverage of at least 95 %, and 0 for
// fewer than six, which cover no such interval.
func orderOf(n int) int {
	order := 0
	for 2*(order+1) <= n && coverage(n, order+1) >= 0.95 {
		order++
	}
	return order
}

// Interval bounds the median of paired differences by order statistics, which assume
// nothing about the noise but that the pairs are independent.
type Interval struct {
	Low      float64 `json:"low"`
	High     float64 `json:"high"`
	Order    int     `json:"order"`    // the bounds are the order-th values from either end
	Coverage float64 `json:"coverage"` // probability that the median lies between them, 0 to 1
}

// near compares two intervals up to what logarithms of different machines differ by.
func (iv Interval) near(other Interval) bool {
	same := func(a, b float64) bool { return math.Abs(a-b) <= 1e-9 }
	return iv.Order == other.Order && same(iv.Low, other.Low) && same(iv.High, other.High) && same(iv.Coverage, other.Coverage)
}

// intervalOf needs 1 <= order <= len(d)/2 rounded up.
func intervalOf(d []float64, order int) Interval {
	d = slices.Sorted(slices.Values(d))
	return Interval{d[order-1], d[len(d)-order], order, coverage(len(d), order)}
}

// verdictOf judges the first pairs, d = ln(master/sharded), at a look. done is false when
// the next look is needed.
func verdictOf(d []float64, at int) (v Verdict, iv Interval, done bool) {
	iv = intervalOf(d[:looks[at].pairs], looks[at].order)
	switch {
	case iv.Low > gainThreshold:
		return VerdictShard, iv, true
	case iv.High < gainThreshold:
		return VerdictMaster, iv, true
	}
	return VerdictInconclusive, iv, at == len(looks)-1
}

// median of at least one duration.
func median(d []time.Duration) time.Duration {
	d = slices.Sorted(slices.Values(d))
	n := len(d)
	return (d[(n-1)/2] + d[n/2]) / 2
}

// throughput is what stage A makes of its samples, [position][round]: the median of each
// device, and weights in proportion to speed with the sum n. same[p] says that device p is
// of the master's product; its weight is then the master's, unless the samples prove it
// different. A proven difference of more than five percent is somebody else's work on the
// device and not adopted either: contended.
func throughput(samples [][]time.Duration, same []bool) (medians []time.Duration, weights []float64, contended []bool) {
	n := len(samples)
	medians, weights, contended = make([]time.Duration, n), make([]float64, n), make([]bool, n)
	sum := 0.0
	for p, own := range samples {
		medians[p] = median(own)
		ratio := float64(medians[0]) / float64(medians[p])
		if p > 0 && same[p] {
			switch {
			case !differs(own, samples[0]):
				ratio = 1
			case max(ratio, 1/ratio) > contendedRatio:
				ratio, contended[p] = 1, true
			}
		}
		weights[p] = ratio
		sum += ratio
	}
	for p := range weights {
		weights[p] *= float64(n) / sum
	}
	return medians, weights, contended
}

// differs reports that the interval of the log ratio of two series of rounds excludes 0.
func differs(a, b []time.Duration) bool {
	order := orderOf(len(a))
	if order == 0 {
		return false
	}
	d := make([]float64, len(a))
	for i := range d {
		d[i] = math.Log(float64(a[i]) / float64(b[i]))
	}
	iv := intervalOf(d, order)
	return iv.Low > 0 || iv.High < 0
}

// scaleRemotes multiplies the weights of the remotes.
func scaleRemotes(weights []float64, factor float64) []float64 {
	out := slices.Clone(weights)
	for p := range out[1:] {
		out[1+p] *= factor
	}
	return out
}

// remoteShare is the part of the rows that is not the master's.
func remoteShare(weights []float64) float64 {
	sum, remote := weights[0], 0.0
	for _, w := range weights[1:] {
		sum, remote = sum+w, remote+w
	}
	return remote / sum
}

// splitOf gives the remotes the share, divided among them as in weights.
func splitOf(weights []float64, share float64) []float64 {
	out := make([]float64, len(weights))
	remote := 0.0
	for _, w := range weights[1:] {
		remote += w
	}
	out[0] = 1 - share
	for p, w := range weights[1:] {
		out[1+p] = share * w / remote
	}
	return out
}

// Model predicts the best split from a few measured numbers. It suggests a rung of the
// ladder and decides nothing.
type Model struct {
	MasterRow float64 `json:"master_row_ns"` // time of a row on the master
	RemoteRow float64 `json:"remote_row_ns"` // time of a row on all remotes together
	LinkRow   float64 `json:"link_row_ns"`   // time of a row on the slower direction of the link
	Fixed     float64 `json:"fixed_ns"`      // what dividing a call costs, whatever the rows
	Rows      int64   `json:"rows"`          // of the batch
	// Share is the part of the rows that the remotes should get, and SpeedUp that over the
	// master alone; 0 and 1 where dividing does not pay.
	Share   float64 `json:"share"`
	SpeedUp float64 `json:"speed_up"`
}

// setFixed takes the fixed cost from the time of a split of this share.
func (m *Model) setFixed(taken, share float64) {
	n := float64(m.Rows)
	m.Fixed = max(taken-n*max((1-share)*m.MasterRow, share*max(m.RemoteRow, m.LinkRow)), 0)
}

// solve sets the share at which the master and the remotes end at the same time: the
// master needs (1-s) N c, the remotes f + s N max(r, b).
func (m *Model) solve() {
	n := float64(m.Rows)
	m.Share = (m.MasterRow*n - m.Fixed) / (n * (m.MasterRow + max(m.RemoteRow, m.LinkRow)))
	if !(m.Share > 0) {
		m.Share, m.SpeedUp = 0, 1
		return
	}
	m.SpeedUp = 1 / (1 - m.Share)
}

// String is the share and the gain, or that none pays, and what they follow from.
func (m *Model) String() string {
	if m.Share == 0 {
		return fmt.Sprintf("no share pays (fixed cost %s, %.4f ns per row here, %.4f ns over the link)",
			ms(m.Fixed), m.MasterRow, m.LinkRow)
	}
	return fmt.Sprintf("share %.4f, %.3fx (fixed cost %s; per row %.4f ns here, %.4f ns there, %.4f ns over the link)",
		m.Share, m.SpeedUp, ms(m.Fixed), m.MasterRow, m.RemoteRow, m.LinkRow)
}

// ms prints nanoseconds as milliseconds.
func ms(ns float64) string { return fmt.Sprintf("%.4f ms", ns/1e6) }
