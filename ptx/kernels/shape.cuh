// Boxes, and what a builder of the triangle tree decides about a node.
#pragma once

#include "tree.cuh"

struct Box {
    f32x3 lo, hi;
};

__device__ __forceinline__ Box empty_box()
{
    return Box{{F32_MAX, F32_MAX, F32_MAX}, {-F32_MAX, -F32_MAX, -F32_MAX}};
}

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

// The part of a node that does not move: what a builder decides.
struct Shape {
    i32 slot;        // of the node
    i32 base;        // slot of its first child
    i32 first_inner; // number of its first inner child; the others follow
    i32 masks;       // places of inner children, of triangles << 8
};

__device__ __forceinline__ u32 inner_places(const Shape& s) { return (u32)s.masks & 255; }
__device__ __forceinline__ u32 triangle_places(const Shape& s) { return (u32)s.masks >> 8 & 255; }
__device__ __forceinline__ u32 all_places(const Shape& s) { return inner_places(s) | triangle_places(s); }
