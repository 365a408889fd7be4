// Equivalent paths in two steps: a search decides about every row and stores why it has
// no path, and on which triangles the path is reflected; finalize computes all else from
// these, without searching.

#include "epc.cuh"
#include "field.cuh"
#include "search.cuh"

struct SearchEpcParams {
    SearchParams search;
    EpcRows rows;
    Reflectors reflectors;
    SurfaceGroups groups;
    u8* fail;
    i32* resolved; // [rows, bounces]
    float tolerance;
    u32 ignore_groups; // segments pass through all of the group at their ends
};

// What the segment of every lane passes through at its two ends: a triangle, -2 - group,
// or -1. Asked for too rarely to be worth registers.
__shared__ i32 passed[2][SEARCH_THREADS];

// The search of one row: its segments, one after the other, until one is blocked.
struct EpcRow {
    const SearchEpcParams& p;
    // Arrays are in memory, because their indices are known only at run time. As members
    // they would take all others with them.
    f32x3* points;
    Sequence& sequence;
    i32* resolved;
    i32 begun; // segments
    float t_min;

    __device__ __forceinline__ void store(i64 row, u32 fail)
    {
        p.fail[row] = (u8)fail;
        for (i32 b = 0; b < p.rows.bounces; b++) {
            p.resolved[row * p.rows.bounces + b] = fail == EPC_OK && b < sequence.length ? resolved[b] : -1;
        }
    }

    __device__ __forceinline__ u32 prepare(i64 row)
    {
        load_sequence(sequence, p.rows, row);
        u32 fail = check_row(p.reflectors, p.rows, row, sequence);
        if (fail == EPC_OK) {
            fail = find_points(points, p.reflectors, p.rows, row, sequence);
        }
        for (i32 b = sequence.length - 1; b >= 0 && fail == EPC_OK; b--) {
            resolved[b] = resolve(p.reflectors, p.groups, sequence.prims[b], points[b + 1], p.tolerance);
            fail = resolved[b] < 0 ? EPC_OUTSIDE : EPC_OK;
        }
        return fail;
    }

    __device__ __forceinline__ bool begin(Search&, i64 row)
    {
        begun = 0;
        const u32 fail = prepare(row);
        if (fail != EPC_OK) {
            store(row, fail);
        }
        return fail == EPC_OK;
    }

    // What segments pass through at point k of the row.
    __device__ __forceinline__ i32 passes(i32 k)
    {
        if (k == 0 || k > sequence.length) {
            return -1;
        }
        const i32 group = p.ignore_groups ? group_of(p.groups, sequence.prims[k - 1]) : -1;
        return group < 0 ? resolved[k - 1] : -2 - group;
    }

    __device__ __forceinline__ bool is_passed(i32 end, i32 id) const
    {
        const i32 what = passed[end][threadIdx.x];
        return what == id || (what < -1 && what == -2 - group_of(p.groups, id));
    }

    __device__ __forceinline__ void meet(Search& s, float t, i32 id)
    {
        Winner w = s.best;
        offer(w, t_min, t, id);
        if (w.id == s.best.id || is_passed(0, id) || is_passed(1, id)) {
            return;
        }
        s.best = w;
        stop(s);
    }

    // All segments start here, also the first, so that there is one place that starts a
    // search. One that needs none looks like a search that has ended.
    __device__ __forceinline__ bool proceed(Search& s, i64 row)
    {
        const bool blocked = begun > 0 && s.best.id >= 0;
        if (blocked || begun > sequence.length) {
            store(row, blocked ? EPC_BLOCKED : EPC_OK);
            return false;
        }
        Segment g;
        const SegmentState known = make_segment(g, points[begun], points[begun + 1]);
        passed[0][threadIdx.x] = passes(begun);
        passed[1][threadIdx.x] = passes(begun + 1);
        begun++;
        s.best.id = known == SEGMENT_BLOCKED ? 0 : -1;
        if (known == SEGMENT_OPEN) {
            t_min = g.t_min;
            start(s, g.o, g.d, g.t_max);
        }
        return true;
    }
};

// Six blocks per multiprocessor leave 80 registers, with which nothing is spilled while a
// search visits nodes.
extern "C" __global__ void __launch_bounds__(SEARCH_THREADS, 6) search_epc(const __grid_constant__ SearchEpcParams p)
{
    f32x3 points[EPC_POINTS];
    Sequence sequence;
    i32 resolved[MAX_EPC_BOUNCES];
    EpcRow job{p, points, sequence, resolved};
    search_rows(job, p.search);
}

// Columns that were not asked for are null. fail and resolved hold what the search has
// found.
struct FinalizeEpcParams {
    EpcRows rows;
    Reflectors reflectors;
    SurfaceGroups groups;
    u8* fail;
    const i32* resolved;
    u8* valid;
    float* path_length;
    u8* bounce_count;
    i32* group_ids;
    float* hit_points;
    float* normals;
    float* field;              // [rows, 3, 2]
    const float* polarization; // [3], or [rows, 3], or null for x
    Media media;
    double lambda;
    double loss_per_sigma;
    i64 row_begin;
    i64 count;
    i32 polarization_rows;
};

// The path along m + 1 segments; zero in *shortest where one has no length. The length is
// added up from the source on.
__device__ __forceinline__ float measure(const f32x3* points, i32 m, float& shortest)
{
    float length = 0.0f;
    shortest = F32_MAX;
    for (i32 k = 0; k <= m; k++) {
        const f32x3 w = sub(points[k + 1], points[k]);
        const float d = root(dot(w, w));
        shortest = fminf(shortest, d);
        length = add(length, d);
    }
    return length;
}

// The field at the end of a path, lambda/(4 pi L) exp(-j 2 pi L/lambda) times what is left
// of the unit vector that it starts with.
__device__ __forceinline__ c32x3 carry_field(const FinalizeEpcParams& p, const f32x3* points, i64 row, const Sequence& q, float length)
{
    f32x3 k = unit(sub(points[1], points[0]));
    f32x3 a = {1.0f, 0.0f, 0.0f};
    if (p.polarization) {
        a = load3(p.polarization, p.polarization_rows ? row : 0);
        if (!is_finite(a)) {
            return complex_vector(a);
        }
    }
    c32x3 f = complex_vector(transverse(a, k));
    for (i32 b = 0; b < q.length; b++) {
        const i64 slot = row * p.rows.bounces + b;
        float4 medium;
        if (!medium_of(p.media, p.resolved[slot], medium)) {
            return c32x3{};
        }
        f = reflected_field(f, k, load_plane(p.reflectors, p.rows, slot, q.prims[b]).n, medium, p.loss_per_sigma);
        k = unit(sub(points[b + 2], points[b + 1]));
    }
    // 4 pi, rounded once.
    const float amplitude = __double2float_rn(__ddiv_rn(p.lambda, __dmul_rn(12.566370614359172, (double)length)));
    return mul(f, mul(travelled_phase(length, p.lambda), amplitude));
}

__device__ __forceinline__ void store_field(float* out, i64 row, c32x3 f)
{
    const float v[6] = {f.x.re, f.x.im, f.y.re, f.y.im, f.z.re, f.z.im};
    for (i32 k = 0; k < 6; k++) {
        out[6 * row + k] = plus_zero(v[k]);
    }
}

extern "C" __global__ void __launch_bounds__(128, 6) finalize_epc(const __grid_constant__ FinalizeEpcParams p)
{
    const i64 i = launch_row();
    if (i >= p.count) {
        return;
    }
    const i64 row = p.row_begin + i;
    Sequence q;
    load_sequence(q, p.rows, row);
    const i32 m = q.length;
    f32x3 points[EPC_POINTS];
    u32 fail = p.fail[row];
    // What a device that was lost has left may say that there is a path where none is.
    if (fail == EPC_OK) {
        fail = check_row(p.reflectors, p.rows, row, q);
    }
    if (fail == EPC_OK) {
        fail = find_points(points, p.reflectors, p.rows, row, q);
    }
    bool valid = fail == EPC_OK;
    float shortest = 0.0f;
    float length = valid ? measure(points, m, shortest) : f32_inf();
    if (p.field) {
        c32x3 f = {};
        valid = valid && length > 1e-6f && shortest > 0.0f;
        if (valid) {
            f = carry_field(p, points, row, q, length);
            valid = is_finite(f);
        }
        if (!valid) {
            f = c32x3{};
            length = f32_inf();
        }
        store_field(p.field, row, f);
    }
    p.valid[row] = valid;
    p.path_length[row] = length;
    if (p.bounce_count) {
        p.bounce_count[row] = (u8)m;
    }
    if (!p.hit_points) {
        return;
    }
    for (i32 b = 0; b < p.rows.bounces; b++) {
        const i64 slot = row * p.rows.bounces + b;
        const bool reflects = fail == EPC_OK && b < m;
        const f32x3 none = {0.0f, 0.0f, 0.0f};
        store3(p.hit_points, slot, reflects ? points[b + 1] : none);
        store3(p.normals, slot, reflects ? load_plane(p.reflectors, p.rows, slot, q.prims[b]).n : none);
        p.group_ids[slot] = reflects ? group_of(p.groups, q.prims[b]) : -1;
    }
}
