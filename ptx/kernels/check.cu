// Brute force for tests: every ray against every triangle, by the canonical test and
// without a tree, so that searches can be compared with it row by row at full size.
// A tile of triangles is shared by a block, whose threads read the same one at a time.

#include "rays.cuh"
#include "reflect.cuh"
#include "search.cuh"

#define CHECK_THREADS 128

struct Geometry {
    Surfaces surfaces;
    i64 face_count;
};

// Corners of as many triangles as a block has threads; the fourth value of the first
// corner is not zero for a face without area.
__shared__ float4 tile[3][CHECK_THREADS];

__device__ __forceinline__ float4 corner_of(f32x3 v, bool flag) { return float4{v.x, v.y, v.z, flag ? 1.0f : 0.0f}; }

// All threads of the block load one triangle each, those beyond the last face none.
__device__ __forceinline__ void load_tile(const Geometry& g, i64 first)
{
    __syncthreads();
    const i64 face = first + threadIdx.x;
    if (face < g.face_count) {
        const f32x3 v0 = load_vertex(g.surfaces, 3 * face);
        const f32x3 v1 = load_vertex(g.surfaces, 3 * face + 1);
        const f32x3 v2 = load_vertex(g.surfaces, 3 * face + 2);
        const f32x3 n = cross(sub(v1, v0), sub(v2, v0));
        tile[0][threadIdx.x] = corner_of(v0, n.x == 0.0f && n.y == 0.0f && n.z == 0.0f);
        tile[1][threadIdx.x] = corner_of(v1, false);
        tile[2][threadIdx.x] = corner_of(v2, false);
    }
    __syncthreads();
}

__device__ __forceinline__ f32x3 corner(u32 k, i32 i)
{
    const float4 v = tile[k][i];
    return f32x3{v.x, v.y, v.z};
}

// Triangles that are passed over.
struct Ignored {
    const i32* ids;
    i32 count;

    __device__ __forceinline__ bool has(i64 id) const
    {
        for (i32 k = 0; k < count; k++) {
            if (ids[k] == id) {
                return true;
            }
        }
        return false;
    }
};

// The closest triangle that the ray crosses at t_min <= t <= t_max, of equally close
// ones the first, or -1. Every thread of the block has to call it, because it loads
// triangles for the others too; searches says whether it has a ray of its own.
__device__ __forceinline__ i32 closest(const Geometry& g, bool searches, f32x3 o, f32x3 d, float t_min, float t_max,
                                       const Ignored& ignored)
{
    Frame f;
    if (searches) {
        make_frame(f, o, d);
    }
    float best = f32_inf();
    i64 winner = -1;
    for (i64 first = 0; first < g.face_count; first += CHECK_THREADS) {
        load_tile(g, first);
        const i32 count = (i32)min((i64)CHECK_THREADS, g.face_count - first);
        for (i32 i = 0; searches && i < count; i++) {
            if (tile[0][i].w != 0.0f) {
                continue;
            }
            const float t = triangle_crossing(f, corner(0, i), corner(1, i), corner(2, i));
            if (t >= t_min && t <= t_max && t < best && !ignored.has(first + i)) {
                best = t;
                winner = first + i;
            }
        }
    }
    return (i32)winner;
}

struct CheckClosestParams {
    Geometry geometry;
    RayColumns rays;
    i32* winners;
    i64 row_begin;
    i64 count;
};

extern "C" __global__ void __launch_bounds__(CHECK_THREADS) check_closest(const __grid_constant__ CheckClosestParams p)
{
    const i64 i = launch_row();
    const i64 row = p.row_begin + i;
    f32x3 o = {0.0f, 0.0f, 0.0f};
    f32x3 d = o;
    float t_max = 0.0f;
    if (i < p.count && row_active(p.rays, row)) {
        o = load3(p.rays.o, row);
        d = load3(p.rays.d, row);
        t_max = row_t_max(p.rays, row);
    }
    const i32 winner = closest(p.geometry, can_hit(o, d, t_max), o, d, RAY_T_MIN, t_max, Ignored{nullptr, 0});
    if (i < p.count) {
        p.winners[row] = winner;
    }
}

struct CheckSegmentsParams {
    Geometry geometry;
    const float* start;
    const float* end;
    const i32* ignore; // ignore_width ids per row
    u8* visible;
    i32* blockers; // the closest, or -1
    i64 row_begin;
    i64 count;
    i32 ignore_width;
};

extern "C" __global__ void __launch_bounds__(CHECK_THREADS) check_segments(const __grid_constant__ CheckSegmentsParams p)
{
    const i64 i = launch_row();
    const i64 row = p.row_begin + i;
    Segment g = {};
    SegmentState state = SEGMENT_FREE;
    if (i < p.count) {
        state = make_segment(g, load3(p.start, row), load3(p.end, row));
    }
    const Ignored ignored = {p.ignore + row * p.ignore_width, i < p.count ? p.ignore_width : 0};
    const i32 blocker = closest(p.geometry, state == SEGMENT_OPEN, g.o, g.d, g.t_min, g.t_max, ignored);
    if (i < p.count) {
        p.visible[row] = state != SEGMENT_BLOCKED && blocker < 0;
        p.blockers[row] = blocker;
    }
}

struct CheckChainsParams {
    Geometry geometry;
    RayColumns rays;
    i32* prim_ids; // [rows, bounces]
    i64 row_begin;
    i64 count;
    i32 bounces;
};

extern "C" __global__ void __launch_bounds__(CHECK_THREADS) check_chains(const __grid_constant__ CheckChainsParams p)
{
    const i64 i = launch_row();
    const i64 row = p.row_begin + i;
    f32x3 o = {0.0f, 0.0f, 0.0f};
    f32x3 d = o;
    float t_max = 0.0f;
    if (i < p.count && row_active(p.rays, row)) {
        o = load3(p.rays.o, row);
        d = load3(p.rays.d, row);
        t_max = row_t_max(p.rays, row);
    }
    f32x3 from = o;
    float t_min = RAY_T_MIN;
    bool searches = can_hit(o, d, t_max);
    for (i32 k = 0; k < p.bounces; k++) {
        const i32 winner = closest(p.geometry, searches, from, d, t_min, t_max, Ignored{nullptr, 0});
        SurfaceHit h;
        Mirror m;
        searches = winner >= 0;
        if (searches) {
            m = load_mirror(p.geometry.surfaces, winner);
            searches = bounce_off(h, m, o, d);
        }
        if (i < p.count) {
            p.prim_ids[row * p.bounces + k] = winner;
        }
        if (searches) {
            o = h.p;
            from = restart_point(m, o);
            d = next_direction(m, d);
            t_min = 0.0f;
            t_max = F32_MAX;
            searches = can_hit(from, d, t_max);
        }
    }
}

struct CheckSharedParams {
    SearchParams search;
    RayColumns rays;
    i32* winners;
    u32* met; // how often each triangle was
    u32* by;  // how many triangles each thread has met
};

// Looks at every crossing of a ray.
struct EveryCrossing {
    const CheckSharedParams& p;

    __device__ __forceinline__ bool begin(Search& s, i64 row)
    {
        s.best.id = -1;
        start(s, load3(p.rays.o, row), load3(p.rays.d, row), F32_MAX);
        return true;
    }

    __device__ __forceinline__ void meet(Search&, float t, i32 id)
    {
        if (t >= RAY_T_MIN) {
            atomicAdd(p.met + id, 1);
            atomicAdd(p.by + blockIdx.x * SEARCH_THREADS + threadIdx.x, 1);
        }
    }

    __device__ __forceinline__ bool proceed(Search& s, i64 row)
    {
        p.winners[row] = s.best.id;
        return false;
    }
};

// Which lanes of a search meet what: the search that traverse does, of a tree.
extern "C" __global__ void __launch_bounds__(SEARCH_THREADS) check_shared(const __grid_constant__ CheckSharedParams p)
{
    EveryCrossing job{p};
    search_rows<EveryCrossing, true>(job, p.search);
}
