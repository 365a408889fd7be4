// Complex numbers in double precision.
//
// Quotients and square roots are not scaled: parameters of media are single-precision
// numbers, and neither the square of their products nor that of the reciprocal leaves the
// range of a double.
#pragma once

#include "f64.cuh"

struct c64 {
    double re, im;
};

// A complex vector.
struct c64x3 {
    c64 x, y, z;
};

__device__ __forceinline__ c64 add(c64 a, c64 b) { return c64{add(a.re, b.re), add(a.im, b.im)}; }
__device__ __forceinline__ c64 sub(c64 a, c64 b) { return c64{sub(a.re, b.re), sub(a.im, b.im)}; }
__device__ __forceinline__ c64 mul(c64 a, double s) { return c64{mul(a.re, s), mul(a.im, s)}; }

__device__ __forceinline__ c64 mul(c64 a, c64 b)
{
    return c64{fmadd(a.re, b.re, -mul(a.im, b.im)), fmadd(a.re, b.im, mul(a.im, b.re))};
}

// a s + b
__device__ __forceinline__ c64 fmadd(c64 a, double s, c64 b) { return c64{fmadd(a.re, s, b.re), fmadd(a.im, s, b.im)}; }

// a/b; b = 0 gives no number.
__device__ __forceinline__ c64 quot(c64 a, c64 b)
{
    const double inverse = quot(1.0, fmadd(b.re, b.re, mul(b.im, b.im)));
    return mul(mul(a, c64{b.re, -b.im}), inverse);
}

// The square root with Im <= 0, and Re >= 0, of a number with Im <= 0.
__device__ __forceinline__ c64 root_below(c64 a)
{
    const double length = root(fmadd(a.re, a.re, mul(a.im, a.im)));
    if (length == 0.0) {
        return c64{0.0, 0.0};
    }
    const double large = root(mul(0.5, add(length, fabs(a.re))));
    const double small = quot(mul(0.5, fabs(a.im)), large);
    return a.re < 0.0 ? c64{small, -large} : c64{large, -small};
}
