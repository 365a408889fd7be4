// Grids of reflections: rays are followed and what they leave is added, copies of the sums
// are put together, and sums become the columns of a result. Wedge events are counted on the
// way; the rows that have some are followed once more to write them down.

#include "reflgrid.cuh"
#include "wedges.cuh"

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
// that nothing has wrapped around set STATUS_GUARD.
struct ReadTubesParams {
    TubeSums sums; // one copy
    float* power;
    float* components; // six columns
    u64* total;        // zero
    u32* status;       // zero
    double base;
    double base_squared;
    i64 weighted; // by area
};

#define MOST_CONTRIBUTIONS 134217728u          // 2^27
#define MOST_COUNTED_POWER 144115188075855872.0 // 2^57
#define MOST_COUNTED_TERM 379625062.497         // 2^28.5

extern "C" __global__ void __launch_bounds__(128) read_tubes(const __grid_constant__ ReadTubesParams p)
{
    __shared__ u64 counted[4];
    const i64 cell = launch_row();
    u64 count = 0;
    u32 status = 0;
    if (cell < p.sums.cells) {
        const i64* const w = (const i64*)p.sums.words + cell * CELL_WORDS;
        const u32 n = p.sums.counts[cell];
        count = n;
        const double power = __dadd_rn(__dmul_rn(1.0 / 65536, __ll2double_rn(w[6])),
                                       __dmul_rn(1.0 / 4503599627370496, __ll2double_rn(w[7])));
        p.power[cell] = __double2float_rn(__dmul_rn(p.base_squared, power));
        for (i32 j = 0; j < 6; j++) {
            const double c = __dmul_rn(1.0 / 17179869184, __ll2double_rn(w[j]));
            p.components[j * p.sums.cells + cell] = __double2float_rn(__dmul_rn(p.base, c));
        }
        const double most = __int_as_float((i32)p.sums.limits[2]);
        if (n >= MOST_CONTRIBUTIONS || __dmul_rn((double)n, power) >= MOST_COUNTED_POWER ||
            (p.weighted && __dmul_rn((double)n, most) >= MOST_COUNTED_TERM)) {
            status = STATUS_GUARD;
        }
        if (cell == 0) {
            status |= p.sums.limits[0] * STATUS_NOT_FINITE + p.sums.limits[1] * STATUS_TOO_LARGE;
        }
    }
    if (status != 0) {
        atomicOr(p.status, status);
    }
    for (u32 d = 16; d > 0; d /= 2) {
        count += __shfl_down_sync(0xffffffff, count, d);
    }
    if ((threadIdx.x & 31) == 0) {
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
