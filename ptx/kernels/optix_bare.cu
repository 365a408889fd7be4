// Closest hit as OptiX alone answers it: parameter, primitive and barycentrics by
// its own arithmetic. Only the benchmark launches it, to have something that ratios
// can refer to.

#include "optix.cuh"
#include "optix_params.cuh"

extern "C" {
__constant__ BareParams params;
}

extern "C" __global__ void __raygen__bare()
{
    const i64 row = params.row_begin + optix_launch_index();
    u32 payload[4] = {0x7f800000u, ~0u, 0, 0};
    const f32x3 o = load3(params.rays.o, row);
    const f32x3 d = load3(params.rays.d, row);
    const float t_max = row_t_max(params.rays, row);
    if (can_hit(o, d, t_max)) {
        optix_trace(params.handle, o, d, RAY_T_MIN, open_bound(t_max), OPTIX_DISABLE_ANY_HIT, 4, payload);
    }
    params.hits[row] = make_float4(__uint_as_float(payload[0]), __uint_as_float(payload[1]),
                                   __uint_as_float(payload[2]), __uint_as_float(payload[3]));
}

extern "C" __global__ void __closesthit__bare()
{
    const float2 b = optix_barycentrics();
    optix_set_payload(0, __float_as_uint(optix_ray_t_max()));
    optix_set_payload(1, optix_primitive_index());
    optix_set_payload(2, __float_as_uint(b.x));
    optix_set_payload(3, __float_as_uint(b.y));
}

// The payload already says so.
extern "C" __global__ void __miss__bare() {}
