// The triangle tree and its closest-hit search. Nothing outside this header and
// the build kernels knows how nodes look: a search takes a ray and returns the id
// of the winner.
#pragma once

#include "rays.cuh"
#include "triangle.cuh"

// An inner node holds the boxes of both children, so that one 64-byte fetch
// decides about two subtrees.
//
//   xy[c] = (lo.x, hi.x, lo.y, hi.y) of child c
//   z     = (lo.z, hi.z of child 0, lo.z, hi.z of child 1)
//   link  = (child 0, child 1, largest absolute coordinate as float bits, unused)
//
// A child is an inner node (>= 0) or a leaf (< 0): ~child is
// first triangle slot * 4 + (number of triangles - 1).
struct Node {
    float4 xy[2];
    float4 z;
    int4 link;
};
static_assert(sizeof(Node) == 64, "node layout");

// A triangle slot, in leaf order:
//   a = (v0, primitive id bits)   b = (v1, 1 if the face has no area)   c = (v2, 0)
// A face without area keeps its slot (a later vertex update may open it) and is
// never hit.
struct Triangle {
    float4 a, b, c;
};
static_assert(sizeof(Triangle) == 48, "triangle layout");

__device__ __forceinline__ i32 leaf_first(i32 child) { return (~child) >> 2; }
__device__ __forceinline__ i32 leaf_count(i32 child) { return ((~child) & 3) + 1; }

// Entries of the search stack. A search pushes at most one entry per level, and
// the builder refuses to emit a tree deeper than this.
#define TREE_STACK 48

// A ray prepared for the search.
struct Ray {
    Frame frame; // of the triangle test
    float t_max;
    // Box test: reciprocals of d scaled by a power of two to |d|_inf in [1,2), so
    // that their clamping cannot matter at any length of d. Parameters in that
    // scale are t * t_scale, exactly.
    f32x3 inv;
    float t_scale;
    float o_abs;
};

// 1/d with the magnitude limited to 2^60; zeros of both signs give +2^60.
__device__ __forceinline__ float box_reciprocal(float d)
{
    const float limit = 1152921504606846976.0f;
    if (d == 0.0f) {
        return limit;
    }
    return fminf(fmaxf(quot(1.0f, d), -limit), limit);
}

// Prepares a ray; false when it cannot hit anything.
__device__ __forceinline__ bool prepare_ray(Ray& r, f32x3 o, f32x3 d, float t_max)
{
    if (!can_hit(o, d, t_max)) {
        return false;
    }
    make_frame(r.frame, o, d);
    r.t_max = fminf(t_max, F32_MAX);
    r.o_abs = max_abs(o);

    // Subnormal lengths share the smallest normal exponent.
    i32 exponent = __float_as_int(max_abs(d)) >> 23;
    exponent = exponent < 1 ? 1 : exponent;
    r.t_scale = __int_as_float(exponent << 23);
    const float shrink = quot(1.0f, r.t_scale);
    r.inv.x = box_reciprocal(mul(d.x, shrink));
    r.inv.y = box_reciprocal(mul(d.y, shrink));
    r.inv.z = box_reciprocal(mul(d.z, shrink));
    return true;
}

// The best crossing so far: smallest t, then smallest primitive id.
struct Winner {
    float t;
    i32 id;
};

__device__ __forceinline__ void offer(Winner& best, float t, i32 id)
{
    // NaN fails both comparisons; an empty winner has the largest id.
    if (t >= RAY_T_MIN && (t < best.t || (t == best.t && (u32)id < (u32)best.id))) {
        best.t = t;
        best.id = id;
    }
}

__device__ __forceinline__ void test_leaf(Winner& best, const Ray& r, const float4* triangles, i32 child)
{
    const float4* p = triangles + 3 * (i64)leaf_first(child);
    for (i32 n = leaf_count(child); n > 0; n--, p += 3) {
        const float4 a = __ldg(p);
        const float4 b = __ldg(p + 1);
        const float4 c = __ldg(p + 2);
        if (__float_as_int(b.w) != 0) {
            continue;
        }
        const float t = triangle_crossing(r.frame, f32x3{a.x, a.y, a.z}, f32x3{b.x, b.y, b.z}, f32x3{c.x, c.y, c.z});
        offer(best, t, __float_as_int(a.w));
    }
}

// Distance to the box in scaled parameters, or +inf when the ray misses it. Planes
// move outwards by e, which covers every rounding here and in the triangle test,
// so that a box is never missed whose triangle would be accepted.
__device__ __forceinline__ float box_entry(const Ray& r, float e, float lx, float hx, float ly, float hy, float lz,
                                           float hz)
{
    const float x0 = mul(sub(sub(lx, e), r.frame.o.x), r.inv.x);
    const float x1 = mul(sub(add(hx, e), r.frame.o.x), r.inv.x);
    const float y0 = mul(sub(sub(ly, e), r.frame.o.y), r.inv.y);
    const float y1 = mul(sub(add(hy, e), r.frame.o.y), r.inv.y);
    const float z0 = mul(sub(sub(lz, e), r.frame.o.z), r.inv.z);
    const float z1 = mul(sub(add(hz, e), r.frame.o.z), r.inv.z);
    const float enter = fmaxf(fmaxf(fminf(x0, x1), fminf(y0, y1)), fmaxf(fminf(z0, z1), 0.0f));
    const float leave = fminf(fminf(fmaxf(x0, x1), fmaxf(y0, y1)), fmaxf(z0, z1));
    // 1 + 4 * 2^-23 exceeds 1 + 2*gamma, the error of the two products.
    return enter > mul(leave, 1.000000476837158203125f) ? f32_inf() : enter;
}

// The bound beyond which a node cannot hold a better crossing, in scaled
// parameters, with a margin for the rounding of t.
__device__ __forceinline__ float cull_bound(const Ray& r, const Winner& best)
{
    return mul(mul(best.t, r.t_scale), 1.0000152587890625f);
}

// The closest crossing of a prepared ray: a primitive id, or -1.
__device__ __forceinline__ i32 closest_hit(const Ray& r, const Node* nodes, const float4* triangles)
{
    i32 stack_node[TREE_STACK];
    float stack_entry[TREE_STACK];
    i32 depth = 0;

    Winner best = {r.t_max, -1};
    float cull = cull_bound(r, best);
    i32 node = 0;
    for (;;) {
        const float4* p = (const float4*)(nodes + node);
        const float4 xy0 = __ldg(p);
        const float4 xy1 = __ldg(p + 1);
        const float4 z = __ldg(p + 2);
        const float4 link = __ldg(p + 3);

        const float e = mul(9.5367431640625e-7f, add(link.z, r.o_abs));
        float near = box_entry(r, e, xy0.x, xy0.y, xy0.z, xy0.w, z.x, z.y);
        float far = box_entry(r, e, xy1.x, xy1.y, xy1.z, xy1.w, z.z, z.w);
        i32 near_child = __float_as_int(link.x);
        i32 far_child = __float_as_int(link.y);
        if (far < near) {
            const float t = near;
            near = far;
            far = t;
            const i32 c = near_child;
            near_child = far_child;
            far_child = c;
        }

        // Leaves are tested at once, the nearer one first; inner nodes are
        // descended, the nearer one first. A box at +inf was missed; the cull
        // bound itself may be +inf.
        i32 next = -1;
        if (near != f32_inf() && !(near > cull)) {
            if (near_child < 0) {
                test_leaf(best, r, triangles, near_child);
                cull = cull_bound(r, best);
            } else {
                next = near_child;
            }
        }
        if (far != f32_inf() && !(far > cull)) {
            if (far_child < 0) {
                test_leaf(best, r, triangles, far_child);
                cull = cull_bound(r, best);
            } else if (next < 0) {
                next = far_child;
            } else {
                stack_node[depth] = far_child;
                stack_entry[depth] = far;
                depth++;
            }
        }
        while (next < 0) {
            if (depth == 0) {
                return best.id;
            }
            depth--;
            if (!(stack_entry[depth] > cull)) {
                next = stack_node[depth];
            }
        }
        node = next;
    }
}
