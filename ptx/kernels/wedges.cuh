// Wedge events: the hits of tubes, in the order of rows and bounces. Accumulation leaves
// their number for each row. Sums over the rows before it tell where the events of a row
// begin; rows that begin within the capacity are followed once more, by the same
// arithmetic, and write what they meet.
#pragma once

#include "blocksum.cuh"
#include "reflgrid.cuh"

#define WEDGE_THREADS 256
#define WEDGE_ROWS 16 // of a thread
#define WEDGE_TILE (WEDGE_THREADS * WEDGE_ROWS)

// Columns of capacity slots.
struct WedgeColumns {
    i64* ray_index;
    float* hit_points;
    float* normals;
    float* directions;
    float* source_points;
    float* initial_directions;
    float* src_power;
    i32* prim_id;
    i32* bounce_depth;
    i64 capacity;
};

// Slots that no event has filled.
extern "C" __global__ void __launch_bounds__(128) clear_wedges(const __grid_constant__ WedgeColumns p)
{
    const i64 slot = launch_row();
    if (slot >= p.capacity) {
        return;
    }
    const f32x3 zero = {0.0f, 0.0f, 0.0f};
    p.ray_index[slot] = -1;
    store3(p.hit_points, slot, zero);
    store3(p.normals, slot, zero);
    store3(p.directions, slot, zero);
    store3(p.source_points, slot, zero);
    store3(p.initial_directions, slot, zero);
    p.src_power[slot] = 0.0f;
    p.prim_id[slot] = -1;
    p.bounce_depth[slot] = -1;
}

// Numbers of events of rows, and where those of each tile of rows begin.
struct WedgeCounts {
    const u8* events;
    u64* starts; // of each tile
    i64 rows;
};

// The events of a thread's rows.
__device__ __forceinline__ u32 own_events(const WedgeCounts& p, i64 first)
{
    u32 sum = 0;
    for (i64 row = first; row < first + WEDGE_ROWS && row < p.rows; row++) {
        sum += p.events[row];
    }
    return sum;
}

__device__ __forceinline__ i64 first_wedge_row()
{
    return (i64)blockIdx.x * WEDGE_TILE + threadIdx.x * WEDGE_ROWS;
}

// Leaves the sum of every tile in starts.
extern "C" __global__ void __launch_bounds__(WEDGE_THREADS) sum_wedges(const __grid_constant__ WedgeCounts p)
{
    __shared__ u32 sums[WEDGE_THREADS / 32];
    const u32 own = own_events(p, first_wedge_row());
    const u32 before = sum_before(own, sums);
    if (threadIdx.x == WEDGE_THREADS - 1) {
        p.starts[blockIdx.x] = before + own;
    }
}

struct ScanWedgesParams {
    u64* starts;
    u64* total;
    i64 tiles;
};

// Replaces the sums of tiles by those before them, with one block. A tile has less than
// 2^18 events, so that those of 256 tiles fit.
extern "C" __global__ void __launch_bounds__(WEDGE_THREADS) scan_wedges(const __grid_constant__ ScanWedgesParams p)
{
    const auto total = sum_tiles<WEDGE_THREADS>(p.starts, p.tiles);
    if (threadIdx.x == 0) {
        *p.total = total;
    }
}

struct PlaceWedgesParams {
    WedgeCounts counts;
    i64* ray_index;
    i64 capacity;
    i64 row_base;
};

// Names the row of every slot.
extern "C" __global__ void __launch_bounds__(WEDGE_THREADS) place_wedges(const __grid_constant__ PlaceWedgesParams p)
{
    __shared__ u32 sums[WEDGE_THREADS / 32];
    const i64 first = first_wedge_row();
    i64 slot = (i64)p.counts.starts[blockIdx.x] + sum_before(own_events(p.counts, first), sums);
    for (i64 row = first; row < first + WEDGE_ROWS && row < p.counts.rows; row++) {
        const i64 end = slot + p.counts.events[row];
        for (; slot < end && slot < p.capacity; slot++) {
            p.ray_index[slot] = p.row_base + row;
        }
        slot = end;
    }
}

struct TraceWedgesParams {
    TubeParams tubes;
    WedgeColumns to;
};

// Follows the row of every slot that is the first of its row.
struct WedgeWriter {
    const TubeParams& p;
    const WedgeColumns& to;

    __device__ __forceinline__ bool follows(i64 slot) const
    {
        const i64 ray = to.ray_index[slot];
        return ray >= 0 && (slot == 0 || to.ray_index[slot - 1] != ray);
    }

    __device__ __forceinline__ i64 row(i64 slot) const { return to.ray_index[slot] - p.row_base; }
    __device__ __forceinline__ void refuses() const {}
    __device__ __forceinline__ void leaves(i64, const Leg&) const {}
    __device__ __forceinline__ void ends(i64, u32) const {}

    __device__ __forceinline__ bool meets(i64 first, const Event& e) const
    {
        const i64 slot = first + e.number;
        const i64 ray = to.ray_index[first];
        store3(to.hit_points, slot, e.p);
        store3(to.normals, slot, e.n);
        store3(to.directions, slot, e.k);
        store3(to.source_points, slot, e.image);
        store3(to.initial_directions, slot, unit(load3(p.rays.d, ray - p.row_base)));
        const float power = mul(square(kept_field()), p.omega);
        to.src_power[slot] = p.flags & TUBES_PREFIXES ? mul(power, __ll2float_rn(p.stride)) : power;
        to.prim_id[slot] = e.prim;
        to.bounce_depth[slot] = e.depth;
        return slot + 1 < to.capacity && to.ray_index[slot + 1] == ray;
    }
};

extern "C" __global__ void __launch_bounds__(SEARCH_THREADS, 5)
    trace_wedges(const __grid_constant__ TraceWedgesParams p)
{
    Tubes<WedgeWriter> job{p.tubes, {p.tubes, p.to}};
    search_rows(job, p.tubes.search);
}
