// Tracing by kernels in which every thread asks by itself, in blocks of SEARCH_THREADS
// threads with the memory of search.cuh's stacks. For lanes that take about the same
// time; others are rows of search_rows.
#pragma once

#include "search.cuh"
#include "segment.cuh"

// Once per block, by all of its threads, before anybody traces.
__device__ __forceinline__ void trace_begin()
{
    ((uint4*)search_order.first)[threadIdx.x] = ((const uint4*)visit_order.first)[threadIdx.x];
    store_group(shared_address(search_stack + threadIdx.x), Group{0, 0});
    __syncthreads();
}

// Counts every triangle.
struct IgnoreNothing {
    __device__ __forceinline__ bool operator()(i32) const { return false; }
};

// Whether a triangle that ignored(id) does not name crosses the segment.
template <class Ignored> __device__ __forceinline__ bool crossed(const Node* pool, const Segment& g, const Ignored& ignored)
{
    BoxRay boxes;
    if (!prepare_boxes(boxes, g.o, g.d, (const Grid*)pool, shared_address(&search_order))) {
        return false;
    }
    Frame frame;
    make_frame(frame, g.o, g.d);
    const float bound = cull_bound(boxes, g.t_max);
    Group inner = {TREE_ROOT, 0x101};
    u32 top = shared_address(search_stack + threadIdx.x);
    for (;;) {
        const u32 slot = take(inner, load_place(boxes.order + (inner.bits & 255)));
        Group below, found;
        test_node(below, found, boxes, pool + slot, bound);
        while (!is_empty(found)) {
            const u32 triangle = take(found, __ffs(found.bits) - 1);
            float t;
            i32 id;
            if (crosses_triangle(t, id, frame, (const Triangle*)pool + triangle) && t >= g.t_min && t <= g.t_max &&
                !ignored(id)) {
                return true;
            }
        }
        if (!is_empty(below)) {
            if (!is_empty(inner)) {
                top += SEARCH_THREADS * sizeof(Group);
                store_group(top, inner);
            }
            inner = below;
        } else if (is_empty(inner)) {
            inner = load_group(top);
            top -= SEARCH_THREADS * sizeof(Group);
            if (is_empty(inner)) {
                return false; // the empty group at the bottom
            }
        }
    }
}

// Whether a triangle that ignored(id) does not name blocks the view between two points,
// by the segment rule.
template <class Ignored>
__device__ __forceinline__ bool occluded(const Node* pool, f32x3 from, f32x3 to, const Ignored& ignored)
{
    Segment g;
    const SegmentState known = make_segment(g, from, to);
    return known == SEGMENT_OPEN ? crossed(pool, g, ignored) : known == SEGMENT_BLOCKED;
}

__device__ __forceinline__ bool occluded(const Node* pool, f32x3 from, f32x3 to)
{
    return occluded(pool, from, to, IgnoreNothing{});
}
