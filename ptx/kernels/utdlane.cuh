// One lane of the operations that evaluate the field of wedges: from a source over the
// edge of a state to a target. What fails is said by a status; the tests are made in the
// order of their numbers.
#pragma once

#include "dfr.cuh"
#include "medium.cuh"
#include "trace.cuh"
#include "utd.cuh"

enum LaneStatus : u32 {
    LANE_VALID = 0,
    LANE_INACTIVE = 1, // 2 to 5 are those of UtdStatus
    LANE_SOURCE_OCCLUDED = 6,
    LANE_TARGET_OCCLUDED = 7,
    LANE_NO_FIELD = 8, // zero, or not finite
};

// What all lanes of a call have in common.
struct LaneCall {
    const Node* pool; // null: nothing is in the way
    const State* states;
    Media media;
    double lambda;
    double loss_per_sigma;
    u32 edge_mode;
    u32 unused;
};

#define LIGHT_SPEED 299792458.0

struct LaneResult {
    f32x3 point; // of diffraction
    float delay;
    float field[6]; // x re, x im, y re, ...
};

__device__ __forceinline__ f32x3 rounded(f64x3 a)
{
    return f32x3{__double2float_rn(a.x), __double2float_rn(a.y), __double2float_rn(a.z)};
}

// Where the legs end for the traces: beside the edge, on the bisector of free space, five
// times as far as surfaces are left out. On the edge itself they would meet its faces.
__device__ __forceinline__ f32x3 beside_edge(const Wedge& w, f64x3 q)
{
    const SinCos half = sincos_radians(mul(0.5, w.theta));
    const f64x3 into = cross(w.n0, w.direction);
    const double away = fmax(1e-4, mul(5e-6, fmax(fmax(fabs(q.x), fabs(q.y)), fabs(q.z))));
    return rounded(fmadd(fmadd(into, half.cos, mul(w.n0, half.sin)), away, q));
}

__device__ __forceinline__ UtdFace face_of(const LaneCall& c, i32 prim)
{
    float4 medium = {1.0f, 0.0f, 1.0f, 0.0f};
    const bool reflects = medium_of(c.media, prim, medium);
    return utd_face(reflects, medium, c.loss_per_sigma);
}

// Rounds the field; false if it is zero or not finite.
__device__ __forceinline__ bool round_field(float* out, const c64x3& e, double amplitude)
{
    const double parts[6] = {e.x.re, e.x.im, e.y.re, e.y.im, e.z.re, e.z.im};
    bool finite = true;
    bool any = false;
#pragma unroll
    for (u32 k = 0; k < 6; k++) {
        out[k] = plus_zero(__double2float_rn(mul(parts[k], amplitude)));
        finite = finite && is_finite(out[k]);
        any = any || out[k] != 0.0f;
    }
    return finite && any;
}

// The status of a lane; the result is complete where it is valid. power is that of the
// source.
__device__ __forceinline__ u32 run_lane(LaneResult& out, const LaneCall& c, i64 state, f32x3 source, f32x3 target,
                                        f32x3 polarization, float power)
{
    const State& s = c.states[state];
    Wedge w;
    const UtdStatus made = make_wedge(w, s.pos, s.dir, s.n0, s.n1, s.t_min, s.t_max, s.theta);
    if (made == UTD_NOT_FINITE) {
        return made;
    }
    UtdPath path;
    const UtdStatus found =
        utd_path(path, w, widened(source), widened(target), widened(polarization), c.lambda, c.edge_mode);
    if (made != UTD_VALID && found != UTD_NOT_FINITE) {
        return made;
    }
    if (found != UTD_VALID) {
        return found;
    }
    if (c.pool) {
        const f32x3 beside = beside_edge(w, path.point);
        if (occluded(c.pool, source, beside)) {
            return LANE_SOURCE_OCCLUDED;
        }
        if (occluded(c.pool, beside, target)) {
            return LANE_TARGET_OCCLUDED;
        }
    }
    out.point = rounded(path.point);
    out.delay = __double2float_rn(quot(path.length, LIGHT_SPEED));
    const c64x3 e = utd_field(path, w, face_of(c, s.prim0), face_of(c, s.prim1), widened(polarization), c.lambda, c.edge_mode);
    const double amplitude = power > 0.0f ? root((double)power) : 0.0;
    return round_field(out.field, e, amplitude) ? LANE_VALID : LANE_NO_FIELD;
}
