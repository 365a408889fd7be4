// One specular reflection, shared by whatever follows or replays a chain of them: the
// search of the tree, the ray generation program of OptiX, and finalize. They must
// agree bit for bit, because a chain is stored as the ids of its winners and replayed
// from these.
//
// A leg of a chain starts at a point on a surface (the ray's origin for the first) and
// everything that is reported is computed from there. Only the search starts elsewhere,
// a little off the surface, so that it does not find the same surface again.
//
// Order of operations, each rounded once, fma where written; dot, cross and unit as in
// arith.cuh, t and weights as in hit.cuh:
//
//   t      = see_hit(o, d, v0, v1, v2).t, 0 if negative
//   n      = unit(cross(v1 - v0, v2 - v0)), negated if dot(d, n) > 0
//   image' = image - (2 * dot(image - v0, n)) * n      products and differences apart
//   d'     = d - (2 * dot(d, n)) * n                   likewise
//   q      = p + e * n                                 likewise
//   e      = surface_offset(largest |coordinate| of p, v0, v1, v2)
//   o'     = p
//
// Values are passed on with the sign of their zeros; only stores make them +0.
#pragma once

#include "hit.cuh"
#include "segment.cuh"

// Where a leg ends: t, weights, point, and a normal that faces the leg.
struct Bounce {
    SurfaceHit hit;
    f32x3 v0;
    float reach; // largest coordinate of the point and the triangle
};

// Committed geometry.
struct Surfaces {
    const float* vertices;
    const i32* faces;
};

__device__ __forceinline__ f32x3 load_vertex(const Surfaces& g, i64 corner)
{
    const float* v = g.vertices + 3 * (i64)__ldg(g.faces + corner);
    return f32x3{__ldg(v), __ldg(v + 1), __ldg(v + 2)};
}

// Ends the leg from o along d on a triangle; false ends the chain before it.
__device__ __forceinline__ bool bounce_off(Bounce& b, f32x3 o, f32x3 d, f32x3 v0, f32x3 v1, f32x3 v2)
{
    SurfaceHit& h = b.hit;
    b.v0 = v0;
    if (!see_hit(h, o, d, v0, v1, v2)) {
        return false;
    }
    if (h.t < 0.0f) {
        h.t = 0.0f; // a second surface within the offset of the first one
    }
    if (dot(d, h.n) > 0.0f) {
        h.n = f32x3{-h.n.x, -h.n.y, -h.n.z};
    }
    b.reach = fmaxf(fmaxf(max_abs(h.p), max_abs(v0)), fmaxf(max_abs(v1), max_abs(v2)));
    return max_abs(h.n) != 0.0f;
}

__device__ __forceinline__ bool bounce_off(Bounce& b, f32x3 o, f32x3 d, const Surfaces& g, i32 triangle)
{
    const i64 corner = 3 * (i64)triangle;
    return bounce_off(b, o, d, load_vertex(g, corner), load_vertex(g, corner + 1), load_vertex(g, corner + 2));
}

// a - 2 h n.
__device__ __forceinline__ f32x3 mirror(f32x3 a, float h, f32x3 n)
{
    const float twice = mul(2.0f, h);
    return f32x3{sub(a.x, mul(twice, n.x)), sub(a.y, mul(twice, n.y)), sub(a.z, mul(twice, n.z))};
}

// The direction of the next leg; it is as long as d up to rounding.
__device__ __forceinline__ f32x3 next_direction(const Bounce& b, f32x3 d)
{
    return mirror(d, dot(d, b.hit.n), b.hit.n);
}

// The image of a source behind the surface.
__device__ __forceinline__ f32x3 next_image(const Bounce& b, f32x3 image)
{
    return mirror(image, dot(sub(image, b.v0), b.hit.n), b.hit.n);
}

// Where the search of the next leg starts: off the surface, on the side that the ray
// came from.
__device__ __forceinline__ f32x3 restart_point(const Bounce& b)
{
    const float e = surface_offset(b.reach);
    const f32x3 p = b.hit.p;
    const f32x3 n = b.hit.n;
    return f32x3{add(p.x, mul(e, n.x)), add(p.y, mul(e, n.y)), add(p.z, mul(e, n.z))};
}
