// The segment rule: what a triangle has to cross to block the view between two
// points. Every search of visibility asks it, so that all answer alike.
#pragma once

#include "arith.cuh"

// How far from a surface a ray starts or ends, in metres, where m is the largest
// coordinate of the points involved.
__device__ __forceinline__ float surface_offset(float m) { return fmaxf(2e-5f, mul(1e-6f, m)); }

// A segment as a ray: a crossing at t blocks it if t_min <= t <= t_max.
struct Segment {
    f32x3 o, d; // d is a unit vector, so t is a length in metres
    float t_min, t_max;
};

enum SegmentState {
    SEGMENT_BLOCKED, // an end is not finite, or the length overflows
    SEGMENT_FREE,    // shorter than what is left out at its ends
    SEGMENT_OPEN     // depends on the triangles
};

// The order of the operations is part of the rule, because every bit of the ray
// decides about rows that pass close to an edge:
//   w = e - s,  length = sqrt(dot(w, w))
//   eps = surface_offset(max(|s|_inf, |e|_inf))
//   d = w * (1 / length), interval [eps, length - eps]
// Both ends are treated alike. The segment is complete only where it is open.
__device__ __forceinline__ SegmentState make_segment(Segment& g, f32x3 s, f32x3 e)
{
    if (!is_finite(s) || !is_finite(e)) {
        return SEGMENT_BLOCKED;
    }
    const f32x3 w = sub(e, s);
    const float length = root(dot(w, w));
    const float eps = surface_offset(fmaxf(max_abs(s), max_abs(e)));
    if (!is_finite(length)) {
        return SEGMENT_BLOCKED;
    }
    if (length <= mul(2.0f, eps)) {
        return SEGMENT_FREE;
    }
    const float r = quot(1.0f, length);
    g = Segment{s, f32x3{mul(w.x, r), mul(w.y, r), mul(w.z, r)}, eps, sub(length, eps)};
    return SEGMENT_OPEN;
}
