// The cells of a grid in a plane perpendicular to an axis.
#pragma once

#include "arith.cuh"

struct Cells {
    i32 axis; // 0, 1, 2
    float position;
    float min0, max0, min1, max1; // along the other two axes, in ascending order
    i32 res0, res1;
};

// The axes of the two coordinates of a grid in this plane.
__device__ __forceinline__ i32 axis_of_0(i32 axis) { return axis == 0 ? 1 : 0; }
__device__ __forceinline__ i32 axis_of_1(i32 axis) { return axis == 2 ? 1 : 2; }

__device__ __forceinline__ float component(f32x3 a, i32 axis) { return axis == 0 ? a.x : (axis == 1 ? a.y : a.z); }

// The point of the plane with these coordinates.
__device__ __forceinline__ f32x3 point_of(const Cells& g, float c0, float c1)
{
    return f32x3{g.axis == 0 ? g.position : c0, g.axis == 1 ? g.position : (g.axis == 0 ? c0 : c1),
                 g.axis == 2 ? g.position : c1};
}

// The middle of cell i of res along a coordinate.
__device__ __forceinline__ float cell_middle(float lo, float hi, i32 res, i32 i)
{
    return add(lo, mul(add((float)i, 0.5f), quot(sub(hi, lo), (float)res)));
}

__device__ __forceinline__ f32x3 cell_centre(const Cells& g, i64 cell)
{
    const i32 j = (i32)(cell / g.res0);
    const i32 i = (i32)(cell - (i64)j * g.res0);
    return point_of(g, cell_middle(g.min0, g.max0, g.res0, i), cell_middle(g.min1, g.max1, g.res1, j));
}

// The cell along one coordinate, or -1.
__device__ __forceinline__ i32 cell_along(float lo, float hi, i32 res, float c)
{
    if (!(c >= lo && c < hi)) {
        return -1;
    }
    return min((i32)mul(quot(sub(c, lo), sub(hi, lo)), (float)res), res - 1);
}

// The cell that holds the point with these coordinates, or -1. Cells are half-open.
__device__ __forceinline__ i64 cell_of(const Cells& g, float c0, float c1)
{
    const i32 i = cell_along(g.min0, g.max0, g.res0, c0);
    const i32 j = cell_along(g.min1, g.max1, g.res1, c1);
    return i < 0 || j < 0 ? -1 : (i64)j * g.res0 + i;
}
