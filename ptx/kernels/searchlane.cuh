// The search of one lane: what it knows of its ray, and the steps that a warp takes
// together.
#pragma once

#include "tree.cuh"

#define SEARCH_THREADS 128

// An empty group for every thread, groups that its search has left behind, at most one
// per level of the tree but the last, and room for the triangles that wait. The host
// sizes this memory by the depth of the tree.
extern __shared__ uint2 search_stack[];

struct Search {
    Frame frame;
    BoxRay boxes;
    Winner best;
    float bound;
    Group inner, triangles; // bit 16 of triangles.bits: there is another group of them
    u32 top; // address of the last group that was left behind, or of the empty one

    // Only between the steps of search_rows, where they take no registers.
    u32 slot; // of the triangle that a job is shown
    bool starts;
    f32x3 o, d; // the search to start
    float t_max;
};

__device__ __forceinline__ bool is_done(const Search& s) { return is_empty(s.inner) && is_empty(s.triangles); }

// Shared memory by its own addresses: half the registers of a pointer, and for every
// access to a variable the assembler would make the address anew.
__device__ __forceinline__ u32 shared_address(const void* p) { return (u32)__cvta_generic_to_shared(p); }

__device__ __forceinline__ Group load_group(u32 at)
{
    Group g;
    asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(g.base), "=r"(g.bits) : "r"(at));
    return g;
}

__device__ __forceinline__ void store_group(u32 at, Group g)
{
    asm volatile("st.shared.v2.u32 [%0], {%1, %2};" : : "r"(at), "r"(g.base), "r"(g.bits));
}

__device__ __forceinline__ u32 load_place(u32 at)
{
    u32 place;
    asm volatile("ld.shared.u8 %0, [%1];" : "=r"(place) : "r"(at));
    return place;
}

__device__ __shared__ VisitOrder search_order;

// Starts a search along a ray that can hit something up to t_max.
__device__ __forceinline__ void start(Search& s, f32x3 o, f32x3 d, float t_max)
{
    s.starts = true;
    s.o = o;
    s.d = d;
    s.t_max = t_max;
}

// Begins what was started, unless it misses the whole scene. Lanes that go on with
// their row and lanes that have taken one do it together.
__device__ __forceinline__ void enter(Search& s, const Node* pool)
{
    if (!prepare_boxes(s.boxes, s.o, s.d, (const Grid*)pool, shared_address(&search_order))) {
        return;
    }
    make_frame(s.frame, s.o, s.d);
    s.best.t = fminf(s.t_max, F32_MAX);
    s.bound = cull_bound(s.boxes, s.best.t);
    s.inner = Group{TREE_ROOT, 0x101};
    s.top = shared_address(search_stack + threadIdx.x);
}

// Ends a search early: what it has not looked at does not matter any more.
__device__ __forceinline__ void stop(Search& s)
{
    s.inner = s.triangles = Group{0, 0};
}

// Where a second group of triangles waits: two levels above the top, because the top
// sinks below the empty group when nothing is left.
__device__ __forceinline__ u32 waiting_triangles(const Search& s) { return s.top + 2 * SEARCH_THREADS * sizeof(Group); }

// A lane goes on with nodes while one group of triangles waits, but not with two.
__device__ __forceinline__ bool may_visit(const Search& s) { return !is_empty(s.inner) && s.triangles.bits >> 16 == 0; }

// Visits the nearest child of the current group, which is not empty, and moves on
// to what is below it or back to what was left behind.
__device__ __forceinline__ void visit(Search& s, const Node* pool)
{
    const u32 slot = take(s.inner, load_place(s.boxes.order + (s.inner.bits & 255)));
    Group below, found;
    test_node(below, found, s.boxes, pool + slot, s.bound);
    if (is_empty(s.triangles)) {
        s.triangles = found;
    } else if (!is_empty(found)) {
        s.triangles.bits |= 1u << 16;
    }
    if (!is_empty(below)) {
        if (!is_empty(s.inner)) {
            s.top += SEARCH_THREADS * sizeof(Group);
            store_group(s.top, s.inner);
        }
        s.inner = below;
    } else if (is_empty(s.inner)) {
        // Nothing is left where this finds the empty group, and top does not matter.
        s.inner = load_group(s.top);
        s.top -= SEARCH_THREADS * sizeof(Group);
    }
    if (s.triangles.bits >> 16) {
        store_group(waiting_triangles(s), found);
    }
}

// Shows the job every triangle that the groups hold and the ray crosses.
template <class Job> __device__ __forceinline__ void test_triangles(Job& job, Search& s, const Node* pool)
{
    do {
        if (is_empty(s.triangles)) {
            s.triangles = load_group(waiting_triangles(s));
        }
        s.slot = take(s.triangles, __ffs(s.triangles.bits) - 1);
        float t;
        i32 id;
        if (crosses_triangle(t, id, s.frame, (const Triangle*)pool + s.slot)) {
            job.meet(s, t, id);
        }
    } while (s.triangles.bits & 0x100ff);
    s.bound = cull_bound(s.boxes, s.best.t);
}
