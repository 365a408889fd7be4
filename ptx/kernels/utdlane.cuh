// Lanes of the operations that evaluate the field of wedges: each from a source over the
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

// A lane's question.
struct LaneInput {
    i64 state;
    f32x3 source, target, polarization;
    float power; // of the source
};

// The wedge of a lane and its path, and what forbids it.
__device__ __forceinline__ u32 find_path(UtdPath& path, Wedge& w, const LaneCall& c, const LaneInput& in)
{
    const State& s = c.states[in.state];
    const UtdStatus made = make_wedge(w, s.pos, s.dir, s.n0, s.n1, s.t_min, s.t_max, s.theta);
    if (made == UTD_NOT_FINITE) {
        return made;
    }
    const UtdStatus found =
        utd_path(path, w, widened(in.source), widened(in.target), widened(in.polarization), c.lambda, c.edge_mode);
    return made != UTD_VALID && found != UTD_NOT_FINITE ? made : found;
}

// Whether both legs of a path are free.
__device__ __forceinline__ u32 trace_path(const UtdPath& path, const Wedge& w, const LaneCall& c, const LaneInput& in)
{
    const f32x3 beside = beside_edge(w, path.point);
    if (occluded(c.pool, in.source, beside)) {
        return LANE_SOURCE_OCCLUDED;
    }
    return occluded(c.pool, beside, in.target) ? LANE_TARGET_OCCLUDED : LANE_VALID;
}

// The result of a path that is free.
__device__ __forceinline__ u32 field_of_path(LaneResult& out, const UtdPath& path, const Wedge& w, const LaneCall& c,
                                             const LaneInput& in)
{
    const State& s = c.states[in.state];
    out.point = rounded(path.point);
    out.delay = __double2float_rn(quot(path.length, LIGHT_SPEED));
    const c64x3 e =
        utd_field(path, w, face_of(c, s.prim0), face_of(c, s.prim1), widened(in.polarization), c.lambda, c.edge_mode);
    const double amplitude = in.power > 0.0f ? root((double)in.power) : 0.0;
    return round_field(out.field, e, amplitude) ? LANE_VALID : LANE_NO_FIELD;
}

// Lanes of a block that wait for their next test, at most two for each of its threads.
struct LaneQueue {
    u32 count;
    u32 lanes[2 * SEARCH_THREADS];
};

__shared__ LaneQueue lanes_with_path, lanes_in_view;

__device__ __forceinline__ void push_lane(LaneQueue& q, u32 lane) { q.lanes[atomicAdd(&q.count, 1)] = lane; }

// Takes a lane for every thread, as far as there are some. For all threads of the block.
__device__ __forceinline__ u32 take_lanes(LaneQueue& q, u32& lane)
{
    const u32 count = q.count;
    const u32 n = min(count, SEARCH_THREADS);
    if (threadIdx.x < n) {
        lane = q.lanes[count - n + threadIdx.x];
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        q.count = count - n;
    }
    __syncthreads();
    return n;
}

// Runs lanes [0, count) of a block. Most of them fail, in the path or in view, and a field
// takes ten times as long as a path: the block tests until there is a lane for each of its
// threads, which then go on together. A path is found anew for each test, because it is
// larger than a thread can keep. A job is what the lanes are:
//
//   bool load(LaneInput& in, u32 lane)   the question of a lane; false if it is not active
//   void end(u32 lane, u32 status, const LaneResult& out)
//                                        takes the answer; out is complete if it is valid
//   void collect(u32 n)                  fields of threads [0, n) have ended; called by all
//                                        threads
template <class Job> __device__ __forceinline__ void run_lanes(Job& job, const LaneCall& c, u32 count)
{
    if (threadIdx.x == 0) {
        lanes_with_path.count = 0;
        lanes_in_view.count = 0;
    }
    trace_begin(); // with a barrier
    u32 next = 0;
    for (;;) {
        const u32 with_path = lanes_with_path.count;
        const u32 in_view = lanes_in_view.count;
        __syncthreads();
        const bool more = next < count;
        const bool field = in_view >= SEARCH_THREADS || !more && with_path == 0;
        const bool trace = !field && (with_path >= SEARCH_THREADS || !more);
        if (field && in_view == 0) {
            return;
        }
        u32 lane = next + threadIdx.x;
        u32 n;
        if (field || trace) {
            n = take_lanes(field ? lanes_in_view : lanes_with_path, lane);
        } else {
            n = min(count - next, SEARCH_THREADS);
            next += n;
        }
        if (threadIdx.x < n) {
            LaneInput in;
            LaneResult out;
            u32 status = LANE_INACTIVE;
            if (job.load(in, lane)) {
                Wedge w;
                UtdPath path;
                status = find_path(path, w, c, in);
                if (field) {
                    status = field_of_path(out, path, w, c, in);
                } else if (trace) {
                    status = trace_path(path, w, c, in);
                }
            }
            if (field || status != LANE_VALID) {
                job.end(lane, status, out);
            } else {
                push_lane(trace || !c.pool ? lanes_in_view : lanes_with_path, lane);
            }
        }
        if (field) {
            job.collect(n);
        }
        __syncthreads();
    }
}
