// Equivalent paths: the specular path from a source over the planes of given triangles to
// a receiver, by images, and whether its points lie on the triangles. The search, which
// decides, and finalize, which reports, both compute it with the order of operations
// below, and get the same bits.
//
//   I_0 = source, I_(b+1) = reflected(I_b, dot(I_b - P_b, n_b), n_b)      as in reflect.cuh
//   E = receiver; for b = m-1 .. 0:
//     w = E - I_(b+1), den = dot(w, n_b)
//     s = dot(P_b - I_(b+1), n_b) / den
//     X_b = fma(s, w, I_(b+1)), E = X_b
//
// P_b and n_b are the first vertex and the unit normal of a triangle, or those of the
// caller, made unit.
#pragma once

#include "reflect.cuh"
#include "tree.cuh"

#define MAX_EPC_BOUNCES 8
// The points of a path: source, reflections, receiver.
#define EPC_POINTS (MAX_EPC_BOUNCES + 2)

// Why a row has no path, in the order in which it is found.
enum EpcFail {
    EPC_OK = 0,
    EPC_INACTIVE = 1, // or a number that is not finite
    EPC_SEQUENCE = 2, // empty, or a triangle that does not exist
    EPC_NORMAL = 3,   // zero or not finite
    EPC_PARALLEL = 4,
    EPC_BEHIND = 5,  // the point is not between image and end
    EPC_OUTSIDE = 6, // the point is not on the surface
    EPC_BLOCKED = 7
};

// Triangles from the slots of a tree where there is one, else from the tables.
struct Reflectors {
    Surfaces surfaces;
    const Triangle* pool;
    const i32* slots; // of each face, or null
    i32 count;
};

struct EpcRows {
    const float* source;
    const float* receiver;
    const i32* seq;             // [rows, bounces]
    const float* plane_points;  // [rows, bounces, 3], or null
    const float* plane_normals; // likewise
    const u8* active;           // may be null
    i32 bounces;
};

// Groups of triangles; without any, ids is null.
struct SurfaceGroups {
    const i32* ids;     // group of each triangle, or -1
    const i32* offsets; // of each group in members
    const i32* members;
    i32 count; // ids
};

__device__ __forceinline__ i32 group_of(const SurfaceGroups& g, i32 prim)
{
    return g.ids && prim >= 0 && prim < g.count ? __ldg(g.ids + prim) : -1;
}

struct Corners {
    f32x3 v0, v1, v2;
};

__device__ __forceinline__ Corners load_corners(const Reflectors& g, i32 prim)
{
    if (!g.slots) {
        const i64 corner = 3 * (i64)prim;
        return Corners{load_vertex(g.surfaces, corner), load_vertex(g.surfaces, corner + 1),
                       load_vertex(g.surfaces, corner + 2)};
    }
    const Triangle* t = g.pool + __ldg(g.slots + prim);
    const float4 a = __ldg(&t->a);
    const float4 b = __ldg(&t->b);
    const float4 c = __ldg(&t->c);
    return Corners{{a.x, a.y, a.z}, {b.x, b.y, b.z}, {c.x, c.y, c.z}};
}

struct Plane {
    f32x3 p, n; // n is unit, or zero
};

// The plane of a slot whose triangle exists.
__device__ __forceinline__ Plane load_plane(const Reflectors& g, const EpcRows& r, i64 slot, i32 prim)
{
    Plane plane;
    if (!r.plane_points || !r.plane_normals) {
        const Corners c = load_corners(g, prim);
        plane = Plane{c.v0, unit(face_vector(c.v0, c.v1, c.v2))};
    }
    if (r.plane_points) {
        plane.p = load3(r.plane_points, slot);
    }
    if (r.plane_normals) {
        plane.n = unit(load3(r.plane_normals, slot));
    }
    return plane;
}

// What every row has, read once and without a branch: rows may be on another device,
// microseconds away.
struct Sequence {
    f32x3 source, receiver;
    i32 prims[MAX_EPC_BOUNCES];
    i32 length; // of prims: it ends before the first -1
};

__device__ __forceinline__ void load_sequence(Sequence& q, const EpcRows& r, i64 row)
{
    q.source = load3(r.source, row);
    q.receiver = load3(r.receiver, row);
    q.length = r.bounces;
#pragma unroll
    for (i32 b = MAX_EPC_BOUNCES - 1; b >= 0; b--) {
        q.prims[b] = b < r.bounces ? r.seq[row * r.bounces + b] : -1;
        q.length = q.prims[b] == -1 ? b : q.length;
    }
}

// Whether the inputs of a row make sense, but for its normals.
__device__ __forceinline__ u32 check_row(const Reflectors& g, const EpcRows& r, i64 row, const Sequence& q)
{
    if ((r.active && !r.active[row]) || !is_finite(q.source) || !is_finite(q.receiver)) {
        return EPC_INACTIVE;
    }
    bool known = q.length > 0;
    for (i32 b = 0; b < q.length; b++) {
        if (r.plane_points && !is_finite(load3(r.plane_points, row * r.bounces + b))) {
            return EPC_INACTIVE;
        }
        known &= (u32)q.prims[b] < (u32)g.count;
    }
    return known ? EPC_OK : EPC_SEQUENCE;
}

// Fills points[0..m+1] with source, reflections and receiver.
__device__ __forceinline__ u32 find_points(f32x3* points, const Reflectors& g, const EpcRows& r, i64 row, const Sequence& q)
{
    const i64 first = row * r.bounces;
    const i32 m = q.length;
    f32x3 image = q.source;
    points[0] = image;
    for (i32 b = 0; b < m; b++) {
        const Plane plane = load_plane(g, r, first + b, q.prims[b]);
        if (max_abs(plane.n) == 0.0f) {
            return EPC_NORMAL;
        }
        image = reflected(image, dot(sub(image, plane.p), plane.n), plane.n);
        points[b + 1] = image;
    }
    f32x3 end = q.receiver;
    points[m + 1] = end;
    for (i32 b = m - 1; b >= 0; b--) {
        const Plane plane = load_plane(g, r, first + b, q.prims[b]);
        image = points[b + 1];
        const f32x3 w = sub(end, image);
        const float den = dot(w, plane.n);
        const float least = fmaxf(root(dot(w, w)), fmaxf(surface_offset(max_abs(image)), surface_offset(max_abs(end))));
        if (!(fabsf(den) > mul(1e-7f, least))) {
            return EPC_PARALLEL;
        }
        const float s = quot(dot(sub(plane.p, image), plane.n), den);
        if (!(s >= -1e-4f && s <= 1.0f + 1e-4f)) {
            return EPC_BEHIND;
        }
        end = f32x3{fmadd(s, w.x, image.x), fmadd(s, w.y, image.y), fmadd(s, w.z, image.z)};
        points[b + 1] = end;
    }
    return EPC_OK;
}

// Whether a point lies on a triangle:
//   a = dot(e1, e1), c = dot(e1, e2), f = dot(e2, e2), D = a f - c c,  g = x - v0
//   |dot(g, e1 X e2)| <= tolerance max(1, sqrt(max(a, f))) sqrt(D)
//   u = (f dot(g, e1) - c dot(g, e2)) / D, v = (a dot(g, e2) - c dot(g, e1)) / D
// differences of products as in dop. Slivers hold no point.
__device__ __forceinline__ bool holds_point(const Corners& t, f32x3 x, float tolerance)
{
    const f32x3 e1 = sub(t.v1, t.v0);
    const f32x3 e2 = sub(t.v2, t.v0);
    const float a = dot(e1, e1);
    const float c = dot(e1, e2);
    const float f = dot(e2, e2);
    const float d = dop(a, f, c, c);
    if (!(d > mul(1e-14f, mul(a, f)))) {
        return false;
    }
    const f32x3 g = sub(x, t.v0);
    const float reach = mul(mul(tolerance, fmaxf(1.0f, root(fmaxf(a, f)))), root(d));
    if (!(fabsf(dot(g, cross(e1, e2))) <= reach)) {
        return false;
    }
    const float g1 = dot(g, e1);
    const float g2 = dot(g, e2);
    const float u = quot(dop(f, g1, c, g2), d);
    const float v = quot(dop(a, g2, c, g1), d);
    return u >= -1e-4f && v >= -1e-4f && add(u, v) <= 1.0f + 1e-4f;
}

// The triangle that holds the reflection off prim, or -1: the first of its group, or
// itself where it has none.
__device__ __forceinline__ i32 resolve(const Reflectors& g, const SurfaceGroups& groups, i32 prim, f32x3 x, float tolerance)
{
    const i32 group = group_of(groups, prim);
    if (group < 0) {
        return holds_point(load_corners(g, prim), x, tolerance) ? prim : -1;
    }
    const i32 end = __ldg(groups.offsets + group + 1);
    for (i32 k = __ldg(groups.offsets + group); k < end; k++) {
        const i32 member = __ldg(groups.members + k);
        if (holds_point(load_corners(g, member), x, tolerance)) {
            return member;
        }
    }
    return -1;
}
