// Closest hit by OptiX: the id of the winner and nothing else. Every continuous
// column comes from the finalize kernel, so that no backend's arithmetic shows.

#include "optix.cuh"
#include "optix_params.cuh"

extern "C" {
__constant__ ClosestParams params;
}

// Payload words 0 and 1: primitive of the shape, or -1, and instance.
extern "C" __global__ void __raygen__closest()
{
    const i64 row = params.row_begin + optix_launch_index();
    i32 winner = -1;
    if (row_active(params.rays, row)) {
        const f32x3 o = load3(params.rays.o, row);
        const f32x3 d = load3(params.rays.d, row);
        const float t_max = row_t_max(params.rays, row);
        if (can_hit(o, d, t_max)) {
            u32 payload[4] = {~0u, 0, 0, 0};
            optix_trace(params.handle, o, d, RAY_T_MIN, open_bound(t_max), OPTIX_DISABLE_ANY_HIT, 2, payload);
            winner = (i32)payload[0];
            if (winner >= 0 && params.face_offsets) {
                winner += params.face_offsets[payload[1]];
            }
        }
    }
    params.winners[row] = winner;
}

extern "C" __global__ void __closesthit__closest()
{
    optix_set_payload(0, optix_primitive_index());
    optix_set_payload(1, optix_instance_id());
}

extern "C" __global__ void __miss__closest()
{
    optix_set_payload(0, ~0u);
}
