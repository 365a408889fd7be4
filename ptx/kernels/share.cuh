// The last searches of a warp. A few rays take much longer than the others, and once there
// are no rows left, lanes that have ended theirs would wait.
#pragma once

#include "searchlane.cuh"

// How many lanes have to wait before they share, and how many nodes lanes visit before
// they look again who waits. A visit waits half a microsecond for memory.
#define SHARE_LANES 16
#define SHARE_VISITS 4

// A winner as a number: the less, the better. t is not negative.
__device__ __forceinline__ u64 winner_key(Winner w) { return (u64)__float_as_uint(w.t) << 32 | (u32)w.id; }

__device__ __forceinline__ Winner key_winner(u64 key)
{
    return Winner{__uint_as_float((u32)(key >> 32)), (i32)(u32)key};
}

// Lane n, counted from 0, of a mask.
__device__ __forceinline__ u32 nth_lane(u32 lanes, u32 n)
{
    for (; n > 0; n--) {
        lanes &= lanes - 1;
    }
    return __ffs(lanes) - 1;
}

// Takes a part of what a lane has to look at: the group that it left behind first, which
// holds the most below it, or all of its only group but the nearest child.
__device__ __forceinline__ Group spare(Group& kept, const Search& s, u32 bottom)
{
    kept = s.inner;
    if (is_empty(s.inner)) {
        return Group{0, 0};
    }
    if (s.top != bottom) {
        return load_group(bottom + SEARCH_THREADS * sizeof(Group));
    }
    const u32 nearest = 1u << load_place(s.boxes.order + (s.inner.bits & 255));
    kept.bits &= nearest | 0xff00;
    return Group{s.inner.base, s.inner.bits & ~nearest};
}

#define SHUFFLE(x) x = __shfl_sync(0xffffffff, x, source)

// Ends the searches of a warp: lanes that have nothing to do take parts of what the others
// have left behind. Which lane finds a winner does not matter, because the winner is the
// least (t, id). Afterwards s.best is that of the lane's own row.
//
// Nothing is added to what a lane holds in registers. In its lowest empty group, of which
// nobody reads more than that it is empty, it keeps its row, from bit 8 on the lane of
// whose search it has a part, and from bit 16 on how many groups of its stack it has given
// away. Visits are counted above the bits of the octant. Returns the row.
template <class Job> __device__ __forceinline__ u32 share_searches(Job& job, Search& s, const Node* pool, u32 row)
{
    __shared__ u64 winners[SEARCH_THREADS]; // of each thread's row, whoever has found them
    const u32 warp = 0xffffffff;
    const u32 level = SEARCH_THREADS * sizeof(Group);
    const u32 lane = threadIdx.x & 31;
    const u32 lowest = shared_address(search_stack + threadIdx.x);
    store_group(lowest, Group{row, lane << 8});
    winners[threadIdx.x] = winner_key(s.best);
    __syncwarp();
    for (;;) {
        Group state = load_group(lowest);
        u64* const winner = winners + ((threadIdx.x & ~31) | (state.bits >> 8 & 31));
        const bool better = winner_key(s.best) < *winner;
        __syncwarp();
        if (better) {
            atomicMin(winner, winner_key(s.best));
        }
        __syncwarp();
        s.best = key_winner(*winner);
        s.bound = cull_bound(s.boxes, s.best.t);
        const bool idle = is_done(s);
        const u32 idle_lanes = __ballot_sync(warp, idle);
        if (idle_lanes == warp) {
            break;
        }
        const u32 bottom = lowest + (state.bits >> 16) * level;
        Group kept;
        Group given = spare(kept, s, bottom);
        const bool gives = !is_empty(given);
        const u32 givers = __ballot_sync(warp, gives);
        const u32 pairs = min(__popc(idle_lanes), __popc(givers));
        if (pairs != 0) {
            const u32 rank = __popc((idle ? idle_lanes : givers) & ((1u << lane) - 1));
            const bool takes = idle && rank < pairs;
            const u32 source = takes ? nth_lane(givers, rank) : lane;
            if (gives && rank < pairs) {
                if (s.top != bottom) {
                    store_group(bottom + level, Group{0, 0});
                    state.bits += 1 << 16;
                } else {
                    s.inner = kept;
                }
            }
            SHUFFLE(given.base);
            SHUFFLE(given.bits);
            SHUFFLE(state.bits);
            SHUFFLE(s.frame.o.x);
            SHUFFLE(s.frame.o.y);
            SHUFFLE(s.frame.o.z);
            SHUFFLE(s.frame.axes);
            SHUFFLE(s.frame.sx);
            SHUFFLE(s.frame.sy);
            SHUFFLE(s.frame.dz);
            SHUFFLE(s.boxes.step.x);
            SHUFFLE(s.boxes.step.y);
            SHUFFLE(s.boxes.step.z);
            SHUFFLE(s.boxes.near_at.x);
            SHUFFLE(s.boxes.near_at.y);
            SHUFFLE(s.boxes.near_at.z);
            SHUFFLE(s.boxes.far_at.x);
            SHUFFLE(s.boxes.far_at.y);
            SHUFFLE(s.boxes.far_at.z);
            SHUFFLE(s.boxes.t_scale);
            SHUFFLE(s.boxes.octant);
            SHUFFLE(s.boxes.order);
            SHUFFLE(s.best.t);
            SHUFFLE(s.best.id);
            SHUFFLE(s.bound);
            if (takes) {
                state.bits &= 31 << 8;
                s.inner = given;
                s.top = lowest;
            }
            store_group(lowest, state);
        }
        for (s.boxes.octant += SHARE_VISITS << 16; s.boxes.octant >> 16; s.boxes.octant -= 1 << 16) {
            if (may_visit(s)) {
                visit(s, pool);
            }
            __syncwarp();
        }
        if (!is_empty(s.triangles)) {
            test_triangles(job, s, pool);
        }
    }
    s.best = key_winner(winners[threadIdx.x]);
    return load_group(lowest).base;
}

#undef SHUFFLE
