// Grids of reflections: rays are followed and what they leave is added, copies of the sums
// are put together, and sums become the columns of a result. Wedge events are counted on the
// way; the rows that have some are followed once more to write them down.

#include "reflgrid.cuh"
#include "wedges.cuh"
#include "words.cuh"

// Adds what legs leave, and counts events.
struct Deposits {
    const TubeParams& p;

    __device__ __forceinline__ bool follows(i64) const { return true; }
    __device__ __forceinline__ i64 row(i64 item) const { return item; }
    __device__ __forceinline__ void refuses() const { atomicMax(p.sums.limits, 1u); }

    __device__ __forceinline__ void leaves(i64 row, const Leg& leg) const
    {
        const Crossing at = cross_plane(p.grid, leg.q, leg.k, leg.end);
        if (at.cell >= 0) {
            deposit(p, row, at, leg.image, kept_field());
        }
    }

    __device__ __forceinline__ bool meets(i64, const Event&) const { return true; }

    __device__ __forceinline__ void ends(i64 item, u32 events) const
    {
        if (p.events) {
            p.events[item] = (u8)events;
        }
    }
};

// Eight blocks per multiprocessor leave 64 registers, as many as the search alone has: what does
// not fit is spilled at the ends of legs, and the search hardly notices.
extern "C" __global__ void __launch_bounds__(SEARCH_THREADS, 8)
    accumulate_tubes(const __grid_constant__ TubeParams p)
{
    Tubes<Deposits> job{p, {p}};
    search_rows(job, p.search);
}

// Adds the copies of the sums to the sums of a result, which has none.
struct FoldTubesParams {
    TubeSums from;
    u64* words;
    u32* counts;
};

extern "C" __global__ void __launch_bounds__(128) fold_tubes(const __grid_constant__ FoldTubesParams p)
{
    const i64 i = launch_row();
    const i64 words = p.from.cells * CELL_WORDS;
    if (i >= words) {
        return;
    }
    u64 sum = p.words[i];
    for (i64 k = 0; k < p.from.copies; k++) {
        sum += p.from.words[k * words + i];
    }
    p.words[i] = sum;
    if (i >= p.from.cells) {
        return;
    }
    u32 count = p.counts[i];
    for (i64 k = 0; k < p.from.copies; k++) {
        count += p.from.counts[k * p.from.cells + i];
    }
    p.counts[i] = count;
}

// Sums become the columns of a result: in double precision,
//
//   power = base^2 * (2^-16 w6 + 2^-52 w7),   component j = base * (2^-34 w_j)
//
// then rounded once. Sums that have too many contributions, or too large ones, to be sure
// that nothing has wrapped around set STATUS_GUARD. They are those of several accumulators,
// of which some are far: only where a count says that there is something, words are read.
struct ReadTubesParams {
    Accumulators from; // words, counts and limits, one behind the other
    u64* words;        // of the sum, where it is kept: null, or an accumulator, which may be
    u32* counts;       // among those that are read; so are counts, with limits behind them
    float* power;
    float* components; // six columns
    u64* total;        // zero
    u32* status;       // zero
    i64 cells;
    double base;
    double base_squared;
    u32 weighted; // by area
    u32 whole;    // there may be something whatever the counts say
};

#define MOST_CONTRIBUTIONS 134217728u           // 2^27
#define MOST_COUNTED_POWER 144115188075855872.0 // 2^57
#define MOST_COUNTED_TERM 379625062.497         // 2^28.5
#define READ_CELLS 128                          // of a block, one for each thread

__device__ __forceinline__ const u32* counts_of(const ReadTubesParams& p, i64 part)
{
    return (const u32*)(p.from.at[part] + p.cells * CELL_WORDS);
}

// A maximum, so that it does not matter whether one of them has become the sum meanwhile.
__device__ __forceinline__ u32 limit_of(const ReadTubesParams& p, i32 j)
{
    u32 most = 0;
    for (i64 part = 0; part < p.from.count; part++) {
        most = max(most, counts_of(p, part)[p.cells + j]);
    }
    return most;
}

extern "C" __global__ void __launch_bounds__(READ_CELLS) read_tubes(const __grid_constant__ ReadTubesParams p)
{
    // Lanes read what lies side by side, words of four cells at a time, and then need those of one.
    __shared__ u64 words[READ_CELLS][CELL_WORDS + 1];
    __shared__ u64 counted[READ_CELLS / 32];
    const u32 lane = threadIdx.x & 31;
    const i64 cell = launch_row();
    const i64 first = (cell - lane) * CELL_WORDS + lane;
    u64* const sum = &words[threadIdx.x - lane + lane / CELL_WORDS][lane % CELL_WORDS];
    const u32 step = 4 * (CELL_WORDS + 1);
    u32 n = 0;
    for (u32 k = 0; k < CELL_WORDS; k++) {
        sum[k * step] = 0;
    }
#pragma unroll 1
    for (i64 part = 0; part < p.from.count; part++) {
        const u32 more = cell < p.cells ? counts_of(p, part)[cell] : 0;
        const u32 has = __ballot_sync(0xffffffff, more != 0 || (p.whole && cell < p.cells)) >> lane / CELL_WORDS;
        const u64* const from = p.from.at[part] + first;
        u64 word[CELL_WORDS];
#pragma unroll
        for (u32 k = 0; k < CELL_WORDS; k++) {
            word[k] = has >> 4 * k & 1 ? from[32 * k] : 0;
        }
#pragma unroll
        for (u32 k = 0; k < CELL_WORDS; k++) {
            sum[k * step] += word[k];
        }
        n += more;
    }
    for (u32 k = 0; p.words && k < CELL_WORDS; k++) {
        if (first + 32 * k < p.cells * CELL_WORDS) {
            p.words[first + 32 * k] = sum[k * step];
        }
    }
    __syncwarp();
    u64 count = n;
    u32 status = 0;
    if (cell < p.cells) {
        const i64* const w = (const i64*)words[threadIdx.x];
        const double power = __dadd_rn(__dmul_rn(1.0 / 65536, __ll2double_rn(w[6])),
                                       __dmul_rn(1.0 / 4503599627370496, __ll2double_rn(w[7])));
        p.power[cell] = __double2float_rn(__dmul_rn(p.base_squared, power));
        for (i32 j = 0; j < 6; j++) {
            const double c = __dmul_rn(1.0 / 17179869184, __ll2double_rn(w[j]));
            p.components[j * p.cells + cell] = __double2float_rn(__dmul_rn(p.base, c));
        }
        if (p.counts) {
            p.counts[cell] = n;
        }
        const double most = p.weighted && n > 0 ? __int_as_float((i32)limit_of(p, 2)) : 0.0f;
        if (n >= MOST_CONTRIBUTIONS || __dmul_rn((double)n, power) >= MOST_COUNTED_POWER ||
            __dmul_rn((double)n, most) >= MOST_COUNTED_TERM) {
            status = STATUS_GUARD;
        }
        if (cell == 0) {
            status |= limit_of(p, 0) * STATUS_NOT_FINITE + limit_of(p, 1) * STATUS_TOO_LARGE;
            for (i32 j = 0; p.words && j < 3; j++) {
                p.counts[p.cells + j] = limit_of(p, j);
            }
        }
    }
    if (status != 0) {
        atomicOr(p.status, status);
    }
    for (u32 d = 16; d > 0; d /= 2) {
        count += __shfl_down_sync(0xffffffff, count, d);
    }
    if (lane == 0) {
        counted[threadIdx.x >> 5] = count;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        count = counted[0] + counted[1] + counted[2] + counted[3];
        if (count != 0) {
            atomicAdd(p.total, count);
        }
    }
}
