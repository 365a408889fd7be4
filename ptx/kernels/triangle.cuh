// The canonical triangle test: a pure function of a ray and three stored vertices.
// The search asks it whether and where a triangle is crossed, finalize asks it for
// the columns of the winner. Both get the same bits, so a triangle that won the
// search always has a result, and the t that is returned is the t that was compared.
#pragma once

#include "arith.cuh"

// The sheared frame of a ray: the axis along which |d| is largest becomes z, the
// other two follow in the order that keeps the winding (Woop, Benthin, Wald 2013).
struct Frame {
    f32x3 o;
    i32 kx, ky, kz;
    float sx, sy, dz;
};

__device__ __forceinline__ float component(f32x3 a, i32 k)
{
    return k == 0 ? a.x : (k == 1 ? a.y : a.z);
}

// o and d are finite, d is not zero.
__device__ __forceinline__ void make_frame(Frame& f, f32x3 o, f32x3 d)
{
    const float m = max_abs(d);
    f.o = o;
    f.kz = m == fabsf(d.x) ? 0 : (m == fabsf(d.y) ? 1 : 2);
    f.kx = f.kz == 2 ? 0 : f.kz + 1;
    f.ky = f.kx == 2 ? 0 : f.kx + 1;
    f.dz = component(d, f.kz);
    if (f.dz < 0.0f) {
        const i32 k = f.kx;
        f.kx = f.ky;
        f.ky = k;
    }
    f.sx = quot(component(d, f.kx), f.dz);
    f.sy = quot(component(d, f.ky), f.dz);
}

// What a ray sees of a triangle: the edge functions opposite to each vertex, which
// are barycentrics times their sum, and the depth of each vertex along z.
struct Edges {
    float u, v, w;
    float az, bz, cz;
};

__device__ __forceinline__ float exact_edge(float a, float b, float c, float d)
{
    // Products of two f32 values are exact in f64.
    return __double2float_rn(__dsub_rn(__dmul_rn((double)a, (double)b), __dmul_rn((double)c, (double)d)));
}

__device__ __forceinline__ Edges see_triangle(const Frame& f, f32x3 v0, f32x3 v1, f32x3 v2)
{
    const f32x3 a = sub(v0, f.o);
    const f32x3 b = sub(v1, f.o);
    const f32x3 c = sub(v2, f.o);
    Edges e;
    e.az = component(a, f.kz);
    e.bz = component(b, f.kz);
    e.cz = component(c, f.kz);
    const float ax = sub(component(a, f.kx), mul(f.sx, e.az));
    const float ay = sub(component(a, f.ky), mul(f.sy, e.az));
    const float bx = sub(component(b, f.kx), mul(f.sx, e.bz));
    const float by = sub(component(b, f.ky), mul(f.sy, e.bz));
    const float cx = sub(component(c, f.kx), mul(f.sx, e.cz));
    const float cy = sub(component(c, f.ky), mul(f.sy, e.cz));
    e.u = dop(cx, by, cy, bx);
    e.v = dop(ax, cy, ay, cx);
    e.w = dop(bx, ay, by, ax);
    // Only an underflow makes the compensated form zero where the exact value is
    // not: f64 has room for it.
    if (e.u == 0.0f) {
        e.u = exact_edge(cx, by, cy, bx);
    }
    if (e.v == 0.0f) {
        e.v = exact_edge(ax, cy, ay, cx);
    }
    if (e.w == 0.0f) {
        e.w = exact_edge(bx, ay, by, ax);
    }
    return e;
}

// Edges and vertices belong to the triangle; both sides count.
__device__ __forceinline__ bool is_inside(const Edges& e)
{
    return !((e.u < 0.0f || e.v < 0.0f || e.w < 0.0f) && (e.u > 0.0f || e.v > 0.0f || e.w > 0.0f));
}

__device__ __forceinline__ float edge_sum(const Edges& e) { return add(add(e.u, e.v), e.w); }

// The parameter of the crossing; sum is edge_sum(e), not zero.
__device__ __forceinline__ float crossing_t(const Frame& f, const Edges& e, float sum)
{
    // Depth first, then the length of the direction: 1/dz alone could overflow.
    const float depth = quot(add(add(mul(e.u, e.az), mul(e.v, e.bz)), mul(e.w, e.cz)), sum);
    return quot(depth, f.dz);
}

// The parameter at which the ray crosses the triangle, or a negative number.
// Interval bounds are the caller's.
__device__ __forceinline__ float triangle_crossing(const Frame& f, f32x3 v0, f32x3 v1, f32x3 v2)
{
    const Edges e = see_triangle(f, v0, v1, v2);
    if (!is_inside(e)) {
        return -1.0f;
    }
    const float sum = edge_sum(e);
    return sum == 0.0f ? -1.0f : crossing_t(f, e, sum);
}
