// A stable radix sort of 64-bit keys with 32-bit values, eight bits per pass from
// the lowest. A pass counts the digits of every tile, adds up where each tile's
// digits go, and moves the pairs there. Three launches instead of one: nothing here
// waits for another block, and the result depends on nothing but the input.

#include "arith.cuh"
#include "blocksum.cuh"

#define SORT_THREADS 256
#define SORT_ITEMS 16
#define SORT_TILE (SORT_THREADS * SORT_ITEMS)
#define SORT_DIGITS 256 // one per thread
#define SORT_WARPS (SORT_THREADS / 32)

static_assert(SORT_DIGITS == SORT_THREADS, "every thread looks after one digit");

__device__ __forceinline__ u32 digit_of(u64 key, i64 shift) { return (u32)(key >> shift) & (SORT_DIGITS - 1); }

// counters[digit * tiles + tile], and after all of them the total of every digit.
struct SortCountParams {
    const u64* keys;
    u32* counters;
    i64 count;
    i64 tiles;
    i64 shift;
};

extern "C" __global__ void __launch_bounds__(SORT_THREADS) sort_count(const __grid_constant__ SortCountParams p)
{
    __shared__ u32 counts[SORT_DIGITS];
    counts[threadIdx.x] = 0;
    __syncthreads();
    const i64 first = (i64)blockIdx.x * SORT_TILE + threadIdx.x;
#pragma unroll
    for (u32 j = 0; j < SORT_ITEMS; j++) {
        const i64 i = first + j * SORT_THREADS;
        if (i < p.count) {
            atomicAdd(&counts[digit_of(p.keys[i], p.shift)], 1);
        }
    }
    __syncthreads();
    p.counters[threadIdx.x * p.tiles + blockIdx.x] = counts[threadIdx.x];
}

// Every block replaces the counts of one digit by their sums before each tile. Few
// tiles take a small block.
struct SortScanParams {
    u32* counters;
    i64 tiles;
};

extern "C" __global__ void __launch_bounds__(SORT_THREADS) sort_scan(const __grid_constant__ SortScanParams p)
{
    __shared__ u32 sums[SORT_WARPS];
    __shared__ u32 total;
    u32* counts = p.counters + blockIdx.x * p.tiles;
    u32 before = 0;
    for (i64 first = 0; first < p.tiles; first += blockDim.x) {
        const i64 i = first + threadIdx.x;
        const u32 count = i < p.tiles ? counts[i] : 0;
        const u32 sum = before + sum_before(count, sums);
        if (i < p.tiles) {
            counts[i] = sum;
        }
        if (threadIdx.x == blockDim.x - 1) {
            total = sum + count;
        }
        __syncthreads();
        before = total;
    }
    if (threadIdx.x == 0) {
        p.counters[SORT_DIGITS * p.tiles + blockIdx.x] = before;
    }
}

// Moves the pairs of a tile to their places, by way of shared memory, so that pairs
// of one digit are written side by side.
struct SortMoveParams {
    const u64* keys;
    const u32* values;
    u64* keys_out;
    u32* values_out;
    const u32* counters;
    i64 count;
    i64 tiles;
    i64 shift;
};

extern "C" __global__ void __launch_bounds__(SORT_THREADS, 3) sort_move(const __grid_constant__ SortMoveParams p)
{
    __shared__ u64 staged[SORT_TILE];
    __shared__ u32 ranks[SORT_WARPS][SORT_DIGITS]; // of the next pair of a warp and digit
    __shared__ u32 away[SORT_DIGITS];              // from the place in the tile to the place in the output
    __shared__ u32 sums[2][SORT_WARPS];
    const u32 warp = threadIdx.x >> 5;
    const u32 lane = threadIdx.x & 31;
    const i64 tile = (i64)blockIdx.x * SORT_TILE;
    const u32 size = (u32)min((i64)SORT_TILE, p.count - tile);
    for (u32 w = 0; w < SORT_WARPS; w++) {
        ranks[w][threadIdx.x] = 0;
    }
    __syncthreads();

    // Every warp ranks a stretch of the tile. What lies beyond the end has the
    // largest digit and comes last among equals, behind all pairs.
    u64 keys[SORT_ITEMS];
    u32 place[SORT_ITEMS];
    const u32 first = warp * (32 * SORT_ITEMS) + lane;
#pragma unroll
    for (u32 j = 0; j < SORT_ITEMS; j++) {
        const u32 i = first + 32 * j;
        keys[j] = i < size ? p.keys[tile + i] : ~0ull;
    }
#pragma unroll
    for (u32 j = 0; j < SORT_ITEMS; j++) {
        const u32 digit = digit_of(keys[j], p.shift);
        const u32 equal = __match_any_sync(0xffffffff, digit);
        const u32 rank = ranks[warp][digit];
        __syncwarp();
        if (lane == __ffs(equal) - 1) {
            ranks[warp][digit] = rank + __popc(equal);
        }
        __syncwarp();
        place[j] = rank + __popc(equal & ((1u << lane) - 1));
    }
    __syncthreads();

    u32 in_tile = 0;
    for (u32 w = 0; w < SORT_WARPS; w++) {
        in_tile += ranks[w][threadIdx.x];
    }
    u32 start = sum_before(in_tile, sums[0]);
    const u32 total = p.counters[SORT_DIGITS * p.tiles + threadIdx.x];
    away[threadIdx.x] = sum_before(total, sums[1]) + p.counters[threadIdx.x * p.tiles + blockIdx.x] - start;
    for (u32 w = 0; w < SORT_WARPS; w++) {
        const u32 n = ranks[w][threadIdx.x];
        ranks[w][threadIdx.x] = start;
        start += n;
    }
    __syncthreads();

#pragma unroll
    for (u32 j = 0; j < SORT_ITEMS; j++) {
        place[j] += ranks[warp][digit_of(keys[j], p.shift)];
        staged[place[j]] = keys[j];
    }
    __syncthreads();
    u32 to[SORT_ITEMS];
#pragma unroll
    for (u32 j = 0; j < SORT_ITEMS; j++) {
        const u32 i = threadIdx.x + SORT_THREADS * j;
        const u64 key = staged[i];
        to[j] = i + away[digit_of(key, p.shift)];
        if (i < size) {
            p.keys_out[to[j]] = key;
        }
    }
    __syncthreads();
    u32* values = (u32*)staged;
#pragma unroll
    for (u32 j = 0; j < SORT_ITEMS; j++) {
        const u32 i = first + 32 * j;
        values[place[j]] = i < size ? p.values[tile + i] : 0;
    }
    __syncthreads();
#pragma unroll
    for (u32 j = 0; j < SORT_ITEMS; j++) {
        const u32 i = threadIdx.x + SORT_THREADS * j;
        if (i < size) {
            p.values_out[to[j]] = values[i];
        }
    }
}
