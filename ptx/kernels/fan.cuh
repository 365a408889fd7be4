// What may block any of the segments from one point to the points of a line: the lanes of
// a pair of an edge and a target look through the same thin triangle, a fan, over and over.
// A warp collects the triangles near it once, often none, and its lanes test those
// instead of walking the tree.
//
// Collecting is conservative: no triangle is left out that the canonical test would let
// block one of the segments. With u = 2^-24 and c = the largest coordinate of the scene
// plus that of the fan, rounding moves
//   - an accepted crossing, by at most 16u*c, and the ray from its segment, by 8u*c,
//   - the end of a segment from the line, by 16u*c (see edge_point), and what its caller
//     adds for points that do not lie on a line,
//   - the projections that are compared below, by 12u*c, and planes of boxes, by 3u*c,
// and the fan is widened by 128u*c.
#pragma once

#include "trace.cuh"

// As many triangles are tested one by one; where there are more, the tree is better.
#define FAN_TRIANGLES 8
#define FAN_UNKNOWN 0xffffffff

#define FAN_AXES 4

struct Fan {
    f32x3 apex, first, last;
    float pad;
    // Where it ends along the axes of the scene, and along its normal and the normals of
    // its sides; widened.
    f32x3 lo, hi;
    f32x3 axis[FAN_AXES];
    float least[FAN_AXES], most[FAN_AXES];
};

__device__ __forceinline__ float least_of(float a, float b, float c) { return fminf(a, fminf(b, c)); }
__device__ __forceinline__ float most_of(float a, float b, float c) { return fmaxf(a, fmaxf(b, c)); }

// An axis, or none where it is so short that projections on it might underflow.
__device__ __forceinline__ f32x3 long_enough(f32x3 n) { return max_abs(n) > 1e-20f ? n : f32x3{0.0f, 0.0f, 0.0f}; }

// False where coordinates are so large that lengths may overflow. spread is how far points
// of the line may lie beside it.
__device__ __forceinline__ bool make_fan(Fan& f, const Node* pool, f32x3 apex, f32x3 first, f32x3 last, float spread)
{
    const float extent = __ldg((const float4*)pool + 1).w;
    const float c = add(extent, fmaxf(max_abs(apex), fmaxf(max_abs(first), max_abs(last))));
    f.apex = apex;
    f.first = first;
    f.last = last;
    f.pad = add(mul(c, 7.62939453125e-6f), spread);
    f.lo = f32x3{sub(least_of(apex.x, first.x, last.x), f.pad), sub(least_of(apex.y, first.y, last.y), f.pad),
                 sub(least_of(apex.z, first.z, last.z), f.pad)};
    f.hi = f32x3{add(most_of(apex.x, first.x, last.x), f.pad), add(most_of(apex.y, first.y, last.y), f.pad),
                 add(most_of(apex.z, first.z, last.z), f.pad)};
    // Any axis is good for the proof; these tell most.
    const f32x3 a = sub(first, apex);
    const f32x3 b = sub(last, apex);
    f.axis[0] = unit(cross(a, b));
    f.axis[1] = long_enough(cross(f.axis[0], a));
    f.axis[2] = long_enough(cross(f.axis[0], b));
    f.axis[3] = long_enough(cross(f.axis[0], sub(last, first)));
#pragma unroll
    for (u32 i = 0; i < FAN_AXES; i++) {
        const f32x3 n = f.axis[i];
        const float pad = mul(f.pad, add(add(fabsf(n.x), fabsf(n.y)), fabsf(n.z)));
        const float x = dot(n, apex);
        const float y = dot(n, first);
        const float z = dot(n, last);
        f.least[i] = sub(least_of(x, y, z), pad);
        f.most[i] = add(most_of(x, y, z), pad);
    }
    return c < 1.152921504606846976e18f && spread < c;
}

__device__ __forceinline__ bool apart(float lo, float hi, float least, float most) { return lo > most || hi < least; }

__device__ __forceinline__ bool box_is_apart(const Fan& f, f32x3 lo, f32x3 hi)
{
    bool is = apart(lo.x, hi.x, f.lo.x, f.hi.x) || apart(lo.y, hi.y, f.lo.y, f.hi.y) || apart(lo.z, hi.z, f.lo.z, f.hi.z);
    const f32x3 m = {mul(add(lo.x, hi.x), 0.5f), mul(add(lo.y, hi.y), 0.5f), mul(add(lo.z, hi.z), 0.5f)};
    const f32x3 r = {mul(sub(hi.x, lo.x), 0.5f), mul(sub(hi.y, lo.y), 0.5f), mul(sub(hi.z, lo.z), 0.5f)};
#pragma unroll
    for (u32 i = 0; i < FAN_AXES; i++) {
        const f32x3 a = f.axis[i];
        const float at = dot(a, m);
        const float reach = dot(f32x3{fabsf(a.x), fabsf(a.y), fabsf(a.z)}, r);
        is = is || apart(sub(at, reach), add(at, reach), f.least[i], f.most[i]);
    }
    return is;
}

__device__ __forceinline__ bool triangle_is_apart(const Fan& f, f32x3 v0, f32x3 v1, f32x3 v2, f32x3 normal)
{
    bool is = apart(least_of(v0.x, v1.x, v2.x), most_of(v0.x, v1.x, v2.x), f.lo.x, f.hi.x) ||
              apart(least_of(v0.y, v1.y, v2.y), most_of(v0.y, v1.y, v2.y), f.lo.y, f.hi.y) ||
              apart(least_of(v0.z, v1.z, v2.z), most_of(v0.z, v1.z, v2.z), f.lo.z, f.hi.z);
#pragma unroll
    for (u32 i = 0; i < FAN_AXES; i++) {
        const float x = dot(f.axis[i], v0);
        const float y = dot(f.axis[i], v1);
        const float z = dot(f.axis[i], v2);
        is = is || apart(least_of(x, y, z), most_of(x, y, z), f.least[i], f.most[i]);
    }
    const float x = dot(normal, f.apex);
    const float y = dot(normal, f.first);
    const float z = dot(normal, f.last);
    const float x1 = dot(normal, v0);
    const float y1 = dot(normal, v1);
    const float z1 = dot(normal, v2);
    return is || apart(least_of(x1, y1, z1), most_of(x1, y1, z1), sub(least_of(x, y, z), f.pad), add(most_of(x, y, z), f.pad));
}

// The planes of a child along one axis.
__device__ __forceinline__ void child_planes(float& lo, float& hi, u32 head, uint4 bytes, u32 place, float origin, float size)
{
    const float begin = fmadd(mul((float)(head >> 9), 1.1920928955078125e-7f), size, origin);
    const float step = mul(__int_as_float((head << 15 & 0x0f800000) | 0x30000000), size);
    const u32 shift = 8 * (place & 3);
    lo = fmadd((float)((place < 4 ? bytes.x : bytes.y) >> shift & 255), step, begin);
    hi = fmadd((float)((place < 4 ? bytes.z : bytes.w) >> shift & 255), step, begin);
}

// The corners of a triangle that a fan may meet.
struct FanTriangle {
    float4 v0, v1, v2;
};

// Two fans at a time: one of the first half of a warp, and one of the other.
#define FAN_THREADS 16

// Where number i of the list of nodes of a thread's half lies: in the memory of the search
// stacks of its warp, above their empty groups. They have room for 64 nodes per level of the
// tree, and each walk leaves at most 7 behind.
__device__ __forceinline__ u32 fan_node(u32 i)
{
    i = 2 * i + (threadIdx.x / FAN_THREADS & 1);
    return shared_address(search_stack) + (1 + (i >> 6)) * (SEARCH_THREADS * sizeof(Group)) +
           (threadIdx.x & ~31u) * sizeof(Group) + (i & 63) * sizeof(u32);
}

__device__ __forceinline__ u32 load_node(u32 at)
{
    u32 slot;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(slot) : "r"(at));
    return slot;
}

__device__ __forceinline__ void store_node(u32 at, u32 slot)
{
    asm volatile("st.shared.u32 [%0], %1;" : : "r"(at), "r"(slot));
}

// Collects the triangles that the fan of a half may meet, by all threads of a warp, and returns
// how many there are; FAN_UNKNOWN when there are too many, or too many nodes to look at, or the
// fan is none.
__device__ __forceinline__ u32 collect(FanTriangle* found, const Fan& f, bool is_fan, const Node* pool, u32 nodes)
{
    const u32 warp = 0xffffffff;
    const u32 lane = threadIdx.x % FAN_THREADS;
    const u32 half = threadIdx.x & FAN_THREADS;
    const u32 below = (1u << lane) - 1;
    const u32 place = lane & 7;
    const float4 grid = __ldg((const float4*)pool); // origin, size
    u32 count = is_fan ? 0 : FAN_UNKNOWN;
    u32 left = is_fan;
    __syncwarp();
    if (lane == 0) {
        store_node(fan_node(0), TREE_ROOT);
    }
    __syncwarp();
    while (__any_sync(warp, left > 0)) {
        if (nodes-- == 0) {
            return left > 0 ? FAN_UNKNOWN : count;
        }
        const bool looks = left > 0; // the other half may go on alone
        left -= looks;
        const uint4* p = (const uint4*)(pool + (looks ? load_node(fan_node(left)) : TREE_ROOT));
        const uint4 head = __ldg(p);
        f32x3 lo, hi;
        child_planes(lo.x, hi.x, head.x, __ldg(p + 1), place, grid.x, grid.w);
        child_planes(lo.y, hi.y, head.y, __ldg(p + 2), place, grid.y, grid.w);
        child_planes(lo.z, hi.z, head.z, __ldg(p + 3), place, grid.z, grid.w);
        const u32 all = (head.x | head.y) & 255;
        const u32 slot = child_slot(head.w, all, place);
        const bool near = looks && lane < 8 && (all >> place & 1) && !box_is_apart(f, lo, hi);
        const bool inner = near && (head.x >> place & 1);
        bool meets = near && !inner;
        FanTriangle t;
        if (meets) {
            const float4* corners = (const float4*)((const Triangle*)pool + slot);
            t = FanTriangle{__ldg(corners), __ldg(corners + 1), __ldg(corners + 2)};
            const float4 n = __ldg(corners + 3);
            meets = __float_as_int(t.v1.w) == 0 &&
                    !triangle_is_apart(f, f32x3{t.v0.x, t.v0.y, t.v0.z}, f32x3{t.v1.x, t.v1.y, t.v1.z},
                                       f32x3{t.v2.x, t.v2.y, t.v2.z}, f32x3{n.x, n.y, n.z});
        }
        const u32 inners = __ballot_sync(warp, inner) >> half & 0xffff;
        const u32 triangles = __ballot_sync(warp, meets) >> half & 0xffff;
        const bool fits = count + __popc(triangles) <= FAN_TRIANGLES;
        __syncwarp(); // all have read the node whose place is used again
        if (looks && !fits) {
            count = FAN_UNKNOWN;
            left = 0;
        } else if (looks) {
            if (inner) {
                store_node(fan_node(left + __popc(inners & below)), slot);
            }
            if (meets) {
                found[count + __popc(triangles & below)] = t;
            }
            left += __popc(inners);
            count += __popc(triangles);
        }
        __syncwarp();
    }
    __syncwarp();
    return count;
}

// The frame of a segment in a space whose axes are already in its order, and where they are
// in the memory of a corner, in bytes.
struct FanFrame {
    Frame frame;
    u32 x, y, z;
};

// What make_frame makes.
__device__ __forceinline__ FanFrame fan_frame(f32x3 o, f32x3 d)
{
    const float m = max_abs(d);
    const bool is_x = m == fabsf(d.x);
    const bool is_y = m == fabsf(d.y);
    const float dz = is_x ? d.x : (is_y ? d.y : d.z);
    const float d_next = is_x ? d.y : (is_y ? d.z : d.x);
    const float d_last = is_x ? d.z : (is_y ? d.x : d.y);
    const float o_next = is_x ? o.y : (is_y ? o.z : o.x);
    const float o_last = is_x ? o.z : (is_y ? o.x : o.y);
    const u32 next = is_x ? 4 : (is_y ? 8 : 0);
    const u32 last = is_x ? 8 : (is_y ? 0 : 4);
    const bool back = dz < 0.0f;
    FanFrame f;
    f.frame.o = f32x3{back ? o_last : o_next, back ? o_next : o_last, is_x ? o.x : (is_y ? o.y : o.z)};
    f.frame.axes = 0 | 1 << 2 | 2 << 4;
    f.frame.sx = quot(back ? d_last : d_next, dz);
    f.frame.sy = quot(back ? d_next : d_last, dz);
    f.frame.dz = dz;
    f.x = back ? last : next;
    f.y = back ? next : last;
    f.z = is_x ? 0 : (is_y ? 4 : 8);
    return f;
}

// A corner in this order.
__device__ __forceinline__ f32x3 load_corner(const FanFrame& f, u32 at)
{
    f32x3 v;
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(v.x) : "r"(at + f.x));
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(v.y) : "r"(at + f.y));
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(v.z) : "r"(at + f.z));
    return v;
}

// Whether an edge function that is zero may be so by underflow, where a b is one of its
// products. A target in line with an edge of a triangle makes it zero for many lanes.
__device__ __forceinline__ bool may_underflow(float edge, float a, float b)
{
    return (edge == 0.0f) & !(fabsf(mul(a, b)) > 1e-27f);
}

// occluded for a segment of a fan whose triangles are known, by their address in shared
// memory. That its coordinates are finite and not too large, which make_segment asks, is
// known, too; the rest is the same.
__device__ __forceinline__ bool occluded(u32 triangles, u32 count, f32x3 from, f32x3 to)
{
    const f32x3 w = sub(to, from);
    const float length = root(dot(w, w));
    const float eps = surface_offset(fmaxf(max_abs(from), max_abs(to)));
    if (!(length > mul(2.0f, eps))) {
        return false;
    }
    const float r = quot(1.0f, length);
    const FanFrame f = fan_frame(from, f32x3{mul(w.x, r), mul(w.y, r), mul(w.z, r)});
    const float t_max = sub(length, eps);
    const u32 end = triangles + count * (u32)sizeof(FanTriangle);
    for (u32 at = triangles; at != end; at += (u32)sizeof(FanTriangle)) {
        Sheared p;
        Edges e = see_sheared(p, f.frame, load_corner(f, at), load_corner(f, at + 16), load_corner(f, at + 32));
        if ((e.u == 0.0f) | (e.v == 0.0f) | (e.w == 0.0f)) {
            if (may_underflow(e.u, p.cx, p.by) || may_underflow(e.v, p.ax, p.cy) || may_underflow(e.w, p.bx, p.ay)) {
                settle_zeros(e, p);
            }
        }
        // is_inside without a branch.
        const float sum = edge_sum(e);
        const float lowest = fminf(e.u, fminf(e.v, e.w));
        const float highest = fmaxf(e.u, fmaxf(e.v, e.w));
        if (((lowest < 0.0f) & (highest > 0.0f)) | (sum == 0.0f)) {
            continue;
        }
        // Most crossings are far outside of the interval. Products tell so, whose rounding is
        // next to nothing of the margins, without the two quotients of crossing_t.
        const float size = fabsf(mul(sum, f.frame.dz));
        const float depth = add(add(mul(e.u, e.az), mul(e.v, e.bz)), mul(e.w, e.cz));
        const float along = (sum < 0.0f) != (f.frame.dz < 0.0f) ? -depth : depth;
        const bool outside = (along < mul(mul(eps, 0.999999f), size)) | (along > mul(mul(t_max, 1.000001f), size));
        if ((size > 1e-30f) & outside) {
            continue;
        }
        const float t = crossing_t(f.frame, e, sum);
        if (t >= eps && t <= t_max) {
            return true;
        }
    }
    return false;
}
