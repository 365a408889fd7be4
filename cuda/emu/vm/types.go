package vm

// typ is a PTX fundamental type.
type typ uint8

const (
	tNone typ = iota
	b8
	b16
	b32
	b64
	u8
	u16
	u32
	u64
	s8
	s16
	s32
	s64
	f16
	f16x2
	f32
	f64
	tPred
)

var typeNames = map[string]typ{
	"b8": b8, "b16": b16, "b32": b32, "b64": b64,
	"u8": u8, "u16": u16, "u32": u32, "u64": u64,
	"s8": s8, "s16": s16, "s32": s32, "s64": s64,
	"f16": f16, "f16x2": f16x2, "f32": f32, "f64": f64, "pred": tPred,
}

var typeBits = [...]int{
	b8: 8, b16: 16, b32: 32, b64: 64, u8: 8, u16: 16, u32: 32, u64: 64,
	s8: 8, s16: 16, s32: 32, s64: 64, f16: 16, f16x2: 32, f32: 32, f64: 64, tPred: 1,
}

func (t typ) bits() int      { return typeBits[t] }
func (t typ) bytes() int     { return typeBits[t] / 8 }
func (t typ) signed() bool   { return t >= s8 && t <= s64 }
func (t typ) unsigned() bool { return t >= u8 && t <= u64 }
func (t typ) integer() bool  { return t.signed() || t.unsigned() }
func (t typ) untyped() bool  { return t >= b8 && t <= b64 }
func (t typ) float() bool    { return t >= f16 && t <= f64 }

func (t typ) String() string {
	for n, v := range typeNames {
		if v == t {
			return n
		}
	}
	return "none"
}
