// A field vector on its way: start, reflection and phase, in single precision and in an
// order of operations that is part of the result. Time runs as exp(+j w t): a wave that has
// travelled r is multiplied by exp(-j 2 pi r / lambda).
#pragma once

#include "medium.cuh"
#include "reflect.cuh"

// A complex vector.
struct c32x3 {
    c32 x, y, z;
};

// Vectors whose squared length is not above this have no direction.
#define LEAST_SQUARE 1e-12f

// a - dot(a, k) k.
__device__ __forceinline__ f32x3 across(f32x3 a, f32x3 k)
{
    const float h = dot(a, k);
    return f32x3{sub(a.x, mul(h, k.x)), sub(a.y, mul(h, k.y)), sub(a.z, mul(h, k.z))};
}

// A unit vector perpendicular to the unit vector k.
__device__ __forceinline__ f32x3 perpendicular(f32x3 k)
{
    const bool flat = fabsf(k.z) < 0.9f;
    return unit(across(f32x3{0.0f, flat ? 0.0f : 1.0f, flat ? 1.0f : 0.0f}, k));
}

__device__ __forceinline__ f32x3 unit_or_perpendicular(f32x3 a, f32x3 k)
{
    return dot(a, a) > LEAST_SQUARE ? unit(a) : perpendicular(k);
}

// The unit vector perpendicular to the unit vector k next to a; any where a says nothing.
__device__ __forceinline__ f32x3 transverse(f32x3 a, f32x3 k) { return unit_or_perpendicular(across(a, k), k); }

__device__ __forceinline__ c32x3 complex_vector(f32x3 a) { return c32x3{{a.x, 0.0f}, {a.y, 0.0f}, {a.z, 0.0f}}; }

__device__ __forceinline__ c32 dot(c32x3 f, f32x3 a)
{
    return c32{dot(f32x3{f.x.re, f.y.re, f.z.re}, a), dot(f32x3{f.x.im, f.y.im, f.z.im}, a)};
}

__device__ __forceinline__ c32x3 mul(c32x3 f, c32 s) { return c32x3{mul(f.x, s), mul(f.y, s), mul(f.z, s)}; }

__device__ __forceinline__ bool is_finite(c32x3 f)
{
    return is_finite(f32x3{f.x.re, f.y.re, f.z.re}) && is_finite(f32x3{f.x.im, f.y.im, f.z.im});
}

__device__ __forceinline__ bool is_zero(c32x3 f)
{
    return f.x.re == 0.0f && f.x.im == 0.0f && f.y.re == 0.0f && f.y.im == 0.0f && f.z.re == 0.0f && f.z.im == 0.0f;
}

// a s + b p of a coordinate.
__device__ __forceinline__ c32 combined(c32 a, float s, c32 b, float p)
{
    return c32{fmadd(a.re, s, mul(b.re, p)), fmadd(a.im, s, mul(b.im, p))};
}

// The field after a reflection off a surface with unit normal n, of either orientation. f
// is transverse to the unit vector k; the result is transverse to reflected(k, dot(k, n), n).
//
//   s = n x k, p = s x k, p' = s x k'
//   f' = te dot(f, s) s + tm dot(f, p) p'
__device__ __forceinline__ c32x3 reflected_field(c32x3 f, f32x3 k, f32x3 n, float4 medium, double loss_per_sigma)
{
    const float h = dot(k, n);
    const f32x3 next = reflected(k, h, n);
    const f32x3 s = unit_or_perpendicular(cross(h > 0.0f ? f32x3{-n.x, -n.y, -n.z} : n, k), k);
    const f32x3 p = cross(s, next);
    const Reflectance r = reflectance(medium, loss_per_sigma, fabsf(h));
    const c32 a = mul(r.te, dot(f, s));
    const c32 b = mul(r.tm, dot(f, cross(s, k)));
    return c32x3{combined(a, s.x, b, p.x), combined(a, s.y, b, p.y), combined(a, s.z, b, p.z)};
}

// exp(-j 2 pi turns) for |turns| <= 1/2. The nearest quarter turn is taken away, exactly;
// what is left is at most 1/8, for which the series of sine and cosine end early:
// sin(2 pi x) = x (2 pi + x^2 S(x^2)), cos(2 pi x) = 1 + x^2 C(x^2). Off by about a unit
// in the last place.
__device__ __forceinline__ c32 turned_back(double turns)
{
    const i32 quarter = __double2int_rn(__dmul_rn(4.0, turns));
    const float x = __double2float_rn(__fma_rn(-0.25, (double)quarter, turns));
    const float q = mul(x, x);
    float s = 42.0586939f;
    s = fmadd(s, q, -76.7058598f);
    s = fmadd(s, q, 81.6052493f);
    s = fmadd(s, q, -41.3417022f);
    // 2 pi in two parts, of which the second is within the last place of the first.
    s = fmadd(x, 6.28318548f, mul(x, fmadd(s, q, -1.74845553e-7f)));
    float c = -26.4262567f;
    c = fmadd(c, q, 60.2446414f);
    c = fmadd(c, q, -85.4568172f);
    c = fmadd(c, q, 64.9393940f);
    c = fmadd(c, q, -19.7392088f);
    c = fmadd(c, q, 1.0f);
    switch (quarter & 3) {
    case 0:
        return c32{c, -s};
    case 1:
        return c32{-s, -c};
    case 2:
        return c32{-c, s};
    default:
        return c32{s, c};
    }
}

// exp(-j 2 pi length / lambda): the number of wavelengths in double precision, less the
// nearest whole number.
__device__ __forceinline__ c32 travelled_phase(float length, double lambda)
{
    const double x = __ddiv_rn((double)length, lambda);
    return turned_back(__dsub_rn(x, rint(x)));
}
