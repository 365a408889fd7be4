// Fixed-width types and the only arithmetic that kernels may use on values
// that reach a caller. Every operation names its rounding, so that neither
// NVRTC nor the driver's assembler may fuse or reorder it: the same inputs give
// the same bits on every device and on the emulator.
#pragma once

typedef signed char i8;
typedef unsigned char u8;
typedef int i32;
typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;

static_assert(sizeof(i32) == 4 && sizeof(i64) == 8, "kernel structs rely on these sizes");

// Largest finite f32: the internal form of an absent or infinite bound.
#define F32_MAX 3.402823466e+38f

struct f32x3 {
    float x, y, z;
};

__device__ __forceinline__ float add(float a, float b) { return __fadd_rn(a, b); }
__device__ __forceinline__ float sub(float a, float b) { return __fsub_rn(a, b); }
__device__ __forceinline__ float mul(float a, float b) { return __fmul_rn(a, b); }
__device__ __forceinline__ float fmadd(float a, float b, float c) { return __fmaf_rn(a, b, c); }
__device__ __forceinline__ float quot(float a, float b) { return __fdiv_rn(a, b); }
__device__ __forceinline__ float root(float a) { return __fsqrt_rn(a); }

__device__ __forceinline__ bool is_finite(float a) { return fabsf(a) <= F32_MAX; }
__device__ __forceinline__ float f32_inf() { return __int_as_float(0x7f800000); }

// Zero outputs are +0: in round-to-nearest -0 + +0 is +0 and every other value
// is unchanged.
__device__ __forceinline__ float plus_zero(float a) { return __fadd_rn(a, 0.0f); }

__device__ __forceinline__ bool is_finite(f32x3 a)
{
    return is_finite(a.x) && is_finite(a.y) && is_finite(a.z);
}

__device__ __forceinline__ f32x3 load3(const float* p, i64 row)
{
    return f32x3{p[3 * row], p[3 * row + 1], p[3 * row + 2]};
}

__device__ __forceinline__ void store3(float* p, i64 row, f32x3 a)
{
    p[3 * row] = plus_zero(a.x);
    p[3 * row + 1] = plus_zero(a.y);
    p[3 * row + 2] = plus_zero(a.z);
}

__device__ __forceinline__ f32x3 sub(f32x3 a, f32x3 b)
{
    return f32x3{sub(a.x, b.x), sub(a.y, b.y), sub(a.z, b.z)};
}

__device__ __forceinline__ float max_abs(f32x3 a)
{
    return fmaxf(fmaxf(fabsf(a.x), fabsf(a.y)), fabsf(a.z));
}

// a*b - c*d with the rounding error of c*d added back. Its relative error stays
// within two units in the last place, so the sign is the exact one (barring
// underflow), however much the products cancel.
__device__ __forceinline__ float dop(float a, float b, float c, float d)
{
    const float w = mul(c, d);
    const float r = fmadd(-c, d, w);
    return add(fmadd(a, b, -w), r);
}

__device__ __forceinline__ f32x3 cross(f32x3 a, f32x3 b)
{
    return f32x3{dop(a.y, b.z, a.z, b.y), dop(a.z, b.x, a.x, b.z), dop(a.x, b.y, a.y, b.x)};
}

__device__ __forceinline__ float dot(f32x3 a, f32x3 b)
{
    return fmadd(a.x, b.x, fmadd(a.y, b.y, mul(a.z, b.z)));
}

// The unit vector of n, or exactly zero when n is zero or not finite. Dividing by
// the largest component first keeps the squared length in range at any scale.
__device__ __forceinline__ f32x3 unit(f32x3 n)
{
    const float m = max_abs(n);
    // fmaxf drops NaN operands, so each component is asked on its own.
    if (m == 0.0f || !is_finite(n)) {
        return f32x3{0.0f, 0.0f, 0.0f};
    }
    const f32x3 s = {quot(n.x, m), quot(n.y, m), quot(n.z, m)};
    const float len = root(dot(s, s));
    return f32x3{quot(s.x, len), quot(s.y, len), quot(s.z, len)};
}

// The row of this thread inside its launch. 64 bits: a launch may cover 2^30 rows
// that start anywhere in a larger batch.
__device__ __forceinline__ i64 launch_row()
{
    return (i64)blockIdx.x * blockDim.x + threadIdx.x;
}
