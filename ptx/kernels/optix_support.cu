// Plain kernels that the OptiX tracer needs beside its device programs.

#include "optix_params.cuh"

// OptiX reads launch parameters from memory when the launch runs. Writing them by
// a kernel on the same stream puts them there in order: one slot serves a stream,
// and the host never waits for a slot to become free.
struct StoreClosestParams {
    ClosestParams params;
    ClosestParams* to;
};

extern "C" __global__ void store_closest(const __grid_constant__ StoreClosestParams p)
{
    *p.to = p.params;
}

struct StoreBareParams {
    BareParams params;
    BareParams* to;
};

extern "C" __global__ void store_bare(const __grid_constant__ StoreBareParams p)
{
    *p.to = p.params;
}

struct StoreReflectParams {
    ReflectParams params;
    ReflectParams* to;
};

extern "C" __global__ void store_reflect(const __grid_constant__ StoreReflectParams p)
{
    *p.to = p.params;
}

struct StoreVisibleParams {
    OptixVisibleParams params;
    OptixVisibleParams* to;
};

extern "C" __global__ void store_visible(const __grid_constant__ StoreVisibleParams p)
{
    *p.to = p.params;
}

// Sum of the areas of the triangles' boxes, which tells how far refitting has
// spoilt a structure, and the box around all of them. Thread i takes the faces
// i, i + count, ... and stores its part; the host joins the parts in order.
struct FaceBoxesParams {
    const float* vertices;
    const i32* faces;
    double* areas;
    float* boxes; // six per thread: low corner, high corner
    i64 face_begin;
    i64 face_end;
    i64 count;
};

extern "C" __global__ void __launch_bounds__(128) face_boxes(const __grid_constant__ FaceBoxesParams p)
{
    const i64 i = launch_row();
    if (i >= p.count) {
        return;
    }
    double area = 0.0;
    f32x3 lo = {F32_MAX, F32_MAX, F32_MAX};
    f32x3 hi = {-F32_MAX, -F32_MAX, -F32_MAX};
    for (i64 f = p.face_begin + i; f < p.face_end; f += p.count) {
        const f32x3 a = load3(p.vertices, p.faces[3 * f]);
        const f32x3 b = load3(p.vertices, p.faces[3 * f + 1]);
        const f32x3 c = load3(p.vertices, p.faces[3 * f + 2]);
        const f32x3 l = {fminf(fminf(a.x, b.x), c.x), fminf(fminf(a.y, b.y), c.y), fminf(fminf(a.z, b.z), c.z)};
        const f32x3 h = {fmaxf(fmaxf(a.x, b.x), c.x), fmaxf(fmaxf(a.y, b.y), c.y), fmaxf(fmaxf(a.z, b.z), c.z)};
        const double x = __dsub_rn((double)h.x, (double)l.x);
        const double y = __dsub_rn((double)h.y, (double)l.y);
        const double z = __dsub_rn((double)h.z, (double)l.z);
        area = __dadd_rn(area, __fma_rn(x, y, __fma_rn(y, z, __dmul_rn(z, x))));
        lo = f32x3{fminf(lo.x, l.x), fminf(lo.y, l.y), fminf(lo.z, l.z)};
        hi = f32x3{fmaxf(hi.x, h.x), fmaxf(hi.y, h.y), fmaxf(hi.z, h.z)};
    }
    p.areas[i] = area;
    store3(p.boxes, 2 * i, lo);
    store3(p.boxes, 2 * i + 1, hi);
}
