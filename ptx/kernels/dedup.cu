// Groups rows that took the same path. Rows are sorted by a hash of their path, stably,
// so that equal paths stand together and the first row of a run is the smallest; every
// row is compared with the one before it, because a hash proves nothing. Groups are
// numbered in the order of their first rows by a sum over the rows that come first.

#include "blocksum.cuh"

#define DEDUP_THREADS 128
#define SCAN_THREADS 256
#define SCAN_ITEMS 8
#define SCAN_TILE (SCAN_THREADS * SCAN_ITEMS)

// Rows without a bounce belong to no group. Their key is behind all others.
#define NO_PATH 0xffffffffffffffffull

// What a path is: the source, the number of bounces, and the canonical id of each
// primitive. A source is a key, or where keys is null the bits of an origin.
struct Paths {
    const i32* prim_ids; // [rows, bounces]
    const u32* keys;
    const u32* origins;   // [rows, 3]
    const i32* canonical; // may be null
    i64 canonical_count;
    i64 bounces;
};

__device__ __forceinline__ i32 path_length(const Paths& p, i64 row)
{
    i32 n = 0;
    while (n < p.bounces && p.prim_ids[row * p.bounces + n] >= 0) {
        n++;
    }
    return n;
}

__device__ __forceinline__ i32 canonical_id(const Paths& p, i32 id)
{
    const i32 surface = p.canonical && id < p.canonical_count ? p.canonical[id] : -1;
    return surface >= 0 ? surface : id;
}

__device__ __forceinline__ bool same_path(const Paths& p, i64 a, i64 b)
{
    bool same = p.keys ? p.keys[a] == p.keys[b]
                       : p.origins[3 * a] == p.origins[3 * b] && p.origins[3 * a + 1] == p.origins[3 * b + 1] &&
                             p.origins[3 * a + 2] == p.origins[3 * b + 2];
    for (i64 k = 0; same && k < p.bounces; k++) {
        const i32 x = p.prim_ids[a * p.bounces + k];
        const i32 y = p.prim_ids[b * p.bounces + k];
        if (x < 0 || y < 0) {
            return x < 0 && y < 0;
        }
        same = canonical_id(p, x) == canonical_id(p, y);
    }
    return same;
}

// The finalizer of splitmix64.
__device__ __forceinline__ u64 mix(u64 h, u32 word)
{
    h = (h ^ word) * 0x9e3779b97f4a7c15ull;
    h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9ull;
    h = (h ^ h >> 27) * 0x94d049bb133111ebull;
    return h ^ h >> 31;
}

struct HashPathsParams {
    Paths paths;
    u64* hashes;
    u32* rows;
    u64 mask; // bits of the hash that are used; not the highest
    i64 count;
};

extern "C" __global__ void __launch_bounds__(DEDUP_THREADS) hash_paths(const __grid_constant__ HashPathsParams p)
{
    const i64 row = launch_row();
    if (row >= p.count) {
        return;
    }
    const i32 length = path_length(p.paths, row);
    u64 h = NO_PATH;
    if (length > 0) {
        h = mix(0, length);
        if (p.paths.keys) {
            h = mix(h, p.paths.keys[row]);
        } else {
            for (i32 k = 0; k < 3; k++) {
                h = mix(h, p.paths.origins[3 * row + k]);
            }
        }
        for (i32 k = 0; k < length; k++) {
            h = mix(h, canonical_id(p.paths, p.paths.prim_ids[row * p.paths.bounces + k]));
        }
        h &= p.mask;
    }
    p.hashes[row] = h;
    p.rows[row] = (u32)row;
}

// heads: 1 where a run begins, in the order of the sorted rows. firsts: the same in the
// order of the rows themselves. collisions is set when rows of a run differ.
struct MarkRunsParams {
    Paths paths;
    const u64* hashes;
    const u32* rows;
    u32* heads;
    u32* firsts;
    u32* collisions;
    i64 count;
};

extern "C" __global__ void __launch_bounds__(DEDUP_THREADS) mark_runs(const __grid_constant__ MarkRunsParams p)
{
    const i64 i = launch_row();
    if (i >= p.count) {
        return;
    }
    const u64 h = p.hashes[i];
    const bool goes_on = i > 0 && h == p.hashes[i - 1];
    const u32 head = h != NO_PATH && !goes_on;
    p.heads[i] = head;
    p.firsts[p.rows[i]] = head;
    if (h != NO_PATH && goes_on && !same_path(p.paths, p.rows[i], p.rows[i - 1])) {
        *p.collisions = 1;
    }
}

// Replaces values by the sums of those before them in their tile.
struct ScanTilesParams {
    u32* values;
    u32* totals; // of each tile
    i64 count;
};

extern "C" __global__ void __launch_bounds__(SCAN_THREADS) scan_tiles(const __grid_constant__ ScanTilesParams p)
{
    __shared__ u32 sums[SCAN_THREADS / 32];
    const i64 first = (i64)blockIdx.x * SCAN_TILE + threadIdx.x * SCAN_ITEMS;
    u32 own[SCAN_ITEMS];
    u32 sum = 0;
#pragma unroll
    for (u32 k = 0; k < SCAN_ITEMS; k++) {
        own[k] = first + k < p.count ? p.values[first + k] : 0;
        sum += own[k];
    }
    u32 before = sum_before(sum, sums);
    if (threadIdx.x == SCAN_THREADS - 1) {
        p.totals[blockIdx.x] = before + sum;
    }
#pragma unroll
    for (u32 k = 0; k < SCAN_ITEMS; k++) {
        if (first + k < p.count) {
            p.values[first + k] = before;
        }
        before += own[k];
    }
}

// One block replaces totals by the sums of those before them.
struct ScanTotalsParams {
    u32* totals;
    u32* total; // of all
    i64 tiles;
};

extern "C" __global__ void __launch_bounds__(SCAN_THREADS) scan_totals(const __grid_constant__ ScanTotalsParams p)
{
    const auto total = sum_tiles<SCAN_THREADS>(p.totals, p.tiles);
    if (threadIdx.x == 0) {
        *p.total = total;
    }
}

// Sums over all tiles, of which scan_tiles and scan_totals made the parts.
struct Scan {
    const u32* values;
    const u32* totals;
};

__device__ __forceinline__ u32 scanned(const Scan& s, i64 i) { return s.values[i] + s.totals[i / SCAN_TILE]; }

// starts[r] is where run r begins among the sorted rows, and after the last run where
// it ends.
struct PlaceRunsParams {
    const u64* hashes;
    Scan heads;
    u32* starts;
    i64 runs;
    i64 count;
};

extern "C" __global__ void __launch_bounds__(DEDUP_THREADS) place_runs(const __grid_constant__ PlaceRunsParams p)
{
    const i64 i = launch_row();
    if (i >= p.count) {
        return;
    }
    const u64 h = p.hashes[i];
    const bool goes_on = i > 0 && h == p.hashes[i - 1];
    if (h == NO_PATH) {
        if (!goes_on) {
            p.starts[p.runs] = (u32)i;
        }
        return;
    }
    if (!goes_on) {
        p.starts[scanned(p.heads, i)] = (u32)i;
    }
    if (i == p.count - 1) {
        p.starts[p.runs] = (u32)p.count;
    }
}

// Columns of the groups. keys_out or origins_out is null, as in Paths.
struct WriteGroupsParams {
    Paths paths;
    const u32* rows;
    const u32* starts;
    Scan firsts;
    u32* groups; // of each run
    i64* representative;
    i64* discovery_count;
    i32* bounce_count;
    i32* prim_ids;
    u32* keys_out;
    u32* origins_out;
    i64 row_base;
    i64 count;
};

extern "C" __global__ void __launch_bounds__(DEDUP_THREADS) write_groups(const __grid_constant__ WriteGroupsParams p)
{
    const i64 run = launch_row();
    if (run >= p.count) {
        return;
    }
    const u32 start = p.starts[run];
    const i64 row = p.rows[start];
    const i64 g = scanned(p.firsts, row);
    p.groups[run] = (u32)g;
    p.representative[g] = p.row_base + row;
    p.discovery_count[g] = p.starts[run + 1] - start;
    p.bounce_count[g] = path_length(p.paths, row);
    bool ended = false;
    for (i64 k = 0; k < p.paths.bounces; k++) {
        const i32 id = p.paths.prim_ids[row * p.paths.bounces + k];
        ended = ended || id < 0;
        p.prim_ids[g * p.paths.bounces + k] = ended ? -1 : id;
    }
    if (p.paths.keys) {
        p.keys_out[g] = p.paths.keys[row];
    } else {
        for (i32 k = 0; k < 3; k++) {
            p.origins_out[3 * g + k] = p.paths.origins[3 * row + k];
        }
    }
}

struct WriteRowGroupsParams {
    const u64* hashes;
    const u32* rows;
    Scan heads;
    const u32* groups;
    i32* group_of_row;
    i64 count;
};

extern "C" __global__ void __launch_bounds__(DEDUP_THREADS)
    write_row_groups(const __grid_constant__ WriteRowGroupsParams p)
{
    const i64 i = launch_row();
    if (i >= p.count) {
        return;
    }
    const u64 h = p.hashes[i];
    i32 group = -1;
    if (h != NO_PATH) {
        const bool goes_on = i > 0 && h == p.hashes[i - 1];
        group = (i32)p.groups[scanned(p.heads, i) - goes_on];
    }
    p.group_of_row[p.rows[i]] = group;
}
