// Exact sums of f32 values: six signed 64-bit words of weight 2^(32 i - 128). A value
// adds its bits, shifted to their place, to two neighbouring words, and no carry moves
// between words before the sum is read. So a sum is made of integer additions alone, and
// neither the order of the values nor how they are divided over threads, launches and
// devices leaves a trace. Good for 2^31 values with |c| < 2^55.
#pragma once

#include "arith.cuh"

#define WORDS 6

// |c| as low * 2^(32 i - 128) + high * 2^(32 (i+1) - 128). What lies below 2^-128 is cut
// off.
struct Parts {
    u32 low, high;
    i32 i;
};

__device__ __forceinline__ bool fits_words(float c) { return fabsf(c) < 36028797018963968.0f; }

// c fits.
__device__ __forceinline__ Parts parts_of(float c)
{
    const u32 bits = __float_as_int(fabsf(c));
    const u32 exponent = bits >> 23;
    u32 m = bits & 0x7fffff;
    m = exponent != 0 ? m | 0x800000 : m;
    // The lowest bit of m has weight 2^(place - 128).
    const i32 place = (i32)max(exponent, 1u) - 22;
    if (place < 0) {
        return Parts{m >> min(-place, 31), 0, 0};
    }
    const u32 shift = place & 31;
    return Parts{m << shift, __funnelshift_l(m, 0, shift), place >> 5};
}

__device__ __forceinline__ void add_word(i64* word, i64 v)
{
    if (v != 0) {
        atomicAdd((u64*)word, (u64)v);
    }
}

// Adds c, which fits, to six words.
__device__ __forceinline__ void add_to_words(i64* words, float c)
{
    const Parts p = parts_of(c);
    add_word(words + p.i, c < 0.0f ? -(i64)p.low : (i64)p.low);
    add_word(words + p.i + 1, c < 0.0f ? -(i64)p.high : (i64)p.high);
}

// The sum of words, with their carries settled.
__device__ __forceinline__ float settle_words(i64 (&w)[WORDS])
{
#pragma unroll
    for (u32 i = 0; i + 1 < WORDS; i++) {
        w[i + 1] += w[i] >> 32;
        w[i] &= 0xffffffff;
    }
    double sum = __ll2double_rn(w[WORDS - 1]);
#pragma unroll
    for (i32 i = WORDS - 2; i >= 0; i--) {
        sum = __dadd_rn(__dmul_rn(sum, 4294967296.0), __ll2double_rn(w[i]));
    }
    return __double2float_rn(__dmul_rn(sum, 2.938735877055719e-39)); // 2^-128
}

// Words that other threads may just have added to.
template <u32 N>
__device__ __forceinline__ void load_words(i64 (&w)[N], const volatile i64* words)
{
#pragma unroll
    for (u32 i = 0; i < N; i++) {
        w[i] = words[i];
    }
}

// Their sum.
__device__ __forceinline__ float read_words(const volatile i64* words)
{
    i64 w[WORDS];
    load_words(w, words);
    return settle_words(w);
}

// Accumulators whose sum is wanted: at most PARTS, a multiple of READS, which are read at the
// same time, because those of other devices are far.
#define PARTS 16
#define READS 4

struct Accumulators {
    const u64* at[PARTS]; // may be memory of other devices
    i64 count;            // at least 1
};

// The sums, or with MAXIMA the maxima, of N values of all parts, whose first is value of
// those at an offset of so many bytes.
template <bool MAXIMA, u32 N, class T>
__device__ __forceinline__ void sum_parts(T (&sum)[N], const Accumulators& a, i64 offset, i64 value)
{
#pragma unroll
    for (u32 k = 0; k < N; k++) {
        sum[k] = 0;
    }
#pragma unroll 1
    for (i64 i = 0; i < a.count; i += READS) {
#pragma unroll
        for (u32 j = 0; j < READS; j++) {
            const bool is_part = i + j < a.count;
            const T mask = is_part ? ~(T)0 : 0; // to read something is faster than a branch
            const T* from = (const T*)((const u8*)a.at[is_part ? i + j : 0] + offset) + value;
#pragma unroll
            for (u32 k = 0; k < N; k++) {
                const T v = from[k] & mask;
                sum[k] = MAXIMA ? max(sum[k], v) : sum[k] + v;
            }
        }
    }
}
