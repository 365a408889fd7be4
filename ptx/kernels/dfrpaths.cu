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
    float* field; // [rows, 6]
    float* point; // [rows, 3]
    i64 first;    // number of row 0 of the columns
    i64 row_begin;
    i64 count;
    u32 receivers, states;
    u32 polarization_step; // 3: one for every transmitter
    u32 block_rows;        // rows of a block
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
        p.delay[row] = valid ? out.delay : f32_inf();
        store3(p.point, row, valid ? out.point : f32x3{0.0f, 0.0f, 0.0f});
#pragma unroll
        for (u32 k = 0; k < 6; k++) {
            p.field[6 * row + k] = valid ? out.field[k] : 0.0f;
        }
    }

    __device__ __forceinline__ void collect(u32) const {}
};

extern "C" __global__ void __launch_bounds__(SEARCH_THREADS, 3) trace_dfr_paths(const __grid_constant__ DfrPathsParams p)
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

// Moves valid rows to the front, in their order, and the others behind them.
struct MovePathsParams {
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

extern "C" __global__ void __launch_bounds__(PATH_THREADS) move_dfr_paths(const __grid_constant__ MovePathsParams p)
{
    __shared__ u32 sums[PATH_THREADS / 32];
    __shared__ u32 end;
    const i64 tile = (i64)blockIdx.x * PATH_TILE;
    u32 before = p.totals[blockIdx.x]; // valid rows
    for (u32 k = 0; k < PATH_TILE; k += PATH_THREADS) {
        const i64 row = tile + k + threadIdx.x;
        const bool present = row < p.count;
        const u32 status = present ? p.from.status[row] : LANE_INACTIVE;
        const bool valid = status == LANE_VALID;
        const u32 mine = before + sum_before(valid, sums);
        if (threadIdx.x == PATH_THREADS - 1) {
            end = mine + valid;
        }
        if (present) {
            const i64 to = valid ? mine : *p.total + (row - mine);
            p.to.status[to] = (u8)status;
            p.to.delay[to] = p.from.delay[row];
            for (u32 i = 0; i < 6; i++) {
                p.to.field[6 * to + i] = p.from.field[6 * row + i];
            }
            for (u32 i = 0; i < 3; i++) {
                p.to.point[3 * to + i] = p.from.point[3 * row + i];
            }
            const RowPlace place = row_place(row, p.receivers, p.states);
            p.tx[to] = valid ? (i32)place.tx : -1;
            p.rx[to] = valid ? (i32)place.rx : -1;
            p.edge[to] = valid ? p.states_table[place.state].edge : -1;
        }
        __syncthreads();
        before = end;
    }
}
