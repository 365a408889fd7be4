// Evaluations for tests: the functions of f64.cuh, complex.cuh and utd.cuh at values of a
// test's choice.

#include "utd.cuh"

// Arguments of functions of a few numbers.
struct UtdValues {
    double turns, radians; // of sincos_turns and sincos_radians
    double x, y;           // of angle_of; a complex number, y <= 0
    double t;              // of the auxiliary functions, and of edge_tail with either sign
    double v1, v2;         // of edge_factor
    double psi, theta, parameter;
    double eta_r, loss, mu, gain, cosine; // of utd_reflection
};

struct UtdEvaluated {
    SinCos turns, radians;
    double angle;
    c64 root, quotient; // of x + j y, and of 1/(x + j y)
    c64 auxiliary, tail, factor, term;
    UtdReflection reflection;
};

// Rows of a kernel's own types.
struct CheckUtdParams {
    const void* in;
    void* out;
    i64 count;
};

extern "C" __global__ void __launch_bounds__(128) check_utd_functions(const __grid_constant__ CheckUtdParams p)
{
    const i64 i = launch_row();
    if (i >= p.count) {
        return;
    }
    const UtdValues v = ((const UtdValues*)p.in)[i];
    const c64 z = {v.x, v.y};
    const UtdFace face = {true, v.loss > 1e30, c64{v.eta_r, -v.loss}, v.mu, v.gain};
    ((UtdEvaluated*)p.out)[i] = UtdEvaluated{sincos_turns(v.turns), sincos_radians(v.radians), angle_of(v.y, v.x), root_below(z),
                            quot(c64{1.0, 0.0}, z), fresnel_auxiliary(fabs(v.t)), edge_tail(v.t),
                            edge_factor(v.v1, v.v2), utd_term(v.psi, v.theta, quot(0.5, v.theta), v.parameter),
                            utd_reflection(face, v.cosine)};
}

// A stored state.
struct UtdRecord {
    f32x3 point, direction, n0, n1;
    float t_min, t_max, theta;
};

struct UtdRecognized {
    Wedge wedge;
    i32 status;
    i32 padding;
};

extern "C" __global__ void __launch_bounds__(128) check_utd_records(const __grid_constant__ CheckUtdParams p)
{
    const i64 i = launch_row();
    if (i >= p.count) {
        return;
    }
    const UtdRecord r = ((const UtdRecord*)p.in)[i];
    UtdRecognized out = {};
    out.status = make_wedge(out.wedge, r.point, r.direction, r.n0, r.n1, r.t_min, r.t_max, r.theta);
    ((UtdRecognized*)p.out)[i] = out;
}

// One path over one wedge.
struct UtdRow {
    Wedge wedge;
    f64x3 source, target, polarization;
    double lambda, loss_per_sigma;
    float4 medium0, medium_n; // eta_r, sigma, mu_r, gain
    u32 reflects0, reflects_n, edge_mode, padding;
};

struct UtdDiffracted {
    UtdPath path;
    double source_angle, target_angle;
    UtdOperator operator0, operator_n;
    c64x3 field;
    i32 status;
    i32 padding;
};

extern "C" __global__ void __launch_bounds__(128) check_utd_field(const __grid_constant__ CheckUtdParams p)
{
    const i64 i = launch_row();
    if (i >= p.count) {
        return;
    }
    const UtdRow r = ((const UtdRow*)p.in)[i];
    UtdDiffracted out = {};
    out.status = utd_path(out.path, r.wedge, r.source, r.target, r.polarization, r.lambda, r.edge_mode);
    if (out.status == UTD_VALID) {
        const UtdFace face0 = utd_face(r.reflects0 != 0, r.medium0, r.loss_per_sigma);
        const UtdFace face_n = utd_face(r.reflects_n != 0, r.medium_n, r.loss_per_sigma);
        out.source_angle = face_angle(r.wedge, out.path.source_r, out.path.source_phi);
        out.target_angle = face_angle(r.wedge, out.path.target_r, out.path.target_phi);
        const bool swapped = out.source_angle > mul(0.5, r.wedge.theta);
        out.operator0 = utd_operator(out.path, face0, r.wedge.n0, !swapped);
        out.operator_n = utd_operator(out.path, face_n, r.wedge.n1, swapped);
        out.field = utd_field(out.path, r.wedge, face0, face_n, r.polarization, r.lambda, r.edge_mode);
    }
    ((UtdDiffracted*)p.out)[i] = out;
}
