// Rays as tubes: every ray of a fan carries a field from surface to surface, and leaves a
// contribution in the cell where a leg of it crosses a measurement plane, which nothing
// stops. Contributions are added as integers, so that no order of them matters.
//
// A leg starts at q, a point on a surface, or the ray's origin, and runs along the unit
// vector k until h, where it hits something, or to its bound. It belongs to the image I of
// the transmitter and carries the field f. Order of the operations, each rounded once, fma
// where written; vectors per component, other functions as in their headers:
//
//   k   = unit(d), f = transverse(polarization, k)                       first leg
//   k'  = next_direction, I' = next_image, q' = p, as in reflect.cuh     next legs
//   f'  = reflected_field(f, k, n, medium)
//   t   = (position - q_a) / k_a, where a is the axis of the plane; 0 < t < h
//   X   = fma(t, k, q), X_a = position
//   D   = sqrt(dot(X - I, X - I)),  g = 1 / sqrt(|k_a|)
//   c   = f * (g * travelled_phase(D, lambda))     the phase times g, then a product of c32
//   |f|^2 = fma(zi, zi, fma(zr, zr, fma(yi, yi, fma(yr, yr, fma(xi, xi, xr * xr)))))
//   P   = |f|^2 / |k_a|                            which is |c|^2
//   weight = (D * g) * area                        of the field, where it is weighted by area
//
// Added are, rint to the nearest even integer:
//   word j  rint(2^34 c_j), j = xr, xi, yr, yi, zr, zi, or rint(2^34 (weight * c_j))
//   word 6  h = rint(2^16 P)
//   word 7  rint(2^52 (P - 2^-16 h))               exact in single precision but for rint
#pragma once

#include "field.cuh"
#include "grid.cuh"
#include "search.cuh"

// Sums of one cell.
#define CELL_WORDS 8
// A leg that runs along the plane, up to this cosine, does not cross it.
#define LEAST_CROSSING 1e-6f
// Contributions of this power or more are dropped.
#define POWER_LIMIT 1048576.0f

// What may be wrong with the result.
enum { STATUS_NOT_FINITE = 1, STATUS_TOO_LARGE = 2, STATUS_GUARD = 4 };

// The accumulators of all cells. A row adds to the copy that its number says; copies of
// words lie behind each other, and so do those of counts. limits are maxima: 1 where a
// contribution was not finite, 1 where one was too large, and the bits of the largest
// weighted component.
struct TubeSums {
    u64* words;  // [copies, cells, 8]
    u32* counts; // [copies, cells]
    u32* limits; // [3]
    i64 cells;
    i64 copies; // a power of two
};

struct TubeParams {
    SearchParams search;
    RayColumns rays;
    const float* tx;           // [3] or [rows, 3]
    const float* polarization; // likewise, or null: (1, 0, 0)
    Media media;
    Cells grid;
    TubeSums sums;
    u8* events; // wedge events of each row, or null
    double lambda;
    double loss_per_sigma;
    i64 row_base; // number of row 0 of rays
    i64 stride;   // every stride-th event of all is kept
    float area;   // sqrt(omega / cell area) where the field is weighted by area, else 0
    float omega;
    i32 bounces;
    u32 flags; // TUBES_...
};

enum {
    TUBES_DIRECT = 1,   // the first leg counts
    TUBES_EVENTS = 2,   // hits are wedge events
    TUBES_PREFIXES = 4, // also those behind the first
    TUBES_TX_ROWS = 8,
    TUBES_POLARIZATION_ROWS = 16
};

// Where a leg crosses the plane.
struct Crossing {
    f32x3 x;
    float cosine; // |k_a|
    i64 cell;     // -1: it does not
};

__device__ __forceinline__ Crossing cross_plane(const Cells& grid, f32x3 q, f32x3 k, float h)
{
    Crossing c;
    c.cell = -1;
    const float slope = component(k, grid.axis);
    c.cosine = fabsf(slope);
    if (!(c.cosine > LEAST_CROSSING)) {
        return c;
    }
    const float t = quot(sub(grid.position, component(q, grid.axis)), slope);
    if (!(t > 0.0f && t < h)) {
        return c;
    }
    const f32x3 x = {fmadd(t, k.x, q.x), fmadd(t, k.y, q.y), fmadd(t, k.z, q.z)};
    const float c0 = component(x, axis_of_0(grid.axis));
    const float c1 = component(x, axis_of_1(grid.axis));
    c.x = point_of(grid, c0, c1);
    c.cell = cell_of(grid, c0, c1);
    return c;
}

__device__ __forceinline__ float square(c32x3 f)
{
    const float x = fmadd(f.x.im, f.x.im, mul(f.x.re, f.x.re));
    const float y = fmadd(f.y.im, f.y.im, fmadd(f.y.re, f.y.re, x));
    return fmadd(f.z.im, f.z.im, fmadd(f.z.re, f.z.re, y));
}

__device__ __forceinline__ void add_rounded(u64* word, float value)
{
    const i64 v = __float2ll_rn(value);
    if (v != 0) {
        atomicAdd(word, (u64)v);
    }
}

__device__ __forceinline__ void add_component(u64* words, c32 c)
{
    add_rounded(words, mul(c.re, 17179869184.0f));
    add_rounded(words + 1, mul(c.im, 17179869184.0f));
}

__device__ __forceinline__ float largest_part(c32x3 f)
{
    return fmaxf(max_abs(f32x3{f.x.re, f.y.re, f.z.re}), max_abs(f32x3{f.x.im, f.y.im, f.z.im}));
}

// Adds the contribution of a leg with field f and image source image.
__device__ __forceinline__ void deposit(const TubeParams& p, i64 row, const Crossing& at, f32x3 image, c32x3 f)
{
    const f32x3 w = sub(at.x, image);
    const float length = root(dot(w, w));
    const float gain = quot(1.0f, root(at.cosine));
    const float power = quot(square(f), at.cosine);
    c32x3 c = mul(f, mul(travelled_phase(length, p.lambda), gain));
    const bool finite = is_finite(c);
    if (p.area != 0.0f) {
        const c32 weight = {mul(mul(length, gain), p.area), 0.0f};
        c = c32x3{mul(c.x, weight.re), mul(c.y, weight.re), mul(c.z, weight.re)};
    }
    if (!finite || !is_finite(c) || !is_finite(power)) {
        atomicMax(p.sums.limits, 1u);
        return;
    }
    if (power >= POWER_LIMIT) {
        atomicMax(p.sums.limits + 1, 1u);
        return;
    }
    if (p.area != 0.0f) {
        atomicMax(p.sums.limits + 2, (u32)__float_as_int(largest_part(c)));
    }
    const i64 cell = (row & (p.sums.copies - 1)) * p.sums.cells + at.cell;
    u64* const words = p.sums.words + cell * CELL_WORDS;
    add_component(words, c.x);
    add_component(words + 2, c.y);
    add_component(words + 4, c.z);
    const float coarse = mul(power, 65536.0f);
    const i64 high = __float2ll_rn(coarse);
    if (high != 0) {
        atomicAdd(words + 6, (u64)high);
    }
    const float rest = sub(coarse, __ll2float_rn(high)); // in units of 2^-16
    add_rounded(words + 7, mul(rest, 68719476736.0f));
    atomicAdd(p.sums.counts + cell, 1u);
}

// What a row is between its legs. A search needs all registers that a thread has.
enum { AT_POINT = 0, AT_DIRECTION = 3, AT_IMAGE = 6, AT_FIELD = 9, TUBE_VALUES = 15 };
__shared__ float tube_values[TUBE_VALUES][SEARCH_THREADS];
__shared__ u32 tube_marks[SEARCH_THREADS]; // bounces so far, and events << 8

__device__ __forceinline__ f32x3 kept_vector(u32 at)
{
    const u32 lane = threadIdx.x;
    return f32x3{tube_values[at][lane], tube_values[at + 1][lane], tube_values[at + 2][lane]};
}

__device__ __forceinline__ void keep_vector(u32 at, f32x3 a)
{
    const u32 lane = threadIdx.x;
    tube_values[at][lane] = a.x;
    tube_values[at + 1][lane] = a.y;
    tube_values[at + 2][lane] = a.z;
}

__device__ __forceinline__ c32x3 kept_field()
{
    const f32x3 re = kept_vector(AT_FIELD);
    const f32x3 im = kept_vector(AT_FIELD + 3);
    return c32x3{{re.x, im.x}, {re.y, im.y}, {re.z, im.z}};
}

__device__ __forceinline__ void keep_field(c32x3 f)
{
    keep_vector(AT_FIELD, f32x3{f.x.re, f.y.re, f.z.re});
    keep_vector(AT_FIELD + 3, f32x3{f.x.im, f.y.im, f.z.im});
}

// What is in the slot of a triangle.
__device__ __forceinline__ Mirror mirror_in(const Triangle* t)
{
    const float4 a = __ldg(&t->a);
    const float4 b = __ldg(&t->b);
    const float4 c = __ldg(&t->c);
    const float4 n = __ldg(&t->n);
    return Mirror{{a.x, a.y, a.z}, {b.x, b.y, b.z}, {c.x, c.y, c.z}, {n.x, n.y, n.z}, c.w};
}

struct Leg {
    f32x3 q, k, image;
    float end;
};

struct Event {
    f32x3 p, n, k, image; // of the leg that ends here
    i32 prim, depth;
    u32 number; // events of the row before this one
};

// Follows tubes. What becomes of them is the business of a use:
//
//   bool follows(i64 item)        whether the row that an item of the search stands for
//                                 has to be followed
//   i64 row(i64 item)             that row
//   void refuses()                its transmitter is not finite
//   void leaves(row, leg)         a leg ends
//   bool meets(item, event)       a hit is an event; false where the rest of the row does
//                                 not matter
//   void ends(item, u32 events)   the row is complete, or was not followed
//
// A row's searches are its legs. The winner of one is kept as the slot of its triangle, as
// in reflect.cu.
template <class Use> struct Tubes {
    const TubeParams& p;
    Use use;

    __device__ __forceinline__ bool begin(Search& s, i64 item)
    {
        s.best.id = -1;
        tube_marks[threadIdx.x] = 0;
        if (use.follows(item) && begin_row(s, use.row(item))) {
            return true;
        }
        use.ends(item, 0);
        return false;
    }

    __device__ __forceinline__ void meet(Search& s, float t, i32 id)
    {
        const float t_min = (tube_marks[threadIdx.x] & 255) == 0 ? RAY_T_MIN : 0.0f;
        if (t >= t_min && (t < s.best.t || (t == s.best.t && precedes(id, s.best.id)))) {
            s.best = Winner{plus_zero(t), (i32)s.slot};
        }
    }

    __device__ __forceinline__ bool proceed(Search& s, i64 item)
    {
        const u32 mark = tube_marks[threadIdx.x];
        u32 events = mark >> 8;
        if (end_leg(s, item, (i32)(mark & 255), events)) {
            return true;
        }
        use.ends(item, events);
        return false;
    }

  private:
    __device__ __forceinline__ bool precedes(i32 id, i32 slot)
    {
        return slot < 0 || id < __float_as_int(__ldg(&((const Triangle*)p.search.pool + slot)->a.w));
    }

    __device__ __forceinline__ bool begin_row(Search& s, i64 row)
    {
        if (!row_active(p.rays, row)) {
            return false;
        }
        const f32x3 o = load3(p.rays.o, row);
        const f32x3 k = unit(load3(p.rays.d, row));
        const float t_max = row_t_max(p.rays, row);
        if (!can_hit(o, k, t_max)) {
            return false;
        }
        const f32x3 image = load3(p.tx, p.flags & TUBES_TX_ROWS ? row : 0);
        f32x3 wanted = {1.0f, 0.0f, 0.0f};
        if (p.polarization) {
            wanted = load3(p.polarization, p.flags & TUBES_POLARIZATION_ROWS ? row : 0);
        }
        if (!is_finite(image) || !is_finite(wanted)) {
            use.refuses();
            return false;
        }
        // Where no leg follows, one that cannot leave anything is not searched.
        if (p.bounces == 0 && cross_plane(p.grid, o, k, t_max).cell < 0) {
            return false;
        }
        keep_vector(AT_POINT, o);
        keep_vector(AT_DIRECTION, k);
        keep_vector(AT_IMAGE, image);
        keep_field(complex_vector(transverse(wanted, k)));
        start(s, o, k, t_max);
        return true;
    }

    // Deals with the end of a leg, and starts the next one if there is one.
    __device__ __forceinline__ bool end_leg(Search& s, i64 item, i32 depth, u32& events)
    {
        const i64 row = use.row(item);
        const f32x3 q = kept_vector(AT_POINT);
        const f32x3 k = kept_vector(AT_DIRECTION);
        const f32x3 image = kept_vector(AT_IMAGE);
        const Triangle* const winner = (const Triangle*)p.search.pool + s.best.id;
        const bool hit = s.best.id >= 0;
        float end = depth == 0 ? row_t_max(p.rays, row) : F32_MAX;
        Mirror m;
        SurfaceHit h;
        if (hit) {
            m = mirror_in(winner);
            // The axes of the search are those of the leg, only its origin was elsewhere.
            s.frame.o = q;
            const Edges e = see_triangle(s.frame, m.v0, m.v1, m.v2);
            const float sum = edge_sum(e);
            h.t = crossing_t(s.frame, e, sum);
            if (!hit_point(h, e, sum, m.v0, m.v1, m.v2) || !is_finite(h.t) || !is_finite(quot(e.u, sum)) ||
                !face(m, k)) {
                return false; // nobody knows where the leg ends
            }
            end = fmaxf(h.t, 0.0f);
        }
        if (depth > 0 || p.flags & TUBES_DIRECT) {
            use.leaves(row, Leg{q, k, image, end});
        }
        float4 medium;
        const i32 prim = hit ? __float_as_int(__ldg(&winner->a.w)) : -1;
        if (depth == p.bounces || !medium_of(p.media, prim, medium)) {
            return false;
        }
        const c32x3 f = reflected_field(kept_field(), k, m.n, medium, p.loss_per_sigma);
        if (is_zero(f)) {
            return false;
        }
        if (keeps_event(row, depth)) {
            if (!use.meets(item, Event{h.p, m.n, k, image, prim, depth, events})) {
                return false;
            }
            events++;
        }
        const f32x3 next = next_direction(m, k);
        const f32x3 from = restart_point(m, h.p);
        if (!can_hit(from, next, F32_MAX) ||
            (depth + 1 == p.bounces && cross_plane(p.grid, h.p, next, F32_MAX).cell < 0)) {
            return false;
        }
        keep_vector(AT_POINT, h.p);
        keep_vector(AT_DIRECTION, next);
        keep_vector(AT_IMAGE, next_image(m, image));
        keep_field(f);
        tube_marks[threadIdx.x] = (u32)(depth + 1) | events << 8;
        s.best.id = -1;
        start(s, from, next, F32_MAX);
        return true;
    }

    // Whether the hit that ends leg depth of a row is an event.
    __device__ __forceinline__ bool keeps_event(i64 row, i32 depth)
    {
        if (!(p.flags & TUBES_EVENTS) || (depth > 0 && !(p.flags & TUBES_PREFIXES))) {
            return false;
        }
        const i64 ordinal = (p.row_base + row) * p.bounces + depth;
        return !(p.flags & TUBES_PREFIXES) || p.stride == 1 || ordinal % p.stride == 0;
    }
};
