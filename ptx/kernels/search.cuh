// The search of a launch by warps that stay: a lane that has finished takes the next
// search, of its row or of another one, so that long rays do not keep the others
// waiting. What a row searches is a job's business.
#pragma once

#include "tree.cuh"

#define SEARCH_THREADS 128

// Groups that a search has left behind, at most one per level of the tree but the
// last. The host sizes this memory by the depth of the tree.
extern __shared__ uint2 search_stack[];

// What every kernel that searches is told. Any number of blocks searches all rows.
struct SearchParams {
    const Node* pool;
    u32* next; // zero; may be null when there is a thread for every row
    i64 row_begin;
    i64 count; // at most 2^30
    // A warp goes on with nodes while at least busy_lanes lanes have one to visit.
    // Below that it tests the triangles of all lanes that have met some, and when
    // idle_lanes have finished, it finds searches for them. After triangles all lanes
    // but the idle ones have a node: the sum of the two is at most 33, or a warp
    // would wait for itself.
    u32 busy_lanes;
    u32 idle_lanes;
};

struct Search {
    Frame frame;
    BoxRay boxes;
    Winner best;
    float bound;
    Group inner, triangles;
    u32 top; // where the next group goes: the thread's index plus SEARCH_THREADS per group
};

__device__ __forceinline__ bool is_done(const Search& s) { return is_empty(s.inner) && is_empty(s.triangles); }

// Starts a search along a ray that can hit something up to t_max, unless it misses
// the whole scene.
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

// Ends a search early: what it has not looked at does not matter any more.
__device__ __forceinline__ void stop(Search& s)
{
    s.inner = s.triangles = Group{0, 0};
    s.top = threadIdx.x;
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

// Shows the job every triangle that the group holds and the ray crosses.
template <class Job> __device__ __forceinline__ void test_triangles(Job& job, Search& s, const Node* pool)
{
    do {
        const Triangle* triangle = (const Triangle*)pool + take(s.triangles, __ffs(s.triangles.bits) - 1);
        float t;
        i32 id;
        if (crosses_triangle(t, id, s.frame, triangle)) {
            job.meet(s, t, id);
        }
    } while (!is_empty(s.triangles));
    s.bound = cull_bound(s.boxes, s.best.t);
}

// Runs the rows of a launch. A job is what one lane does with its row:
//
//   bool begin(Search& s, i64 row)      takes a row: starts its first search with
//                                       start(), or stores its result and returns false
//   void meet(Search& s, float t, i32 id)
//                                       the ray crosses triangle id at t, which may be
//                                       NaN or negative; s.best.t is the farthest t
//                                       that still matters, stop() ends the search
//   bool proceed(Search& s, i64 row)    the search has ended: starts the row's next one,
//                                       or stores its result and returns false
//
// A job that starts a search sets s.best.id; it may read both members of s.best in
// proceed.
template <class Job> __device__ __forceinline__ void search_rows(Job& job, const SearchParams& p)
{
    __shared__ VisitOrder order;
    static_assert(sizeof(order) == 16 * SEARCH_THREADS, "one load per thread");
    ((uint4*)order.first)[threadIdx.x] = ((const uint4*)visit_order.first)[threadIdx.x];
    __syncthreads();

    const u32 warp = 0xffffffff;
    const u32 none = 0xffffffff;
    const u32 lane = threadIdx.x & 31;
    const u32 count = (u32)p.count;
    const u32 threads = gridDim.x * SEARCH_THREADS;
    bool first = true; // the first row of every thread is fixed, the others are handed out
    bool more = true;
    u32 row = none;
    Search s;
    stop(s);
    for (;;) {
        const bool ended = is_done(s);
        const u32 ended_lanes = __ballot_sync(warp, ended);
        const u32 held_lanes = __ballot_sync(warp, row != none);
        // Once no rows are left, lanes without one wait for nothing.
        const u32 waiting = __popc(more ? ended_lanes : ended_lanes & held_lanes);
        if (waiting >= (more ? p.idle_lanes : (u32)(__popc(held_lanes) + 3) / 4)) {
            if (!more && held_lanes == 0) {
                break;
            }
            bool free = ended;
            if (ended && row != none) {
                free = !job.proceed(s, p.row_begin + row);
                row = free ? none : row;
            }
            const u32 free_lanes = __ballot_sync(warp, free);
            if (more && free_lanes != 0) {
                const u32 wanted = __popc(free_lanes);
                u32 begin = blockIdx.x * SEARCH_THREADS + threadIdx.x - lane;
                if (!first) {
                    if (lane == 0) {
                        begin = threads + atomicAdd(p.next, wanted);
                    }
                    begin = __shfl_sync(warp, begin, 0);
                }
                first = false;
                more = max(begin + wanted, threads) < count;
                const u32 mine = begin + __popc(free_lanes & ((1u << lane) - 1));
                if (free && mine < count && job.begin(s, p.row_begin + mine)) {
                    row = mine;
                }
            }
            continue;
        }
        // Once no rows are left, the rest goes on as long as most of it can.
        const u32 busy = 32 - __popc(ended_lanes);
        const u32 least = more ? p.busy_lanes : busy - busy / 4;
        for (;;) {
            const bool ready = !is_empty(s.inner) && is_empty(s.triangles);
            if (__popc(__ballot_sync(warp, ready)) < least) {
                break;
            }
            if (ready) {
                visit(s, p.pool, order.first);
            }
        }
        if (!is_empty(s.triangles)) {
            test_triangles(job, s, p.pool);
        }
    }
}
