// Visibility by OptiX: the rows of visible.cuh, each segment a trace that stops at
// the first triangle. What blocks a polyline first takes one more trace.

#include "optix.cuh"
#include "optix_params.cuh"

extern "C" {
__constant__ OptixVisibleParams params;
}

// Payload words 0 and 1: primitive of the shape, or -1 if nothing is hit, and
// instance. Words 2 and 3 are the address of the ignore list, for the any-hit program.
__device__ __forceinline__ void trace_segment(u32 (&payload)[4], const Segment& g, const i32* list, u32 flags)
{
    payload[0] = payload[1] = 0;
    payload[2] = (u32)(u64)list;
    payload[3] = (u32)((u64)list >> 32);
    flags |= list ? 0 : OPTIX_DISABLE_ANY_HIT;
    optix_trace(params.handle, g.o, g.d, g.t_min, open_bound(g.t_max), flags, 4, payload);
}

// The id of a primitive in the scene.
__device__ __forceinline__ i32 global_id(u32 primitive, u32 instance)
{
    return (i32)primitive + (params.face_offsets ? params.face_offsets[instance] : 0);
}

extern "C" __global__ void __raygen__visible()
{
    const VisibleRows& v = params.rows;
    const i64 row = params.row_begin + optix_launch_index();
    const bool searched = row_active(v, row) && row_finite(v, v.kind, row);
    if (!searched || segment_count(v, v.kind, row) == 0) {
        store_unsearched(v, v.kind, row, searched);
        return;
    }
    Segment g;
    SegmentState state;
    u32 payload[4];
    bool visible;
    i32 i = -1;
    do {
        i++;
        state = load_segment(g, v, v.kind, row, i);
        visible = state == SEGMENT_FREE;
        if (state == SEGMENT_OPEN) {
            trace_segment(payload, g, load_ignored(v, v.kind, row, i), OPTIX_FIRST_HIT | OPTIX_DISABLE_CLOSEST_HIT);
            visible = payload[0] == ~0u;
        }
    } while (store_answer(v, v.kind, row, i, visible));
    if (v.kind == VISIBLE_CHAIN && !visible && state == SEGMENT_OPEN) {
        trace_segment(payload, g, load_ignored(v, v.kind, row, i), 0);
        if (payload[0] != ~0u) {
            v.prim[row] = global_id(payload[0], payload[1]);
        }
    }
}

extern "C" __global__ void __anyhit__visible()
{
    const i32* list = (const i32*)((u64)optix_payload(3) << 32 | optix_payload(2));
    if (is_ignored(list, params.rows.ignore_width, global_id(optix_primitive_index(), optix_instance_id()))) {
        optix_ignore_intersection();
    }
}

extern "C" __global__ void __closesthit__visible()
{
    optix_set_payload(0, optix_primitive_index());
    optix_set_payload(1, optix_instance_id());
}

extern "C" __global__ void __miss__visible()
{
    optix_set_payload(0, ~0u);
}
