package chunked

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Transport is how the rows of a remote device travel.
type Transport int

// Transports. The zero value lets New choose.
const (
	// Auto is Direct where every remote has working peer access, else Copy.
	Auto Transport = iota
	// Direct lets remote kernels read their rays from, and write their
	// winners into, the master's buffers.
	Direct
	// Copy sends inputs and winners through the copy engines; without peer
	// access the driver stages them through the host.
	Copy
)

var transportNames = [...]string{"auto", "direct", "copy"}

func (t Transport) String() string {
	if t < 0 || int(t) >= len(transportNames) {
		return fmt.Sprintf("transport(%d)", int(t))
	}
	return transportNames[t]
}

// MarshalText is the name of the transport.
func (t Transport) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText accepts the names that String gives.
func (t *Transport) UnmarshalText(b []byte) error {
	i := slices.Index(transportNames[:], string(b))
	if i < 0 {
		return &OptionError{"Transport", fmt.Sprintf("%q: use auto, direct or copy", b)}
	}
	*t = Transport(i)
	return nil
}

// DefaultMinRows is the default of Options.MinRaysPerDevice.
const DefaultMinRows = 262144

// floorWidth is the row width, in bytes over the link, for which the floor is
// stated: an intersection sends 24 bytes and gets 4 back.
const floorWidth = 28

// Options are the settings that a plan depends on. The zero value of every
// field is its default.
type Options struct {
	// Weights are the relative shares of the devices, the master's first.
	// Nil: all 1.
	Weights []float64 `json:"weights,omitempty"`
	// OperationWeights override Weights for one operation key
	// ("intersect_full") or family ("intersect").
	OperationWeights map[string][]float64 `json:"operation_weights,omitempty"`
	// MinRaysPerDevice is the fewest rows of a remote shard that are worth
	// dispatching; below it the call runs on the master. It is stated for
	// rows of 28 bytes over the link, wider rows raise it in proportion.
	// 0: 262144. 1 disables the floor.
	MinRaysPerDevice int64 `json:"min_rays_per_device,omitempty"`
	// Transport is how remote rows travel.
	Transport Transport `json:"transport"`
}

// Keys lists the operation keys and families that OperationWeights accepts. In a key
// that ends in ":B", a number of bounces from 1 to 64 stands for B.
var Keys = []string{"intersect", "intersect_full", "intersect_reduced", "trace_reflections", "trace_reflections:B",
	"visible", "visible_pair", "visible_edge", "visible_chain"}

func isKey(key string) bool {
	operation, parameter, ok := strings.Cut(key, ":")
	if !ok {
		return slices.Contains(Keys, key)
	}
	n, err := strconv.Atoi(parameter)
	return err == nil && n >= 1 && n <= maxBounces && strconv.Itoa(n) == parameter &&
		slices.Contains(Keys, operation+":B")
}

const maxBounces = 64

// Check validates the options for n devices.
func (o Options) Check(n int) error {
	if o.Weights != nil {
		if err := CheckWeights("Weights", o.Weights, n); err != nil {
			return err
		}
	}
	for _, key := range slices.Sorted(maps.Keys(o.OperationWeights)) {
		name := fmt.Sprintf("OperationWeights[%q]", key)
		if !isKey(key) {
			return &OptionError{name, fmt.Sprintf("no such operation: the keys are %v", Keys)}
		}
		if err := CheckWeights(name, o.OperationWeights[key], n); err != nil {
			return err
		}
	}
	if o.MinRaysPerDevice < 0 {
		return &OptionError{"MinRaysPerDevice", fmt.Sprintf("%d: 0 is the default (%d), 1 disables the floor", o.MinRaysPerDevice, DefaultMinRows)}
	}
	if o.Transport < Auto || o.Transport > Copy {
		return &OptionError{"Transport", fmt.Sprintf("%v: use auto, direct or copy", o.Transport)}
	}
	return nil
}

// weights resolves the split of an operation: its exact key, its family, the
// base weights, or equal shares. The result is not shared with the options.
func (o Options) weights(op Op, n int) (w []float64, source string) {
	if w, ok := o.OperationWeights[op.Key]; ok {
		return slices.Clone(w), op.Key
	}
	if w, ok := o.OperationWeights[op.Family]; ok {
		return slices.Clone(w), op.Family
	}
	if o.Weights != nil {
		return slices.Clone(o.Weights), "base"
	}
	w = make([]float64, n)
	for i := range w {
		w[i] = 1
	}
	return w, "equal"
}

// floor scales the row floor with the width of a row. Narrow rows do not
// lower it.
func (o Options) floor(op Op) int64 {
	f := o.MinRaysPerDevice
	switch f {
	case 0:
		f = DefaultMinRows
	case 1:
		return 1 // disabled, also for wide rows
	}
	return ceilDiv(f, max(op.Width(), floorWidth))
}

// ceilDiv is ceil(f*width/floorWidth) without overflow of the product.
func ceilDiv(f, width int64) int64 {
	q, r := f/floorWidth, f%floorWidth
	return q*width + (r*width+floorWidth-1)/floorWidth
}
