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
