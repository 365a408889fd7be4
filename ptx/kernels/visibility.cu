// Visibility: rows of segments, each searched until the first triangle that blocks
// it. A result is one, two or nine bytes and goes straight to its columns, which may
// be on another device.

#include "search.cuh"
#include "visible.cuh"

struct VisibleParams {
    SearchParams search;
    VisibleRows rows;
};

// The search of one row. All of its segments start in proceed, also the first, so
// that there is one place in the code that starts a search. A segment that is known
// to be blocked or free without a search looks like a search that has ended with or
// without a triangle.
template <u32 KIND> struct VisibleRow {
    const VisibleParams& p;
    i32 at;          // the segment that is searched, -1 before the first
    bool closest;    // it is blocked, and searched again for what blocks it first
    float t_min;     // crossings before do not count
    const i32* list; // of triangles to ignore

    __device__ __forceinline__ bool begin(Search&, i64 row)
    {
        at = -1;
        closest = false;
        const bool searched = row_searched(p.rows, KIND, row);
        if (searched && segment_count(p.rows, KIND, row) > 0) {
            return true;
        }
        store_unsearched(p.rows, KIND, row, searched);
        return false;
    }

    __device__ __forceinline__ void meet(Search& s, float t, i32 id)
    {
        Winner w = s.best;
        offer(w, t_min, t, id);
        // Few crossings are inside the interval: only those are worth a look at the list.
        if (w.id == s.best.id || is_ignored(list, p.rows.ignore_width, id)) {
            return;
        }
        s.best = w;
        if (!closest) {
            stop(s);
        }
    }

    __device__ __forceinline__ bool proceed(Search& s, i64 row)
    {
        if (closest) {
            p.rows.prim[row] = s.best.id;
            return false;
        }
        const bool blocked = at >= 0 && s.best.id >= 0;
        if (at < 0 || store_answer(p.rows, KIND, row, at, !blocked)) {
            at++;
        } else if (KIND == VISIBLE_CHAIN && blocked) {
            closest = true;
        } else {
            return false;
        }
        Segment g;
        const SegmentState state = load_segment(g, p.rows, KIND, row, at);
        list = load_ignored(p.rows, KIND, row, at);
        s.best.id = state == SEGMENT_BLOCKED && !closest ? 0 : -1;
        if (state == SEGMENT_OPEN) {
            t_min = g.t_min;
            start(s, g.o, g.d, g.t_max);
        }
        return true;
    }
};

template <u32 KIND> __device__ __forceinline__ void search_visible(const VisibleParams& p)
{
    VisibleRow<KIND> job{p};
    search_rows(job, p.search);
}

// Eight blocks per multiprocessor leave 64 registers, as for the closest hit.
extern "C" {
__global__ void __launch_bounds__(SEARCH_THREADS, 8) visible(const __grid_constant__ VisibleParams p)
{
    search_visible<VISIBLE_SEGMENT>(p);
}

__global__ void __launch_bounds__(SEARCH_THREADS, 8) visible_pair(const __grid_constant__ VisibleParams p)
{
    search_visible<VISIBLE_PAIR>(p);
}

__global__ void __launch_bounds__(SEARCH_THREADS, 8) visible_edge(const __grid_constant__ VisibleParams p)
{
    search_visible<VISIBLE_EDGE>(p);
}

__global__ void __launch_bounds__(SEARCH_THREADS, 8) visible_chain(const __grid_constant__ VisibleParams p)
{
    search_visible<VISIBLE_CHAIN>(p);
}
}
