// Fields of wedges, summed over states in every cell of a grid. A block works for a few
// cells or for some states of one: its threads leave the fields of lanes in shared memory,
// then each adds up its share of one component of one cell, in registers and exactly.

#include "grid.cuh"
#include "utdlane.cuh"
#include "words.cuh"

#define COMPONENTS 6
// The most cells of a block: a thread for every component.
#define BLOCK_CELLS 21

// What becomes of a lane, in the order of the counters.
enum { ACCEPTED, HIDDEN, REJECTED, OUTCOMES };

struct CoherentParams {
    LaneCall lanes;
    Cells cells;
    f32x3 polarization;
    u32 states;
    const u8* active; // of each state or of all, or null
    u32 active_count;
    u32 group; // cells of a block
    u32 shares, share; // blocks that work for the same cells, and lanes of each
    i64 begin, end; // lanes: cell after cell, all states in each
    // Of the first and of the last cell of the launch: where the words of a cell are that
    // other launches or blocks work for too, or -1 for a cell of one block alone. Where
    // blocks share cells, all have slots, one after the other.
    i32 first_slot, last_slot;
    i64* words;    // [slots, 6, 6], or where fields is null of every cell
    u32* slots;    // cell of each slot
    float* fields; // [6, cells]
    u32* counters; // [3, cells]
};

__shared__ i64 cell_words[BLOCK_CELLS * COMPONENTS][WORDS];
__shared__ u32 cell_counts[BLOCK_CELLS][OUTCOMES];
// Fields that wait to be added, and the cells of the block that they belong to.
__shared__ float lane_fields[COMPONENTS][SEARCH_THREADS];
__shared__ u32 lane_cells[SEARCH_THREADS];

// Adds c to words in registers.
__device__ __forceinline__ void add_to_registers(i64 (&words)[WORDS], float c)
{
    const Parts p = parts_of(c);
    const i64 low = c < 0.0f ? -(i64)p.low : (i64)p.low;
    const i64 high = c < 0.0f ? -(i64)p.high : (i64)p.high;
#pragma unroll
    for (i32 i = 0; i < WORDS; i++) {
        words[i] += (i == p.i ? low : 0) + (i == p.i + 1 ? high : 0);
    }
}

// Stores or adds what the block knows about a component of a cell.
__device__ __forceinline__ void finish_component(const CoherentParams& p, i64 cell, u32 place, u32 component)
{
    const i64 cells = (i64)p.cells.res0 * p.cells.res1;
    const i64* own = cell_words[place * COMPONENTS + component];
    i64 slot = cell;
    if (p.fields) {
        const i64 first = p.begin / p.states;
        slot = p.shares > 1 || cell == first ? p.first_slot + (cell - first)
            : cell == (p.end - 1) / p.states ? p.last_slot
                                             : -1;
        if (slot < 0) {
            p.fields[component * cells + cell] = read_words(own);
        } else if (component == 0) {
            p.slots[slot] = (u32)cell;
        }
    }
    for (u32 i = 0; i < WORDS && slot >= 0; i++) {
        add_word(p.words + (slot * COMPONENTS + component) * WORDS + i, own[i]);
    }
    if (component < OUTCOMES && cell_counts[place][component] != 0) {
        atomicAdd(p.counters + component * cells + cell, cell_counts[place][component]);
    }
}

// The lanes of a block: states of cells that follow each other, from a state of the first
// cell on.
struct LanesOfCells {
    const CoherentParams& p;
    i64 first_cell;
    u32 first; // state of lane 0 in the first cell

    __device__ __forceinline__ bool load(LaneInput& in, u32 lane) const
    {
        const u32 place = (first + lane) / p.states;
        in.state = first + lane - place * p.states;
        if (p.active && !p.active[p.active_count == 1 ? 0 : in.state]) {
            return false;
        }
        const State& s = p.lanes.states[in.state];
        in.source = s.src;
        in.power = s.power;
        in.target = cell_centre(p.cells, first_cell + place);
        in.polarization = p.polarization;
        return true;
    }

    // A lane with a field ends in the same thread in which collect finds it.
    __device__ __forceinline__ void end(u32 lane, u32 status, const LaneResult& out) const
    {
        if (status == LANE_INACTIVE) {
            return;
        }
        const u32 place = (first + lane) / p.states;
        bool accepted = status == LANE_VALID;
#pragma unroll
        for (u32 k = 0; k < COMPONENTS; k++) {
            accepted = accepted && fits_words(out.field[k]);
        }
#pragma unroll
        for (u32 k = 0; k < COMPONENTS; k++) {
            lane_fields[k][threadIdx.x] = accepted ? out.field[k] : 0.0f;
        }
        lane_cells[threadIdx.x] = place;
        const bool hidden = status == LANE_SOURCE_OCCLUDED || status == LANE_TARGET_OCCLUDED;
        atomicAdd(&cell_counts[place][accepted ? ACCEPTED : hidden ? HIDDEN : REJECTED], 1);
    }

    // Threads share the components of all cells among them.
    __device__ __forceinline__ void collect(u32 n) const
    {
        __syncthreads();
        const u32 sums = p.group * COMPONENTS;
        const u32 sharers = SEARCH_THREADS / sums;
        const u32 sum = threadIdx.x % sums;
        const u32 share = threadIdx.x / sums;
        if (share >= sharers) {
            return;
        }
        i64 words[WORDS] = {};
        for (u32 i = share; i < n; i += sharers) {
            if (lane_cells[i] == sum / COMPONENTS) {
                add_to_registers(words, lane_fields[sum % COMPONENTS][i]);
            }
        }
#pragma unroll
        for (u32 i = 0; i < WORDS; i++) {
            add_word(&cell_words[sum][i], words[i]);
        }
    }
};

extern "C" __global__ void __launch_bounds__(SEARCH_THREADS, 3) accum_dfr_coherent(const __grid_constant__ CoherentParams p)
{
    const u32 thread = threadIdx.x;
    for (u32 i = thread; i < BLOCK_CELLS * COMPONENTS * WORDS; i += SEARCH_THREADS) {
        (&cell_words[0][0])[i] = 0;
    }
    if (thread < BLOCK_CELLS * OUTCOMES) {
        (&cell_counts[0][0])[thread] = 0;
    }
    const i64 first_cell = p.begin / p.states + (i64)(blockIdx.x / p.shares) * p.group;
    const i64 origin = first_cell * p.states; // lane of the first cell's first state
    const i64 begin = origin + (i64)(blockIdx.x % p.shares) * p.share;
    const i64 from = max(p.begin, begin);
    const i64 to = min(p.end, min(begin + p.share, origin + (i64)p.group * p.states));
    if (from >= to) {
        return;
    }
    LanesOfCells lanes{p, first_cell, (u32)(from - origin)};
    run_lanes(lanes, p.lanes, (u32)(to - from));

    const u32 place = thread / COMPONENTS;
    const i64 cell = first_cell + place;
    if (place < p.group && cell * p.states < to) {
        finish_component(p, cell, place, thread % COMPONENTS);
    }
}

// Fields from words.
struct ReadCoherentParams {
    const i64* words;
    const u32* slots; // cell of each slot; null: words of every cell
    float* fields;
    i64 cells;
    i64 row_begin;
    i64 count; // slots times components
};

extern "C" __global__ void read_dfr_coherent(const __grid_constant__ ReadCoherentParams p)
{
    const i64 at = launch_row();
    if (at >= p.count) {
        return;
    }
    const i64 row = p.row_begin + at;
    const i64 slot = row / COMPONENTS;
    const i64 cell = p.slots ? p.slots[slot] : slot;
    p.fields[(row - slot * COMPONENTS) * p.cells + cell] = read_words(p.words + row * WORDS);
}
