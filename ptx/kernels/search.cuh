// The closest-hit search of a launch by warps that stay: a lane that has finished
// its ray takes the next one, so that long rays do not keep the others waiting.
#pragma once

#include "tree.cuh"

#define SEARCH_THREADS 128

// Groups that a search has left behind, at most one per level of the tree but the
// last. The host sizes this memory by the depth of the tree.
extern __shared__ uint2 search_stack[];

struct Search {
    Frame frame;
    BoxRay boxes;
    Winner best;
    float bound;
    Group inner, triangles;
    u32 top; // where the next group goes: the thread's index plus SEARCH_THREADS per group
};

__device__ __forceinline__ bool is_done(const Search& s) { return is_empty(s.inner) && is_empty(s.triangles); }

// Starts a ray that can hit something, unless it misses the whole scene.
__device__ __forceinline__ void start(Search& s, f32x3 o, f32x3 d, float t_max, const Node* pool)
{
    if (!prepare_boxes(s.boxes, o, d, (const Grid*)pool)) {
        return;
    }
    make_frame(s.frame, o, d);
    s.best.t = fminf(t_max, F32_MAX);
    s.bound = cull_bound(s.boxes, s.best.t);
    s.inner = Group{TREE_ROOT, 0x101};
}

// Visits the nearest child of the current group, which is not empty, and moves on
// to what is below it or back to what was left behind.
__device__ __forceinline__ void visit(Search& s, const Node* pool, const u8* first)
{
    const u32 slot = take(s.inner, first[s.boxes.octant | (s.inner.bits & 255)]);
    Group below;
    test_node(below, s.triangles, s.boxes, pool + slot, s.bound);
    if (!is_empty(below)) {
        if (!is_empty(s.inner)) {
            search_stack[s.top] = uint2{s.inner.base, s.inner.bits};
            s.top += SEARCH_THREADS;
        }
        s.inner = below;
    } else if (is_empty(s.inner) && s.top >= SEARCH_THREADS) {
        s.top -= SEARCH_THREADS;
        const uint2 g = search_stack[s.top];
        s.inner = Group{g.x, g.y};
    }
}

__device__ __forceinline__ void test_triangles(Search& s, const Node* pool)
{
    do {
        test_triangle(s.best, s.frame, (const Triangle*)pool + take(s.triangles, __ffs(s.triangles.bits) - 1));
    } while (!is_empty(s.triangles));
    s.bound = cull_bound(s.boxes, s.best.t);
}
