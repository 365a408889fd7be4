// Builds the shape of the triangle tree on the device.
//
// Triangles are sorted along a space-filling curve (keys here, sort.cu). Common bits
// of neighbouring keys define a binary tree. It is one candidate; the other comes
// from climbing it and joining, within every range of the curve, what lies nearest.
// The cheaper one becomes wide nodes, level by level from the root. See build.cuh.

#include "build.cuh"

// The box of all triangles, into the state. Every thread takes the faces row,
// row + count, ...
struct TriangleBoundsParams {
    const float* vertices;
    const i32* faces;
    BuildState* state;
    i64 face_count;
    i64 row_begin;
    i64 count;
};

__device__ __forceinline__ Box face_box(const float* vertices, const i32* faces, i64 face)
{
    Box b = empty_box();
#pragma unroll
    for (i32 c = 0; c < 3; c++) {
        const f32x3 v = load3(vertices, faces[3 * face + c]);
        grow(b, v, v);
    }
    return b;
}

extern "C" __global__ void __launch_bounds__(128) triangle_bounds(const __grid_constant__ TriangleBoundsParams p)
{
    __shared__ u32 block[6];
    if (threadIdx.x < 6) {
        block[threadIdx.x] = 0;
    }
    __syncthreads();
    const i64 i = launch_row();
    Box b = empty_box();
    for (i64 face = p.row_begin + i; i < p.count && face < p.face_count; face += p.count) {
        const Box f = face_box(p.vertices, p.faces, face);
        grow(b, f.lo, f.hi);
    }
    u32 corners[6] = {~ordered(b.lo.x), ~ordered(b.lo.y), ~ordered(b.lo.z), ordered(b.hi.x), ordered(b.hi.y), ordered(b.hi.z)};
#pragma unroll
    for (i32 k = 0; k < 6; k++) {
#pragma unroll
        for (u32 d = 1; d < 32; d *= 2) {
            corners[k] = max(corners[k], __shfl_xor_sync(0xffffffff, corners[k], d));
        }
        if ((threadIdx.x & 31) == 0) {
            atomicMax(block + k, corners[k]);
        }
    }
    __syncthreads();
    if (threadIdx.x < 6) {
        atomicMax(p.state->lo + threadIdx.x, block[threadIdx.x]); // lo and hi are one array of six
    }
}

// Leaves of the binary trees, and pairs to sort: the key of a triangle is the place
// of its box's centre on the curve, in cells of one size along all axes.
struct MakeLeavesParams {
    const float* vertices;
    const i32* faces;
    const BuildState* state;
    Fork* leaves;
    u64* keys;
    u32* values;
    i64 row_begin;
    i64 count;
};

#define KEY_BITS 21 // per axis

// Puts two zeros before each of 21 bits.
__device__ __forceinline__ u64 spread(u32 v)
{
    u64 x = v;
    x = (x | x << 32) & 0x001f00000000ffffull;
    x = (x | x << 16) & 0x001f0000ff0000ffull;
    x = (x | x << 8) & 0x100f00f00f00f00full;
    x = (x | x << 4) & 0x10c30c30c30c30c3ull;
    x = (x | x << 2) & 0x1249249249249249ull;
    return x;
}

// x lies in [0,1].
__device__ __forceinline__ u32 cell_of(float lo, float hi)
{
    const float at = mul(add(mul(lo, 0.5f), mul(hi, 0.5f)), (float)(1 << KEY_BITS));
    return min(__float2uint_rz(at), (1u << KEY_BITS) - 1);
}

// In f64, where neither differences nor the scale overflow.
__device__ __forceinline__ float scaled(float v, double origin, double scale)
{
    return __double2float_rn(__dmul_rn(__dsub_rn((double)v, origin), scale));
}

extern "C" __global__ void __launch_bounds__(128) make_leaves(const __grid_constant__ MakeLeavesParams p)
{
    const i64 i = launch_row();
    if (i >= p.count) {
        return;
    }
    const i64 face = p.row_begin + i;
    double origin[3];
    double extent = 0.0;
#pragma unroll
    for (i32 k = 0; k < 3; k++) {
        origin[k] = (double)unordered(~p.state->lo[k]);
        extent = fmax(extent, __dsub_rn((double)unordered(p.state->hi[k]), origin[k]));
    }
    const double scale = extent > 0.0 ? __ddiv_rn(1.0, extent) : 0.0;
    const Box b = face_box(p.vertices, p.faces, face);
    const f32x3 lo = {scaled(b.lo.x, origin[0], scale), scaled(b.lo.y, origin[1], scale), scaled(b.lo.z, origin[2], scale)};
    const f32x3 hi = {scaled(b.hi.x, origin[0], scale), scaled(b.hi.y, origin[1], scale), scaled(b.hi.z, origin[2], scale)};
    float4* leaf = (float4*)(p.leaves + face);
    leaf[0] = float4{lo.x, lo.y, lo.z, __int_as_float((i32)face)};
    leaf[1] = float4{hi.x, hi.y, hi.z, 0.0f};
    p.keys[face] = spread(cell_of(lo.x, hi.x)) << 2 | spread(cell_of(lo.y, hi.y)) << 1 | spread(cell_of(lo.z, hi.z));
    p.values[face] = (u32)face;
}

// A cluster is a branch that waits to be joined. Its home is the first leaf of the
// range that it came from. Clusters of a range have different homes, and one of them
// ends with every join: its home less one is the number of the new fork, which is
// therefore the same in every build.
struct Cluster {
    Branch branch;
    u32 home;
};

struct SeedClustersParams {
    const u64* keys;   // sorted
    const u32* values; // face of each
    u8* gaps;
    u64* meet;
    Cluster* clusters;
    i64 leaf_count;
    i64 row_begin;
    i64 count;
};

extern "C" __global__ void __launch_bounds__(128) seed_clusters(const __grid_constant__ SeedClustersParams p)
{
    const i64 i = launch_row();
    if (i >= p.count) {
        return;
    }
    const i64 leaf = p.row_begin + i;
    p.clusters[leaf] = Cluster{~(i32)p.values[leaf], (u32)leaf};
    p.meet[leaf] = NOBODY;
    u32 gap = 255;
    if (leaf + 1 < p.leaf_count) {
        // Equal keys are told apart by the order of leaves.
        const u64 keys = p.keys[leaf] ^ p.keys[leaf + 1];
        gap = keys != 0 ? 95 - __clzll((i64)keys) : 31 - __clz((i32)leaf ^ (i32)(leaf + 1));
    }
    p.gaps[leaf] = (u8)gap;
}

struct ClimbParams {
    Forest forest;
    const u8* gaps;
    u64* meet;
    Cluster* clusters;
    BuildState* state;
    i64 leaf_count;
    i64 row_begin;
    i64 count;
};

// The tree of common bits. A thread climbs from every leaf; of the two that arrive
// at a fork the second goes on.
extern "C" __global__ void __launch_bounds__(128) build_by_bits(const __grid_constant__ ClimbParams p)
{
    const i64 i = launch_row();
    if (i >= p.count) {
        return;
    }
    const Fork* leaves = p.forest.leaves;
    Fork* forks = p.forest.forks[0];
    Plan* plans = p.forest.plans[0];
    const u32 leaf_count = (u32)p.leaf_count;
    Range r = {(u32)(p.row_begin + i), (u32)(p.row_begin + i)};
    Branch mine = p.clusters[r.first].branch;
    Box box = load_box(leaves, forks, mine);
    Plan plan = plan_of_triangle();
    while (r.first != 0 || r.last != leaf_count - 1) {
        u32 gap, note;
        bool from_left;
        if (!join(r, leaf_count, p.gaps, p.meet, (u32)mine, gap, from_left, note)) {
            return;
        }
        const Branch other = (Branch)note;
        const Box b = load_box(leaves, forks, other);
        const Plan q = load_plan(plans, other);
        grow(box, b.lo, b.hi);
        plan = make_plan(half_area(box), from_left ? plan : q, from_left ? q : plan);
        const Branch left = from_left ? mine : other;
        const Branch right = from_left ? other : mine;
        mine = (Branch)gap;
        store_fork(forks, plans, mine, box, left, right, plan);
    }
    p.state->root[0] = mine;
    p.state->cost[0] = plan.least[0];
}

// Up to KEPT clusters of a range stay for the range above to choose from.
#define KEPT 16
// How many clusters to either side a cluster looks for its neighbour.
#define REACH 8

__device__ __forceinline__ f32x3 shuffle(f32x3 v, u32 from)
{
    return f32x3{__shfl_sync(0xffffffff, v.x, from), __shfl_sync(0xffffffff, v.y, from), __shfl_sync(0xffffffff, v.z, from)};
}

__device__ __forceinline__ Box shuffle(const Box& b, u32 from) { return Box{shuffle(b.lo, from), shuffle(b.hi, from)}; }

// The choices of a plan are needed in memory only.
__device__ __forceinline__ Plan shuffle(const Plan& p, u32 from)
{
    Plan out = {};
#pragma unroll
    for (u32 n = 0; n < TREE_WIDTH - 1; n++) {
        out.least[n] = __shfl_sync(0xffffffff, p.least[n], from);
    }
    return out;
}

// For each of n clusters, one per lane, the one near it with which it makes the
// smallest box: the area, whose lowest bits are those in which the two lanes differ.
// So two lanes never compare pairs differently, there is always a pair that is
// nearest to each other, and many equal boxes are joined in pairs.
__device__ __forceinline__ u32 nearest(const Box& box, u32 n, u32 lane)
{
    u32 best = 0xffffffff;
#pragma unroll 4
    for (u32 d = 1; d <= REACH; d++) {
        Box b = shuffle(box, lane + d);
        grow(b, box.lo, box.hi);
        u32 area = (__float_as_uint(half_area(b)) & ~31u) | (lane ^ (lane + d));
        area = lane + d < n ? area : 0xffffffff;
        best = min(best, area);
        const u32 below = __shfl_up_sync(0xffffffff, area, d);
        best = lane >= d ? min(best, below) : best;
    }
    return best;
}

// Joins clusters of one range, which stand in two parts of clusters, until at most
// target are left. They stand at the front of the first part then. All lanes of the
// warp take part. Returns how many are left.
__device__ __forceinline__ u32 join_clusters(const ClimbParams& p, u8* survivors, u32 left_at, u32 left, u32 right_at,
                                             u32 right, u32 target)
{
    Fork* forks = p.forest.forks[1];
    Plan* plans = p.forest.plans[1];
    const u32 lane = threadIdx.x & 31;
    u32 n = left + right;
    Branch branch = 0;
    u32 home = 0;
    Box box = empty_box();
    Plan plan = plan_of_triangle();
    if (lane < n) {
        const int2 c = __ldcg((const int2*)(p.clusters + (lane < left ? left_at + lane : right_at + (lane - left))));
        branch = c.x;
        home = (u32)c.y;
        if (n > target) {
            box = load_box(p.forest.leaves, forks, branch);
            plan = load_plan(plans, branch);
        }
    }
    while (n > target) {
        const u32 key = nearest(box, n, lane);
        const u32 partner = lane ^ (key & 31);
        const bool mutual = __shfl_sync(0xffffffff, key, partner) == key && lane < n;
        const Branch other = __shfl_sync(0xffffffff, branch, partner);
        const u32 number = __shfl_sync(0xffffffff, home, partner) - 1;
        const Box b = shuffle(box, partner);
        const Plan q = shuffle(plan, partner);
        if (mutual && lane < partner) {
            grow(box, b.lo, b.hi);
            plan = make_plan(half_area(box), plan, q);
            store_fork(forks, plans, (Branch)number, box, branch, other, plan);
            branch = (Branch)number;
        }
        // Close the ranks.
        const bool stays = lane < n && !(mutual && lane > partner);
        const u32 all = __ballot_sync(0xffffffff, stays);
        if (stays) {
            survivors[__popc(all & ((1u << lane) - 1))] = (u8)lane;
        }
        __syncwarp();
        n = __popc(all);
        const u32 from = lane < n ? survivors[lane] : lane;
        __syncwarp();
        branch = __shfl_sync(0xffffffff, branch, from);
        home = __shfl_sync(0xffffffff, home, from);
        box = shuffle(box, from);
        plan = shuffle(plan, from);
    }
    if (lane < n) {
        p.clusters[left_at + lane] = Cluster{branch, home};
    }
    if (target == 1 && lane == 0) {
        p.state->root[1] = branch;
        p.state->cost[1] = plan.least[0];
    }
    __syncwarp(); // what all lanes have written, the one that climbs on publishes
    return n;
}

// The tree of nearest neighbours. A lane climbs from every leaf. Where a range
// becomes longer than KEPT, the whole warp joins its clusters.
extern "C" __global__ void __launch_bounds__(128) build_by_nearness(const __grid_constant__ ClimbParams p)
{
    __shared__ u8 survivors[4][32];
    const i64 i = launch_row();
    const u32 lane = threadIdx.x & 31;
    const u32 leaf_count = (u32)p.leaf_count;
    bool climbs = i < p.count;
    Range r = {(u32)(p.row_begin + i), (u32)(p.row_begin + i)};
    u32 kept = 1;
    while (__any_sync(0xffffffff, climbs)) {
        u32 gap = 0, note = 0;
        bool from_left = true; // also of a single leaf
        if (climbs && leaf_count > 1) {
            climbs = join(r, leaf_count, p.gaps, p.meet, kept, gap, from_left, note);
        }
        const u32 left = from_left ? kept : note;
        const u32 right = from_left ? note : kept;
        const bool whole = r.first == 0 && r.last == leaf_count - 1;
        u32 todo = __ballot_sync(0xffffffff, climbs && (whole || r.last - r.first >= KEPT));
        if (climbs) {
            kept = left + right; // of a short range: its leaves
        }
        __syncwarp();
        while (todo != 0) {
            const u32 of = __ffs(todo) - 1;
            todo &= todo - 1;
            const bool last = __shfl_sync(0xffffffff, (u32)whole, of) != 0;
            const u32 n = join_clusters(p, survivors[threadIdx.x >> 5], __shfl_sync(0xffffffff, r.first, of),
                                        __shfl_sync(0xffffffff, left, of), __shfl_sync(0xffffffff, gap, of) + 1,
                                        __shfl_sync(0xffffffff, right, of), last ? 1 : KEPT);
            if (lane == of) {
                kept = n;
                climbs = !last;
            }
        }
    }
}

// The wide nodes of one level: eight lanes choose the children of a node, give them
// places and slots, and put those that are nodes into the queue of the next level.
struct WidenParams {
    Forest forest;
    BuildState* state;
    int2* queue; // branch and slot of every node
    Shape* shapes;
    i32* slots; // of each face
    i64 tree;   // 0 or 1; 2: the cheaper one
    i64 level;
};

// How far an offset goes towards the corner of a place.
__device__ __forceinline__ float towards(f32x3 offset, u32 place)
{
    return add(add(place & 1 ? offset.x : -offset.x, place & 2 ? offset.y : -offset.y), place & 4 ? offset.z : -offset.z);
}

// The place of every lane's child. Bit k of a place means the upper side along axis
// k, so that a search may take the signs of a direction for the order in which it
// meets the children. The child that lies farthest towards a corner gets the place
// of that corner, then the others what is free.
__device__ __forceinline__ u32 choose_place(bool has_child, f32x3 offset)
{
    const u32 lane = threadIdx.x & 7;
    u32 free = 255;
    u32 place = TREE_WIDTH;
    bool waits = has_child;
    while (__any_sync(0xffffffff, waits)) {
        float best = -f32_inf();
        u32 want = 0;
#pragma unroll
        for (u32 k = 0; k < TREE_WIDTH; k++) {
            const float d = towards(offset, k);
            const bool better = (free >> k & 1) != 0 && d > best;
            best = better ? d : best;
            want = better ? k : want;
        }
        const u32 bid = waits ? (ordered(best) & ~7u) | lane : 0;
        u32 highest = bid;
#pragma unroll
        for (u32 d = 1; d < 8; d *= 2) {
            highest = max(highest, __shfl_xor_sync(0xffffffff, highest, d));
        }
        const u32 taken = __shfl_sync(0xffffffff, want, highest & 7, 8);
        if (highest != 0) {
            free &= ~(1u << taken);
        }
        if (waits && bid == highest) {
            place = want;
            waits = false;
        }
    }
    return place;
}

// Lets the lanes of a node find its children: a lane whose branch may become n
// children has this and the next n - 1 lanes to place them in. A lane without a
// child returns false.
__device__ __forceinline__ bool choose_children(Branch& branch, u32 n, const Fork* forks, const Plan* plans, int2* mail)
{
    while (true) {
        u32 left = 0;
        if (is_triangle(branch)) {
            n = min(n, 1);
        }
        if (n > 1) {
            const u32 choices = plans[branch].choices;
            while (n > 1 && !opens(choices, n)) {
                n--;
            }
            left = n > 1 ? left_share(choices, n) : 0;
        }
        if (!__any_sync(0xffffffff, left != 0)) {
            return n != 0;
        }
        mail[threadIdx.x] = int2{0, 0};
        __syncwarp();
        if (left != 0) {
            mail[threadIdx.x + left] = int2{forks[branch].right, (i32)(n - left)};
            branch = forks[branch].left;
            n = left;
        }
        __syncwarp();
        if (n == 0) {
            branch = mail[threadIdx.x].x;
            n = (u32)mail[threadIdx.x].y;
        }
        __syncwarp();
    }
}

#define WIDEN_NODES 16 // per block

extern "C" __global__ void __launch_bounds__(8 * WIDEN_NODES) widen(const __grid_constant__ WidenParams p)
{
    __shared__ int2 mail[8 * WIDEN_NODES];
    __shared__ u32 sizes[WIDEN_NODES]; // children of each node: inner, all << 16
    __shared__ u64 before;             // children of the level's nodes in other blocks
    const u32 tree = p.tree < 2 ? (u32)p.tree : p.state->cost[1] < p.state->cost[0] ? 1 : 0;
    const Fork* forks = p.forest.forks[tree];
    const Plan* plans = p.forest.plans[tree];
    // Of this level; its first node, and the slots before its children.
    u32 first = 0;
    u32 nodes = 1;
    u32 slots = TREE_ROOT + 1;
    for (i64 k = 0; k < p.level; k++) {
        const u64 c = p.state->counts[k];
        first += nodes;
        nodes = inner_of(c);
        slots += all_of(c);
    }
    const u32 lane = threadIdx.x & 7;
    const u32 group = threadIdx.x >> 3;
    for (u32 at = blockIdx.x * WIDEN_NODES; at < nodes; at += gridDim.x * WIDEN_NODES) {
        const bool has_node = at + group < nodes;
        const u32 node = first + at + group;
        int2 self = {p.state->root[tree], TREE_ROOT};
        if (has_node && p.level > 0) {
            self = p.queue[node];
        }
        Branch child = self.x;
        const bool has_child = choose_children(child, has_node && lane == 0 ? TREE_WIDTH : 0, forks, plans, mail);

        f32x3 offset = {0.0f, 0.0f, 0.0f};
        if (has_child) {
            const Box all = load_box(p.forest.leaves, forks, self.x);
            const Box b = load_box(p.forest.leaves, forks, child);
            offset = f32x3{sub(add(b.lo.x, b.hi.x), add(all.lo.x, all.hi.x)), sub(add(b.lo.y, b.hi.y), add(all.lo.y, all.hi.y)),
                           sub(add(b.lo.z, b.hi.z), add(all.lo.z, all.hi.z))};
        }
        const u32 place = choose_place(has_child, offset);
        u32 masks = !has_child ? 0 : is_triangle(child) ? 256u << place : 1u << place;
#pragma unroll
        for (u32 d = 1; d < 8; d *= 2) {
            masks |= __shfl_xor_sync(0xffffffff, masks, d);
        }
        const u32 inner = masks & 255;
        const u32 all = inner | masks >> 8;

        if (lane == 0) {
            sizes[group] = (u32)__popc(inner) | (u32)__popc(all) << 16;
        }
        __syncthreads();
        u32 earlier = 0;
        u32 block = 0;
        for (u32 g = 0; g < WIDEN_NODES; g++) {
            earlier += g < group ? sizes[g] : 0;
            block += sizes[g];
        }
        if (threadIdx.x == 0) {
            before = atomicAdd(&p.state->counts[p.level], (u64)(block & 0xffff) | (u64)(block >> 16) << 32);
        }
        __syncthreads();
        const u32 next = first + nodes + inner_of(before) + (earlier & 0xffff);
        const u32 base = slots + all_of(before) + (earlier >> 16);
        if (has_child) {
            const u32 slot = child_slot(base, all, place);
            if (is_triangle(child)) {
                p.slots[~child] = (i32)slot;
            } else {
                p.queue[child_slot(next, inner, place)] = int2{child, (i32)slot};
            }
        }
        if (has_node && lane == 0) {
            *(int4*)(p.shapes + node) = int4{self.y, (i32)base, (i32)next, (i32)masks};
        }
    }
}
