// Evaluations for tests: the functions of medium.cuh and field.cuh at values of a test's
// choice.

#include "field.cuh"

// One evaluation.
struct FieldCheck {
    float4 medium;
    double loss_per_sigma;
    double lambda;
    float cosine;
    float length;
    f32x3 a; // becomes transverse to k
    f32x3 k, n;
    c32x3 field; // is reflected
};

struct FieldChecked {
    Reflectance reflectance;
    c32 phase;
    f32x3 transverse;
    f32x3 next;
    c32x3 field;
};

struct CheckFieldParams {
    const FieldCheck* in;
    FieldChecked* out;
    i64 count;
};

extern "C" __global__ void __launch_bounds__(128) check_field(const __grid_constant__ CheckFieldParams p)
{
    const i64 i = launch_row();
    if (i >= p.count) {
        return;
    }
    const FieldCheck v = p.in[i];
    p.out[i] = FieldChecked{reflectance(v.medium, v.loss_per_sigma, v.cosine), travelled_phase(v.length, v.lambda),
                            transverse(v.a, v.k), reflected(v.k, dot(v.k, v.n), v.n),
                            reflected_field(v.field, v.k, v.n, v.medium, v.loss_per_sigma)};
}
