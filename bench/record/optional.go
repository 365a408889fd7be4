package record

import "encoding/json"

// Optional is a number that may be absent, null, or present; JSON tells the first two apart and so do the rules of a
// record. The zero value is absent.
type Optional struct {
	Present bool     // the key exists
	Value   *float64 // nil is null
}

// Number returns a present number.
func Number(v float64) Optional { return Optional{Present: true, Value: &v} }

// Null returns a present null.
func Null() Optional { return Optional{Present: true} }

// MarshalJSON writes the number or null. An absent value is left out by the omitzero tag of its field.
func (o Optional) MarshalJSON() ([]byte, error) { return json.Marshal(o.Value) }

// UnmarshalJSON reads a number or null.
func (o *Optional) UnmarshalJSON(data []byte) error {
	o.Present = true
	return json.Unmarshal(data, &o.Value)
}
