// Stores of rows of three floats by whole warps. When every thread stores its own row
// with three stores, each of them touches a third of every sector it meets, and the
// cache counts them all. Exchanged through shared memory, a store fills its sectors.
#pragma once

#include "arith.cuh"

// What one warp stores together. All of its lanes call put3, also those that have no
// row.
struct Together {
    float* stage; // 96 floats of shared memory
    i64 first;    // row of lane 0
    u32 lane;
    u32 rows;     // of the warp, the first lanes have them

    __device__ __forceinline__ void put3(float* column, f32x3 v) const
    {
        stage[3 * lane] = plus_zero(v.x);
        stage[3 * lane + 1] = plus_zero(v.y);
        stage[3 * lane + 2] = plus_zero(v.z);
        __syncwarp();
        float* to = column + 3 * first;
#pragma unroll
        for (u32 k = lane; k < 96; k += 32) {
            if (k < 3 * rows) {
                to[k] = stage[k];
            }
        }
        __syncwarp();
    }
};

// The warp of this thread in a launch with a thread per row.
__device__ __forceinline__ Together together(float* stage, i64 row_begin, i64 count)
{
    const u32 lane = threadIdx.x & 31;
    const i64 first = launch_row() - lane;
    const i64 rows = count - first;
    return Together{stage + 96 * (threadIdx.x >> 5), row_begin + first, lane, rows < 0 ? 0u : (rows < 32 ? (u32)rows : 32u)};
}
