package vm

import (
	"math"
	"math/big"
)

// float32FMA is a fused multiply-add by exact arithmetic for finite operands.
func float32FMA(a, b, c float32) float32 {
	x := new(big.Float).SetPrec(1000).Mul(big.NewFloat(float64(a)), big.NewFloat(float64(b)))
	x.Add(x, big.NewFloat(float64(c)))
	if x.Sign() == 0 { // the sign of zero is that of IEEE arithmetic on the parts
		return float32(float64(a)*float64(b) + float64(c))
	}
	f, _ := x.Float32()
	if math.IsInf(float64(f), 0) {
		return f
	}
	return f
}
