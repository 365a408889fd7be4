package emu_test

import (
	"fmt"
	"math"
	"math/big"
	"testing"
)

// extended is a result narrower than its register: kept at 32 bits.
func extended(n *big.Int, width int, signed bool) uint64 {
	if width == 8 {
		return wrap(num(wrap(n, 8), 8, signed), 32)
	}
	return wrap(n, width)
}

func TestConformIntegerConversions(t *testing.T) {
	var list []instruction
	widths := []int{8, 16, 32, 64}
	eachInt(func(dw int, ds bool) {
		eachInt(func(sw int, ss bool) {
			for _, sat := range []string{"", ".sat"} {
				list = append(list, instruction{
					text: fmt.Sprintf("cvt%s.%s.%s $d, $0;", sat, letter(dw, ds), letter(sw, ss)),
					out:  intType(dw), in: []typ{intType(sw)},
					want: func(v []uint64) uint64 {
						n := num(v[0], sw, ss)
						if sat != "" {
							n = clampInt(n, dw, ds)
						}
						return extended(n, dw, ds)
					}})
			}
		}, widths...)
	}, widths...)
	conform(t, list)
}

// integral is x rounded to an integer in a mode: rni, rzi, rmi, rpi.
func integral(x float64, mode string) float64 {
	switch mode {
	case "rni":
		return math.RoundToEven(x)
	case "rzi":
		return math.Trunc(x)
	case "rmi":
		return math.Floor(x)
	}
	return math.Ceil(x)
}

func TestConformFloatToInteger(t *testing.T) {
	var list []instruction
	for _, f := range []format{single, double, half} {
		for _, mode := range []string{"rni", "rzi", "rmi", "rpi"} {
			for _, z := range []string{"", ".ftz"} {
				if z != "" && f.name != "f32" {
					continue
				}
				eachInt(func(w int, s bool) {
					list = append(list, instruction{
						text: fmt.Sprintf("cvt.%s%s.%s.%s $d, $0;", mode, z, letter(w, s), f.name),
						out:  intType(w), in: []typ{f.operand},
						want: func(v []uint64) uint64 {
							x := f.decode(v[0])
							if z != "" {
								x = f.flush(x)
							}
							switch {
							case math.IsNaN(x) && f.name != "f64" && w < 64:
								return 0
							case math.IsNaN(x):
								return extended(new(big.Int).Lsh(big.NewInt(1), uint(w-1)), w, s)
							case math.IsInf(x, 0):
								x = math.Copysign(1e300, x)
							}
							n, _ := big.NewFloat(integral(x, mode)).Int(nil)
							return extended(clampInt(n, w, s), w, s)
						}})
				}, 8, 16, 32, 64)
			}
		}
	}
	conform(t, list)
}

func TestConformIntegerToFloat(t *testing.T) {
	var list []instruction
	for _, f := range []format{single, double, half} {
		for _, mode := range []string{"rn", "rz", "rm", "rp"} {
			eachInt(func(w int, s bool) {
				list = append(list, instruction{
					text: fmt.Sprintf("cvt.%s.%s.%s $d, $0;", mode, f.name, letter(w, s)),
					out:  f.operand, in: []typ{intType(w)},
					want: func(v []uint64) uint64 {
						n := num(v[0], w, s)
						if n.Sign() == 0 {
							return 0
						}
						return f.encode(f.round(new(big.Float).SetPrec(5000).SetInt(n), mode))
					}})
			}, 8, 16, 32, 64)
		}
	}
	conform(t, list)
}

func TestConformFloatToFloat(t *testing.T) {
	var list []instruction
	add := func(text string, to, from format, flushed bool, f func(x float64) float64) {
		k := instruction{text: text + " $d, $0;", out: to.operand, in: []typ{from.operand}, same: to.sameFloat,
			want: func(v []uint64) uint64 { return to.encode(f(from.decode(v[0]))) }}
		if flushed {
			k.same = to.sameFlushed
		}
		list = append(list, k)
	}
	for _, mode := range []string{"rn", "rz", "rm", "rp"} {
		for _, c := range []struct{ to, from format }{{single, double}, {half, single}, {half, double}} {
			narrow := func(x float64) float64 {
				if special(x) || x == 0 {
					return x
				}
				return c.to.round(bigf(x), mode)
			}
			base := "cvt." + mode
			tail := "." + c.to.name + "." + c.from.name
			add(base+tail, c.to, c.from, false, narrow)
			if c.to.name == "f32" {
				add(base+".ftz"+tail, c.to, c.from, true, func(x float64) float64 { return c.to.flush(narrow(x)) })
				add(base+".sat"+tail, c.to, c.from, false, func(x float64) float64 { return saturate(narrow(x)) })
			}
		}
	}
	same := func(x float64) float64 { return x }
	add("cvt.f64.f32", double, single, false, same)
	add("cvt.ftz.f64.f32", double, single, false, single.flush)
	add("cvt.f32.f16", single, half, false, same)
	add("cvt.f64.f16", double, half, false, same)
	for _, f := range []format{single, double} {
		for _, mode := range []string{"rni", "rzi", "rmi", "rpi"} {
			add(fmt.Sprintf("cvt.%s.%s.%s", mode, f.name, f.name), f, f, false, func(x float64) float64 { return integral(x, mode) })
		}
		add(fmt.Sprintf("cvt.sat.%s.%s", f.name, f.name), f, f, false, saturate)
	}
	add("cvt.rni.ftz.f32.f32", single, single, true, func(x float64) float64 { return integral(single.flush(x), "rni") })
	conform(t, list)
}

func TestConformMoves(t *testing.T) {
	var list []instruction
	for _, ty := range []typ{i16, i32, i64, f32, f64} {
		list = append(list, instruction{text: "mov." + ty.reg + " $d, $0;", out: ty, in: times(ty, 1),
			want: func(v []uint64) uint64 { return v[0] }})
	}
	list = append(list,
		instruction{text: "mov.b32 $d, $0;", out: i32, in: times(f32, 1), want: func(v []uint64) uint64 { return v[0] }},
		instruction{text: "mov.b64 $d, $0;", out: f64, in: times(i64, 1), want: func(v []uint64) uint64 { return v[0] }},
		instruction{text: "mov.b64 $d, {$0, $1};", out: i64, in: times(i32, 2), want: func(v []uint64) uint64 { return v[1]<<32 | v[0] }},
		instruction{text: "mov.b32 $d, {$0, $1};", out: i32, in: times(i16, 2), want: func(v []uint64) uint64 { return v[1]<<16 | v[0] }},
		instruction{text: "mov.b64 $d, {$0, $1, $2, $3};", out: i64, in: times(i16, 4),
			want: func(v []uint64) uint64 { return v[3]<<48 | v[2]<<32 | v[1]<<16 | v[0] }},
		instruction{text: "mov.b64 {%t0, $d}, $0;", out: i32, in: times(i64, 1), want: func(v []uint64) uint64 { return v[0] >> 32 }},
		instruction{text: "mov.b64 {$d, %t0}, $0;", out: i32, in: times(i64, 1), want: func(v []uint64) uint64 { return v[0] & 0xffffffff }},
	)
	conform(t, list)
}
