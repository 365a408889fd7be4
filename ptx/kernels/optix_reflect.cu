// Chains of reflections by OptiX: the ids of the winners and nothing else. What happens
// at a surface is computed by the code that finalize replays the chain with.

#include "optix.cuh"
#include "optix_params.cuh"

extern "C" {
__constant__ ReflectParams params;
}

// The winner of a leg, or -1. Payload words 0 and 1: primitive of the shape, or -1, and
// instance.
__device__ __forceinline__ i32 trace_leg(f32x3 o, f32x3 d, float t_min, float t_max)
{
    u32 payload[4] = {~0u, 0, 0, 0};
    optix_trace(params.handle, o, d, t_min, open_bound(t_max), OPTIX_DISABLE_ANY_HIT, 2, payload);
    i32 winner = (i32)payload[0];
    if (winner >= 0 && params.face_offsets) {
        winner += params.face_offsets[payload[1]];
    }
    return winner;
}

extern "C" __global__ void __raygen__reflect()
{
    const i64 row = params.row_begin + optix_launch_index();
    const i32 bounces = (i32)params.bounces;
    i32* const slots = params.prim_ids + row * bounces;
    i32 k = 0;
    if (row_active(params.rays, row)) {
        f32x3 o = load3(params.rays.o, row);
        f32x3 d = load3(params.rays.d, row);
        f32x3 q = o;
        float t_min = RAY_T_MIN;
        float t_max = row_t_max(params.rays, row);
        bool more = can_hit(o, d, t_max);
        while (more) {
            const i32 winner = trace_leg(q, d, t_min, t_max);
            if (winner < 0) {
                break;
            }
            slots[k++] = winner;
            SurfaceHit h;
            Mirror m = load_mirror(params.surfaces, winner);
            if (k == bounces || !bounce_off(h, m, o, d)) {
                break;
            }
            o = h.p;
            d = next_direction(m, d);
            q = restart_point(m, o);
            t_min = 0.0f;
            t_max = F32_MAX;
            more = can_hit(q, d, t_max);
        }
    }
    for (; k < bounces; k++) {
        slots[k] = -1;
    }
}

extern "C" __global__ void __closesthit__reflect()
{
    optix_set_payload(0, optix_primitive_index());
    optix_set_payload(1, optix_instance_id());
}

extern "C" __global__ void __miss__reflect()
{
    optix_set_payload(0, ~0u);
}
