// One lane of AccumDfrDirect: random numbers, points and contribution, in an order of
// operations that is part of the result.
#pragma once

#include "dfr.cuh"
#include "grid.cuh"

// Random numbers that depend on lane, stream and seed only. A key stands for the last two.
__device__ __forceinline__ u32 hash32(u32 x)
{
    x ^= x >> 16;
    x *= 0x7feb352d;
    x ^= x >> 15;
    x *= 0x846ca68b;
    return x ^ x >> 16;
}

// In units of 2^-24.
__device__ __forceinline__ u32 random24(u32 lane, u32 key) { return hash32(lane ^ key) >> 8; }

__device__ __forceinline__ float uniform01(u32 lane, u32 key) { return mul((float)random24(lane, key), 5.9604644775390625e-8f); }

__device__ __forceinline__ f32x3 moved(f32x3 a, float t, f32x3 d)
{
    return f32x3{add(a.x, mul(t, d.x)), add(a.y, mul(t, d.y)), add(a.z, mul(t, d.z))};
}

// Where on the edge a lane diffracts.
__device__ __forceinline__ f32x3 edge_point(const Leg& s, float u)
{
    return moved(s.pos, add(s.t_min, mul(u, s.span)), s.dir);
}

// The point that rays start and end at in its place, off the wedge.
__device__ __forceinline__ float lift_of(f32x3 q) { return fmaxf(1e-4f, mul(5e-6f, max_abs(q))); }

__device__ __forceinline__ f32x3 lifted(f32x3 q, f32x3 offset) { return moved(q, lift_of(q), offset); }

// Squared lengths are at least 1e-12.
__device__ __forceinline__ float squared(f32x3 a)
{
    return fmaxf(fmadd(a.z, a.z, fmadd(a.y, a.y, mul(a.x, a.x))), 1e-12f);
}

// sin and cos of turns * 2^-24 turns: by Taylor's series in eighths of a turn, which are
// good to 3e-9 there.
__device__ __forceinline__ void sin_cos(u32 turns, float& s, float& c)
{
    const u32 quarter = (turns + (1u << 21)) >> 22;
    const float r = mul((float)((i32)turns - (i32)(quarter << 22)), 5.9604644775390625e-8f);
    const float x = mul(r, 6.283185307179586f);
    const float x2 = mul(x, x);
    const float odd = fmadd(fmadd(fmadd(2.7557319e-6f, x2, -1.9841270e-4f), x2, 8.3333333e-3f), x2, -1.6666667e-1f);
    const float sine = fmadd(mul(odd, x2), x, x);
    const float even = fmadd(fmadd(fmadd(-2.7557319e-7f, x2, 2.4801587e-5f), x2, -1.3888889e-3f), x2, 4.1666667e-2f);
    const float cosine = fmadd(fmadd(even, x2, -0.5f), x2, 1.0f);
    const bool swap = quarter & 1;
    s = swap ? cosine : sine;
    c = swap ? sine : cosine;
    s = quarter & 2 ? -s : s;
    c = (quarter + 1) & 2 ? -c : c;
}

// The ray of a lane off the edge at q, by angle turns around it, and where it meets the
// plane of the grid.
struct Cone {
    f32x3 x;
    float weight; // 2 pi J, to be divided by the area of a cell; found on demand
};

// False when it does not meet the plane.
__device__ __forceinline__ bool meet_plane(Cone& k, const Leg& s, f32x3 q, u32 turns, const Cells& g, bool weigh)
{
    const f32x3 i = sub(q, s.src);
    const f32x3 e = s.dir;
    const f32x3 around = cross(e, i);
    const float along = dot(e, i);
    float sine, cosine;
    sin_cos(turns, sine, cosine);
    const float c1 = mul(sub(1.0f, cosine), along);
    const float length = root(squared(i)); // of i, and of its rotation
    const f32x3 r = {quot(fmadd(sine, around.x, fmadd(cosine, i.x, mul(c1, e.x))), length),
                     quot(fmadd(sine, around.y, fmadd(cosine, i.y, mul(c1, e.y))), length),
                     quot(fmadd(sine, around.z, fmadd(cosine, i.z, mul(c1, e.z))), length)};
    const float slope = component(r, g.axis);
    const float ell = quot(sub(g.position, component(q, g.axis)), slope);
    if (!(fabsf(slope) > 1e-6f) || !(ell > 1e-4f) || !is_finite(ell)) {
        return false;
    }
    const f32x3 x = moved(q, ell, r);
    k.x = point_of(g, component(x, axis_of_0(g.axis)), component(x, axis_of_1(g.axis)));
    if (!weigh) {
        return true;
    }
    // J = sin^2 beta0 ell (ell + s') / (s' |slope|), sin beta0 = |e X i|/s'
    const float sin2 = quot(dot(around, around), mul(length, length));
    const float j = quot(mul(mul(sin2, ell), add(ell, length)), mul(length, fabsf(slope)));
    k.weight = mul(j, 6.283185307179586f);
    return true;
}
