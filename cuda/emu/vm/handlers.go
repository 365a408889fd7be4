//go:generate go run ../../../tools/genops -out zz_ops.go

package vm

import (
	"math"
	"math/bits"
)

// handlers compile the statements of an opcode.
var handlers = map[string]func(c *compiler){
	"add": arithmetic(false), "sub": arithmetic(true), "addc": carryIn(false), "subc": carryIn(true),
	"mul": mul, "mad": mad, "madc": madc, "mul24": mul24Handler(false), "mad24": mul24Handler(true),
	"fma": fmaHandler, "div": division("div"), "rem": division("rem"),
	"min": minMax("min"), "max": minMax("max"), "neg": negAbs("neg"), "abs": negAbs("abs"),
	"rcp": roots("rcp"), "sqrt": roots("sqrt"), "rsqrt": roots("rsqrt"),
	"sin": approximate(math.Sin), "cos": approximate(math.Cos), "lg2": approximate(math.Log2), "ex2": approximate(math.Exp2),
	"tanh": approximate(math.Tanh), "copysign": copysignHandler, "testp": testp,

	"and": logic(loopsAnd, boolOps["and"]), "or": logic(loopsOr, boolOps["or"]), "xor": logic(loopsXor, boolOps["xor"]),
	"not": not, "shl": shift(true), "shr": shift(false), "shf": shfHandler, "lop3": lop3Handler, "prmt": prmtHandler,
	"cnot": unaryInt(tNone, cnotOf, b16, b32, b64), "popc": unaryInt(u32, popcOf, b32, b64),
	"clz": unaryInt(u32, clzOf, b32, b64), "brev": unaryInt(tNone, brevOf, b32, b64), "bfind": bfindHandler,
	"bfe": ternary(bfe, u32, u32, u32, u64, s32, s64), "bfi": bfiHandler,
	"fns": ternary(func(typ) func(x, y, z uint64) uint64 { return fns }, b32, s32, b32),
	"sad": ternary(sad, tNone, tNone, types163264...), "dp4a": dotProduct(true), "dp2a": dotProduct(false),

	"setp": setp, "set": set, "selp": selp, "slct": slct, "mov": mov, "cvt": cvt, "cvta": cvta, "isspacep": isspacep,
	"ld": memory(false), "ldu": memory(false), "st": memory(true), "atom": atomics(false), "red": atomics(true),
	"prefetch": hint, "prefetchu": hint,

	"bra": bra, "brx": brx, "call": call, "ret": ret, "exit": exit, "trap": trap("trap"), "brkpt": trap("breakpoint"),
	"bar": barrierHandler, "barrier": barrierHandler, "membar": nothing, "fence": nothing, "nanosleep": nothing,
	"shfl": shflHandler, "vote": voteHandler, "match": matchHandler, "activemask": activemask,
}

func firstLane(m uint32) int { return bits.TrailingZeros32(m) & 31 }
