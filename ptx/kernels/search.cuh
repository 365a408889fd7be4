// The search of a launch by warps that stay: a lane that has finished takes the next
// search, of its row or of another one, so that long rays do not keep the others
// waiting. What a row searches is a job's business.
#pragma once

#include "share.cuh"

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
//
// With SHARE lanes share the last searches of a warp. That is for jobs whose rows have one
// search each, and whose meet() offers crossings to s.best and does nothing else.
template <class Job, bool SHARE = false> __device__ __forceinline__ void search_rows(Job& job, const SearchParams& p)
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
    if (SHARE) { // also what lanes have that never get a row
        s.best = Winner{0.0f, -1};
        s.boxes.octant = 0;
    }
    for (;;) {
        const bool ended = is_done(s);
        const u32 ended_lanes = __ballot_sync(warp, ended);
        const u32 held_lanes = __ballot_sync(warp, row != none);
        const bool more = supply != NO_MORE;
        if (SHARE && !more && __popc(ended_lanes) >= SHARE_LANES) {
            row = share_searches(job, s, p.pool, row);
            if (row != none) {
                job.proceed(s, p.row_begin + row);
            }
            break;
        }
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
