// The canonical triangle test: a pure function of a ray and three stored vertices.
// The search asks it whether and where a triangle is crossed, finalize asks it for
// the columns of the winner. Both get the same bits, so a triangle that won the
// search always has a result, and the t that is returned is the t that was compared.
#pragma once

#include "arith.cuh"

// Perpendicular to the face by its winding, as long as twice its area.
__device__ __forceinline__ f32x3 face_vector(f32x3 v0, f32x3 v1, f32x3 v2)
{
    return cross(sub(v1, v0), sub(v2, v0));
}

__device__ __forceinline__ float largest_coordinate(f32x3 v0, f32x3 v1, f32x3 v2)
{
    return fmaxf(max_abs(v0), fmaxf(max_abs(v1), max_abs(v2)));
}

// The sheared frame of a ray: the axis along which |d| is largest becomes z, the
// other two follow in the order that keeps the winding (Woop, Benthin, Wald 2013).
struct Frame {
    f32x3 o;
    u32 axes; // kx | ky << 2 | kz << 4: one register, of which a search has few
    float sx, sy, dz;

    __device__ __forceinline__ float x(f32x3 a) const { return component(a, axes & 3); }
    __device__ __forceinline__ float y(f32x3 a) const { return component(a, axes >> 2 & 3); }
    __device__ __forceinline__ float z(f32x3 a) const { return component(a, axes >> 4); }

  private:
    __device__ __forceinline__ static float component(f32x3 a, u32 k) { return k == 0 ? a.x : (k == 1 ? a.y : a.z); }
};

// o and d are finite, d is not zero.
__device__ __forceinline__ void make_frame(Frame& f, f32x3 o, f32x3 d)
{
    const float m = max_abs(d);
    f.o = o;
    const u32 kz = m == fabsf(d.x) ? 0 : (m == fabsf(d.y) ? 1 : 2);
    const u32 next = kz == 2 ? 0 : kz + 1;
    const u32 last = next == 2 ? 0 : next + 1;
    f.dz = kz == 0 ? d.x : (kz == 1 ? d.y : d.z);
    f.axes = (f.dz < 0.0f ? last | next << 2 : next | last << 2) | kz << 4;
    f.sx = quot(f.x(d), f.dz);
    f.sy = quot(f.y(d), f.dz);
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

// The corners of a triangle in the plane across a ray.
struct Sheared {
    float ax, ay, bx, by, cx, cy;
};

// What a ray sees, but for products that underflow.
__device__ __forceinline__ Edges see_sheared(Sheared& p, const Frame& f, f32x3 v0, f32x3 v1, f32x3 v2)
{
    const f32x3 a = sub(v0, f.o);
    const f32x3 b = sub(v1, f.o);
    const f32x3 c = sub(v2, f.o);
    Edges e;
    e.az = f.z(a);
    e.bz = f.z(b);
    e.cz = f.z(c);
    p.ax = sub(f.x(a), mul(f.sx, e.az));
    p.ay = sub(f.y(a), mul(f.sy, e.az));
    p.bx = sub(f.x(b), mul(f.sx, e.bz));
    p.by = sub(f.y(b), mul(f.sy, e.bz));
    p.cx = sub(f.x(c), mul(f.sx, e.cz));
    p.cy = sub(f.y(c), mul(f.sy, e.cz));
    e.u = dop(p.cx, p.by, p.cy, p.bx);
    e.v = dop(p.ax, p.cy, p.ay, p.cx);
    e.w = dop(p.bx, p.ay, p.by, p.ax);
    return e;
}

// Only an underflow makes the compensated form zero where the exact value is
// not: f64 has room for it.
__device__ __forceinline__ void settle_zeros(Edges& e, const Sheared& p)
{
    e.u = e.u == 0.0f ? exact_edge(p.cx, p.by, p.cy, p.bx) : e.u;
    e.v = e.v == 0.0f ? exact_edge(p.ax, p.cy, p.ay, p.cx) : e.v;
    e.w = e.w == 0.0f ? exact_edge(p.bx, p.ay, p.by, p.ax) : e.w;
}

__device__ __forceinline__ Edges see_triangle(const Frame& f, f32x3 v0, f32x3 v1, f32x3 v2)
{
    Sheared p;
    Edges e = see_sheared(p, f, v0, v1, v2);
    if (e.u == 0.0f || e.v == 0.0f || e.w == 0.0f) {
        settle_zeros(e, p);
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
