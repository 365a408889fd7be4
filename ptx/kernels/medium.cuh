// Media of surfaces, and how they reflect: the Fresnel coefficients of a plane boundary
// between vacuum and a medium, in single precision and in an order of operations that is
// part of the result.
//
//   eta   = eta_r - j sigma/(w eps0),   w = 2 pi c0 / lambda
//   root  = sqrt((mu_r eta - 1) + c^2), Im(root) <= 0
//   te    = gain (mu_r c - root)/(mu_r c + root)
//   tm    = gain (eta  c - root)/(eta  c + root)
//
// with c the cosine of the angle of incidence. c^2 is added last, so that nothing cancels
// and vacuum reflects exactly nothing.
#pragma once

#include "arith.cuh"

// The media of a scene. Without index, triangle i has row i.
struct Media {
    const float4* rows; // eta_r, sigma, mu_r, gain
    const u8* valid;    // of each row: 0 absorbs
    const i32* index;   // row of each triangle, or null
    i32 count;          // rows
    i32 faces;          // triangles
};

// The medium of a triangle. False where it absorbs, or is none of the scene's.
__device__ __forceinline__ bool medium_of(const Media& m, i32 prim, float4& row)
{
    if (prim < 0 || prim >= m.faces) {
        return false;
    }
    const i32 i = m.index ? __ldg(m.index + prim) : prim;
    row = __ldg(m.rows + i);
    return __ldg(m.valid + i) != 0;
}

// A complex number.
struct c32 {
    float re, im;
};

__device__ __forceinline__ c32 mul(c32 a, float s) { return c32{mul(a.re, s), mul(a.im, s)}; }

// Products rounded like differences of products: each part to two units in the last place.
__device__ __forceinline__ c32 mul(c32 a, c32 b)
{
    return c32{dop(a.re, b.re, a.im, b.im), dop(a.re, b.im, -a.im, b.re)};
}

// a / b. Both are divided by the larger part of b, so that squares stay in range. b = 0
// gives no number.
__device__ __forceinline__ c32 quot(c32 a, c32 b)
{
    const float m = fmaxf(fabsf(b.re), fabsf(b.im));
    const c32 n = {quot(a.re, m), quot(a.im, m)};
    const c32 d = {quot(b.re, m), quot(b.im, m)};
    const float square = fmadd(d.re, d.re, mul(d.im, d.im));
    return c32{quot(dop(n.re, d.re, -n.im, d.im), square), quot(dop(n.im, d.re, n.re, d.im), square)};
}

// The square root of a number with Im <= 0 that has Im <= 0, and Re >= 0. With
// m = max(|re|, |im|), a = re/m, b = im/m:
//
//   t    = sqrt((sqrt(a^2 + b^2) + |a|)/2) sqrt(m)
//   root = t + j b m/(2t), or |b| m/(2t) - j t where re < 0
__device__ __forceinline__ c32 root_below(c32 z)
{
    const float m = fmaxf(fabsf(z.re), fabsf(z.im));
    if (m == 0.0f) {
        return c32{0.0f, 0.0f};
    }
    const float a = fabsf(quot(z.re, m));
    const float b = fabsf(quot(z.im, m));
    const float t = root(mul(0.5f, add(root(fmadd(a, a, mul(b, b))), a)));
    const float scale = root(m);
    const float large = mul(scale, t);
    const float small = mul(scale, quot(mul(0.5f, b), t));
    return z.re < 0.0f ? c32{small, -large} : c32{large, -small};
}

// Coefficients of the field components perpendicular to the plane of incidence (te), and
// in it (tm).
struct Reflectance {
    c32 te, tm;
};

// Loss above which a medium is a perfect conductor.
#define CONDUCTOR_LOSS 1e30f
// Smallest cosine of the angle of incidence.
#define LEAST_COSINE 1e-6f

// A coefficient that is not finite is none.
__device__ __forceinline__ c32 coefficient(float gain, c32 numerator, c32 denominator)
{
    const c32 r = mul(quot(numerator, denominator), gain);
    return is_finite(r.re) && is_finite(r.im) ? r : c32{0.0f, 0.0f};
}

// sigma/(w eps0), rounded once; loss_per_sigma is 1/(w eps0).
__device__ __forceinline__ float medium_loss(float sigma, double loss_per_sigma)
{
    return sigma == 0.0f ? 0.0f : __double2float_rn(__dmul_rn((double)sigma, loss_per_sigma));
}

// The coefficients of a medium at the cosine c of the angle of incidence.
__device__ __forceinline__ Reflectance reflectance(float4 medium, double loss_per_sigma, float c)
{
    const float loss = medium_loss(medium.y, loss_per_sigma);
    const float mu = medium.z;
    const float gain = medium.w;
    if (loss > CONDUCTOR_LOSS) {
        return Reflectance{{-gain, 0.0f}, {gain, 0.0f}};
    }
    c = fmaxf(fminf(c, 1.0f), LEAST_COSINE);
    const c32 r = root_below(c32{add(fmadd(mu, medium.x, -1.0f), mul(c, c)), -mul(mu, loss)});
    const float h = mul(mu, c);
    const c32 e = {mul(medium.x, c), -mul(loss, c)};
    return Reflectance{coefficient(gain, c32{sub(h, r.re), -r.im}, c32{add(h, r.re), r.im}),
                       coefficient(gain, c32{sub(e.re, r.re), sub(e.im, r.im)}, c32{add(e.re, r.re), add(e.im, r.im)})};
}
