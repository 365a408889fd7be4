package chunked

import (
	"fmt"
	"slices"
)

// Transport is how the rows of a remote device travel.
type Transport int

// Transports. The zero value lets New choose.
const (
	// Auto is the fastest transport that works between the master and every
	// remote. A plan is made for one of the others.
	Auto Transport = iota
	// Direct lets remote kernels read their rays from, and write their
	// winners into, the master's buffers.
	Direct
	// Copy sends inputs and winners through the copy engines.
	Copy
	// Host sends inputs and winners through pinned memory of the host.
	Host
)

var transportNames = [...]string{"auto", "direct", "copy", "host"}

const transportChoice = "use auto, direct, copy or host"

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
		return &OptionError{"Transport", fmt.Sprintf("%q: %s", b, transportChoice)}
	}
	*t = Transport(i)
	return nil
}
