// The search of a launch by warps that stay: a lane that has finished takes the next
// search, of its row or of another one, so that long rays do not keep the others
// waiting. What a row searches is a job's business.
#pragma once

#include "tree.cuh"

#define SEARCH_THREADS 128

// An empty group for every thread, groups that its search has left behind, at most one
// per level of the tree but the last, and room for the triangles that wait. The host
// sizes this memory by the depth of the tree.
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

// Runs the rows of a launch. A job is what one lane does with its row:
//
//   bool begin(Search& s, i64 row)      takes a row: starts its first search with
//                                       start(), or stores its result and returns false
//   void meet(Search& s, float t, i32 id)
//                                       the ray crosses triangle id, which is in slot
//                                       s.slot, at t, which may be NaN or negative;
//                                       s.best.t is the farthest t that still matters,
//                                       stop() ends the search
//   bool proceed(Search& s, i64 row)    the search has ended: starts the row's next one,
//                                       or stores its result and returns false
//
// A job that starts a search sets s.best.id; it may read both members of s.best in
// proceed.
template <class Job> __device__ __forceinline__ void search_rows(Job& job, const SearchParams& p)
{
    static_assert(sizeof(search_order) == 16 * SEARCH_THREADS, "one load per thread");
    ((uint4*)search_order.first)[threadIdx.x] = ((const uint4*)visit_order.first)[threadIdx.x];
    store_group(shared_address(search_stack + threadIdx.x), Group{0, 0});
    __syncthreads();

    const u32 warp = 0xffffffff;
    const u32 none = 0xffffffff;
    const u32 lane = threadIdx.x & 31;
    const u32 count = (u32)p.count;
    const u32 threads = gridDim.x * SEARCH_THREADS;
    // The first row of every thread is fixed, the others are handed out. One register
    // for what two flags would take two for.
    enum { FIRST, MORE, NO_MORE };
    u32 supply = FIRST;
    u32 row = none;
    Search s;
    stop(s);
    for (;;) {
        const bool ended = is_done(s);
        const u32 ended_lanes = __ballot_sync(warp, ended);
        const u32 held_lanes = __ballot_sync(warp, row != none);
        const bool more = supply != NO_MORE;
        // Once no rows are left, lanes without one wait for nothing.
        const u32 waiting = __popc(more ? ended_lanes : ended_lanes & held_lanes);
        if (waiting >= (more ? p.idle_lanes : (u32)(__popc(held_lanes) + 3) / 4)) {
            if (!more && held_lanes == 0) {
                break;
            }
            bool free = ended;
            s.starts = false;
            s.o = s.d = f32x3{0.0f, 0.0f, 0.0f};
            s.t_max = 0.0f;
            if (ended && row != none) {
                free = !job.proceed(s, p.row_begin + row);
                row = free ? none : row;
            }
            const u32 free_lanes = __ballot_sync(warp, free);
            if (more && free_lanes != 0) {
                const u32 wanted = __popc(free_lanes);
                u32 begin = blockIdx.x * SEARCH_THREADS + threadIdx.x - lane;
                if (supply != FIRST) {
                    if (lane == 0) {
                        begin = threads + atomicAdd(p.next, wanted);
                    }
                    begin = __shfl_sync(warp, begin, 0);
                }
                supply = max(begin + wanted, threads) < count ? MORE : NO_MORE;
                const u32 mine = begin + __popc(free_lanes & ((1u << lane) - 1));
                if (free && mine < count && job.begin(s, p.row_begin + mine)) {
                    row = mine;
                }
            }
            if (s.starts) {
                enter(s, p.pool);
            }
            continue;
        }
        // Once no rows are left, the rest goes on as long as most of it can.
        const u32 busy = 32 - __popc(ended_lanes);
        const u32 least = more ? p.busy_lanes : busy - busy / 4;
        for (;;) {
            const bool ready = may_visit(s);
            if (__popc(__ballot_sync(warp, ready)) < least) {
                break;
            }
            if (ready) {
                visit(s, p.pool);
            }
        }
        if (!is_empty(s.triangles)) {
            test_triangles(job, s, p.pool);
        }
    }
}
