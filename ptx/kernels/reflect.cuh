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

// A triangle as a mirror.
struct Mirror {
    f32x3 v0, v1, v2;
    f32x3 n;     // unit normal by winding, or zero
    float reach; // largest_coordinate
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

__device__ __forceinline__ Mirror load_mirror(const Surfaces& g, i32 triangle)
{
    const i64 corner = 3 * (i64)triangle;
    Mirror m;
    m.v0 = load_vertex(g, corner);
    m.v1 = load_vertex(g, corner + 1);
    m.v2 = load_vertex(g, corner + 2);
    m.n = unit(face_vector(m.v0, m.v1, m.v2));
    m.reach = largest_coordinate(m.v0, m.v1, m.v2);
    return m;
}

// Turns the normal towards a ray along d; false where there is none.
__device__ __forceinline__ bool face(Mirror& m, f32x3 d)
{
    if (dot(d, m.n) > 0.0f) {
        m.n = f32x3{-m.n.x, -m.n.y, -m.n.z};
    }
    return max_abs(m.n) != 0.0f;
}

// Ends the leg from o along d on a mirror; false ends the chain before it.
__device__ __forceinline__ bool bounce_off(SurfaceHit& h, Mirror& m, f32x3 o, f32x3 d)
{
    if (!see_hit(h, o, d, m.v0, m.v1, m.v2)) {
        return false;
    }
    if (h.t < 0.0f) {
        h.t = 0.0f; // a second surface within the offset of the first one
    }
    return face(m, d);
}

// a - 2 h n.
__device__ __forceinline__ f32x3 reflected(f32x3 a, float h, f32x3 n)
{
    const float twice = mul(2.0f, h);
    return f32x3{sub(a.x, mul(twice, n.x)), sub(a.y, mul(twice, n.y)), sub(a.z, mul(twice, n.z))};
}

// What follows a bounce at p off a mirror that faces the ray: the direction of the next
// leg, which is as long as d up to rounding; the image of a source; and where the search
// of the next leg starts, off the surface, on the side that the ray came from.
__device__ __forceinline__ f32x3 next_direction(const Mirror& m, f32x3 d) { return reflected(d, dot(d, m.n), m.n); }

__device__ __forceinline__ f32x3 next_image(const Mirror& m, f32x3 image)
{
    return reflected(image, dot(sub(image, m.v0), m.n), m.n);
}

__device__ __forceinline__ f32x3 restart_point(const Mirror& m, f32x3 p)
{
    const float e = surface_offset(fmaxf(max_abs(p), m.reach));
    return f32x3{add(p.x, mul(e, m.n.x)), add(p.y, mul(e, m.n.y)), add(p.z, mul(e, m.n.z))};
}
