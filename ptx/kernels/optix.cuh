// What device programs of OptiX may call. OptiX resolves these names when it
// compiles a module: they are not declared anywhere, every operand is a register
// of the width that ptx/abi/optix_device.json states, and ptxaudit compares each
// call with that file, because the driver does not notice a register of the wrong
// kind.
#pragma once

#include "arith.cuh"

__device__ __forceinline__ u32 optix_launch_index()
{
    u32 x;
    asm volatile("call (%0), _optix_get_launch_index_x, ();" : "=r"(x));
    return x;
}

__device__ __forceinline__ u32 optix_primitive_index()
{
    u32 i;
    asm volatile("call (%0), _optix_read_primitive_idx, ();" : "=r"(i));
    return i;
}

__device__ __forceinline__ u32 optix_instance_id()
{
    u32 i;
    asm volatile("call (%0), _optix_read_instance_id, ();" : "=r"(i));
    return i;
}

// The upper end of the ray's interval, which in a closest-hit program is the
// parameter of the hit.
__device__ __forceinline__ float optix_ray_t_max()
{
    float t;
    asm volatile("call (%0), _optix_get_ray_tmax, ();" : "=f"(t));
    return t;
}

// Weights of the second and third vertex.
__device__ __forceinline__ float2 optix_barycentrics()
{
    float2 b;
    asm volatile("call (%0, %1), _optix_get_triangle_barycentrics, ();" : "=f"(b.x), "=f"(b.y));
    return b;
}

__device__ __forceinline__ void optix_set_payload(u32 number, u32 value)
{
    asm volatile("call (), _optix_set_payload, (%0, %1);" : : "r"(number), "r"(value));
}

__device__ __forceinline__ u32 optix_payload(u32 number)
{
    u32 value;
    asm volatile("call (%0), _optix_get_payload, (%1);" : "=r"(value) : "r"(number));
    return value;
}

// In an any-hit program: the ray goes on as if the triangle were not there. Does not
// return.
__device__ __forceinline__ void optix_ignore_intersection()
{
    asm volatile("call (), _optix_ignore_intersection, ();");
}

// OptiX accepts hits below its upper bound, we up to t_max: the next larger number.
// A hit at the largest number of all cannot be told from no bound.
__device__ __forceinline__ float open_bound(float t_max)
{
    return t_max < F32_MAX ? __int_as_float(__float_as_int(t_max) + 1) : F32_MAX;
}

// Bits of the flags of a trace.
#define OPTIX_DISABLE_ANY_HIT 1u
#define OPTIX_FIRST_HIT 4u // any hit ends the search
#define OPTIX_DISABLE_CLOSEST_HIT 8u

// Traces a ray with up to four payload words through all instances. Programs come
// from the first hit and the first miss record of the binding table.
__device__ __forceinline__ void optix_trace(u64 handle, f32x3 o, f32x3 d, float t_min, float t_max, u32 flags,
                                            u32 words, u32 (&payload)[4])
{
    u32 p4, p5, p6, p7, p8, p9, p10, p11, p12, p13, p14, p15, p16, p17, p18, p19, p20, p21, p22, p23, p24, p25,
        p26, p27, p28, p29, p30, p31;
    const float time = 0.0f;
    const u32 zero = 0, one = 1, mask = 255;
    // Operands 0 to 31 are the payload words that come out. Operands 32 to 48 are
    // the ray, 49 to 52 the payload words that go in, 53 fills the unused ones.
    asm volatile("call (%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, "
                 "%21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31), _optix_trace_typed_32, "
                 "(%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, "
                 "%52, %53, %53, %53, %53, %53, %53, %53, %53, %53, %53, %53, %53, %53, %53, %53, %53, %53, %53, %53, "
                 "%53, %53, %53, %53, %53, %53, %53, %53, %53);"
                 : "=r"(payload[0]), "=r"(payload[1]), "=r"(payload[2]), "=r"(payload[3]), "=r"(p4), "=r"(p5),
                   "=r"(p6), "=r"(p7), "=r"(p8), "=r"(p9), "=r"(p10), "=r"(p11), "=r"(p12), "=r"(p13), "=r"(p14),
                   "=r"(p15), "=r"(p16), "=r"(p17), "=r"(p18), "=r"(p19), "=r"(p20), "=r"(p21), "=r"(p22),
                   "=r"(p23), "=r"(p24), "=r"(p25), "=r"(p26), "=r"(p27), "=r"(p28), "=r"(p29), "=r"(p30),
                   "=r"(p31)
                 : "r"(zero), "l"(handle), "f"(o.x), "f"(o.y), "f"(o.z), "f"(d.x), "f"(d.y), "f"(d.z), "f"(t_min),
                   "f"(t_max), "f"(time), "r"(mask), "r"(flags), "r"(zero), "r"(one), "r"(zero), "r"(words),
                   "r"(payload[0]), "r"(payload[1]), "r"(payload[2]), "r"(payload[3]), "r"(zero));
}
