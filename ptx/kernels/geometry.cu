// Kernels of Build and Sync: validation of geometry that is already on the device,
// derived tables, and the boxes of the triangle tree.

#include "shape.cuh"

// The smallest offending vertex and face, or all ones.
struct ValidateMeshParams {
    const float* vertices;
    const i32* faces; // null: vertices only
    u64* first_bad_vertex;
    u64* first_bad_face;
    i64 vertex_count;
    i64 face_count;
    i64 row_begin;
    i64 count; // over both tables: the longer one
};

extern "C" __global__ void __launch_bounds__(128) validate_mesh(const __grid_constant__ ValidateMeshParams p)
{
    const i64 i = launch_row();
    if (i >= p.count) {
        return;
    }
    const i64 row = p.row_begin + i;
    if (row < p.vertex_count && !is_finite(load3(p.vertices, row))) {
        atomicMin(p.first_bad_vertex, (u64)row);
    }
    if (row < p.face_count) {
        for (i32 c = 0; c < 3; c++) {
            const i32 v = p.faces[3 * row + c];
            if (v < 0 || v >= p.vertex_count) {
                atomicMin(p.first_bad_face, (u64)row);
            }
        }
    }
}

struct FaceNormalsParams {
    const float* vertices;
    const i32* faces;
    float* normals;
    i64 row_begin;
    i64 count;
};

extern "C" __global__ void __launch_bounds__(128) face_normals(const __grid_constant__ FaceNormalsParams p)
{
    const i64 i = launch_row();
    if (i >= p.count) {
        return;
    }
    const i64 row = p.row_begin + i;
    const f32x3 v0 = load3(p.vertices, p.faces[3 * row]);
    const f32x3 v1 = load3(p.vertices, p.faces[3 * row + 1]);
    const f32x3 v2 = load3(p.vertices, p.faces[3 * row + 2]);
    store3(p.normals, row, unit(face_vector(v0, v1, v2)));
}

// The vertices of an instance: those of its owner, moved.
struct TransformVerticesParams {
    const float* vertices; // of the owner
    float* moved;          // of the instance
    u64* first_bad;        // smallest shape << 32 | vertex that is not finite, or all ones
    float rows[12];        // of the matrix (A | c)
    i32 shape;             // of the instance
    i64 row_begin;
    i64 count;
};

// One row of A v + c, in this order on every path: gradients and oracles repeat it.
__device__ __forceinline__ float transform_row(const float* row, f32x3 v)
{
    return fmadd(row[0], v.x, fmadd(row[1], v.y, fmadd(row[2], v.z, row[3])));
}

extern "C" __global__ void __launch_bounds__(128) transform_vertices(const __grid_constant__ TransformVerticesParams p)
{
    const i64 i = launch_row();
    if (i >= p.count) {
        return;
    }
    const i64 vertex = p.row_begin + i;
    const f32x3 v = load3(p.vertices, vertex);
    const f32x3 moved = {transform_row(p.rows, v), transform_row(p.rows + 4, v), transform_row(p.rows + 8, v)};
    store3(p.moved, vertex, moved);
    if (!is_finite(moved)) {
        atomicMin(p.first_bad, (u64)p.shape << 32 | (u64)vertex);
    }
}

// Writes the triangle of every face into its slot.
struct PlaceTrianglesParams {
    const float* vertices;
    const i32* faces;
    const i32* slots; // of each face
    Triangle* pool;
    i64 row_begin;
    i64 count;
};

extern "C" __global__ void __launch_bounds__(128) place_triangles(const __grid_constant__ PlaceTrianglesParams p)
{
    const i64 i = launch_row();
    if (i >= p.count) {
        return;
    }
    const i64 face = p.row_begin + i;
    const f32x3 v0 = load3(p.vertices, p.faces[3 * face]);
    const f32x3 v1 = load3(p.vertices, p.faces[3 * face + 1]);
    const f32x3 v2 = load3(p.vertices, p.faces[3 * face + 2]);
    const f32x3 vector = face_vector(v0, v1, v2);
    const f32x3 n = unit(vector);
    const bool flat = max_abs(vector) == 0.0f;
    p.pool[p.slots[face]] = Triangle{float4{v0.x, v0.y, v0.z, __int_as_float((i32)face)},
                                     float4{v1.x, v1.y, v1.z, __int_as_float(flat ? 1 : 0)},
                                     float4{v2.x, v2.y, v2.z, largest_coordinate(v0, v1, v2)},
                                     float4{n.x, n.y, n.z, 0.0f}};
}

// The exact box of the child at a place.
__device__ __forceinline__ Box child_box(const Shape& s, const Triangle* pool, const Box* boxes, u32 place)
{
    if (inner_places(s) >> place & 1) {
        return boxes[child_slot((u32)s.first_inner, inner_places(s), place)];
    }
    const Triangle* t = pool + child_slot((u32)s.base, all_places(s), place);
    Box b = empty_box();
    grow(b, t->a);
    grow(b, t->b);
    grow(b, t->c);
    return b;
}

// Exact boxes of the nodes of one level. Levels are launched from the deepest up,
// so the boxes of inner children are finished.
struct NodeBoxesParams {
    const Shape* shapes;
    const Triangle* pool;
    Box* boxes;
    i64 row_begin;
    i64 count;
};

extern "C" __global__ void __launch_bounds__(128) node_boxes(const __grid_constant__ NodeBoxesParams p)
{
    const i64 i = launch_row();
    if (i >= p.count) {
        return;
    }
    const i64 n = p.row_begin + i;
    const Shape s = p.shapes[n];
    Box b = empty_box();
    for (u32 place = 0; place < TREE_WIDTH; place++) {
        if (all_places(s) >> place & 1) {
            const Box child = child_box(s, p.pool, p.boxes, place);
            grow(b, child.lo, child.hi);
        }
    }
    p.boxes[n] = b;
}

// Writes the nodes, once all boxes are known: the grid depends on the root's.
struct WriteNodesParams {
    const Shape* shapes;
    Node* pool;
    const Box* boxes;
    i64 row_begin;
    i64 count;
};

// 2^e, -1022 <= e <= 1023.
__device__ __forceinline__ double power_of_two(i32 e) { return __longlong_as_double((i64)(e + 1023) << 52); }

// e with 2^e <= x < 2^(e+1), for normal x > 0.
__device__ __forceinline__ i32 exponent_of(double x) { return (i32)(__double_as_longlong(x) >> 52 & 2047) - 1023; }

__device__ __forceinline__ i32 exponent_of(const Grid& g) { return (__float_as_int(g.size) >> 23) - 127; }

// The size leaves 2^-7 of the extent free, so that the last step of the last cell
// is still inside, and is not so small that a part of it would vanish beside a
// coordinate. The origin lies 2^-10 of the size below the box, which is more than
// the margin of the largest step.
__device__ __forceinline__ Grid make_grid(const Box& root)
{
    Grid g = {};
    const f32x3 d = sub(root.hi, root.lo);
    g.extent = fmaxf(max_abs(root.lo), max_abs(root.hi));
    const float least =
        fmaxf(mul(max_abs(d), 1.0078125f), fmaxf(mul(g.extent, 0.000244140625f), 7.888609052210118e-31f));
    const i32 bits = __float_as_int(least) + 0x00800000; // the next power of two, less its mantissa
    g.size = __int_as_float(min(bits, 0x7f000000) & 0x7f800000);
    const float below = mul(g.size, 0.0009765625f);
    g.origin = f32x3{sub(root.lo.x, below), sub(root.lo.y, below), sub(root.lo.z, below)};
    g.lo = root.lo;
    g.hi = root.hi;
    return g;
}

// One axis of a node on the grid.
struct AxisGrid {
    u32 head;          // as in Node
    double origin, per; // plane q is at origin + q / per
};

__device__ __forceinline__ AxisGrid make_axis(const Grid& g, float origin, float lo, float hi, u32 mask)
{
    const i32 size = exponent_of(g);
    const double cell = power_of_two(size - TREE_CELL_BITS);
    // The least step with which 252 steps reach across the box and two cells more:
    // the node begins up to two cells too low, and three steps are for margins.
    const double need = __dmul_rn(__dadd_rn(__dsub_rn((double)hi, (double)lo), __dadd_rn(cell, cell)), 1.0 / 252);
    const i32 e = max(1, min(exponent_of(need) + 1 - size + TREE_STEP_BIAS, 31));
    const double step = power_of_two(e - TREE_STEP_BIAS + size);
    const double from = __dsub_rn((double)lo, __dmul_rn(step, TREE_PLANE_MARGIN));
    const double cells = __dmul_rn(__dsub_rn(from, (double)origin), power_of_two(TREE_CELL_BITS - size));
    // One cell lower, because what stands below the cell in the head adds to it.
    const double at = fmin(fmax(__dsub_rn(floor(cells), 1.0), 0.0), (double)((1 << TREE_CELL_BITS) - 1));
    const u32 head = (u32)__double2int_rn(at) << 13 | (u32)e << 8 | mask;
    const double begin = __dmul_rn((double)(head >> 9), power_of_two(size - 23));
    return AxisGrid{head, __dadd_rn((double)origin, begin), power_of_two(TREE_STEP_BIAS - e - size)};
}

__device__ __forceinline__ u32 to_byte(double q) { return (u32)__double2int_rn(fmin(fmax(q, 0.0), 255.0)); }

// Bytes of the planes of one child, rounded outwards.
__device__ __forceinline__ u32 lower_plane(const AxisGrid& a, float lo)
{
    return to_byte(floor(__dsub_rn(__dmul_rn(__dsub_rn((double)lo, a.origin), a.per), TREE_PLANE_MARGIN)));
}

__device__ __forceinline__ u32 upper_plane(const AxisGrid& a, float hi)
{
    return to_byte(ceil(__dadd_rn(__dmul_rn(__dsub_rn((double)hi, a.origin), a.per), TREE_PLANE_MARGIN)));
}

extern "C" __global__ void __launch_bounds__(128) write_nodes(const __grid_constant__ WriteNodesParams p)
{
    const i64 i = launch_row();
    if (i >= p.count) {
        return;
    }
    const i64 n = p.row_begin + i;
    const Grid grid = make_grid(p.boxes[0]);
    if (n == 0) {
        *(Grid*)p.pool = grid;
    }
    const Shape s = p.shapes[n];
    const Box box = p.boxes[n];
    const AxisGrid x = make_axis(grid, grid.origin.x, box.lo.x, box.hi.x, inner_places(s));
    const AxisGrid y = make_axis(grid, grid.origin.y, box.lo.y, box.hi.y, triangle_places(s));
    const AxisGrid z = make_axis(grid, grid.origin.z, box.lo.z, box.hi.z, 0);
    uint2 lower[3] = {};
    uint2 upper[3] = {};
    const u32 all = all_places(s);
    for (u32 place = 0; place < TREE_WIDTH; place++) {
        if (!(all >> place & 1)) {
            continue;
        }
        const Box b = child_box(s, (const Triangle*)p.pool, p.boxes, place);
        const u32 lo[3] = {lower_plane(x, b.lo.x), lower_plane(y, b.lo.y), lower_plane(z, b.lo.z)};
        const u32 hi[3] = {upper_plane(x, b.hi.x), upper_plane(y, b.hi.y), upper_plane(z, b.hi.z)};
        const u32 shift = 8 * (place & 3);
#pragma unroll
        for (i32 k = 0; k < 3; k++) {
            (place < 4 ? lower[k].x : lower[k].y) |= lo[k] << shift;
            (place < 4 ? upper[k].x : upper[k].y) |= hi[k] << shift;
        }
    }
    Node node;
    node.head[0] = x.head;
    node.head[1] = y.head;
    node.head[2] = z.head;
    node.base = (u32)s.base;
#pragma unroll
    for (i32 k = 0; k < 3; k++) {
        node.axis[k] = uint4{lower[k].x, lower[k].y, upper[k].x, upper[k].y};
    }
    p.pool[s.slot] = node;
}

// Surface-area cost of the tree, up to the area of the root: every thread sums the
// nodes row, row + count, ... in that order and stores its part, and the host adds
// the parts in order. The grid is fixed, so equal trees have equal costs.
struct TreeCostParams {
    const Box* boxes;
    double* parts;
    i64 node_count;
    i64 row_begin;
    i64 count;
};

__device__ __forceinline__ double half_area(const Box& b)
{
    const double x = __dsub_rn((double)b.hi.x, (double)b.lo.x);
    const double y = __dsub_rn((double)b.hi.y, (double)b.lo.y);
    const double z = __dsub_rn((double)b.hi.z, (double)b.lo.z);
    return __fma_rn(x, y, __fma_rn(y, z, __dmul_rn(z, x)));
}

extern "C" __global__ void __launch_bounds__(128) tree_cost(const __grid_constant__ TreeCostParams p)
{
    const i64 i = launch_row();
    if (i >= p.count) {
        return;
    }
    double sum = 0.0;
    for (i64 n = p.row_begin + i; n < p.node_count; n += p.count) {
        sum = __dadd_rn(sum, half_area(p.boxes[n]));
    }
    p.parts[i] = sum;
}
