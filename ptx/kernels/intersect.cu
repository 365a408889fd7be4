// Closest hit in two steps: the search stores one winner id per row, finalize
// computes every continuous column from it. A row searched on another device
// costs four bytes on the way back, and all searches share one finalize.

#include "hit.cuh"
#include "rays.cuh"
#include "search.cuh"

// Columns that were not asked for are null. winners is the storage of t or of
// global_prim_id, which is why the winner is read before anything is written and
// never through the read-only cache. Triangles come from the slots of the tree, in
// fewer gathers, unless slots is null.
struct FinalizeParams {
    RayColumns rays;
    const i32* winners;
    const float* vertices;
    const i32* faces;
    const i32* shape_ids; // null when there is one shape, which saves a look-up per hit
    const i32* face_offsets;
    const Triangle* pool;
    const i32* slots; // of each face
    float* t;
    float* p;
    float* n;
    float* geo_n;
    float* uv;
    float* barycentric;
    i32* shape_id;
    i32* prim_id;
    i32* local_prim_id;
    i32* global_prim_id;
    i64 row_begin;
    i64 count;
    i64 face_count;
    u32 marked; // winners are marks
};

// The winner of a marked call says by itself whether its row is searched, and whether
// it is finalized: what finalize stores there, an id or a distance, is never less than
// -1, and what a search stores always is.
#define UNSEARCHED (-2)

__device__ __forceinline__ i32 mark(i32 winner) { return (i32)(0x80000000u | (u32)(winner + 1)); }

__device__ __forceinline__ bool is_mark(i32 word) { return word < UNSEARCHED; }

__device__ __forceinline__ i32 marked_winner(i32 word) { return (word & 0x7fffffff) - 1; }

// The columns of a winner. A winner of our own search always has them. One that
// another tracer found may be edge-on to the canonical test, or outside the interval
// by its t: such a row becomes a miss.
__device__ __forceinline__ bool finalize_hit(SurfaceHit& h, const FinalizeParams& p, i64 row, i32 winner)
{
    f32x3 v0, v1, v2;
    if (p.slots) {
        const Triangle* const t = p.pool + __ldg(p.slots + winner);
        const float4 a = __ldg(&t->a);
        const float4 b = __ldg(&t->b);
        const float4 c = __ldg(&t->c);
        v0 = f32x3{a.x, a.y, a.z};
        v1 = f32x3{b.x, b.y, b.z};
        v2 = f32x3{c.x, c.y, c.z};
    } else {
        v0 = load3(p.vertices, p.faces[3 * (i64)winner]);
        v1 = load3(p.vertices, p.faces[3 * (i64)winner + 1]);
        v2 = load3(p.vertices, p.faces[3 * (i64)winner + 2]);
    }
    if (!see_hit(h, load3(p.rays.o, row), load3(p.rays.d, row), v0, v1, v2)) {
        return false;
    }
    return !(h.t < RAY_T_MIN || h.t > row_t_max(p.rays, row));
}

__device__ __forceinline__ void finalize_row(const FinalizeParams& p, i64 row, i32 winner)
{
    SurfaceHit h = {f32_inf(), 0.0f, 0.0f, 0.0f, {0.0f, 0.0f, 0.0f}, {0.0f, 0.0f, 0.0f}};
    i32 prim = -1;
    i32 shape = -1;
    i32 local = -1;
    // A device that was lost has left winners that are not ids.
    if (winner >= 0 && winner < p.face_count) {
        SurfaceHit hit;
        if (finalize_hit(hit, p, row, winner)) {
            h = hit;
            prim = winner;
            shape = p.shape_ids ? p.shape_ids[winner] : 0;
            local = winner - p.face_offsets[shape];
        }
    }
    p.t[row] = plus_zero(h.t);
    if (p.p) {
        store3(p.p, row, h.p);
    }
    if (p.n) {
        store3(p.n, row, h.n);
    }
    if (p.geo_n) {
        store3(p.geo_n, row, h.n);
    }
    if (p.uv) {
        ((float2*)p.uv)[row] = float2{plus_zero(h.b1), plus_zero(h.b2)};
    }
    if (p.barycentric) {
        store3(p.barycentric, row, f32x3{h.b0, h.b1, h.b2});
    }
    if (p.shape_id) {
        p.shape_id[row] = shape;
    }
    if (p.prim_id) {
        p.prim_id[row] = prim;
    }
    if (p.local_prim_id) {
        p.local_prim_id[row] = local;
    }
    if (p.global_prim_id) {
        p.global_prim_id[row] = prim;
    }
}

struct TraverseParams {
    SearchParams search;
    RayColumns rays;
    i32* winners;
};

template <bool MARKS> struct ClosestHit {
    const TraverseParams& p;

    __device__ __forceinline__ bool begin(Search& s, i64 row)
    {
        s.best.id = -1;
        if (row_active(p.rays, row)) {
            const f32x3 o = load3(p.rays.o, row);
            const f32x3 d = load3(p.rays.d, row);
            const float t_max = row_t_max(p.rays, row);
            if (can_hit(o, d, t_max)) {
                start(s, o, d, t_max);
            }
        }
        return true; // its winner is stored with those of the other lanes
    }

    __device__ __forceinline__ void meet(Search& s, float t, i32 id) { offer(s.best, RAY_T_MIN, t, id); }

    __device__ __forceinline__ bool proceed(Search& s, i64 row)
    {
        if (MARKS) { // for another multiprocessor, perhaps of another device
            *(volatile i32*)(p.winners + row) = mark(s.best.id);
        } else {
            p.winners[row] = s.best.id;
        }
        return false;
    }
};

struct TraverseMarkedParams {
    TraverseParams traverse; // search.next is followed by two more counters
    FinalizeParams sweep;    // of the rows that may be finalized, if there are any
};

#define SWEEP_ROWS 64

// Finalizes marked rows, whoever has searched them, while other warps of the launch
// search: the few rays that take longest leave most of a device idle. What remains when
// the last of them has ended is faster done by a launch for it. ended counts warps.
__device__ __forceinline__ void sweep(const FinalizeParams& f, u32* taken, u32* ended)
{
    const u32 warps = gridDim.x * (SEARCH_THREADS / 32);
    const u32 lane = threadIdx.x & 31;
    const u32 count = (u32)f.count;
    if (lane == 0) {
        atomicAdd(ended, 1);
    }
    for (;;) {
        u32 begin = count;
        if (lane == 0 && *(volatile u32*)ended < warps) {
            begin = atomicAdd(taken, 1) * SWEEP_ROWS;
        }
        begin = __shfl_sync(0xffffffff, begin, 0);
        if (begin >= count) {
            break;
        }
        for (u32 i = begin + lane; i < min(begin + SWEEP_ROWS, count); i += 32) {
            const i64 row = f.row_begin + i;
            const i32 winner = *(const volatile i32*)(f.winners + row);
            if (is_mark(winner)) {
                finalize_row(f, row, marked_winner(winner));
            }
        }
    }
}

// Eight blocks per multiprocessor leave 64 registers, which is what a search needs.
extern "C" __global__ void __launch_bounds__(SEARCH_THREADS, 8) traverse(const __grid_constant__ TraverseParams p)
{
    ClosestHit<false> job{p};
    search_rows<ClosestHit<false>, true>(job, p.search);
}

// Of a marked call.
extern "C" __global__ void __launch_bounds__(SEARCH_THREADS, 8)
    traverse_marked(const __grid_constant__ TraverseMarkedParams p)
{
    ClosestHit<true> job{p.traverse};
    search_rows<ClosestHit<true>, true>(job, p.traverse.search);
    if (p.sweep.count > 0 && p.traverse.search.next) {
        sweep(p.sweep, p.traverse.search.next + 1, p.traverse.search.next + 2);
    }
}


extern "C" __global__ void __launch_bounds__(128) finalize(const __grid_constant__ FinalizeParams p)
{
    const i64 i = launch_row();
    if (i >= p.count) {
        return;
    }
    const i64 row = p.row_begin + i;
    i32 winner;
    if (p.marked) {
        winner = *(const volatile i32*)(p.winners + row); // another device may be storing it
        if (!is_mark(winner)) {
            return;
        }
        winner = marked_winner(winner);
    } else {
        winner = p.winners[row];
    }
    finalize_row(p, row, winner);
}
