// What accumulators of all operations have in common: sums of several of them. All sums
// are of integers, so that the order does not matter.

#include "words.cuh"

// An accumulator: sums of 64 bits, sums of 32 bits, maxima of 32 bits, in this order.
struct SumAccumulatorsParams {
    u64* dst; // may be one of the parts
    Accumulators parts;
    i64 sums64;
    i64 sums32;
    i64 maxima32;
    i64 row_begin;
    i64 count;
};

extern "C" __global__ void sum_accumulators(const __grid_constant__ SumAccumulatorsParams p)
{
    const i64 at = launch_row();
    if (at >= p.count) {
        return;
    }
    i64 row = p.row_begin + at;
    if (row < p.sums64) {
        u64 sum[1];
        sum_parts<false>(sum, p.parts, 0, row);
        p.dst[row] = sum[0];
        return;
    }
    row -= p.sums64;
    u32 value[1];
    if (row < p.sums32) {
        sum_parts<false>(value, p.parts, 8 * p.sums64, row);
    } else {
        sum_parts<true>(value, p.parts, 8 * p.sums64, row);
    }
    ((u32*)(p.dst + p.sums64))[row] = value[0];
}

// Copies of the same words, one behind the other.
struct FoldCopiesParams {
    u64* sums;
    const u64* copies;
    i64 words;
    i64 copy_count;
    i64 row_begin;
    i64 count; // words times groups of FOLD copies
};

#define FOLD 16

// A thread adds a word of FOLD copies to the sum.
extern "C" __global__ void fold_copies(const __grid_constant__ FoldCopiesParams p)
{
    const i64 at = launch_row();
    if (at >= p.count) {
        return;
    }
    const i64 group = (p.row_begin + at) / p.words;
    const i64 word = p.row_begin + at - group * p.words;
    const i64 end = min((group + 1) * FOLD, p.copy_count);
    u64 sum = 0;
    for (i64 copy = group * FOLD; copy < end; copy++) {
        sum += p.copies[copy * p.words + word];
    }
    add_word((i64*)p.sums + word, (i64)sum);
}

// Adds values to one sum and reads it. For tests.
struct SumFloatsParams {
    const float* values;
    i64* words;
    float* sum;
    i64 count;
};

extern "C" __global__ void sum_floats(const __grid_constant__ SumFloatsParams p)
{
    const i64 row = launch_row();
    if (row < p.count) {
        add_to_words(p.words, p.values[row]);
    }
}

extern "C" __global__ void read_sum(const __grid_constant__ SumFloatsParams p)
{
    if (launch_row() == 0) {
        *p.sum = read_words(p.words);
    }
}
