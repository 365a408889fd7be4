// Double-precision arithmetic under the rules of arith.cuh: every operation names its
// rounding, and the functions that CUDA takes from its device library are polynomials of
// our own, so that values have the same bits on every device and on the emulator.
#pragma once

#include "arith.cuh"

#define F64_MAX 1.7976931348623157e308
#define PI 3.141592653589793

struct f64x3 {
    double x, y, z;
};

__device__ __forceinline__ double add(double a, double b) { return __dadd_rn(a, b); }
__device__ __forceinline__ double sub(double a, double b) { return __dsub_rn(a, b); }
__device__ __forceinline__ double mul(double a, double b) { return __dmul_rn(a, b); }
__device__ __forceinline__ double fmadd(double a, double b, double c) { return __fma_rn(a, b, c); }
__device__ __forceinline__ double quot(double a, double b) { return __ddiv_rn(a, b); }
__device__ __forceinline__ double root(double a) { return __dsqrt_rn(a); }

__device__ __forceinline__ bool is_finite(double a) { return fabs(a) <= F64_MAX; }

__device__ __forceinline__ bool is_finite(f64x3 a) { return is_finite(a.x) && is_finite(a.y) && is_finite(a.z); }

__device__ __forceinline__ f64x3 widened(f32x3 a) { return f64x3{(double)a.x, (double)a.y, (double)a.z}; }

__device__ __forceinline__ f64x3 sub(f64x3 a, f64x3 b) { return f64x3{sub(a.x, b.x), sub(a.y, b.y), sub(a.z, b.z)}; }

__device__ __forceinline__ f64x3 mul(f64x3 a, double s) { return f64x3{mul(a.x, s), mul(a.y, s), mul(a.z, s)}; }

// a s + b
__device__ __forceinline__ f64x3 fmadd(f64x3 a, double s, f64x3 b)
{
    return f64x3{fmadd(a.x, s, b.x), fmadd(a.y, s, b.y), fmadd(a.z, s, b.z)};
}

__device__ __forceinline__ double dot(f64x3 a, f64x3 b) { return fmadd(a.x, b.x, fmadd(a.y, b.y, mul(a.z, b.z))); }

__device__ __forceinline__ f64x3 cross(f64x3 a, f64x3 b)
{
    return f64x3{fmadd(a.y, b.z, -mul(a.z, b.y)), fmadd(a.z, b.x, -mul(a.x, b.z)), fmadd(a.x, b.y, -mul(a.y, b.x))};
}

__device__ __forceinline__ double horner(double, double c) { return c; }

// The polynomial with these coefficients, the constant first.
template <class... Rest> __device__ __forceinline__ double horner(double x, double c, Rest... rest)
{
    return fmadd(x, horner(x, rest...), c);
}

struct SinCos {
    double sin, cos;
};

// Sine and cosine of quarter pi/2 + x for |x| <= pi/4: Taylor polynomials, whose first
// term left out is below 1e-16.
__device__ __forceinline__ SinCos sincos_of(double x, double quarter)
{
    const double z = mul(x, x);
    const double s = fmadd(mul(x, z),
                           horner(z, -0.16666666666666666, 0.008333333333333333, -0.0001984126984126984,
                                  2.7557319223985893e-06, -2.505210838544172e-08, 1.6059043836821613e-10,
                                  -7.647163731819816e-13),
                           x);
    const double c = horner(z, 1.0, -0.5, 0.041666666666666664, -0.001388888888888889, 2.48015873015873e-05,
                            -2.755731922398589e-07, 2.08767569878681e-09, -1.1470745597729725e-11,
                            4.779477332387385e-14);
    const i32 q = __double2int_rn(quarter);
    const double a = q & 1 ? c : s;
    const double b = q & 1 ? s : c;
    return SinCos{q & 2 ? -a : a, (q + 1) & 2 ? -b : b};
}

// Sine and cosine of 2 pi x, for any finite x: whole turns and quarters are taken off
// exactly.
__device__ __forceinline__ SinCos sincos_turns(double x)
{
    const double r = sub(x, rint(x));
    const double quarter = rint(mul(4.0, r));
    return sincos_of(mul(fmadd(quarter, -0.25, r), 6.283185307179586), quarter);
}

// Sine and cosine of x radians, |x| < 1e4.
__device__ __forceinline__ SinCos sincos_radians(double x)
{
    const double quarter = rint(mul(x, 0.6366197723675814));
    const double r = fmadd(quarter, -1.5707963267948966, x);
    return sincos_of(fmadd(quarter, -6.123233995736766e-17, r), quarter);
}

// The angle of the direction (x, y) in [0, 2 pi], counted from +x towards +y; 0 for no
// direction. 2 pi itself is the rounded form of angles just below it.
__device__ __forceinline__ double angle_of(double y, double x)
{
    const double ax = fabs(x);
    const double ay = fabs(y);
    const bool steep = ay > ax;
    const double a = steep ? ax : ay;
    const double b = steep ? ay : ax;
    if (b == 0.0) {
        return 0.0;
    }
    // The tangent of the angle to the nearest multiple of pi/4, at most tan(pi/8) large.
    const bool diagonal = a > mul(0.41421356237309503, b);
    const double u = quot(diagonal ? sub(a, b) : a, diagonal ? add(a, b) : b);
    const double z = mul(u, u);
    // (atan(u) - u)/u^3 through the Chebyshev points of the interval.
    double t = fmadd(mul(u, z),
                     horner(z, -0.3333333333333333, 0.199999999999998, -0.14285714285659165, 0.1111111110509085,
                            -0.09090908750288565, 0.07692296282215248, -0.06666423219768516, 0.05878909855219278,
                            -0.05230313376902839, 0.045509509538062015, -0.034554055081361584, 0.016267475499798706),
                     u);
    double eighths = diagonal ? 1.0 : 0.0;
    if (steep) {
        eighths = sub(2.0, eighths);
        t = -t;
    }
    if (x < 0.0) {
        eighths = sub(4.0, eighths);
        t = -t;
    }
    if (y < 0.0) {
        eighths = sub(8.0, eighths);
        t = -t;
    }
    return fmadd(eighths, 0.7853981633974483, fmadd(eighths, 3.061616997868383e-17, t));
}
