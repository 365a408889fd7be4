// The rays of a batch, and which of them are searched at all.
#pragma once

#include "arith.cuh"

// Rows of three floats; t_max and active may be null.
struct RayColumns {
    const float* o;
    const float* d;
    const float* t_max;
    const u8* active;
};

// Lower end of the accepted interval, in units of the direction.
#define RAY_T_MIN 1e-6f

__device__ __forceinline__ bool row_active(const RayColumns& rays, i64 row)
{
    return !rays.active || rays.active[row];
}

__device__ __forceinline__ float row_t_max(const RayColumns& rays, i64 row)
{
    return rays.t_max ? rays.t_max[row] : F32_MAX;
}

// False when the ray cannot hit anything: a component is not finite, the direction
// is zero, or the interval is empty.
__device__ __forceinline__ bool can_hit(f32x3 o, f32x3 d, float t_max)
{
    return is_finite(o) && is_finite(d) && t_max >= RAY_T_MIN && max_abs(d) != 0.0f;
}
