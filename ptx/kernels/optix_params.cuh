// Launch parameters of the device programs.
#pragma once

#include "rays.cuh"
#include "reflect.cuh"
#include "visible.cuh"

struct ClosestParams {
    RayColumns rays;
    i32* winners;
    // First primitive of each instance, or null when there is one shape and the
    // handle is its geometry.
    const i32* face_offsets;
    u64 handle;
    i64 row_begin;
};

// Chains of at most so many bounces, stored as primitives [rows, bounces].
struct ReflectParams {
    RayColumns rays;
    Surfaces surfaces;
    i32* prim_ids;
    const i32* face_offsets; // as above
    u64 handle;
    i64 row_begin;
    i64 bounces;
};

struct OptixVisibleParams {
    VisibleRows rows;
    const i32* face_offsets; // as above
    u64 handle;
    i64 row_begin;
};

// A row of hits: t, the primitive's bits, and the weights of the second and third
// vertex. A miss has t = +inf and primitive -1.
struct BareParams {
    RayColumns rays;
    float4* hits;
    u64 handle;
    i64 row_begin;
};
