// Paths over one edge, a row for every transmitter, receiver and state. A row is a
// function of its number; its ids and the number of valid rows follow on the caller's
// device.

#include "blocksum.cuh"
#include "utdlane.cuh"

struct DfrPathsParams {
    LaneCall lanes;
    const float* tx;           // [transmitters, 3]
    const float* rx;           // [receivers, 3]
    const float* power;        // of each transmitter, or null: 1
    const float* polarization; // of all or each of them, or null: x
    const u8* active;          // of each state
    u8* status;
    float* delay;
    float2* field; // [rows, 3]
    float* point;  // [rows, 3]
    i64 first;     // number of row 0 of the columns
    i64 row_begin;
    i64 count;
    u32 receivers, states;
    u32 polarization_step; // 3: one for every transmitter
    u32 block_rows;        // rows of a block
    u32 filled;            // the columns hold all of a row without a path but its status
    u32 unused;
};

// What the number of a row, which is below 2^31, says.
struct RowPlace {
    u32 tx, rx, state;
};

__device__ __forceinline__ RowPlace row_place(i64 number, u32 receivers, u32 states)
{
    const u32 pair = (u32)number / states;
    return RowPlace{pair / receivers, pair % receivers, (u32)number % states};
}

// The rows of a block.
struct RowsOfPaths {
    const DfrPathsParams& p;
    i64 first; // row

    __device__ __forceinline__ bool load(LaneInput& in, u32 lane) const
    {
        const RowPlace place = row_place(p.first + first + lane, p.receivers, p.states);
        if (!p.active[place.state]) {
            return false;
        }
        in.state = place.state;
        in.source = load3(p.tx, place.tx);
        in.target = load3(p.rx, place.rx);
        in.polarization =
            p.polarization ? load3(p.polarization + (i64)place.tx * p.polarization_step, 0) : f32x3{1.0f, 0.0f, 0.0f};
        in.power = p.power ? p.power[place.tx] : 1.0f;
        return true;
    }

    __device__ __forceinline__ void end(u32 lane, u32 status, const LaneResult& out) const
    {
        const i64 row = first + lane;
        const bool valid = status == LANE_VALID;
        p.status[row] = (u8)status;
        if (!valid && p.filled) {
            return;
        }
        p.delay[row] = valid ? out.delay : f32_inf();
        store3(p.point, row, valid ? out.point : f32x3{0.0f, 0.0f, 0.0f});
#pragma unroll
        for (u32 k = 0; k < 3; k++) {
            p.field[3 * row + k] = valid ? float2{out.field[2 * k], out.field[2 * k + 1]} : float2{0.0f, 0.0f};
        }
    }

    __device__ __forceinline__ void collect(u32) const {}
};

extern "C" __global__ void __launch_bounds__(SEARCH_THREADS, 4) trace_dfr_paths(const __grid_constant__ DfrPathsParams p)
{
    const i64 begin = (i64)blockIdx.x * p.block_rows;
    RowsOfPaths rows{p, p.row_begin + begin};
    run_lanes(rows, p.lanes, (u32)min((i64)p.block_rows, p.count - begin));
}

// The ids of rows.
struct DfrIdsParams {
    const State* states_table;
    const u8* status;
    i32* tx;
    i32* rx;
    i32* edge;
    i64 first;
    i64 row_begin;
    i64 count;
    u32 receivers, states;
};

extern "C" __global__ void dfr_path_ids(const __grid_constant__ DfrIdsParams p)
{
    const i64 at = launch_row();
    if (at >= p.count) {
        return;
    }
    const i64 row = p.row_begin + at;
    const RowPlace place = row_place(p.first + row, p.receivers, p.states);
    const bool valid = p.status[row] == LANE_VALID;
    p.tx[row] = valid ? (i32)place.tx : -1;
    p.rx[row] = valid ? (i32)place.rx : -1;
    p.edge[row] = valid ? p.states_table[place.state].edge : -1;
}

// Rows that one block counts and moves.
#define PATH_THREADS 256
#define PATH_TILE 2048

struct CountPathsParams {
    const u8* status;
    u32* totals; // valid rows of each tile
    i64 count;
};

extern "C" __global__ void __launch_bounds__(PATH_THREADS) count_dfr_paths(const __grid_constant__ CountPathsParams p)
{
    __shared__ u32 sums[PATH_THREADS / 32];
    const i64 first = (i64)blockIdx.x * PATH_TILE + threadIdx.x;
    u32 own = 0;
    for (u32 k = 0; k < PATH_TILE; k += PATH_THREADS) {
        own += first + k < p.count && p.status[first + k] == LANE_VALID;
    }
    const u32 before = sum_before(own, sums);
    if (threadIdx.x == PATH_THREADS - 1) {
        p.totals[blockIdx.x] = before + own;
    }
}

// One block replaces totals by the sums of those before them.
struct SumPathsParams {
    u32* totals;
    i64* total; // of all
    i64 tiles;
};

extern "C" __global__ void __launch_bounds__(PATH_THREADS) sum_dfr_paths(const __grid_constant__ SumPathsParams p)
{
    const auto total = sum_tiles<PATH_THREADS>(p.totals, p.tiles);
    if (threadIdx.x == 0) {
        *p.total = total;
    }
}

// What a row is made of before it has ids.
struct PathColumns {
    u8* status;
    float* delay;
    float* field;
    float* point;
};

// Compact packs valid rows at the front of other columns, and settles them where they
// belong. All other rows hold the same values but for their status, which the search has
// written: so nothing else of them moves, and of the rows that have moved away only those
// behind the valid ones are cleared.
//
// A warp works for the rows of a tile that follow each other. The rows that it moves or
// clears are in a list, so that its lanes share what they consist of.
#define PATH_WARP_ROWS (PATH_TILE / (PATH_THREADS / 32))

struct RowList {
    u8* rows; // of those of the warp
    u32 count;

    // Adds the row of every lane that has chosen; returns how many were chosen before it.
    __device__ __forceinline__ u32 add(u32 row, bool chosen)
    {
        const u32 lanes = __ballot_sync(0xffffffff, chosen);
        const u32 place = count + __popc(lanes & ((1u << (threadIdx.x & 31)) - 1));
        if (chosen) {
            rows[place] = (u8)row;
        }
        count += __popc(lanes);
        return place;
    }
};

// The rows of a list in a column of WIDTH values per row, which begins with the rows of the
// warp, to rows that follow each other.
template <u32 WIDTH> __device__ __forceinline__ void gather_rows(float* to, const float* from, const RowList& list)
{
    for (u32 i = threadIdx.x & 31; i < WIDTH * list.count; i += 32) {
        to[i] = from[WIDTH * list.rows[i / WIDTH] + i % WIDTH];
    }
}

template <u32 WIDTH> __device__ __forceinline__ void set_rows(float* to, const RowList& list, float value)
{
    for (u32 i = threadIdx.x & 31; i < WIDTH * list.count; i += 32) {
        to[WIDTH * list.rows[i / WIDTH] + i % WIDTH] = value;
    }
}

template <u32 WIDTH> __device__ __forceinline__ void copy_rows(float* to, const float* from, u32 rows)
{
    for (u32 i = threadIdx.x & 31; i < WIDTH * rows; i += 32) {
        to[i] = from[i];
    }
}

struct PackPathsParams {
    PathColumns from, to;
    i32* tx;
    i32* rx;
    i32* edge;
    const State* states_table;
    const u32* totals; // of the tiles before each tile
    const i64* total;
    i64 count;
    u32 receivers, states;
};

// Packs valid rows, and statuses in the order of Compact; ids it writes where they belong.
extern "C" __global__ void __launch_bounds__(PATH_THREADS) pack_dfr_paths(const __grid_constant__ PackPathsParams p)
{
    __shared__ u32 sums[PATH_THREADS / 32];
    __shared__ u8 listed[PATH_THREADS / 32][PATH_WARP_ROWS];
    const u32 warp = threadIdx.x >> 5;
    const u32 lane = threadIdx.x & 31;
    const i64 first = (i64)blockIdx.x * PATH_TILE + warp * PATH_WARP_ROWS;
    const u32 rows = (u32)max((i64)0, min((i64)PATH_WARP_ROWS, p.count - first));
    RowList valid{listed[warp], 0};
    u32 places[PATH_WARP_ROWS / 32]; // and the status in the bits above
#pragma unroll
    for (u32 k = 0; k < PATH_WARP_ROWS / 32; k++) {
        const u32 row = 32 * k + lane;
        const u32 status = row < rows ? p.from.status[first + row] : LANE_INACTIVE;
        places[k] = status << 16 | valid.add(row, status == LANE_VALID);
    }
    if (lane == 0) {
        sums[warp] = valid.count;
    }
    __syncthreads();
    i64 before = p.totals[blockIdx.x]; // valid rows
    for (u32 w = 0; w < warp; w++) {
        before += sums[w];
    }
    const i64 total = *p.total;
#pragma unroll
    for (u32 k = 0; k < PATH_WARP_ROWS / 32; k++) {
        const u32 row = 32 * k + lane;
        const u32 status = places[k] >> 16;
        if (row < rows && status != LANE_VALID) {
            p.to.status[total + first + row - before - (places[k] & 0xffff)] = (u8)status;
        }
        if (row < rows && first + row >= total) {
            p.tx[first + row] = -1;
            p.rx[first + row] = -1;
            p.edge[first + row] = -1;
        }
    }
    for (u32 i = lane; i < valid.count; i += 32) {
        const RowPlace place = row_place(first + valid.rows[i], p.receivers, p.states);
        p.tx[before + i] = (i32)place.tx;
        p.rx[before + i] = (i32)place.rx;
        p.edge[before + i] = p.states_table[place.state].edge;
    }
    gather_rows<1>(p.to.delay + before, p.from.delay + first, valid);
    gather_rows<6>(p.to.field + 6 * before, p.from.field + 6 * first, valid);
    gather_rows<3>(p.to.point + 3 * before, p.from.point + 3 * first, valid);
}

struct SettlePathsParams {
    PathColumns from, to;
    const i64* total;
    i64 count;
};

extern "C" __global__ void __launch_bounds__(PATH_THREADS) settle_dfr_paths(const __grid_constant__ SettlePathsParams p)
{
    __shared__ u8 listed[PATH_THREADS / 32][PATH_WARP_ROWS];
    const u32 warp = threadIdx.x >> 5;
    const u32 lane = threadIdx.x & 31;
    const i64 first = (i64)blockIdx.x * PATH_TILE + warp * PATH_WARP_ROWS;
    if (first >= p.count) {
        return;
    }
    const u32 rows = (u32)min((i64)PATH_WARP_ROWS, p.count - first);
    const u32 front = (u32)max((i64)0, min((i64)rows, *p.total - first)); // valid from now on
    RowList left{listed[warp], 0};
    for (u32 k = 0; k < PATH_WARP_ROWS; k += 32) {
        const u32 row = k + lane;
        u8* status = p.to.status + first + row;
        left.add(row, row >= front && row < rows && *status == LANE_VALID);
        if (row < rows) {
            *status = row < front ? (u8)LANE_VALID : p.from.status[first + row];
        }
    }
    __syncwarp();
    set_rows<1>(p.to.delay + first, left, f32_inf());
    set_rows<6>(p.to.field + 6 * first, left, 0.0f);
    set_rows<3>(p.to.point + 3 * first, left, 0.0f);
    copy_rows<1>(p.to.delay + first, p.from.delay + first, front);
    copy_rows<6>(p.to.field + 6 * first, p.from.field + 6 * first, front);
    copy_rows<3>(p.to.point + 3 * first, p.from.point + 3 * first, front);
}
