package emu_test

import (
	"fmt"
	"math"
	"testing"
)

// comparison is an operator on three-way order; unordered is its answer when
// an operand is NaN.
type comparison struct {
	name      string
	ordered   func(c int) bool
	unordered bool
}

var orderings = map[string]func(c int) bool{
	"eq": func(c int) bool { return c == 0 }, "ne": func(c int) bool { return c != 0 },
	"lt": func(c int) bool { return c < 0 }, "le": func(c int) bool { return c <= 0 },
	"gt": func(c int) bool { return c > 0 }, "ge": func(c int) bool { return c >= 0 },
}

// compared is a type with its operators and its order; ok is false when the
// operands have none.
type compared struct {
	name  string
	ty    typ
	ops   []comparison
	order func(a, b uint64) (c int, ok bool)
}

func comparedTypes() []compared {
	var list []compared
	eachInt(func(w int, s bool) {
		c := compared{name: letter(w, s), ty: intType(w), order: func(a, b uint64) (int, bool) { return num(a, w, s).Cmp(num(b, w, s)), true }}
		for name, f := range orderings {
			c.ops = append(c.ops, comparison{name, f, false})
		}
		if !s {
			for name, alias := range map[string]string{"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"} {
				c.ops = append(c.ops, comparison{name, orderings[alias], false})
			}
			list = append(list, compared{fmt.Sprintf("b%d", w), c.ty,
				[]comparison{{"eq", orderings["eq"], false}, {"ne", orderings["ne"], false}}, c.order})
		}
		list = append(list, c)
	}, 16, 32, 64)
	for _, f := range []format{single, double} {
		c := compared{name: f.name, ty: f.operand, order: func(a, b uint64) (int, bool) {
			x, y := f.decode(a), f.decode(b)
			switch {
			case math.IsNaN(x) || math.IsNaN(y):
				return 0, false
			case x < y:
				return -1, true
			case x > y:
				return 1, true
			}
			return 0, true
		}}
		for name, o := range orderings {
			c.ops = append(c.ops, comparison{name, o, false}, comparison{name + "u", o, true})
		}
		c.ops = append(c.ops, comparison{"num", func(int) bool { return true }, false}, comparison{"nan", func(int) bool { return false }, true})
		list = append(list, c)
	}
	return list
}

func (c compared) holds(o comparison, a, b uint64) bool {
	n, ok := c.order(a, b)
	if !ok {
		return o.unordered
	}
	return o.ordered(n)
}

func TestConformComparisons(t *testing.T) {
	var list []instruction
	for _, c := range comparedTypes() {
		for _, o := range c.ops {
			two := times(c.ty, 2)
			three := append(times(c.ty, 2), pred)
			list = append(list,
				instruction{text: fmt.Sprintf("setp.%s.%s $d, $0, $1;", o.name, c.name), out: pred, in: two,
					want: func(v []uint64) uint64 { return truth(c.holds(o, v[0], v[1])) }},
				instruction{text: fmt.Sprintf("set.%s.u32.%s $d, $0, $1;", o.name, c.name), out: i32, in: two,
					want: func(v []uint64) uint64 { return truth(c.holds(o, v[0], v[1])) * 0xffffffff }},
				instruction{text: fmt.Sprintf("set.%s.f32.%s $d, $0, $1;", o.name, c.name), out: f32, in: two,
					want: func(v []uint64) uint64 { return truth(c.holds(o, v[0], v[1])) * 0x3f800000 }},
			)
			if o.name != "lt" && o.name != "eq" && o.name != "geu" {
				continue // combining with a predicate does not depend on the operator
			}
			for name, f := range map[string]func(a, b bool) bool{
				"and": func(a, b bool) bool { return a && b }, "or": func(a, b bool) bool { return a || b }, "xor": func(a, b bool) bool { return a != b },
			} {
				list = append(list,
					instruction{text: fmt.Sprintf("setp.%s.%s.%s $d, $0, $1, $2;", o.name, name, c.name), out: pred, in: three,
						want: func(v []uint64) uint64 { return truth(f(c.holds(o, v[0], v[1]), v[2] != 0)) }},
					instruction{text: fmt.Sprintf("setp.%s.%s.%s %%q0|$d, $0, $1, !$2;", o.name, name, c.name), out: pred, in: three,
						want: func(v []uint64) uint64 { return truth(f(!c.holds(o, v[0], v[1]), v[2] == 0)) }},
					instruction{text: fmt.Sprintf("set.%s.%s.u32.%s $d, $0, $1, $2;", o.name, name, c.name), out: i32, in: three,
						want: func(v []uint64) uint64 { return truth(f(c.holds(o, v[0], v[1]), v[2] != 0)) * 0xffffffff }},
				)
			}
		}
		list = append(list,
			instruction{text: fmt.Sprintf("selp.%s $d, $0, $1, $2;", c.name), out: c.ty, in: append(times(c.ty, 2), pred),
				want: func(v []uint64) uint64 {
					if v[2] != 0 {
						return v[0]
					}
					return v[1]
				}},
			instruction{text: fmt.Sprintf("slct.%s.s32 $d, $0, $1, $2;", c.name), out: c.ty, in: append(times(c.ty, 2), i32),
				want: func(v []uint64) uint64 {
					if int32(v[2]) >= 0 {
						return v[0]
					}
					return v[1]
				}},
			instruction{text: fmt.Sprintf("slct.%s.f32 $d, $0, $1, $2;", c.name), out: c.ty, in: append(times(c.ty, 2), f32),
				want: func(v []uint64) uint64 {
					if single.decode(v[2]) >= 0 { // true for -0, false for NaN
						return v[0]
					}
					return v[1]
				}},
		)
	}
	list = append(list, instruction{text: "setp.lt.ftz.f32 $d, $0, $1;", out: pred, in: times(f32, 2),
		want: func(v []uint64) uint64 {
			return truth(single.flush(single.decode(v[0])) < single.flush(single.decode(v[1])))
		}})
	conform(t, list)
}
