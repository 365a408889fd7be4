// The triangle tree: its memory layout and the test of one node. Nothing outside
// this header, the search in intersect.cu and the build kernels knows how it looks.
//
// Nodes and triangles share one pool of 64-byte slots. Slot 0 describes the grid
// that nodes are aligned to, slot 1 is the root. A node has up to eight children,
// nodes or single triangles, which lie next to each other in the pool, and holds
// their boxes in bytes: a search is limited by how many 16-byte loads and how many
// instructions it takes to decide about a child.
#pragma once

#include "rays.cuh"
#include "triangle.cuh"

// Children have places 0..7. Bit k of the place says on which side of the node's
// centre the child lies along axis k, as far as places were free.
//
//   head[k] = grid cell << 13 | step exponent << 8 | mask,   k = 0, 1, 2
//             mask of head[0]: places of inner nodes, of head[1]: of triangles
//             all but the last nine bits of the whole word are where the node begins
//   base    = slot of the first child; the others follow in order of their places
//   axis[k] = lower planes of places 0..7, then their upper planes, one byte each
//
// Plane q of axis k lies at grid.origin[k] + (head >> 9) * size * 2^-23 + q * step,
// where step = size * 2^(exponent - 31): what stands below the cell moves the node by
// less than a cell, and its bytes are made for that, so that a search need not mask it
// away.
struct alignas(64) Node {
    u32 head[3];
    u32 base;
    uint4 axis[3];
};
static_assert(sizeof(Node) == 64, "node layout");

// Slot 0. All triangles are inside origin and origin + size; size is a power of
// two.
struct alignas(64) Grid {
    f32x3 origin;
    float size;
    f32x3 lo;     // the box of all triangles
    float extent; // largest absolute coordinate of a triangle
    f32x3 hi;
    u32 unused[5];
};
static_assert(sizeof(Grid) == 64, "grid layout");

// A face without area keeps its slot (a later vertex update may open it) and is
// never hit. The normal and the largest coordinate are for reflections, to which they
// spare more than a hundred instructions each.
struct alignas(64) Triangle {
    float4 a; // v0, primitive id bits
    float4 b; // v1, 1 if the face has no area
    float4 c; // v2, largest absolute coordinate of all three
    float4 n; // unit normal by winding, or zero; 0
};
static_assert(sizeof(Triangle) == 64, "triangle layout");

#define TREE_WIDTH 8
#define TREE_ROOT 1
#define TREE_CELL_BITS 19
#define TREE_STEP_BIAS 31

// How far decoded planes lie outside of the box they stand for, in steps. The
// search evaluates planes with an error of at most 2^-8 step, see plane().
#define TREE_PLANE_MARGIN 0.0078125

// Slot of the child at a place, given the mask of all children.
__device__ __forceinline__ u32 child_slot(u32 base, u32 mask, u32 place)
{
    return base + __popc(mask & ((1u << place) - 1));
}

// A ray prepared for box tests. Directions are scaled by a power of two to |d|_inf
// in [1,4), so that limiting their reciprocals cannot matter at any length of d;
// parameters of box tests are t * t_scale, exactly.
//
// The test is conservative: a child whose triangle the canonical test would accept
// at a t within the bound is never missed. With u = 2^-24 and c = the largest
// coordinate of the scene plus that of the origin, rounding moves
//   - an accepted crossing, by at most 16u*c (sheared vertices and t),
//   - the constants below and in enter_axis, by at most 22u*c,
//   - the two parameters of a plane pair, relatively by 2u each; a parameter is at
//     most c over the largest |d|, so that is 4u*c of distance on any axis,
// and planes are moved outwards by 2^-18 c = 64u*c. Reciprocals are limited to
// 2^40: along a slower axis a ray moves by less than u*c while it is in the scene,
// and 20u*c * 2^40 exceeds every parameter.
struct BoxRay {
    f32x3 step;    // of byte planes, before the node's exponent, times 2^15
    f32x3 near_at; // grid origin less size, moved towards the ray's origin
    f32x3 far_at;  // the same, moved away
    float t_scale;
    u32 octant; // bit 8 + k: the direction is negative along axis k
    u32 order;  // address of the octant's part of a VisitOrder in shared memory
};

// 1/d with the magnitude limited to 2^40; zeros of both signs give +2^40.
__device__ __forceinline__ float box_reciprocal(float d)
{
    const float limit = 1099511627776.0f;
    return d == 0.0f ? limit : fminf(fmaxf(__frcp_rn(d), -limit), limit);
}

// Constants of one axis; also narrows [enter,leave] to the slab of the scene.
__device__ __forceinline__ void prepare_axis(float o, float inv, float pad, float origin, float size, float lo, float hi,
                                             float& step, float& near_at, float& far_at, float& enter, float& leave)
{
    const float e = mul(pad, fabsf(inv));
    const float at = mul(sub(sub(origin, size), o), inv);
    step = mul(mul(size, 32768.0f), inv);
    near_at = sub(at, e);
    far_at = add(at, e);
    const float t0 = mul(sub(lo, o), inv);
    const float t1 = mul(sub(hi, o), inv);
    enter = fmaxf(enter, sub(fminf(t0, t1), e));
    leave = fminf(leave, add(fmaxf(t0, t1), e));
}

// False when the ray misses the box of all triangles.
__device__ __forceinline__ bool prepare_boxes(BoxRay& r, f32x3 o, f32x3 d, const Grid* grid, u32 order)
{
    const float4 g = __ldg((const float4*)grid);      // origin, size
    const float4 lo = __ldg((const float4*)grid + 1); // lo, extent
    const float4 hi = __ldg((const float4*)grid + 2); // hi
    // 2^24 lifts subnormal directions. Factors are exact, but a component may vanish:
    // sign and reciprocal are taken from the same value.
    const float lift = max_abs(d) < 1.1754943508222875e-38f ? 16777216.0f : 1.0f;
    d = f32x3{mul(d.x, lift), mul(d.y, lift), mul(d.z, lift)};
    const i32 exponent = min(__float_as_int(max_abs(d)) >> 23, 253);
    const float shrink = __int_as_float((254 - exponent) << 23);
    r.t_scale = mul(__int_as_float(exponent << 23), lift == 1.0f ? 1.0f : 5.9604644775390625e-8f);
    d = f32x3{mul(d.x, shrink), mul(d.y, shrink), mul(d.z, shrink)};
    r.octant = (d.x < 0.0f ? 256 : 0) | (d.y < 0.0f ? 512 : 0) | (d.z < 0.0f ? 1024 : 0);
    r.order = order + r.octant;

    const float c = add(lo.w, max_abs(o));
    const float pad = mul(fmaxf(c, 8.673617379884035e-19f), 3.814697265625e-6f);
    float enter = 0.0f;
    float leave = f32_inf();
    prepare_axis(o.x, box_reciprocal(d.x), pad, g.x, g.w, lo.x, hi.x, r.step.x, r.near_at.x, r.far_at.x, enter, leave);
    prepare_axis(o.y, box_reciprocal(d.y), pad, g.y, g.w, lo.y, hi.y, r.step.y, r.near_at.y, r.far_at.y, enter, leave);
    prepare_axis(o.z, box_reciprocal(d.z), pad, g.z, g.w, lo.z, hi.z, r.step.z, r.near_at.z, r.far_at.z, enter, leave);
    if (!(c < 1.152921504606846976e18f)) {
        // Beyond 2^60 products overflow: such rays look into every box.
        r.step = r.near_at = r.far_at = f32x3{0.0f, 0.0f, 0.0f};
        r.t_scale = f32_inf();
        return true;
    }
    return enter <= leave;
}

// The parameter beyond which a box cannot hold a better crossing than one at t,
// with a margin for the rounding of t.
__device__ __forceinline__ float cull_bound(const BoxRay& r, float t)
{
    return mul(mul(t, r.t_scale), 1.0000152587890625f);
}

// One axis of a node. Its planes are at parameters at + plane * step of the ray, where
// plane = s * (1 + q * 2^-15) and s is the node's step.
struct Axis {
    float s, near_at, far_at;
    u32 near_lo, near_hi, far_lo, far_hi; // bytes q of places 0..3 and 4..7
};

__device__ __forceinline__ Axis enter_axis(u32 head, uint4 bytes, float step, float near_at, float far_at, bool negative)
{
    // (1 + (head >> 9) * 2^-23) * 2^-15 and the step, put together from their bits.
    const float begin = __int_as_float(head >> 9 | 0x38000000);
    const float s = __int_as_float((head << 15 & 0x0f800000) | 0x30000000);
    const float first = sub(begin, s);
    return Axis{s, fmadd(first, step, near_at), fmadd(first, step, far_at),
                negative ? bytes.z : bytes.x, negative ? bytes.w : bytes.y,
                negative ? bytes.x : bytes.z, negative ? bytes.y : bytes.w};
}

// s * (1 + q * 2^-15) for byte K of eight: the byte becomes the middle of the mantissa
// of s, one instruction instead of a conversion, written as such because a cast of its
// result is one more for an emulator. With a constant in the place of s it would be
// two: the assembler makes that one the immediate and loads the selector into a
// register. Taking s back by first costs up to 2^-8 step, hence TREE_PLANE_MARGIN.
template <u32 K> __device__ __forceinline__ float plane(const Axis& a, u32 lo, u32 hi)
{
    float f;
    asm("prmt.b32 %0, %1, %2, %3;" : "=f"(f) : "r"(K < 4 ? lo : hi), "r"(__float_as_int(a.s)), "n"(0x7604 | (K & 3) << 4));
    return f;
}

// Shifts a bit into misses, one when the ray misses the box of place K or enters it
// beyond bound. A plane at NaN bounds nothing: minimum and maximum return the other value.
template <u32 K>
__device__ __forceinline__ u32 test_child(u32 misses, const BoxRay& r, const Axis& x, const Axis& y, const Axis& z, float bound)
{
    const float x0 = fmadd(plane<K>(x, x.near_lo, x.near_hi), r.step.x, x.near_at);
    const float y0 = fmadd(plane<K>(y, y.near_lo, y.near_hi), r.step.y, y.near_at);
    const float z0 = fmadd(plane<K>(z, z.near_lo, z.near_hi), r.step.z, z.near_at);
    const float x1 = fmadd(plane<K>(x, x.far_lo, x.far_hi), r.step.x, x.far_at);
    const float y1 = fmadd(plane<K>(y, y.far_lo, y.far_hi), r.step.y, y.far_at);
    const float z1 = fmadd(plane<K>(z, z.far_lo, z.far_hi), r.step.z, z.far_at);
    const float enter = fmaxf(fmaxf(x0, y0), fmaxf(z0, 0.0f));
    const float leave = fminf(fminf(x1, y1), fminf(z1, bound));
    // The sign of the difference; enter and leave are never NaN, only infinities leave one
    // that has none, and then the child is looked at.
    return __funnelshift_l(__float_as_int(sub(leave, enter)), misses, 1);
}

// What a ray has to look at below one node: the children of a mask of places.
// Bits 8..15 repeat the mask of all children.
struct Group {
    u32 base, bits;
};

__device__ __forceinline__ bool is_empty(const Group& g) { return (g.bits & 255) == 0; }

// Takes a place out of the group and returns its slot.
__device__ __forceinline__ u32 take(Group& g, u32 place)
{
    g.bits &= ~(1u << place);
    return child_slot(g.base, g.bits >> 8, place);
}

// Tests all children of a node.
__device__ __forceinline__ void test_node(Group& inner, Group& triangles, const BoxRay& r, const Node* node, float bound)
{
    const uint4* p = (const uint4*)node;
    const uint4 head = __ldg(p);
    const uint4 bx = __ldg(p + 1);
    const uint4 by = __ldg(p + 2);
    const uint4 bz = __ldg(p + 3);
    const Axis x = enter_axis(head.x, bx, r.step.x, r.near_at.x, r.far_at.x, (r.octant & 256) != 0);
    const Axis y = enter_axis(head.y, by, r.step.y, r.near_at.y, r.far_at.y, (r.octant & 512) != 0);
    const Axis z = enter_axis(head.z, bz, r.step.z, r.near_at.z, r.far_at.z, (r.octant & 1024) != 0);
    u32 misses = 0;
    misses = test_child<7>(misses, r, x, y, z, bound);
    misses = test_child<6>(misses, r, x, y, z, bound);
    misses = test_child<5>(misses, r, x, y, z, bound);
    misses = test_child<4>(misses, r, x, y, z, bound);
    misses = test_child<3>(misses, r, x, y, z, bound);
    misses = test_child<2>(misses, r, x, y, z, bound);
    misses = test_child<1>(misses, r, x, y, z, bound);
    misses = test_child<0>(misses, r, x, y, z, bound);
    const u32 all = (head.x | head.y) << 8 & 0xff00;
    inner = Group{head.w, (head.x & ~misses & 255) | all};
    triangles = Group{head.w, (head.y & ~misses & 255) | all};
}

// The order in which children are visited: places are mirrored by the signs of the
// direction, so that the nearest corner has the lowest number. For each octant and
// mask, the place that comes first.
struct VisitOrder {
    alignas(16) u8 first[8 * 256];
};

__device__ constexpr VisitOrder make_visit_order()
{
    VisitOrder t = {};
    for (u32 octant = 0; octant < 8; octant++) {
        for (u32 mask = 1; mask < 256; mask++) {
            u32 rank = 0;
            while (!(mask >> (rank ^ octant) & 1)) {
                rank++;
            }
            t.first[octant * 256 + mask] = (u8)(rank ^ octant);
        }
    }
    return t;
}

__device__ const VisitOrder visit_order = make_visit_order();

// The best crossing so far: smallest t, then smallest primitive id.
struct Winner {
    float t;
    i32 id;
};

__device__ __forceinline__ void offer(Winner& best, float t_min, float t, i32 id)
{
    // NaN fails both comparisons; an empty winner has the largest id.
    if (t >= t_min && (t < best.t || (t == best.t && (u32)id < (u32)best.id))) {
        best.t = t;
        best.id = id;
    }
}

// Whether and where a ray crosses the triangle of a slot, by the canonical test.
// False also for a face without area.
__device__ __forceinline__ bool crosses_triangle(float& t, i32& id, const Frame& f, const Triangle* triangle)
{
    const float4* p = (const float4*)triangle;
    const float4 a = __ldg(p);
    const float4 b = __ldg(p + 1);
    const float4 c = __ldg(p + 2);
    if (__float_as_int(b.w) != 0) {
        return false;
    }
    t = triangle_crossing(f, f32x3{a.x, a.y, a.z}, f32x3{b.x, b.y, b.z}, f32x3{c.x, c.y, c.z});
    id = __float_as_int(a.w);
    return true;
}
