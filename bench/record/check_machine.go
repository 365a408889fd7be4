package record

import (
	"fmt"
	"math"
)

// quotientTolerance is the relative error allowed between a stored quotient and the quotient of the stored terms.
const quotientTolerance = 1e-9

func close9(got, want float64) bool { return math.Abs(got-want) <= quotientTolerance*math.Abs(want) }

// pair is a directed pair of device indices.
type pair struct{ source, destination int }

func (c *checker) machine() {
	m := c.r.Machine
	n := len(m.Devices)
	c.that(m.DeviceCount == n, "machine.device_count", "is %d with %d devices listed", m.DeviceCount, n)
	known := map[int]bool{}
	for i, d := range m.Devices {
		c.that(!known[d.Index], fmt.Sprintf("machine.devices[%d].index", i), "%d occurs twice", d.Index)
		known[d.Index] = true
	}
	c.peers(known)
	c.links(known)
	for _, usage := range [][]DeviceUsage{m.Contention.Before, m.Contention.After} {
		for _, u := range usage {
			c.that(known[u.Device], "machine.contention", "device %d is not in the set", u.Device)
		}
	}
}

// isPair checks that a pair names two different devices of the set.
func (c *checker) isPair(where string, p pair, known map[int]bool) {
	c.that(known[p.source] && known[p.destination] && p.source != p.destination, where,
		"%d -> %d is not a pair of two devices of the set", p.source, p.destination)
}

func (c *checker) peers(known map[int]bool) {
	access := c.r.Machine.PeerAccess
	n := len(c.r.Machine.Devices)
	all := true
	seen := map[pair]bool{}
	for i, entry := range access.Pairs {
		where := fmt.Sprintf("machine.peer_access.pairs[%d]", i)
		p := pair{entry.Source, entry.Destination}
		c.isPair(where, p, known)
		c.that(!seen[p], where, "%d -> %d occurs twice", p.source, p.destination)
		seen[p] = true
		all = all && entry.CanAccess
	}
	want := n * (n - 1)
	c.that((access.Status == PeerNotApplicable) == (n == 1), "machine.peer_access.status", "%s with %d devices", access.Status, n)
	switch access.Status {
	case PeerMeasured:
		c.that(len(seen) == want, "machine.peer_access.pairs", "%d of the %d ordered pairs", len(seen), want)
		c.that(access.AllPairsAccessible != nil && *access.AllPairsAccessible == all,
			"machine.peer_access.all_pairs_accessible", "is not the AND of the pairs, %t", all)
	case PeerPartial:
		c.that(len(seen) > 0 && len(seen) < want, "machine.peer_access.pairs",
			"%d pairs are not a proper part of the %d ordered pairs", len(seen), want)
	}
}

// links checks rates, and that a live record on real devices has every ordered pair one way and every unordered pair
// both ways. Emulated devices have no link to measure.
func (c *checker) links(known map[int]bool) {
	type probe struct {
		pair
		direction string
	}
	m := c.r.Machine
	seen := map[probe]bool{}
	for i, l := range m.Links {
		where := fmt.Sprintf("machine.links[%d]", i)
		p := pair{l.Source, l.Destination}
		c.isPair(where, p, known)
		if l.Direction == BothWays && p.source > p.destination {
			p.source, p.destination = p.destination, p.source
		}
		c.that(!seen[probe{p, l.Direction}], where, "%s between %d and %d occurs twice", l.Direction, l.Source, l.Destination)
		seen[probe{p, l.Direction}] = true
		if c.live() {
			c.that(l.MinNS > 0, where+".min_ns", "a measured link has a time")
		}
		if l.MinNS > 0 {
			want := float64(l.Bytes) / (float64(l.MinNS) / 1e9)
			c.that(close9(l.BytesPerSecond, want), where+".bytes_per_second",
				"is %g, %d bytes in %d ns are %g", l.BytesPerSecond, l.Bytes, l.MinNS, want)
		}
	}
	emulated := c.r.Parameters.Emulated != nil && *c.r.Parameters.Emulated
	if !c.live() || emulated && len(m.Links) == 0 {
		return
	}
	n := len(m.Devices)
	want := n*(n-1) + n*(n-1)/2
	c.that(len(seen) == want, "machine.links",
		"%d of %d probes: every ordered pair one way and every unordered pair both ways", len(seen), want)
}
