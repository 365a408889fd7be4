// Closest hit in two steps: the search stores one winner id per row, finalize
// computes every continuous column from it. A row searched on another device
// costs four bytes on the way back, and all searches share one finalize.

#include "rays.cuh"
#include "search.cuh"

struct TraverseParams {
    RayColumns rays;
    i32* winners;
    const Node* pool;
    u32* next; // zero; may be null when there is a thread for every row
    i64 row_begin;
    i64 count; // at most 2^30
    // A warp goes on with nodes while at least busy_lanes lanes have one to visit.
    // Below that it tests the triangles of all lanes that have met some, and when
    // idle_lanes have finished, it fetches rays for them. After triangles all lanes
    // but the idle ones have a node: the sum of the two is at most 33, or a warp
    // would wait for itself.
    u32 busy_lanes;
    u32 idle_lanes;
};

// Any number of blocks searches all rows. Eight blocks per multiprocessor leave 64
// registers, which is what a search needs.
extern "C" __global__ void __launch_bounds__(SEARCH_THREADS, 8) traverse(const __grid_constant__ TraverseParams p)
{
    __shared__ VisitOrder order;
    static_assert(sizeof(order) == 16 * SEARCH_THREADS, "one load per thread");
    ((uint4*)order.first)[threadIdx.x] = ((const uint4*)visit_order.first)[threadIdx.x];
    __syncthreads();

    const u32 warp = 0xffffffff;
    const u32 none = 0xffffffff;
    const u32 lane = threadIdx.x & 31;
    const u32 count = (u32)p.count;
    const u32 threads = gridDim.x * SEARCH_THREADS;
    bool first = true; // the first row of every thread is fixed, the others are handed out
    bool more = true;
    u32 row = none;
    Search s;
    s.inner = s.triangles = Group{0, 0};
    s.top = threadIdx.x;
    for (;;) {
        const bool idle = is_done(s);
        const u32 idle_lanes = __ballot_sync(warp, idle);
        const u32 idle_count = __popc(idle_lanes);
        if (more && idle_count >= p.idle_lanes) {
            if (idle && row != none) {
                p.winners[p.row_begin + row] = s.best.id;
                row = none;
            }
            u32 begin = blockIdx.x * SEARCH_THREADS + threadIdx.x - lane;
            if (!first) {
                if (lane == 0) {
                    begin = threads + atomicAdd(p.next, idle_count);
                }
                begin = __shfl_sync(warp, begin, 0);
            }
            first = false;
            more = max(begin + idle_count, threads) < count;
            const u32 mine = begin + __popc(idle_lanes & ((1u << lane) - 1));
            if (idle && mine < count) {
                row = mine;
                s.best.id = -1;
                const i64 at = p.row_begin + row;
                if (row_active(p.rays, at)) {
                    const f32x3 o = load3(p.rays.o, at);
                    const f32x3 d = load3(p.rays.d, at);
                    const float t_max = row_t_max(p.rays, at);
                    if (can_hit(o, d, t_max)) {
                        start(s, o, d, t_max, p.pool);
                    }
                }
            }
            continue;
        }
        if (idle_lanes == warp) {
            break;
        }
        // Once no rows are left, the rest goes on as long as most of it can.
        const u32 busy = 32 - idle_count;
        const u32 least = more ? p.busy_lanes : busy - busy / 4;
        for (;;) {
            const bool ready = !is_empty(s.inner) && is_empty(s.triangles);
            if (__popc(__ballot_sync(warp, ready)) < least) {
                break;
            }
            if (ready) {
                visit(s, p.pool, order.first);
            }
        }
        if (!is_empty(s.triangles)) {
            test_triangles(s, p.pool);
        }
    }
    if (row != none) {
        p.winners[p.row_begin + row] = s.best.id;
    }
}

// Columns that were not asked for are null. winners is the storage of t or of
// global_prim_id, which is why the winner is read before anything is written and
// never through the read-only cache.
struct FinalizeParams {
    RayColumns rays;
    const i32* winners;
    const float* vertices;
    const i32* faces;
    const i32* shape_ids;
    const i32* face_offsets;
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
};

struct Hit {
    float t, b0, b1, b2;
    f32x3 p, n;
    i32 shape, prim, local;
};

// The columns of a winner. A winner of our own search always has them. One that
// another tracer found may be edge-on to the canonical test, or outside the interval
// by its t: such a row becomes a miss.
__device__ __forceinline__ bool finalize_hit(Hit& h, const FinalizeParams& p, i64 row, i32 winner)
{
    const f32x3 v0 = load3(p.vertices, p.faces[3 * (i64)winner]);
    const f32x3 v1 = load3(p.vertices, p.faces[3 * (i64)winner + 1]);
    const f32x3 v2 = load3(p.vertices, p.faces[3 * (i64)winner + 2]);
    Frame f;
    make_frame(f, load3(p.rays.o, row), load3(p.rays.d, row));
    const Edges e = see_triangle(f, v0, v1, v2);
    const float sum = edge_sum(e);
    h.t = crossing_t(f, e, sum);
    h.b0 = quot(e.u, sum);
    h.b1 = quot(e.v, sum);
    h.b2 = quot(e.w, sum);
    if (sum == 0.0f || !is_finite(h.t) || !is_finite(h.b0) || !is_finite(h.b1) || !is_finite(h.b2)) {
        return false;
    }
    if (h.t < RAY_T_MIN || h.t > row_t_max(p.rays, row)) {
        return false;
    }
    const f32x3 e1 = sub(v1, v0);
    const f32x3 e2 = sub(v2, v0);
    h.p = f32x3{fmadd(h.b2, e2.x, fmadd(h.b1, e1.x, v0.x)), fmadd(h.b2, e2.y, fmadd(h.b1, e1.y, v0.y)),
                fmadd(h.b2, e2.z, fmadd(h.b1, e1.z, v0.z))};
    h.n = unit(cross(e1, e2));
    h.prim = winner;
    h.shape = p.shape_ids[winner];
    h.local = winner - p.face_offsets[h.shape];
    return true;
}

extern "C" __global__ void __launch_bounds__(128) finalize(const __grid_constant__ FinalizeParams p)
{
    const i64 i = launch_row();
    if (i >= p.count) {
        return;
    }
    const i64 row = p.row_begin + i;
    const i32 winner = p.winners[row];
    Hit h = {f32_inf(), 0.0f, 0.0f, 0.0f, {0.0f, 0.0f, 0.0f}, {0.0f, 0.0f, 0.0f}, -1, -1, -1};
    if (winner >= 0) {
        Hit hit;
        if (finalize_hit(hit, p, row, winner)) {
            h = hit;
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
        p.uv[2 * row] = plus_zero(h.b1);
        p.uv[2 * row + 1] = plus_zero(h.b2);
    }
    if (p.barycentric) {
        store3(p.barycentric, row, f32x3{h.b0, h.b1, h.b2});
    }
    if (p.shape_id) {
        p.shape_id[row] = h.shape;
    }
    if (p.prim_id) {
        p.prim_id[row] = h.prim;
    }
    if (p.local_prim_id) {
        p.local_prim_id[row] = h.local;
    }
    if (p.global_prim_id) {
        p.global_prim_id[row] = h.prim;
    }
}
