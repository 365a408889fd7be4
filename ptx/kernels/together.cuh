// Stores of rows of three floats by whole warps. When every thread stores its own row
// with three stores, each of them touches a third of every sector it meets, and the
// cache counts them all. Exchanged through shared memory, a store fills its sectors.
#pragma once

#include "arith.cuh"

// What one warp stores together.
struct Together {
    i64 first; // row of lane 0
    u32 lane;
    u32 rows; // of the warp, the first lanes have them
};

// The warp of this thread in a launch with a thread per row.
__device__ __forceinline__ Together together(i64 row_begin, i64 count)
{
    const u32 lane = threadIdx.x & 31;
    const i64 first = launch_row() - lane;
    const i64 rows = count - first;
    return Together{row_begin + first, lane, rows < 0 ? 0u : (rows < 32 ? (u32)rows : 32u)};
}

// Rows of a warp on their way to columns, in shared memory: every lane puts its row,
// __syncwarp() follows, and all lanes store.
struct Rows3 {
    float values[96];

    __device__ __forceinline__ void put(u32 lane, f32x3 v)
    {
        values[3 * lane] = plus_zero(v.x);
        values[3 * lane + 1] = plus_zero(v.y);
        values[3 * lane + 2] = plus_zero(v.z);
    }

    __device__ __forceinline__ void store(float* column, const Together& warp) const
    {
        float* to = column + 3 * warp.first;
#pragma unroll
        for (u32 k = warp.lane; k < 96; k += 32) {
            if (k < 3 * warp.rows) {
                to[k] = values[k];
            }
        }
    }
};
