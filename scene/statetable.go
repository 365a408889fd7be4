package scene

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
)

// StateTable is DfrStates on the device: what the diffraction operations take. Make it
// with Scene.UploadStates; close it when no call needs it any more.
type StateTable struct {
	deviceTable
	count int
}

// Count is the number of states.
func (t *StateTable) Count() int { return t.count }

// Close returns the memory of all copies. It waits for all work of their devices, so that
// no query still reads them. Close is idempotent, and of nil it does nothing.
func (t *StateTable) Close() error {
	if t == nil {
		return nil
	}
	return t.close()
}

// UploadStates brings the first Count states to the scene's device. It copies them:
// later changes of the columns do not matter. Values may be anything; what makes no wedge
// is rejected lane by lane and counted there, and a Prim0 or Prim1 that is no face of the
// scene has no material. The table fits whatever the scene becomes, but its states stay where
// they are: make them again when vertices move.
//
// Errors: *ArgumentError for columns shorter than Count (all columns are required), and
// those of cuda. It waits for the upload of 160 bytes per state.
func (s *Scene) UploadStates(ctx context.Context, states DfrStates) (*StateTable, error) {
	if err := s.turns.share(ctx); err != nil {
		return nil, err
	}
	defer s.turns.done(false)
	n, err := states.check("UploadStates")
	if err != nil {
		return nil, err
	}
	t := &StateTable{count: n}
	if err := t.fill(ctx, s, "states", states.pack(n)); err != nil {
		return nil, err
	}
	return t, nil
}

// check is the number of states, whose columns are long enough.
func (d *DfrStates) check(op string) (int, error) {
	n := d.Count
	switch {
	case n < 0:
		return 0, badArg(op, "states.Count", "is %d, want the number of states, or 0 for the length of EdgeIndex", n)
	case n == 0:
		n = len(d.EdgeIndex)
	}
	if n > math.MaxInt32 {
		return 0, badArg(op, "states", "has %d states, want fewer than %d", n, int64(1)<<31)
	}
	for _, c := range [...]struct {
		name       string
		have, each int
	}{
		{"EdgeIndex", len(d.EdgeIndex), 1}, {"EdgePos", len(d.EdgePos), 3}, {"EdgeDir", len(d.EdgeDir), 3},
		{"TMin", len(d.TMin), 1}, {"TMax", len(d.TMax), 1}, {"N0", len(d.N0), 3}, {"N1", len(d.N1), 3},
		{"Prim0", len(d.Prim0), 1}, {"Prim1", len(d.Prim1), 1}, {"ExteriorAngle", len(d.ExteriorAngle), 1},
		{"Src", len(d.Src), 3}, {"SrcPower", len(d.SrcPower), 1},
	} {
		if c.have < c.each*n {
			return 0, badArg(op, fmt.Sprintf("states.%s", c.name), "has %d values, want at least %d for %d states", c.have, c.each*n, n)
		}
	}
	return n, nil
}

// Sizes of the two parts of a table: State of dfr.cuh for every state, then Leg.
const (
	stateBytes = 96
	legBytes   = 64
)

// pack is the table of n states.
func (d *DfrStates) pack(n int) []uint8 {
	out := make([]uint8, 0, (stateBytes+legBytes)*n)
	word := func(v uint32) { out = binary.LittleEndian.AppendUint32(out, v) }
	floats := func(v ...float32) {
		for _, x := range v {
			word(math.Float32bits(x))
		}
	}
	for i := range n {
		j := 3 * i
		floats(d.EdgePos[j : j+3]...)
		floats(d.TMin[i])
		floats(d.EdgeDir[j : j+3]...)
		floats(d.TMax[i])
		floats(d.N0[j : j+3]...)
		floats(d.ExteriorAngle[i])
		floats(d.N1[j : j+3]...)
		floats(d.SrcPower[i])
		floats(d.Src[j : j+3]...)
		word(uint32(d.EdgeIndex[i]))
		word(uint32(d.Prim0[i]))
		word(uint32(d.Prim1[i]))
		word(0)
		word(0)
	}
	for i := range n {
		values, scale := d.leg(i)
		floats(values[:]...)
		out = binary.LittleEndian.AppendUint64(out, math.Float64bits(scale))
	}
	return out
}

// leg is what AccumDfrDirect needs of state i, formed in float64 and rounded once: the
// position, TMin, the unit direction, TMax-TMin (a float32 difference), the exterior
// bisector, the source; and SrcPower times angle weight times length, which is NaN for a
// state whose lanes are all rejected because something of it is not finite.
func (d *DfrStates) leg(i int) (values [14]float32, scale float64) {
	j := 3 * i
	pos, dir, n0 := wide(d.EdgePos[j:]), wide(d.EdgeDir[j:]), wide(d.N0[j:])
	e := scaledBy(1/norm(dir), dir)
	theta := float64(d.ExteriorAngle[i])
	sin, cos := math.Sincos(theta / 2)
	offset := along(scaledBy(cos, outer(n0, e)), sin, n0)
	span := d.TMax[i] - d.TMin[i]

	copy(values[0:], d.EdgePos[j:j+3])
	values[3] = d.TMin[i]
	copy(values[4:], appendVector(nil, e))
	values[7] = span
	copy(values[8:], appendVector(nil, offset))
	copy(values[11:], d.Src[j:j+3])
	scale = float64(d.SrcPower[i]) * angleWeight(theta) * math.Max(float64(d.TMax[i])-float64(d.TMin[i]), 0)

	first := float64(d.TMin[i])
	ends := appendVector(appendVector(nil, along(pos, first, e)), along(pos, first+float64(span), e))
	for _, x := range append(ends, values[:]...) {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			scale = math.NaN()
		}
	}
	if math.IsInf(scale, 0) {
		scale = math.NaN()
	}
	return values, scale
}

// angleWeight is the weight of a wedge with so much free space around it.
func angleWeight(theta float64) float64 {
	return math.Min(math.Max(theta, math.Pi/4)/(2*math.Pi), 2)
}

func wide(v []float32) [3]float64 { return [3]float64{float64(v[0]), float64(v[1]), float64(v[2])} }

// along is a + t*d.
func along(a [3]float64, t float64, d [3]float64) [3]float64 {
	for k := range a {
		a[k] += float64(t * d[k])
	}
	return a
}
