// Chains of specular reflections in two steps, like closest hits: one kernel follows
// every ray from surface to surface and stores the winner of each bounce, finalize
// replays the chains from the winners without searching. A bounce costs four bytes
// on the way back from another device.

#include "reflect.cuh"
#include "search.cuh"

struct TraceChainsParams {
    SearchParams search;
    RayColumns rays;
    i32* prim_ids; // [rows, bounces]
    i32 bounces;
};

// What is in the slot of a triangle, in one piece.
__device__ __forceinline__ Mirror load_mirror(const Triangle* t)
{
    const float4 a = __ldg(&t->a);
    const float4 b = __ldg(&t->b);
    const float4 c = __ldg(&t->c);
    const float4 n = __ldg(&t->n);
    return Mirror{{a.x, a.y, a.z}, {b.x, b.y, b.z}, {c.x, c.y, c.z}, {n.x, n.y, n.z}, c.w};
}

// Number, origin and direction of every lane's leg. A search needs all registers that a
// thread has, and these values only when it has ended or meets a triangle.
__shared__ i32 chain_bounce[SEARCH_THREADS];
__shared__ float chain_legs[6][SEARCH_THREADS];

// A row's searches are the legs of its chain. The next leg starts in the lane that has
// ended the last one, while the others go on with theirs.
//
// The winner is kept as the slot of its triangle, -1 for none: what the next leg needs of
// it is there, in one piece and read a moment ago, and not in the tables.
struct ChainOfHits {
    const TraceChainsParams& p;

    __device__ __forceinline__ void keep_leg(f32x3 o, f32x3 d)
    {
        const u32 lane = threadIdx.x;
        chain_legs[0][lane] = o.x;
        chain_legs[1][lane] = o.y;
        chain_legs[2][lane] = o.z;
        chain_legs[3][lane] = d.x;
        chain_legs[4][lane] = d.y;
        chain_legs[5][lane] = d.z;
    }

    __device__ __forceinline__ bool begin(Search& s, i64 row)
    {
        s.best.id = -1;
        chain_bounce[threadIdx.x] = 0;
        if (row_active(p.rays, row)) {
            const f32x3 o = load3(p.rays.o, row);
            const f32x3 d = load3(p.rays.d, row);
            const float t_max = row_t_max(p.rays, row);
            if (can_hit(o, d, t_max)) {
                keep_leg(o, d);
                start(s, o, d, t_max);
            }
        }
        return true; // its slots are stored with those of the other lanes
    }

    __device__ __forceinline__ void meet(Search& s, float t, i32 id)
    {
        const float t_min = chain_bounce[threadIdx.x] == 0 ? RAY_T_MIN : 0.0f;
        if (t >= t_min && (t < s.best.t || (t == s.best.t && precedes(id, s.best.id)))) {
            s.best = Winner{plus_zero(t), (i32)s.slot}; // boxes are culled by the sign of a difference
        }
    }

    __device__ __forceinline__ bool proceed(Search& s, i64 row)
    {
        i32* const ids = p.prim_ids + row * p.bounces;
        i32 bounce = chain_bounce[threadIdx.x];
        if (s.best.id >= 0) {
            const Triangle* const winner = (const Triangle*)p.search.pool + s.best.id;
            ids[bounce++] = __float_as_int(__ldg(&winner->a.w));
            s.best.id = -1;
            chain_bounce[threadIdx.x] = bounce;
            if (bounce < p.bounces && next_leg(s, load_mirror(winner))) {
                return true;
            }
        }
        for (; bounce < p.bounces; bounce++) {
            ids[bounce] = -1;
        }
        return false;
    }

    // Whether a triangle has a smaller id than the winner so far.
    __device__ __forceinline__ bool precedes(i32 id, i32 slot)
    {
        return slot < 0 || id < __float_as_int(__ldg(&((const Triangle*)p.search.pool + slot)->a.w));
    }

    // What bounce_off does, without t: a leg that has none ends the chain in finalize.
    // The axes of the last search are those of the leg, only its origin was elsewhere.
    __device__ __forceinline__ bool next_leg(Search& s, Mirror m)
    {
        const u32 lane = threadIdx.x;
        s.frame.o = f32x3{chain_legs[0][lane], chain_legs[1][lane], chain_legs[2][lane]};
        f32x3 d = {chain_legs[3][lane], chain_legs[4][lane], chain_legs[5][lane]};
        const Edges e = see_triangle(s.frame, m.v0, m.v1, m.v2);
        SurfaceHit h;
        if (!hit_point(h, e, edge_sum(e), m.v0, m.v1, m.v2) || !face(m, d)) {
            return false;
        }
        d = next_direction(m, d);
        const f32x3 q = restart_point(m, h.p);
        if (!can_hit(q, d, F32_MAX)) {
            return false;
        }
        keep_leg(h.p, d);
        start(s, q, d, F32_MAX);
        return true;
    }
};

extern "C" __global__ void __launch_bounds__(SEARCH_THREADS, 8)
    trace_chains(const __grid_constant__ TraceChainsParams p)
{
    ChainOfHits job{p};
    search_rows(job, p.search);
}

// Columns that were not asked for are null. prim_ids holds the winners and stays as it
// is but for the end of a chain that another tracer took too far. Triangles come from the
// slots of the tree where there is one, and slots is null where there is not: gathers are
// what finalize waits for.
struct FinalizeChainsParams {
    RayColumns rays;
    Surfaces surfaces;
    const Triangle* pool;
    const i32* slots; // of each face
    i32* prim_ids;
    u8* valid;
    float* t;
    float* image_sources;
    float* hit_points;
    float* normals;
    float* barycentric;
    i64 row_begin;
    i64 count;
    i32 bounces;
    i32 face_count;
};

// Eight blocks per multiprocessor leave 64 registers.
extern "C" __global__ void __launch_bounds__(128, 8) finalize_chains(const __grid_constant__ FinalizeChainsParams p)
{
    const i64 i = launch_row();
    if (i >= p.count) {
        return;
    }
    const i64 row = p.row_begin + i;
    const i64 first = row * p.bounces;
    f32x3 o = load3(p.rays.o, row);
    f32x3 d = load3(p.rays.d, row);
    f32x3 image = o;
    bool alive = true;
    for (i32 k = 0; k < p.bounces; k++) {
        const i64 slot = first + k;
        const i32 winner = p.prim_ids[slot];
        SurfaceHit h;
        Mirror m;
        // A device that was lost has left winners that are not ids.
        if (alive && winner >= 0 && winner < p.face_count) {
            m = p.slots ? load_mirror(p.pool + __ldg(p.slots + winner)) : load_mirror(p.surfaces, winner);
            alive = bounce_off(h, m, o, d);
            // A winner of our own search lies in the interval of the first leg. The t of
            // one that another tracer found may not.
            if (k == 0 && (h.t < RAY_T_MIN || h.t > row_t_max(p.rays, row))) {
                alive = false;
            }
        } else {
            alive = false;
        }
        if (alive) {
            image = next_image(m, image);
            d = next_direction(m, d);
            o = h.p;
        } else {
            h.t = f32_inf();
            h.b1 = h.b2 = 0.0f;
            image = o = m.n = f32x3{0.0f, 0.0f, 0.0f};
            if (winner != -1) {
                p.prim_ids[slot] = -1;
            }
        }
        p.valid[slot] = alive;
        p.t[slot] = plus_zero(h.t);
        if (p.image_sources) {
            store3(p.image_sources, slot, image);
        }
        if (p.hit_points) {
            store3(p.hit_points, slot, o);
        }
        if (p.normals) {
            store3(p.normals, slot, m.n);
        }
        if (p.barycentric) {
            p.barycentric[2 * slot] = plus_zero(h.b1);
            p.barycentric[2 * slot + 1] = plus_zero(h.b2);
        }
    }
}
