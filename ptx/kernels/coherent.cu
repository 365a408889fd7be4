// Fields of wedges, summed over states in every cell of a grid. A block works for a few
// cells: its threads evaluate lanes and leave their fields in shared memory, then each
// takes the sum of one component of one cell further, in registers and exactly.

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
    i64 begin, end; // lanes: cell after cell, all states in each
    // Of the first and of the last cell of the launch: where the words of a cell are that
    // other launches work for too, or -1 for a cell of this launch alone.
    i32 first_slot, last_slot;
    i64* words;    // [slots, 6, 6], or where fields is null of every cell
    u32* slots;    // cell of each slot
    float* fields; // [6, cells]
    u32* counters; // [3, cells]
};

__shared__ i64 cell_words[BLOCK_CELLS * COMPONENTS][WORDS];
__shared__ u32 cell_counts[BLOCK_CELLS][OUTCOMES];
__shared__ float lane_fields[COMPONENTS][SEARCH_THREADS];

// A lane's part in the sums: its field, or zero, and a count.
__device__ __forceinline__ void evaluate(const CoherentParams& p, u32 place, i64 cell, u32 state)
{
    const u32 thread = threadIdx.x;
    LaneResult out;
    u32 status = LANE_INACTIVE;
    if (!p.active || p.active[p.active_count == 1 ? 0 : state]) {
        const State& s = p.lanes.states[state];
        status = run_lane(out, p.lanes, state, s.src, cell_centre(p.cells, cell), p.polarization, s.power);
    }
    bool accepted = status == LANE_VALID;
#pragma unroll
    for (u32 k = 0; k < COMPONENTS; k++) {
        accepted = accepted && fits_words(out.field[k]);
    }
#pragma unroll
    for (u32 k = 0; k < COMPONENTS; k++) {
        lane_fields[k][thread] = accepted ? out.field[k] : 0.0f;
    }
    if (status != LANE_INACTIVE) {
        const bool hidden = status == LANE_SOURCE_OCCLUDED || status == LANE_TARGET_OCCLUDED;
        atomicAdd(&cell_counts[place][accepted ? ACCEPTED : hidden ? HIDDEN : REJECTED], 1);
    }
}

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
        slot = cell == p.begin / p.states ? p.first_slot : cell == (p.end - 1) / p.states ? p.last_slot : -1;
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

extern "C" __global__ void __launch_bounds__(SEARCH_THREADS, 4) accum_dfr_coherent(const __grid_constant__ CoherentParams p)
{
    const u32 thread = threadIdx.x;
    for (u32 i = thread; i < BLOCK_CELLS * COMPONENTS * WORDS; i += SEARCH_THREADS) {
        (&cell_words[0][0])[i] = 0;
    }
    if (thread < BLOCK_CELLS * OUTCOMES) {
        (&cell_counts[0][0])[thread] = 0;
    }
    trace_begin();

    const i64 first_cell = p.begin / p.states + (i64)blockIdx.x * p.group;
    const i64 origin = first_cell * p.states; // lane of the first cell's first state
    const i64 from = max(p.begin, origin);
    const i64 to = min(p.end, origin + (i64)p.group * p.states);

    // The component of which cell this thread sums, and which of its values.
    const u32 sums = p.group * COMPONENTS;
    const u32 sharers = SEARCH_THREADS / sums;
    const u32 sum = thread % sums;
    const u32 share = thread / sums;
    const u32 place = sum / COMPONENTS;
    const u32 component = sum % COMPONENTS;
    i64 words[WORDS] = {};

    for (i64 round = from; round < to; round += SEARCH_THREADS) {
        const i64 lane = round + thread;
        if (lane < to) {
            const u32 offset = (u32)(lane - origin);
            const u32 at = offset / p.states;
            evaluate(p, at, first_cell + at, offset - at * p.states);
        }
        __syncthreads();
        const i64 begin = max(origin + (i64)place * p.states, round) - round;
        const i64 end = min(min(origin + (i64)(place + 1) * p.states, to) - round, (i64)SEARCH_THREADS);
        for (i64 i = begin + share; i < end && share < sharers; i += sharers) {
            add_to_registers(words, lane_fields[component][i]);
        }
        __syncthreads();
    }
    if (share < sharers) {
#pragma unroll
        for (u32 i = 0; i < WORDS; i++) {
            add_word(&cell_words[sum][i], words[i]);
        }
    }
    __syncthreads();
    const i64 cell = first_cell + place;
    if (share == 0 && cell * p.states < to) {
        finish_component(p, cell, place, component);
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
