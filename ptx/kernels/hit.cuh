// The continuous columns of a hit, as a function of the ray and the winner's vertices
// alone: whoever found the winner, the columns are the same.
#pragma once

#include "triangle.cuh"

struct SurfaceHit {
    float t, b0, b1, b2;
    f32x3 p; // on the plane of the triangle
    f32x3 n; // unit normal by winding, or zero
};

// The point of a hit, and the weights that it is made of.
__device__ __forceinline__ bool hit_point(SurfaceHit& h, const Edges& e, float sum, f32x3 v0, f32x3 v1, f32x3 v2)
{
    h.b1 = quot(e.v, sum);
    h.b2 = quot(e.w, sum);
    const f32x3 e1 = sub(v1, v0);
    const f32x3 e2 = sub(v2, v0);
    h.p = f32x3{fmadd(h.b2, e2.x, fmadd(h.b1, e1.x, v0.x)), fmadd(h.b2, e2.y, fmadd(h.b1, e1.y, v0.y)),
                fmadd(h.b2, e2.z, fmadd(h.b1, e1.z, v0.z))};
    return sum != 0.0f && is_finite(h.b1) && is_finite(h.b2);
}

// False when the ray does not see the triangle, or sees it edge-on.
__device__ __forceinline__ bool see_hit(SurfaceHit& h, f32x3 o, f32x3 d, f32x3 v0, f32x3 v1, f32x3 v2)
{
    Frame f;
    make_frame(f, o, d);
    const Edges e = see_triangle(f, v0, v1, v2);
    const float sum = edge_sum(e);
    h.t = crossing_t(f, e, sum);
    h.b0 = quot(e.u, sum);
    h.n = unit(face_vector(v0, v1, v2));
    return hit_point(h, e, sum, v0, v1, v2) && is_finite(h.t) && is_finite(h.b0);
}
