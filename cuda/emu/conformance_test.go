package emu_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/cuda/emu"
)

// The conformance tests run every instruction on random operands and edge
// values through the driver interface, and compare with Go's own arithmetic
// and math/big. They share no code with the interpreter.

// typ is the type of an operand: how it is kept in a register, and which
// values are worth trying.
type typ struct {
	reg   string // register type
	bytes int
	edges []uint64
	float bool
}

func edgeInts(width int) []uint64 {
	mask := ^uint64(0) >> (64 - width)
	var v []uint64
	for _, k := range []uint64{0, 1, 2, 3, 7, 8, 15, 16, 31, 32, 33, 63, 64, 65, 127, 128, 255, 256, 257} {
		v = append(v, k&mask, -k&mask)
	}
	for s := range width {
		v = append(v, uint64(1)<<s, (uint64(1)<<s-1)&mask)
	}
	return append(v, mask>>1, mask>>1+1, mask, 0x5555555555555555&mask, 0xaaaaaaaaaaaaaaaa&mask, 0x0123456789abcdef&mask)
}

func edgeFloats32() []uint64 {
	var v []uint64
	for _, f := range []float32{0, 1, 2, 3, 0.5, 1.5, 2.5, 0.1, 10, 127, 128, 255, 256, 32767, 32768, 65535, 65536, 1 << 23, 1<<23 + 1,
		1 << 24, 1 << 31, 1 << 32, 1 << 62, 1 << 63, 1 << 64, math.MaxFloat32, math.SmallestNonzeroFloat32, math.Pi, 65504, 65520, 6e-8, 3e-8} {
		b := math.Float32bits(f)
		v = append(v, uint64(b), uint64(b|1<<31), uint64(b+1), uint64(b+1|1<<31))
		if b > 0 {
			v = append(v, uint64(b-1), uint64(b-1|1<<31))
		}
	}
	return append(v, 0x7f800000, 0xff800000, 0x7fc00000, 0x7fffffff, 0xffc12345, 0x7f800001, // infinities, NaNs
		0x00800000, 0x80800000, 0x007fffff, 0x807fffff, 0x00400000) // around the smallest normal number
}

func edgeFloats64() []uint64 {
	var v []uint64
	for _, f := range []float64{0, 1, 2, 3, 0.5, 1.5, 2.5, 0.1, 10, 127, 255, 32768, 65536, 1 << 24, 1<<24 + 1, 1 << 31, 1 << 32, 1 << 52, 1<<53 + 2,
		1 << 62, 1 << 63, 1 << 64, math.MaxFloat64, math.SmallestNonzeroFloat64, math.MaxFloat32, math.SmallestNonzeroFloat32,
		math.SmallestNonzeroFloat32 / 2, math.Pi, 1 + 1.0/(1<<24), 1 + 3.0/(1<<24)} {
		b := math.Float64bits(f)
		v = append(v, b, b|1<<63, b+1, b+1|1<<63)
		if b > 0 {
			v = append(v, b-1, b-1|1<<63)
		}
	}
	return append(v, 0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000, 0x7fffffffffffffff, 0xfff8000000012345,
		0x0010000000000000, 0x000fffffffffffff, 0x8010000000000000)
}

var (
	i8   = typ{"b32", 1, edgeInts(8), false} // PTX has no 8-bit registers
	i16  = typ{"b16", 2, edgeInts(16), false}
	i32  = typ{"b32", 4, edgeInts(32), false}
	i64  = typ{"b64", 8, edgeInts(64), false}
	f32  = typ{"f32", 4, edgeFloats32(), true}
	f64  = typ{"f64", 8, edgeFloats64(), true}
	h16  = typ{"b16", 2, append(edgeInts(16), 0x7c00, 0xfc00, 0x7e00, 0x0400, 0x03ff, 0x3c00, 0x7bff), false}
	pred = typ{"pred", 1, []uint64{0, 1}, false}
)

func intType(width int) typ { return map[int]typ{8: i8, 16: i16, 32: i32, 64: i64}[width] }

// value is an edge value, a random one, or, for floats, one of moderate size.
func (t typ) value(r *rand.Rand) uint64 {
	v := r.Uint64()
	switch k := r.IntN(10); {
	case k < 4:
		return t.edges[r.IntN(len(t.edges))]
	case t.reg == "pred":
		return v & 1
	case t.float && k < 8 && t.bytes == 4:
		return uint64(math.Float32bits(float32(r.NormFloat64() * math.Exp2(float64(r.IntN(40)-20)))))
	case t.float && k < 8:
		return math.Float64bits(r.NormFloat64() * math.Exp2(float64(r.IntN(80)-40)))
	case !t.float && k < 7: // numbers of every length
		v >>= r.IntN(64)
	}
	return v & (^uint64(0) >> (64 - 8*t.bytes))
}

// instruction is one form under test. In text $d is the destination and $0,
// $1 ... are the operands; it may be several instructions.
type instruction struct {
	text string
	out  typ
	in   []typ
	want func(v []uint64) uint64
	// same says whether a result is right, where that is more than being equal.
	same func(got, want uint64, v []uint64) bool
	// fix may adjust random operands, for instance to keep a shift in range.
	fix func(v []uint64)
}

// source is a kernel that applies the instruction to columns of 8-byte cells.
func (k instruction) source(name string) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".visible .entry %s(.param .u64 o", name)
	for i := range k.in {
		fmt.Fprintf(&b, ", .param .u64 i%d", i)
	}
	b.WriteString(")\n{\n.reg .b64 %base, %at, %off;\n.reg .b32 %n, %i, %flag;\n.reg .b32 %t<4>;\n.reg .b64 %u<4>;\n.reg .pred %q<4>;\n")
	fmt.Fprintf(&b, ".reg .%s %%d;\n", k.out.reg)
	b.WriteString("mov.u32 %i, %ctaid.x;\nmov.u32 %n, %ntid.x;\nmul.lo.u32 %i, %i, %n;\nmov.u32 %n, %tid.x;\nadd.u32 %i, %i, %n;\nmul.wide.u32 %off, %i, 8;\n")
	text := strings.ReplaceAll(k.text, "$d", "%d")
	for i, t := range k.in {
		fmt.Fprintf(&b, ".reg .%s %%v%d;\nld.param.u64 %%base, [i%d];\nadd.u64 %%at, %%base, %%off;\n", t.reg, i, i)
		switch {
		case t.reg == "pred":
			fmt.Fprintf(&b, "ld.global.u32 %%flag, [%%at];\nsetp.ne.u32 %%v%d, %%flag, 0;\n", i)
		case t.bytes == 1:
			fmt.Fprintf(&b, "ld.global.u32 %%v%d, [%%at];\n", i)
		case t.float:
			fmt.Fprintf(&b, "ld.global.%s %%v%d, [%%at];\n", t.reg, i)
		default:
			fmt.Fprintf(&b, "ld.global.b%d %%v%d, [%%at];\n", 8*t.bytes, i)
		}
		text = strings.ReplaceAll(text, fmt.Sprintf("$%d", i), fmt.Sprintf("%%v%d", i))
	}
	b.WriteString(text + "\nld.param.u64 %base, [o];\nadd.u64 %at, %base, %off;\n")
	switch {
	case k.out.reg == "pred":
		b.WriteString("selp.u32 %flag, 1, 0, %d;\nst.global.u32 [%at], %flag;\n")
	case k.out.bytes == 1:
		b.WriteString("st.global.u32 [%at], %d;\n")
	case k.out.float:
		fmt.Fprintf(&b, "st.global.%s [%%at], %%d;\n", k.out.reg)
	default:
		fmt.Fprintf(&b, "st.global.b%d [%%at], %%d;\n", 8*k.out.bytes)
	}
	b.WriteString("ret;\n}\n")
	return b.String()
}

// conform runs every instruction on lanes operand tuples.
func conform(t *testing.T, list []instruction) {
	t.Helper()
	const lanes = 512
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	e, err := emu.New(1)
	require.NoError(t, err)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	ok := func(res cuapi.Result) { t.Helper(); require.Equal(t, cuapi.Success, res, "%v", e.LastFault()) }
	ok(e.Init(0))
	c, res := e.DevicePrimaryCtxRetain(0)
	ok(res)
	ok(e.CtxSetCurrent(c))
	cells := make([]cuapi.DevicePtr, 6)
	for i := range cells {
		cells[i], res = e.MemAlloc(8 * lanes)
		ok(res)
	}
	for _, k := range list {
		// One module each, so that an instruction that does not load is named
		// and the rest is still tested.
		log := &cuapi.JITOptions{ErrorLog: make([]byte, 1024)}
		m, res := e.ModuleLoadDataEx([]byte(".version 8.0\n.target sm_75\n.address_size 64\n"+k.source("k")), log)
		if res != cuapi.Success {
			t.Errorf("%s: does not load: %s", k.text, log.ErrorLog)
			continue
		}
		f, res := e.ModuleGetFunction(m, "k")
		ok(res)
		operands := make([][]uint64, lanes)
		columns := make([][]byte, len(k.in))
		for i := range operands {
			v := make([]uint64, len(k.in))
			for j, ty := range k.in {
				v[j] = ty.value(r)
				if j > 0 && ty.reg == k.in[j-1].reg && r.IntN(16) == 0 {
					v[j] = v[j-1] // equal operands are rare otherwise
				}
			}
			if k.fix != nil {
				k.fix(v)
			}
			operands[i] = v
			for j := range v {
				columns[j] = binary.LittleEndian.AppendUint64(columns[j], v[j])
			}
		}
		params := binary.LittleEndian.AppendUint64(nil, uint64(cells[0]))
		for j, col := range columns {
			ok(e.MemcpyHtoD(cells[j+1], col))
			params = binary.LittleEndian.AppendUint64(params, uint64(cells[j+1]))
		}
		ok(e.MemsetD8(cells[0], 0, 8*lanes))
		ok(e.LaunchKernel(f, cuapi.D1(lanes/128), cuapi.D1(128), 0, 0, params))
		out := make([]byte, 8*lanes)
		ok(e.MemcpyDtoH(out, cells[0]))
		bad := 0
		for i, v := range operands {
			got, want := binary.LittleEndian.Uint64(out[8*i:]), k.want(v)
			same := got == want
			if k.same != nil {
				same = k.same(got, want, v)
			}
			if !same {
				if bad++; bad <= 3 {
					t.Errorf("%s of %#x: got %#x, want %#x", k.text, v, got, want)
				}
			}
		}
		if bad > 3 {
			t.Errorf("%s: %d of %d lanes are wrong", k.text, bad, lanes)
		}
		ok(e.ModuleUnload(m))
	}
}
