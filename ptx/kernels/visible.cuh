// Rows of the visibility queries. A row of any of them is a sequence of segments
// whose answers, one after the other, make its result. How a segment is searched is
// a backend's business; what a row consists of is said here, once for all backends.
#pragma once

#include "segment.cuh"

// The operations. Kernels know theirs when they are compiled, the programs of OptiX
// when they run.
enum VisibleKind {
    VISIBLE_SEGMENT, // one segment
    VISIBLE_PAIR,    // two segments from the same start
    VISIBLE_EDGE,    // from a source to samples of an edge, until one is seen
    VISIBLE_CHAIN    // a polyline, until a segment is blocked
};

#define MAX_FRACTIONS 16

// The columns of a batch; those of other operations are not looked at.
struct VisibleRows {
    u32 kind;
    i32 segments;     // VISIBLE_CHAIN: of every polyline, at least 1
    i32 ignore_width; // ids per row, or per segment of a polyline
    u32 fraction_count;
    float fractions[MAX_FRACTIONS];
    const float* start;     // also the source of an edge and the points of a polyline
    const float* end;       // also the first end of a pair and the position of an edge
    const float* other_end; // the second end of a pair
    const float* direction; // of an edge
    const float* t_min;
    const float* t_max;
    const i32* length; // of polylines, in segments
    const i32* ignore; // may be null
    const u8* active;  // may be null
    u8* visible;
    u8* other_visible; // of the second end of a pair
    i32* segment;      // of polylines: the first that is blocked
    i32* prim;         // and what blocks it
};

// How many segments a row has, if it is searched at all. May be negative for a
// polyline.
__device__ __forceinline__ i32 segment_count(const VisibleRows& v, u32 kind, i64 row)
{
    switch (kind) {
    case VISIBLE_PAIR:
        return 2;
    case VISIBLE_EDGE:
        return (i32)v.fraction_count;
    case VISIBLE_CHAIN:
        return min(v.length[row], v.segments);
    default:
        return 1;
    }
}

struct Pair {
    f32x3 start, end, other;
};

__device__ __forceinline__ Pair load_pair(const VisibleRows& v, i64 row)
{
    return Pair{load3(v.start, row), load3(v.end, row), load3(v.other_end, row)};
}

struct Edge {
    f32x3 source, position, direction;
    float t_min, t_max;
};

__device__ __forceinline__ Edge load_edge(const VisibleRows& v, i64 row)
{
    return Edge{load3(v.start, row), load3(v.end, row), load3(v.direction, row), v.t_min[row], v.t_max[row]};
}

// Without a branch: rows may be on another device, microseconds away, and none of the
// loads of a row waits for another.
__device__ __forceinline__ bool all_finite(f32x3 a) { return is_finite(a.x) & is_finite(a.y) & is_finite(a.z); }

__device__ __forceinline__ bool all_finite(const Pair& r)
{
    return all_finite(r.start) & all_finite(r.end) & all_finite(r.other);
}

// Samples may still turn out not to be finite.
__device__ __forceinline__ bool all_finite(const Edge& e)
{
    return all_finite(e.source) & all_finite(e.position) & all_finite(e.direction);
}

__device__ __forceinline__ bool row_active(const VisibleRows& v, i64 row) { return !v.active || v.active[row]; }

// False for active rows that count as blocked as a whole: those with a number that is not
// finite where they are defined. Single segments may still turn out to have one.
__device__ __forceinline__ bool row_finite(const VisibleRows& v, u32 kind, i64 row)
{
    switch (kind) {
    case VISIBLE_PAIR:
        return all_finite(load_pair(v, row));
    case VISIBLE_EDGE:
        return all_finite(load_edge(v, row));
    case VISIBLE_CHAIN: {
        const i32 count = segment_count(v, kind, row);
        const i64 first = row * ((i64)v.segments + 1);
        bool finite = count >= 0;
        for (i32 i = 0; i <= count; i++) {
            finite &= all_finite(load3(v.start, first + i));
        }
        return finite;
    }
    default:
        return true; // the rule for segments says so
    }
}

// A sample of an edge: position + (t_min + fraction * span) * direction, every product
// and every sum rounded. A range that is upside down has no span; one that is not a
// number spoils the sample.
__device__ __forceinline__ f32x3 edge_sample(const Edge& e, float fraction)
{
    float span = sub(e.t_max, e.t_min);
    // Negative numbers by their bits: of span < 0 ? 0 : span the compiler of OptiX makes a
    // maximum, which turns NaN into 0.
    if (__float_as_uint(span) - 0x80000000u <= 0x7f800000u) {
        span = 0.0f;
    }
    const float t = add(e.t_min, mul(fraction, span));
    const f32x3 p = e.position;
    const f32x3 d = e.direction;
    return f32x3{add(p.x, mul(t, d.x)), add(p.y, mul(t, d.y)), add(p.z, mul(t, d.z))};
}

// Segment i of a row.
__device__ __forceinline__ SegmentState load_segment(Segment& g, const VisibleRows& v, u32 kind, i64 row, i32 i)
{
    switch (kind) {
    case VISIBLE_PAIR:
        return make_segment(g, load3(v.start, row), load3(i == 0 ? v.end : v.other_end, row));
    case VISIBLE_EDGE: {
        const Edge e = load_edge(v, row);
        return make_segment(g, e.source, edge_sample(e, v.fractions[i]));
    }
    case VISIBLE_CHAIN: {
        const i64 at = row * ((i64)v.segments + 1) + i;
        return make_segment(g, load3(v.start, at), load3(v.start, at + 1));
    }
    default:
        return make_segment(g, load3(v.start, row), load3(v.end, row));
    }
}

// The ids that segment i of a row does not see, v.ignore_width of them, or null.
__device__ __forceinline__ const i32* load_ignored(const VisibleRows& v, u32 kind, i64 row, i32 i)
{
    if (!v.ignore) {
        return nullptr;
    }
    const i64 list = kind == VISIBLE_CHAIN ? row * v.segments + i : row;
    return v.ignore + list * v.ignore_width;
}

__device__ __forceinline__ bool is_ignored(const i32* list, i32 width, i32 id)
{
    if (!list) {
        return false;
    }
    for (i32 k = 0; k < width; k++) {
        if (list[k] == id) {
            return true;
        }
    }
    return false;
}

// The result of a row without a segment to search.
__device__ __forceinline__ void store_unsearched(const VisibleRows& v, u32 kind, i64 row, bool visible)
{
    v.visible[row] = visible;
    if (kind == VISIBLE_PAIR) {
        v.other_visible[row] = visible;
    }
    if (kind == VISIBLE_CHAIN) {
        v.segment[row] = -1;
        v.prim[row] = -1;
    }
}

// Takes the answer for segment i and says whether the row needs the next one;
// otherwise its result is stored, for a polyline all but what blocks segment i.
__device__ __forceinline__ bool store_answer(const VisibleRows& v, u32 kind, i64 row, i32 i, bool visible)
{
    const bool last = i + 1 >= segment_count(v, kind, row);
    switch (kind) {
    case VISIBLE_PAIR:
        (i == 0 ? v.visible : v.other_visible)[row] = visible;
        return !last;
    case VISIBLE_EDGE:
        if (!visible && !last) {
            return true;
        }
        break;
    case VISIBLE_CHAIN:
        if (visible && !last) {
            return true;
        }
        v.segment[row] = visible ? -1 : i;
        v.prim[row] = -1;
        break;
    }
    v.visible[row] = visible;
    return false;
}
