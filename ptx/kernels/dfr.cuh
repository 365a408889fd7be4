// Wedge states on the device: a table of State for every state, then a table of Leg.
#pragma once

#include "arith.cuh"

// A state as it was uploaded.
struct alignas(16) State {
    f32x3 pos;
    float t_min;
    f32x3 dir; // of any length
    float t_max;
    f32x3 n0;
    float theta;
    f32x3 n1;
    float power;
    f32x3 src;
    i32 edge;
    i32 prim0, prim1; // -1: none
    u32 unused[2];
};
static_assert(sizeof(State) == 96, "state layout");

// What the scalar model reads of a state, prepared in float64 and rounded once.
struct alignas(16) Leg {
    f32x3 pos;
    float t_min;
    f32x3 dir;    // unit
    float span;   // t_max - t_min
    f32x3 offset; // exterior bisector
    f32x3 src;
    double scale; // power times angle weight times length; NaN: rejected
};
static_assert(sizeof(Leg) == 64, "leg layout");
