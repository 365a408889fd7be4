// Launch parameters of the device programs.
#pragma once

#include "rays.cuh"

struct ClosestParams {
    RayColumns rays;
    i32* winners;
    // First primitive of each instance, or null when there is one shape and the
    // handle is its geometry.
    const i32* face_offsets;
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
