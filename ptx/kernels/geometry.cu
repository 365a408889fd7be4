// Kernels of Build and Sync: validation of geometry that is already on the device,
// derived tables, and the boxes of the triangle tree.

#include "tree.cuh"

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

__device__ __forceinline__ f32x3 face_vector(f32x3 v0, f32x3 v1, f32x3 v2)
{
    return cross(sub(v1, v0), sub(v2, v0));
}

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

// Copies the vertices of every leaf slot next to each other.
struct GatherTrianglesParams {
    const float* vertices;
    const i32* faces;
    const i32* order; // primitive id of each slot
    float4* triangles;
    i64 row_begin;
    i64 count;
};

extern "C" __global__ void __launch_bounds__(128) gather_triangles(const __grid_constant__ GatherTrianglesParams p)
{
    const i64 i = launch_row();
    if (i >= p.count) {
        return;
    }
    const i64 slot = p.row_begin + i;
    const i32 prim = p.order[slot];
    const f32x3 v0 = load3(p.vertices, p.faces[3 * (i64)prim]);
    const f32x3 v1 = load3(p.vertices, p.faces[3 * (i64)prim + 1]);
    const f32x3 v2 = load3(p.vertices, p.faces[3 * (i64)prim + 2]);
    const bool flat = max_abs(face_vector(v0, v1, v2)) == 0.0f;
    float4* out = p.triangles + 3 * slot;
    out[0] = float4{v0.x, v0.y, v0.z, __int_as_float(prim)};
    out[1] = float4{v1.x, v1.y, v1.z, __int_as_float(flat ? 1 : 0)};
    out[2] = float4{v2.x, v2.y, v2.z, 0.0f};
}

// Boxes of one level of the tree. Levels are launched from the deepest up, so the
// boxes of inner children are finished.
struct RefitLevelParams {
    Node* nodes;
    const float4* triangles;
    i64 row_begin;
    i64 count;
};

struct Box {
    f32x3 lo, hi;
};

__device__ __forceinline__ void grow(Box& b, f32x3 lo, f32x3 hi)
{
    b.lo = f32x3{fminf(b.lo.x, lo.x), fminf(b.lo.y, lo.y), fminf(b.lo.z, lo.z)};
    b.hi = f32x3{fmaxf(b.hi.x, hi.x), fmaxf(b.hi.y, hi.y), fmaxf(b.hi.z, hi.z)};
}

__device__ __forceinline__ void grow(Box& b, float4 v)
{
    const f32x3 point = {v.x, v.y, v.z};
    grow(b, point, point);
}

__device__ __forceinline__ Box child_box(const Node* nodes, const float4* triangles, i32 child)
{
    Box b = {{F32_MAX, F32_MAX, F32_MAX}, {-F32_MAX, -F32_MAX, -F32_MAX}};
    if (child < 0) {
        const float4* v = triangles + 3 * (i64)leaf_first(child);
        for (i32 n = 3 * leaf_count(child); n > 0; n--) {
            grow(b, *v++);
        }
        return b;
    }
    const Node* node = nodes + child;
    const float4 z = node->z;
    const float4 a = node->xy[0];
    const float4 c = node->xy[1];
    grow(b, f32x3{a.x, a.z, z.x}, f32x3{a.y, a.w, z.y});
    grow(b, f32x3{c.x, c.z, z.z}, f32x3{c.y, c.w, z.w});
    return b;
}

extern "C" __global__ void __launch_bounds__(128) refit_level(const __grid_constant__ RefitLevelParams p)
{
    const i64 i = launch_row();
    if (i >= p.count) {
        return;
    }
    Node* node = p.nodes + (p.row_begin + i);
    const int4 link = node->link;
    const Box a = child_box(p.nodes, p.triangles, link.x);
    const Box c = child_box(p.nodes, p.triangles, link.y);
    const float extent = fmaxf(fmaxf(max_abs(a.lo), max_abs(a.hi)), fmaxf(max_abs(c.lo), max_abs(c.hi)));
    node->xy[0] = float4{a.lo.x, a.hi.x, a.lo.y, a.hi.y};
    node->xy[1] = float4{c.lo.x, c.hi.x, c.lo.y, c.hi.y};
    node->z = float4{a.lo.z, a.hi.z, c.lo.z, c.hi.z};
    node->link = int4{link.x, link.y, __float_as_int(extent), 0};
}

// Surface-area cost of the tree, up to the area of the root: every thread sums the
// nodes row, row + count, ... in that order and stores its part, and the host adds
// the parts in order. The grid is fixed, so equal trees have equal costs.
struct TreeCostParams {
    const Node* nodes;
    double* parts;
    i64 node_count;
    i64 row_begin;
    i64 count;
};

__device__ __forceinline__ double half_area(float lx, float hx, float ly, float hy, float lz, float hz)
{
    const double x = __dsub_rn((double)hx, (double)lx);
    const double y = __dsub_rn((double)hy, (double)ly);
    const double z = __dsub_rn((double)hz, (double)lz);
    return __fma_rn(x, y, __fma_rn(y, z, __dmul_rn(z, x)));
}

__device__ __forceinline__ double child_cost(double area, i32 child)
{
    return __dmul_rn(area, (double)(child < 0 ? leaf_count(child) : 1));
}

extern "C" __global__ void __launch_bounds__(128) tree_cost(const __grid_constant__ TreeCostParams p)
{
    const i64 i = launch_row();
    if (i >= p.count) {
        return;
    }
    double sum = 0.0;
    for (i64 n = p.row_begin + i; n < p.node_count; n += p.count) {
        const Node node = p.nodes[n];
        const float4 a = node.xy[0];
        const float4 c = node.xy[1];
        sum = __dadd_rn(sum, child_cost(half_area(a.x, a.y, a.z, a.w, node.z.x, node.z.y), node.link.x));
        sum = __dadd_rn(sum, child_cost(half_area(c.x, c.y, c.z, c.w, node.z.z, node.z.w), node.link.y));
    }
    p.parts[i] = sum;
}
