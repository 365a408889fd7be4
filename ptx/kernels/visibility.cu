// Visibility: rows of segments, each searched until the first triangle that blocks
// it. A result is one, two or nine bytes and goes straight to its columns, which may
// be on another device.

#include "search.cuh"
#include "visible.cuh"

struct VisibleParams {
    SearchParams search;
    VisibleRows rows;
};

// The triangles that each lane ignores: asked for too rarely to be worth registers.
__device__ __shared__ const i32* ignore_lists[SEARCH_THREADS];

// What each lane keeps of its row, word by word. Rows may be on another device, and a lane
// that reads one alone moves several times its bytes over the link: once per row is enough.
template <class T> __device__ __forceinline__ float (&kept_words())[sizeof(T) / 4][SEARCH_THREADS]
{
    __shared__ float words[sizeof(T) / 4][SEARCH_THREADS];
    return words;
}

template <class T> __device__ __forceinline__ void keep(const T& row)
{
    for (u32 k = 0; k < sizeof(T) / 4; k++) {
        kept_words<T>()[k][threadIdx.x] = ((const float*)&row)[k];
    }
}

template <class T> __device__ __forceinline__ T kept()
{
    T row;
    for (u32 k = 0; k < sizeof(T) / 4; k++) {
        ((float*)&row)[k] = kept_words<T>()[k][threadIdx.x];
    }
    return row;
}

// The search of one row. All of its segments start in proceed, also the first, so
// that there is one place in the code that starts a search. A segment that is known
// to be blocked or free without a search looks like a search that has ended with or
// without a triangle.
template <u32 KIND> struct VisibleRow {
    const VisibleParams& p;
    // Twice the number of the segment that is searched, plus 1 when it is blocked and
    // searched again for what blocks it first; -2 before the first.
    i32 step;
    float t_min; // crossings before do not count

    __device__ __forceinline__ bool again() const { return KIND == VISIBLE_CHAIN && (step & 1); }

    // Keeps what all segments of a row need.
    __device__ __forceinline__ bool take(i64 row)
    {
        if (KIND == VISIBLE_PAIR) {
            const Pair pair = load_pair(p.rows, row);
            keep(pair);
            return all_finite(pair);
        }
        if (KIND == VISIBLE_EDGE) {
            const Edge edge = load_edge(p.rows, row);
            keep(edge);
            return all_finite(edge);
        }
        return row_finite(p.rows, KIND, row);
    }

    __device__ __forceinline__ bool begin(Search&, i64 row)
    {
        step = -2;
        const bool searched = row_active(p.rows, row) && take(row);
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
        if (w.id == s.best.id || is_ignored(ignore_lists[threadIdx.x], p.rows.ignore_width, id)) {
            return;
        }
        s.best = w;
        if (!again()) {
            stop(s);
        }
    }

    __device__ __forceinline__ bool proceed(Search& s, i64 row)
    {
        if (again()) {
            p.rows.prim[row] = s.best.id;
            return false;
        }
        const bool blocked = step >= 0 && s.best.id >= 0;
        if (step < 0 || store_answer(p.rows, KIND, row, step >> 1, !blocked)) {
            step += 2;
        } else if (KIND == VISIBLE_CHAIN && blocked) {
            step++;
        } else {
            return false;
        }
        Segment g;
        SegmentState known;
        if (KIND == VISIBLE_PAIR) {
            const Pair pair = kept<Pair>();
            known = make_segment(g, pair.start, step < 2 ? pair.end : pair.other);
        } else if (KIND == VISIBLE_EDGE) {
            const Edge edge = kept<Edge>();
            known = make_segment(g, edge.source, edge_sample(edge, p.rows.fractions[step >> 1]));
        } else {
            known = load_segment(g, p.rows, KIND, row, step >> 1);
        }
        ignore_lists[threadIdx.x] = load_ignored(p.rows, KIND, row, step >> 1);
        s.best.id = known == SEGMENT_BLOCKED && !again() ? 0 : -1;
        if (known == SEGMENT_OPEN) {
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
