// Sums over the threads of a block.
#pragma once

#include "arith.cuh"

// Sum of the values of all threads before this one. sums is scratch of the block;
// the next use of it needs a barrier in between.
__device__ __forceinline__ u32 sum_before(u32 value, u32* sums)
{
    const u32 lane = threadIdx.x & 31;
    u32 sum = value;
#pragma unroll
    for (u32 d = 1; d < 32; d *= 2) {
        const u32 other = __shfl_up_sync(0xffffffff, sum, d);
        sum += lane >= d ? other : 0;
    }
    if (lane == 31) {
        sums[threadIdx.x >> 5] = sum;
    }
    __syncthreads();
    u32 before = sum - value;
    for (u32 w = 0; w < threadIdx.x >> 5; w++) {
        before += sums[w];
    }
    return before;
}

// Replaces sums of tiles, each below 2^32 / THREADS, by the sums of those before them, and
// returns the sum of all. By all THREADS threads of one block.
template <u32 THREADS, class Sum> __device__ __forceinline__ Sum sum_tiles(Sum* tiles, i64 count)
{
    __shared__ u32 sums[THREADS / 32];
    __shared__ Sum end;
    Sum before = 0;
    for (i64 first = 0; first < count; first += THREADS) {
        const i64 i = first + threadIdx.x;
        const u32 value = i < count ? (u32)tiles[i] : 0;
        const Sum sum = before + sum_before(value, sums);
        if (i < count) {
            tiles[i] = sum;
        }
        if (threadIdx.x == THREADS - 1) {
            end = sum + value;
        }
        __syncthreads();
        before = end;
    }
    return before;
}
