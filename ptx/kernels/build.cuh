// What the kernels of a tree build share: the binary tree over the triangles, and
// the choice of the wide nodes that it becomes.
//
// Nothing here reaches a caller: whatever tree comes out, a search of it finds the
// same winners. Boxes are in units of the scene's largest extent, so that areas
// neither overflow nor vanish; the boxes of the finished tree are computed from the
// triangles.
#pragma once

#include "shape.cuh"

#define BUILD_LEVELS 40 // of wide nodes, at most
#define NOBODY (~0ull)

// A part of the binary tree: the number of a fork, or ~face for a triangle.
typedef i32 Branch;

__device__ __forceinline__ bool is_triangle(Branch b) { return b < 0; }

struct alignas(16) Fork {
    f32x3 lo;
    Branch left; // of a leaf: its face
    f32x3 hi;
    Branch right;
};

// What a branch may become in the wide tree. A wide node is a fork with some of the
// forks below it taken in, and those are chosen so that the sum of the areas of all
// wide nodes is the least possible: the number of nodes that a ray visits is
// proportional to it.
struct alignas(16) Plan {
    float least[TREE_WIDTH - 1]; // [n-1]: sum of areas below as at most n children
    u32 choices;                 // see left_share and opens
};

// How many of n children the left half of a fork should become, 2 <= n <= 8.
__device__ __forceinline__ u32 left_share(u32 choices, u32 n) { return choices >> 3 * (n - 2) & 7; }

// Whether n children are better than n - 1. A fork that is a node has eight.
__device__ __forceinline__ bool opens(u32 choices, u32 n) { return (choices >> (19 + n) & 1) != 0; }

__device__ __forceinline__ Plan plan_of_triangle() { return Plan{}; }

__device__ __forceinline__ Plan make_plan(float area, const Plan& left, const Plan& right)
{
    Plan p;
    p.choices = 1u << (19 + TREE_WIDTH);
    float whole = 0.0f;
#pragma unroll
    for (u32 n = 2; n <= TREE_WIDTH; n++) {
        float best = add(left.least[0], right.least[n - 2]);
        u32 share = 1;
#pragma unroll
        for (u32 i = 2; i < n; i++) {
            const float v = add(left.least[i - 1], right.least[n - i - 1]);
            share = v < best ? i : share;
            best = fminf(v, best);
        }
        p.choices |= share << 3 * (n - 2);
        if (n < TREE_WIDTH) {
            p.least[n - 1] = best;
        } else {
            whole = best;
        }
    }
    p.least[0] = add(area, whole);
#pragma unroll
    for (u32 n = 2; n < TREE_WIDTH; n++) {
        p.choices |= p.least[n - 1] < p.least[n - 2] ? 1u << (19 + n) : 0;
        p.least[n - 1] = fminf(p.least[n - 1], p.least[n - 2]);
    }
    return p;
}

__device__ __forceinline__ float half_area(const Box& b)
{
    const f32x3 d = sub(b.hi, b.lo);
    return plus_zero(fmadd(d.x, d.y, fmadd(d.y, d.z, mul(d.z, d.x))));
}

// The number of children of a level's nodes.
__device__ __forceinline__ u32 inner_of(u64 count) { return (u32)count; }
__device__ __forceinline__ u32 all_of(u64 count) { return (u32)(count >> 32); }

// What the launches of a build tell each other, and the host in the end. It begins
// as zeros.
struct BuildState {
    u32 lo[3], hi[3]; // of all vertices: complement of ordered(), ordered()
    Branch root[2];   // of each tree
    float cost[2];    // sum of areas of its wide nodes
    u64 counts[BUILD_LEVELS]; // children of the nodes of each level: inner, all << 32
};

// Order of floats as an order of integers; no number becomes 0.
__device__ __forceinline__ u32 ordered(float f)
{
    const u32 b = __float_as_uint(f);
    return b ^ ((i32)b < 0 ? 0xffffffff : 0x80000000);
}

__device__ __forceinline__ float unordered(u32 b)
{
    return __uint_as_float(b ^ ((i32)b < 0 ? 0x80000000 : 0xffffffff));
}

// The two binary trees of a build and what is known about their leaves.
struct Forest {
    const Fork* leaves; // by face
    Fork* forks[2];     // by number: those of the first tree, of the second
    Plan* plans[2];
};

// Other blocks may have written what these read.
__device__ __forceinline__ Box load_box(const Fork* leaves, const Fork* forks, Branch b)
{
    const float4* p = (const float4*)(is_triangle(b) ? leaves + ~b : forks + b);
    const float4 lo = __ldcg(p);
    const float4 hi = __ldcg(p + 1);
    return Box{{lo.x, lo.y, lo.z}, {hi.x, hi.y, hi.z}};
}

__device__ __forceinline__ Plan load_plan(const Plan* plans, Branch b)
{
    if (is_triangle(b)) {
        return plan_of_triangle();
    }
    const float4* p = (const float4*)(plans + b);
    const float4 x = __ldcg(p);
    const float4 y = __ldcg(p + 1);
    return Plan{{x.x, x.y, x.z, x.w, y.x, y.y, y.z}, __float_as_uint(y.w)};
}

__device__ __forceinline__ void store_fork(Fork* forks, Plan* plans, Branch b, const Box& box, Branch left, Branch right,
                                           const Plan& plan)
{
    float4* f = (float4*)(forks + b);
    f[0] = float4{box.lo.x, box.lo.y, box.lo.z, __int_as_float(left)};
    f[1] = float4{box.hi.x, box.hi.y, box.hi.z, __int_as_float(right)};
    float4* q = (float4*)(plans + b);
    q[0] = float4{plan.least[0], plan.least[1], plan.least[2], plan.least[3]};
    q[1] = float4{plan.least[4], plan.least[5], plan.least[6], __uint_as_float(plan.choices)};
}

// The leaves [first,last] of a node of the tree that the order of keys defines.
struct Range {
    u32 first, last;
};

// What this thread wrote, or has seen by way of barriers, is seen by whoever sees what
// it does next. Weaker than __threadfence, which puts all fences of a device in order.
__device__ __forceinline__ void publish() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }

// Where a range ends up when both halves of the node above have arrived. gaps[i] is
// the highest bit in which the keys of leaves i and i+1 differ, so the range is
// joined with the neighbour across its smaller gap. The first half to arrive leaves
// its far end and a note in meet[gap] and is done: false. The second half takes
// that, goes on as the whole, and leaves the place as it was.
__device__ __forceinline__ bool join(Range& r, u32 leaf_count, const u8* gaps, u64* meet, u32 note, u32& gap, bool& from_left,
                                     u32& other_note)
{
    from_left = r.first == 0 || (r.last != leaf_count - 1 && gaps[r.last] < gaps[r.first - 1]);
    gap = from_left ? r.last : r.first - 1;
    publish(); // what this half consists of
    const u64 mine = (u64)(from_left ? r.first : r.last) << 32 | note;
    const u64 other = atomicExch(meet + gap, mine);
    if (other == NOBODY) {
        return false;
    }
    publish(); // and the other half is seen from here on
    meet[gap] = NOBODY;
    (from_left ? r.last : r.first) = (u32)(other >> 32);
    other_note = (u32)other;
    return true;
}
