// AccumDfrDirect: the scalar model of diffraction at edges, summed over random lanes into
// the cells of a grid. Lane l with the state s = l mod S and the cell c = l/S mod C belongs
// to the pair c*S + s. A thread keeps to one pair: state, cell, target and weight do not
// change, and its sums stay in registers.

#include "dfrlane.cuh"
#include "fan.cuh"
#include "medium.cuh"
#include "words.cuh"

// Counters of an accumulator, behind the words of all cells.
enum { ACCEPTED, HIDDEN, REJECTED, INACTIVE, COUNTERS };

// The result of an accumulator. power is null where others read it.
struct DfrReadout {
    const i64* words;
    const i64* counters;
    float* power;
    i64* counts; // Direct, Keller, VisRejects, UTDRejects, EdgeUses, InactiveLanes
    i64* kept;   // the words and counters of the result; null: these are
    i64 cells;
    i64 azimuths; // 1: lanes have an azimuth instead of a cell
};

struct AccumDfrParams {
    const Node* pool;
    const i32* slots; // of the triangles in pool
    const Leg* legs;
    const State* states;
    const u8* active; // of every state, or of all; may be null
    i64* words;       // of the cells, or of copies of them
    i64* counters;
    u32* ticket;      // blocks that have ended
    u32* arrived;     // launches that have ended, if those of several devices add to the accumulator
    u32* taken;       // chunks of each pair that were taken; may be null without chunks
    Media media;      // without rows: none
    double factor;    // (lambda/(4 pi))^2 times the area of a cell
    Cells cells;
    float per_area;   // 1 / the area of a cell
    u32 key;          // of positions on the edge
    u32 azimuth_key;
    u32 states_count;
    u32 active_count;
    u32 pairs;    // at most the lanes of the whole call; by azimuth: states
    u32 per_pair; // lanes of the whole call of every pair,
    u32 one_more; // and one more of the pairs below this
    u32 begin;    // lanes of the launch
    u32 end;
    u32 first;    // of the pairs that have lanes in the launch, in their order from begin
    u32 visited;  // these pairs
    u32 spread;   // what permutes their order: see spread_place; 0: nothing
    u32 groups;
    u32 group;    // threads of a pair: a multiple of 32, or a power of two
    u32 step;     // from lane to lane of a thread
    u32 copies;   // of the cells, a power of two
    u32 fan_nodes;  // how many nodes a warp looks at for its fans; 0: they are not worth it
    u32 chunk;      // rounds of a chunk, or 0: warps divide their pair evenly
    u32 coarse;     // chunks of a pair; behind these
    u32 fine;       // they have so many rounds
    u32 launches;   // of all devices
    DfrReadout readout;
};

// Sums of positive values in three of the words of a cell. Of the values of one pair few
// need others.
struct PairSums {
    i64 word[3];
    i32 first;
};

// add_word where other devices may add, too.
__device__ __forceinline__ void add_for_all(i64* word, i64 v)
{
    if (v != 0) {
        atomicAdd_system((u64*)word, (u64)v);
    }
}

__device__ __forceinline__ void flush(PairSums& s, i64* words)
{
#pragma unroll
    for (u32 i = 0; i < 3; i++) {
        // Where first + 2 is beyond the words, there is nothing in it.
        add_for_all(words + s.first + i, s.word[i]);
        s.word[i] = 0;
    }
}

__device__ __forceinline__ void add_to_pair(PairSums& s, float c, i64* words)
{
    // Of positive normal values this is all there is to parts_of.
    const u32 bits = __float_as_int(c);
    const i32 place = (i32)(bits >> 23) - 22;
    const u32 m = (bits & 0x7fffff) | 0x800000;
    Parts p = {m << (place & 31), __funnelshift_l(m, 0, place & 31), place >> 5};
    if ((u32)(p.i - s.first) > 1) {
        p = parts_of(c);
        if ((u32)(p.i - s.first) > 1) {
            flush(s, words);
            s.first = p.i > s.first ? p.i - 1 : p.i;
        }
    }
    const bool up = p.i != s.first;
    s.word[0] += up ? 0 : p.low;
    s.word[1] += up ? p.low : p.high;
    s.word[2] += up ? p.high : 0;
}

// flush for a warp that keeps to one pair.
__device__ __forceinline__ void flush_warp(const PairSums& s, i64* words)
{
    const u32 warp = 0xffffffff;
#pragma unroll
    for (i32 i = 0; i < WORDS; i++) {
        const i32 at = i - s.first;
        i64 v = at == 0 ? s.word[0] : (at == 1 ? s.word[1] : (at == 2 ? s.word[2] : 0));
        if (!__any_sync(warp, v != 0)) {
            continue;
        }
#pragma unroll
        for (u32 d = 16; d > 0; d /= 2) {
            v += __shfl_down_sync(warp, v, d);
        }
        if ((threadIdx.x & 31) == 0) {
            add_for_all(words + i, v);
        }
    }
}

// What material there is at a state: its factor.
__device__ __forceinline__ float gain_of(const Media& m, const State& s)
{
    float4 row;
    if (m.rows && (medium_of(m, s.prim0, row) || medium_of(m, s.prim1, row))) {
        return row.w;
    }
    return 1.0f;
}

__shared__ u32 counted[COUNTERS];

__device__ __forceinline__ void begin_block()
{
    if (threadIdx.x < COUNTERS) {
        counted[threadIdx.x] = 0;
    }
    trace_begin();
}

template <u32 N>
__device__ __forceinline__ void keep_words(const DfrReadout& r, i64 at, const i64 (&w)[N])
{
    if (r.kept) {
#pragma unroll
        for (u32 i = 0; i < N; i++) {
            r.kept[at + i] = w[i];
        }
    }
}

__device__ __forceinline__ void store_counts(const DfrReadout& r, const i64* c)
{
    const i64 accepted = c[ACCEPTED];
    r.counts[0] = r.azimuths ? 0 : accepted;
    r.counts[1] = r.azimuths ? accepted : 0;
    r.counts[2] = c[HIDDEN];
    r.counts[3] = c[REJECTED];
    r.counts[4] = accepted;
    r.counts[5] = c[INACTIVE];
}

__device__ __forceinline__ void store_result(const DfrReadout& r, i64 cell)
{
    if (cell < r.cells) {
        i64 w[WORDS];
        load_words(w, r.words + WORDS * cell);
        keep_words(r, WORDS * cell, w);
        r.power[cell] = settle_words(w);
    }
    if (cell == 0) {
        i64 c[COUNTERS + 1]; // and the ticket, which nobody draws of what is kept
        load_words(c, r.counters);
        c[COUNTERS] = 0;
        keep_words(r, WORDS * r.cells, c);
        store_counts(r, c);
    }
}

// Orders what the block has done before what thread 0 does next, and that before what the block
// does next, on the device, and on others that add to the same sums. By thread 0 between barriers.
__device__ __forceinline__ void order(const AccumDfrParams& p)
{
    if (p.arrived) {
        __threadfence_system();
    } else {
        __threadfence();
    }
}

// What ends with a block.
enum End { BLOCK, LAUNCH, CALL };

// By thread 0, when all have added what they have. Who draws the last ticket sees what the others
// have added, and they see nothing of what it does then: the next launch draws from zero.
__device__ __forceinline__ End ends(const AccumDfrParams& p)
{
    order(p);
    if (atomicAdd(p.ticket, 1) != gridDim.x - 1) {
        return BLOCK;
    }
    *p.ticket = 0;
    order(p);
    if (p.arrived) {
        if (atomicAdd_system(p.arrived, 1) != p.launches - 1) {
            return LAUNCH;
        }
        order(p);
    }
    return CALL;
}

// Adds the counters of the block. The last one leaves behind what the next launch needs, and
// reads the result if nobody else does.
__device__ __forceinline__ void end_block(const AccumDfrParams& p)
{
    __shared__ End end;
    __syncthreads();
    if (threadIdx.x < COUNTERS) {
        add_for_all(p.counters + threadIdx.x, counted[threadIdx.x]);
    }
    if (p.chunk == 0 && !p.readout.power) {
        return;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        end = ends(p);
    }
    __syncthreads();
    if (end == BLOCK) {
        return;
    }
    for (u32 place = threadIdx.x; p.chunk != 0 && place < p.visited; place += SEARCH_THREADS) {
        p.taken[place] = 0;
    }
    if (end == CALL && p.readout.power) {
        for (i64 cell = threadIdx.x; cell < p.readout.cells; cell += SEARCH_THREADS) {
            store_result(p.readout, cell);
        }
    }
}

__device__ __forceinline__ void count(u32 counter, u32 n)
{
    if (n != 0) {
        atomicAdd(counted + counter, n);
    }
}

// The lanes of a thread when its group divides a pair evenly.
struct Lanes {
    u32 place; // of the pair, from that of the first lane of the launch
    u32 part;  // of the warp in the group
    u32 pair, first, rounds;
};

// The order in which pairs are taken: by groups of 32, which are permuted, or as they are. What
// is behind all groups stays there.
__device__ __forceinline__ u32 spread_place(const AccumDfrParams& p, u32 at)
{
    const u32 group = at / 32;
    return p.spread != 0 && group < p.groups ? group * p.spread % p.groups * 32 + at % 32 : at;
}

// The warps of a pair are far apart, because pairs differ in time: so all multiprocessors
// have about the same to do. But a multiprocessor favours its oldest warps, which would end
// long before the others: where there are many rounds, the warps of a pair take chunks of
// them in turn instead.
__device__ __forceinline__ Lanes lanes_of_thread(const AccumDfrParams& p)
{
    const u32 thread = blockIdx.x * SEARCH_THREADS + threadIdx.x;
    Lanes l = {thread / p.group, 0, 0, 0, 0};
    u32 member = thread - l.place * p.group;
    if (p.group >= 32) {
        const u32 warp = threadIdx.x / 32 * gridDim.x + blockIdx.x;
        l.place = warp % p.visited;
        l.part = warp / p.visited;
        member = l.part * 32 + threadIdx.x % 32;
    }
    if (l.place < p.visited && member < p.group) {
        const u32 at = p.begin + spread_place(p, p.first + l.place);
        l.pair = at % p.pairs;
        l.first = at + member * p.pairs;
        l.rounds = l.first < p.end ? (p.end - 1 - l.first) / (p.group * p.pairs) + 1 : 0;
    }
    return l;
}

__device__ __forceinline__ u32 chunks_of_pair(const AccumDfrParams& p, u32 place)
{
    const u32 lanes = (p.end - 1 - p.begin - place) / p.pairs + 1;
    const u32 rounds = (lanes - 1) / 32 + 1;
    return p.coarse + (rounds - p.coarse * p.chunk + p.fine - 1) / p.fine;
}

// The lanes of a thread in a chunk.
__device__ __forceinline__ void enter_chunk(u32& lane, u32& end, const AccumDfrParams& p, u32 place, u32 chunk)
{
    const bool is_fine = chunk >= p.coarse;
    const u32 first = is_fine ? p.coarse * p.chunk + (chunk - p.coarse) * p.fine : chunk * p.chunk;
    lane = p.begin + place + (first * 32 + threadIdx.x % 32) * p.pairs;
    end = min(p.end, lane + (is_fine ? p.fine : p.chunk) * p.step);
}

__device__ __forceinline__ bool is_active(const AccumDfrParams& p, u32 state)
{
    return !p.active || p.active[p.active_count == 1 ? 0 : state] != 0;
}

// The target of the lanes with a cell.
__device__ __forceinline__ f32x3 middle_of(const Cells& g, u32 cell)
{
    const u32 row = cell / (u32)g.res0; // a quotient of 64 bits would take as long as a lane
    return point_of(g, cell_middle(g.min0, g.max0, g.res0, cell - row * g.res0), cell_middle(g.min1, g.max1, g.res1, row));
}

// The constant of a state in a call.
__device__ __forceinline__ float state_weight(const AccumDfrParams& p, const Leg& leg, u32 state)
{
    const double gain = gain_of(p.media, p.states[state]);
    return __double2float_rn(__dmul_rn(__dmul_rn(leg.scale, gain), p.factor));
}

__device__ __forceinline__ bool is_contribution(float c) { return (c > 0.0f) & fits_words(c); }

// How many triangles are near the two legs of a pair, from the source to the edge and from
// there to the target; or FAN_UNKNOWN.
struct Legs {
    u32 source, target;
};

__shared__ FanTriangle near_triangles[SEARCH_THREADS / 32][2][FAN_TRIANGLES];

// Collects the triangles near all segments between a point of each half of a warp and the edge
// of its state.
__device__ __forceinline__ Legs find_near(const AccumDfrParams& p, const Leg& leg, f32x3 apex)
{
    const f32x3 first = edge_point(leg, 0.0f);
    const f32x3 last = edge_point(leg, 1.0f);
    // How far points are lifted changes along the edge, but hardly.
    const float most = fmaxf(lift_of(first), lift_of(last));
    const float spread = mul(sub(most, 1e-4f), add(add(fabsf(leg.offset.x), fabsf(leg.offset.y)), fabsf(leg.offset.z)));
    Fan f;
    const bool is_fan = make_fan(f, p.pool, apex, lifted(first, leg.offset), lifted(last, leg.offset), spread);
    FanTriangle* near = near_triangles[threadIdx.x / 32][threadIdx.x / FAN_THREADS & 1];
    const u32 count = collect(near, f, is_fan, p.pool, p.fan_nodes);
    return Legs{__shfl_sync(0xffffffff, count, 0), __shfl_sync(0xffffffff, count, FAN_THREADS)};
}

// Remembers the triangle that a search has met.
struct Remember {
    i32& last;

    __device__ __forceinline__ bool operator()(i32 id) const
    {
        last = id;
        return false;
    }
};

// occluded for one of many segments that are alike: what blocked the last one, if
// anything did, most likely blocks this one, too. Any triangle will do, so that no bit
// depends on it.
__device__ __forceinline__ bool occluded_again(const AccumDfrParams& p, f32x3 from, f32x3 to, i32& last)
{
    Segment g;
    const SegmentState known = make_segment(g, from, to);
    if (known != SEGMENT_OPEN) {
        return known == SEGMENT_BLOCKED;
    }
    if (last >= 0) {
        Frame frame;
        make_frame(frame, g.o, g.d);
        float t;
        i32 id;
        if (crosses_triangle(t, id, frame, (const Triangle*)p.pool + p.slots[last]) && t >= g.t_min && t <= g.t_max) {
            return true;
        }
    }
    return crossed(p.pool, g, Remember{last});
}

// Lanes of one pair, and what a thread knows of it.
struct Pair {
    Leg leg;
    Legs legs;
    f32x3 target;
    float k;
    i64* words;
};

// What a thread has seen of its pair.
struct Tally {
    PairSums sums;
    u32 hidden, rejected;
    i32 source_last, target_last;
};

// A lane. With FANS the triangles near both legs are known, and where they are.
template <bool FANS>
__device__ __forceinline__ void walk_lane(Tally& t, const AccumDfrParams& p, const Pair& a, u32 triangles, u32 lane)
{
    const f32x3 q = edge_point(a.leg, uniform01(lane, p.key));
    const f32x3 near = lifted(q, a.leg.offset);
    bool hidden = false;
    if (FANS) {
        hidden = (a.legs.source != 0 && occluded(triangles, a.legs.source, a.leg.src, near)) ||
                 (a.legs.target != 0 && occluded(triangles + sizeof near_triangles[0][0], a.legs.target, near, a.target));
    } else {
        f32x3 from = a.leg.src;
        f32x3 to = near;
        for (u32 j = 0; j < 2 && !hidden; j++) { // one place in the code that traces
            i32 last = j == 0 ? t.source_last : t.target_last;
            hidden = (j == 0 ? a.legs.source : a.legs.target) != 0 && occluded_again(p, from, to, last);
            t.source_last = j == 0 ? last : t.source_last;
            t.target_last = j == 0 ? t.target_last : last;
            from = near;
            to = a.target;
        }
    }
    if (hidden) {
        t.hidden++;
        return;
    }
    const float c = quot(a.k, mul(squared(sub(q, a.leg.src)), squared(sub(a.target, q))));
    if (is_contribution(c)) {
        add_to_pair(t.sums, c, a.words);
    } else {
        t.rejected++;
    }
}

// The lanes of a thread.
template <bool FANS>
__device__ __forceinline__ void walk(const AccumDfrParams& p, const Lanes& l, u32 pair, const Legs& legs, bool warps)
{
    // Found anew, because nothing of it is kept while a warp collects triangles.
    asm volatile("" : "+r"(pair));
    const u32 state = pair % p.states_count;
    const u32 cell = pair / p.states_count;
    Pair a = {p.legs[state], legs, middle_of(p.cells, cell), 0.0f, p.words + WORDS * (i64)cell};
    a.k = quot(state_weight(p, a.leg, state), (float)(p.per_pair + (pair < p.one_more)));
    const u32 triangles = FANS ? __shfl_sync(0xffffffff, shared_address(near_triangles[threadIdx.x / 32]), 0) : 0;
    Tally t = {{}, 0, 0, -1, -1};
    u32 done = 0;
    u32 lane = l.first;
    u32 end = p.end;
    const u32 chunks = p.chunk != 0 ? chunks_of_pair(p, l.place) : l.part + 1;
    for (u32 chunk = l.part; chunk < chunks;) {
        u32 next = 0;
        if (p.chunk != 0) {
            if (threadIdx.x % 32 == 0) { // long before it is needed
                next = atomicAdd(p.taken + l.place, 1);
            }
            enter_chunk(lane, end, p, l.place, chunk);
        }
        done += lane < end ? (end - 1 - lane) / p.step + 1 : 0;
        for (; lane < end; lane += p.step) {
            walk_lane<FANS>(t, p, a, triangles, lane);
        }
        chunk = p.chunk != 0 ? p.group / 32 + __shfl_sync(0xffffffff, next, 0) : chunks;
    }
    count(ACCEPTED, done - t.hidden - t.rejected);
    count(HIDDEN, t.hidden);
    count(REJECTED, t.rejected);
    if (FANS || warps) {
        flush_warp(t.sums, a.words);
    } else {
        flush(t.sums, a.words);
    }
}

// Lanes with a cell each. Six blocks per multiprocessor leave 80 registers: a walk that knows
// the triangles of its legs keeps everything in them.
extern "C" __global__ void __launch_bounds__(SEARCH_THREADS, 6) accum_dfr_cells(const __grid_constant__ AccumDfrParams p)
{
    begin_block();
    const Lanes l = lanes_of_thread(p);
    const u32 state = l.pair % p.states_count;
    // All lanes of a warp have the same pair.
    const bool warps = p.group % 32 == 0;
    const u32 rounds = warps ? __shfl_sync(0xffffffff, l.rounds, 0) : l.rounds;
    const double scale = p.legs[state].scale;
    if (rounds != 0 && !is_active(p, state)) {
        count(INACTIVE, l.rounds);
    } else if (rounds != 0 && scale != scale) {
        count(REJECTED, l.rounds);
    } else if (rounds != 0) {
        Legs legs = {FAN_UNKNOWN, FAN_UNKNOWN};
        if (warps && p.fan_nodes != 0) {
            const Leg leg = p.legs[state];
            const bool first = (threadIdx.x & FAN_THREADS) == 0;
            const f32x3 target = middle_of(p.cells, l.pair / p.states_count);
            legs = find_near(p, leg, first ? leg.src : target);
        }
        if (legs.source != FAN_UNKNOWN && legs.target != FAN_UNKNOWN) {
            walk<true>(p, l, l.pair, legs, warps);
        } else {
            walk<false>(p, l, l.pair, legs, warps);
        }
    }
    end_block(p);
}

// Lanes whose azimuth leads them to a cell. In a warp that keeps to one state they wait until
// there is one for each of its threads, because only few get that far; what is known of a lane
// is found again, which takes less than keeping it. Where threads have states of their own,
// each lane waits for its thread.
__shared__ u32 waiting_lanes[SEARCH_THREADS / 32][2 * 32];

// Lanes with an azimuth each, which leads them to a cell. Of their legs those from the
// source are alike.
extern "C" __global__ void __launch_bounds__(SEARCH_THREADS, 6) accum_dfr_azimuths(const __grid_constant__ AccumDfrParams p)
{
    begin_block();
    const u32 warp = 0xffffffff;
    const u32 thread = threadIdx.x % 32;
    const Lanes l = lanes_of_thread(p);
    const u32 state = l.pair;
    const Leg leg = p.legs[state];
    // All lanes of a warp have the same state.
    const bool warps = p.group % 32 == 0;
    bool walks = (warps ? __shfl_sync(warp, l.rounds, 0) : l.rounds) != 0;
    if (walks && !is_active(p, state)) {
        count(INACTIVE, l.rounds);
        walks = false;
    } else if (walks && leg.scale != leg.scale) {
        count(REJECTED, l.rounds);
        walks = false;
    }
    const u32 copy = (blockIdx.x * SEARCH_THREADS + threadIdx.x) / 32 & (p.copies - 1);
    i64* words = p.words + copy * (WORDS * p.readout.cells);
    float k = 0.0f;
    u32 near_source = FAN_UNKNOWN;
    if (walks) {
        k = quot(state_weight(p, leg, state), (float)(p.per_pair + (l.pair < p.one_more)));
        if (warps && p.fan_nodes != 0) {
            near_source = find_near(p, leg, leg.src).source;
        }
    }
    const u32 all = shared_address(near_triangles[threadIdx.x / 32]);
    u32* queue = waiting_lanes[threadIdx.x / 32];
    u32 waiting = 0;
    u32 accepted = 0;
    u32 hidden = 0;
    i32 source_last = -1;
    i32 target_last = -1;
    // A warp that takes chunks in turn ends one before it begins the next.
    const u32 chunks = walks && p.chunk != 0 ? chunks_of_pair(p, l.place) : 0;
    u32 chunk = l.part;
    u32 taken = 0;
    u32 next = l.first;
    u32 end = walks && p.chunk == 0 ? p.end : 0;
    u32 done = 0;
    for (;;) {
        bool more = __any_sync(warp, next < end);
        if (!more && chunk < chunks) {
            enter_chunk(next, end, p, l.place, chunk);
            if (thread == 0) {
                taken = atomicAdd(p.taken + l.place, 1);
            }
            chunk = p.group / 32 + __shfl_sync(warp, taken, 0);
            more = true;
        }
        const bool second = warps ? waiting >= (more ? 32 : 1) : __any_sync(warp, waiting != 0); // leg
        if (!second && !more) {
            break;
        }
        u32 lane = next;
        bool present = next < end;
        if (second) {
            const u32 n = min(waiting, warps ? 32 : 1);
            present = warps ? thread < n : waiting != 0;
            waiting -= n;
            if (present) {
                lane = queue[warps ? waiting + thread : thread];
            }
        } else if (present) {
            next += p.step;
            done++;
        }
        bool is_hidden = false;
        bool met = false;
        Cone cone;
        i64 cell = 0;
        f32x3 q;
        if (present) {
            q = edge_point(leg, uniform01(lane, p.key));
            const f32x3 near = lifted(q, leg.offset);
            if (meet_plane(cone, leg, q, random24(lane, p.azimuth_key), p.cells, second)) {
                cell = cell_of(p.cells, component(cone.x, axis_of_0(p.cells.axis)), component(cone.x, axis_of_1(p.cells.axis)));
                met = cell >= 0;
            }
            if (!second && near_source != FAN_UNKNOWN) {
                is_hidden = near_source != 0 && occluded(all, near_source, leg.src, near);
            } else { // one place in the code that traces
                i32 last = second ? target_last : source_last;
                is_hidden = occluded_again(p, second ? near : leg.src, second ? cone.x : near, last);
                source_last = second ? source_last : last;
                target_last = second ? last : target_last;
            }
            hidden += is_hidden;
            met = met && !is_hidden;
        }
        if (!second) {
            const u32 meeting = __ballot_sync(warp, met);
            __syncwarp(); // all have read the lanes whose places are used again
            if (met) {
                queue[warps ? waiting + __popc(meeting & ((1u << thread) - 1)) : thread] = lane;
            }
            waiting += warps ? __popc(meeting) : met;
            __syncwarp();
        } else if (met) {
            const float base = quot(k, mul(squared(sub(q, leg.src)), squared(sub(cone.x, q))));
            const float c = mul(base, mul(cone.weight, p.per_area));
            if (is_contribution(c)) {
                accepted++;
                add_to_words(words + WORDS * cell, c);
            }
        }
    }
    count(ACCEPTED, accepted);
    count(HIDDEN, hidden);
    count(REJECTED, done - accepted - hidden); // of the warp, whose threads have traded lanes
    end_block(p);
}

// The result of an accumulator, a thread for every cell.
extern "C" __global__ void read_dfr(const __grid_constant__ DfrReadout p) { store_result(p, launch_row()); }

// The sum of accumulators, and its result.
struct SumDfrParams {
    i64* words; // of the sum, with its counters behind them: those of the readout
    DfrReadout readout;
    Accumulators parts;
};

// A thread for every cell, and one for the counters.
extern "C" __global__ void sum_dfr(const __grid_constant__ SumDfrParams p)
{
    const i64 row = launch_row();
    const i64 cells = p.readout.cells;
    if (row < cells) {
        i64 w[WORDS];
        sum_parts<false>(w, p.parts, 0, WORDS * row);
#pragma unroll
        for (u32 k = 0; k < WORDS; k++) {
            p.words[WORDS * row + k] = w[k];
        }
        p.readout.power[row] = settle_words(w);
    } else if (row == cells) {
        i64 c[COUNTERS + 1]; // and a ticket that nobody drew
        sum_parts<false>(c, p.parts, 0, WORDS * cells);
#pragma unroll
        for (u32 k = 0; k <= COUNTERS; k++) {
            p.words[WORDS * cells + k] = c[k];
        }
        store_counts(p.readout, c);
    }
}
