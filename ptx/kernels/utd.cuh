// The field that one wedge diffracts: the uniform theory of diffraction in double
// precision, for a source of unit power.
//
// A caller asks for the path over the edge first (utd_path), tests that both of its legs
// are free, and then asks for the field (utd_field).
//
// The formulas are those of the theory with common factors taken out. With the path length
// D = s' + s and w = sqrt(k L/pi), the four terms of the coefficient are
//
//   K0 P(psi) = -(1 - j) sqrt(L)/(2 n sin beta0) * q(psi),   q = sg h (f(t) + j g(t)),  t = 2 w sin(a/2)
//
// and sqrt(L)/sin beta0 cancels against the spreading sqrt(s'/(s (s + s'))):
//
//   E = -(1 - j) lambda/(8 pi n D) exp(-j k D) [ -(q1 + q2) I + q4 M_0 + q3 M_n ] E_i/|E_i|
#pragma once

#include "complex.cuh"

// A wedge. Its free region reaches from face 0, the half plane from the edge along
// n0 X direction, to face n by the angle theta.
struct Wedge {
    f64x3 point;     // on the line of the edge
    f64x3 direction; // unit
    f64x3 n0, n1;    // outward normals of face 0 and face n
    double t_min, t_max;
    double theta;
};

// What a face is made of.
struct UtdFace {
    bool reflects; // false: the face adds no term, and the rest is not looked at
    bool conducts; // perfectly
    c64 eta;
    double mu, gain;
};

// The path from a source over the edge to a target.
struct UtdPath {
    f64x3 point; // of diffraction
    double t;    // its place on the edge
    double source_length, target_length;
    double length;         // of both legs
    double spread;         // s s'/(s + s')
    double sin_b, cos_b;   // of the angle between the edge and either leg
    f64x3 source_r, source_phi; // unit vectors from the edge towards the source, and along its azimuth
    f64x3 target_r, target_phi;
};

// How a row ends; 0 while nothing speaks against it.
enum UtdStatus : i32 {
    UTD_VALID = 0,
    UTD_NOT_FINITE = 2,
    UTD_DEGENERATE = 3,
    UTD_OFF_EDGE = 4,
    UTD_INSIDE = 5,
};

// What becomes of an edge's ends.
#define EDGE_INTERIOR 0u // the point of diffraction lies between them
#define EDGE_FRESNEL 1u  // they cut the field off smoothly

// Smallest length of an edge, of the field's part across the leg, and smallest angle.
#define UTD_TINY 1e-6
// Smallest length of a leg.
#define UTD_NEAR 1e-4
// How far beyond the end of an edge a row exists, in Fresnel parameters.
#define EDGE_REACH 3.0
// Rounding of a difference of two angles: closer to a boundary is on it.
#define BOUNDARY_ROUNDING 4e-15

// The wedge of a stored state, and whether it is one. n0 X e must point into face 0.
__device__ __forceinline__ UtdStatus make_wedge(Wedge& w, f32x3 point, f32x3 direction, f32x3 n0, f32x3 n1, float t_min,
                                                float t_max, float theta)
{
    const f64x3 d = widened(direction);
    // The squares of single-precision numbers stay in range.
    const double square = dot(d, d);
    w = Wedge{widened(point), mul(d, quot(1.0, root(square))), widened(n0), widened(n1), (double)t_min, (double)t_max,
              (double)theta};
    if (!is_finite(point) || !is_finite(n0) || !is_finite(n1) || !is_finite(t_min) || !is_finite(t_max) ||
        !is_finite(theta)) {
        return UTD_NOT_FINITE;
    }
    const bool directed = square > 0.0 && is_finite(square);
    const bool normal = fabs(sub(root(dot(w.n0, w.n0)), 1.0)) <= 1e-3 && fabs(dot(w.n0, w.direction)) <= 1e-3;
    const bool convex = w.theta > PI && w.theta <= (2.0 + UTD_TINY) * PI;
    const bool edge = sub(w.t_max, w.t_min) > UTD_TINY;
    return directed && normal && convex && edge ? UTD_VALID : UTD_DEGENERATE;
}

// A face of a medium (eta_r, sigma, mu_r, gain), or without one; loss_per_sigma is
// 1/(w eps0).
__device__ __forceinline__ UtdFace utd_face(bool reflects, float4 medium, double loss_per_sigma)
{
    const double loss = medium.y == 0.0f ? 0.0 : mul((double)medium.y, loss_per_sigma);
    return UtdFace{reflects, loss > 1e30, c64{(double)medium.x, -loss}, (double)medium.z, (double)medium.w};
}

// From metres along the edge to the Fresnel parameter.
__device__ __forceinline__ double edge_scale(const UtdPath& path, double lambda)
{
    return mul(path.sin_b, root(quot(2.0, mul(path.spread, lambda))));
}

// The path, and what forbids it. lambda and edge_mode decide whether the point lies on the
// edge.
__device__ __forceinline__ UtdStatus utd_path(UtdPath& path, const Wedge& w, f64x3 source, f64x3 target,
                                              f64x3 polarization, double lambda, u32 edge_mode)
{
    if (!is_finite(source) || !is_finite(target) || !is_finite(polarization)) {
        return UTD_NOT_FINITE;
    }
    // Turned about the edge into one plane, the path is a straight line: both legs have the
    // same angle to the edge.
    const f64x3 from = sub(source, w.point);
    const f64x3 to = sub(target, w.point);
    const f64x3 around = cross(w.direction, from);
    const f64x3 beyond = cross(w.direction, to);
    const double rho_s = root(dot(around, around));
    const double rho_t = root(dot(beyond, beyond));
    const double rho = add(rho_s, rho_t);
    const double z_s = dot(from, w.direction);
    const double z = sub(dot(to, w.direction), z_s);
    path.length = root(fmadd(rho, rho, mul(z, z)));
    const double inverse = quot(1.0, path.length);
    const double share = quot(1.0, rho);
    const double part = mul(rho_s, share);
    path.source_length = mul(part, path.length);
    path.target_length = mul(mul(rho_t, share), path.length);
    path.sin_b = mul(rho, inverse);
    if (!(path.sin_b >= UTD_TINY) || !(path.source_length > UTD_NEAR) || !(path.target_length > UTD_NEAR)) {
        return UTD_DEGENERATE;
    }
    path.cos_b = mul(z, inverse);
    path.spread = mul(mul(path.source_length, path.target_length), inverse);
    path.t = fmadd(part, z, z_s);
    path.point = fmadd(w.direction, path.t, w.point);
    path.source_phi = mul(around, quot(1.0, rho_s));
    path.target_phi = mul(beyond, quot(1.0, rho_t));
    path.source_r = cross(path.source_phi, w.direction);
    path.target_r = cross(path.target_phi, w.direction);
    if (edge_mode == EDGE_FRESNEL) {
        const double scale = edge_scale(path, lambda);
        if (!(mul(sub(w.t_min, path.t), scale) < EDGE_REACH && mul(sub(w.t_max, path.t), scale) > -EDGE_REACH)) {
            return UTD_OFF_EDGE;
        }
    } else if (!(w.t_min < path.t && path.t < w.t_max)) {
        return UTD_OFF_EDGE;
    }
    // Not from source - point: that difference has lost the digits of large coordinates.
    const f64x3 outward = fmadd(w.direction, -path.t, from);
    const bool outside = dot(outward, w.n0) >= -UTD_TINY || dot(outward, w.n1) >= -UTD_TINY;
    return outside ? UTD_VALID : UTD_INSIDE;
}

// The Fresnel auxiliary functions f + j g at t >= 0: rational fits with errors below 1e-8
// of f, asymptotic series beyond t = 100.
__device__ __forceinline__ c64 fresnel_auxiliary(double t)
{
    if (t > 100.0) {
        const double near = quot(1.0, mul(PI, t));
        const double square = mul(PI, mul(near, near)); // 1/(pi t^2)
        const double fourth = mul(square, square);
        return c64{mul(near, fmadd(-3.0, fourth, 1.0)), mul(mul(near, square), fmadd(-15.0, fourth, 1.0))};
    }
    const double pf = horner(t, 0.5000000041, 1.332500737, 1.37514557, 1.197750908, 0.6914098067, 0.4169169269,
                             0.09882274431, 0.0632981835);
    const double qf = horner(t, 1.0, 2.66500354, 4.321003575, 4.488593713, 3.811837256, 2.17309552, 1.309742895,
                             0.3104614432, 0.1988571066);
    const double pg =
        horner(t, 0.4999999965, 0.1982393604, 0.16933997, 0.07768066406, 0.022771476, 0.009743112588);
    const double qg = horner(t, 1.0, 2.396477161, 3.560892938, 3.512027457, 2.714976832, 1.552568423, 0.7796051661,
                             0.2240283484, 0.09617576349);
    const double inverse = quot(1.0, mul(qf, qg));
    return c64{mul(mul(pf, qg), inverse), mul(mul(pg, qf), inverse)};
}

// q(psi) of a wedge of the angle theta; turn is 1/(2 theta), and parameter
// 2 w = 2 sqrt(k L/pi).
__device__ __forceinline__ c64 utd_term(double psi, double theta, double turn, double parameter)
{
    const double eps = fmadd(rint(mul(psi, turn)), mul(-2.0, theta), psi);
    const double a = fabs(eps);
    const SinCos half = sincos_radians(mul(0.5, a));
    const SinCos part = sincos_radians(mul(a, mul(PI, turn)));
    // sin(a/2)/tan(a/(2n)), which is n = theta/pi in the limit.
    const double h = a < UTD_TINY ? mul(theta, 0.3183098861837907) : quot(mul(half.sin, part.cos), part.sin);
    return mul(fresnel_auxiliary(mul(parameter, half.sin)), eps >= -BOUNDARY_ROUNDING ? h : -h);
}

// Fresnel reflection of the components across (te) and in (tm) the plane of incidence.
struct UtdReflection {
    c64 te, tm;
};

// At the cosine c of the angle of incidence. Parameters in single precision leave every
// value finite.
__device__ __forceinline__ UtdReflection utd_reflection(const UtdFace& f, double c)
{
    if (f.conducts) {
        return UtdReflection{{-f.gain, 0.0}, {f.gain, 0.0}};
    }
    c = fmin(fmax(c, 1e-6), 1.0);
    const c64 q = root_below(c64{fmadd(c, c, fmadd(f.mu, f.eta.re, -1.0)), mul(f.mu, f.eta.im)});
    const c64 m = {mul(f.mu, c), 0.0};
    const c64 e = mul(f.eta, c);
    return UtdReflection{mul(quot(sub(m, q), add(m, q)), f.gain), mul(quot(sub(e, q), add(e, q)), f.gain)};
}

// The 2x2 operator of a face in the order (phi, beta): [[phi, cross], [-cross, beta]].
struct UtdOperator {
    c64 phi, beta, cross;
};

// Specular reflection at the face of the normal n, seen from the source (the face nearer
// to it) or from the target. The plane of incidence is turned against the bases of the
// edge by an angle of which c and s are the parts before division by their length.
__device__ __forceinline__ UtdOperator utd_operator(const UtdPath& path, const UtdFace& f, f64x3 n, bool from_source)
{
    const double c = dot(n, from_source ? path.source_phi : path.target_phi);
    const double sine = dot(n, from_source ? path.source_r : path.target_r);
    const double s = mul(sine, path.cos_b);
    const double square = fmadd(c, c, mul(s, s));
    const UtdReflection r = utd_reflection(f, mul(path.sin_b, fabs(sine)));
    // At normal incidence any plane will do.
    const bool tilted = square >= 1e-18;
    const double inverse = quot(1.0, tilted ? square : 1.0);
    const double cc = tilted ? mul(mul(c, c), inverse) : 1.0;
    const double ss = tilted ? mul(mul(s, s), inverse) : 0.0;
    const double cs = tilted ? mul(mul(c, s), inverse) : 0.0;
    return UtdOperator{sub(mul(r.te, ss), mul(r.tm, cc)), sub(mul(r.tm, ss), mul(r.te, cc)),
                       mul(add(r.te, r.tm), from_source ? cs : -cs)};
}

// exp(-j 2 pi x)
__device__ __forceinline__ c64 turned_by(double x)
{
    const SinCos a = sincos_turns(x);
    return c64{a.cos, -a.sin};
}

// tau(v): the share of an edge's field that lies beyond v.
__device__ __forceinline__ c64 edge_tail(double v)
{
    const double a = fabs(v);
    const c64 fg = fresnel_auxiliary(a);
    // (1 + j)(g - j f) = (f + g) - j (f - g)
    const c64 t = mul(mul(c64{add(fg.re, fg.im), sub(fg.im, fg.re)}, 0.5), turned_by(mul(0.25, mul(a, a))));
    return v >= 0.0 ? t : c64{sub(1.0, t.re), -t.im};
}

// Tr(v1, v2)
__device__ __forceinline__ c64 edge_factor(double v1, double v2)
{
    const c64 beyond = add(edge_tail(v2), edge_tail(-v1));
    return c64{sub(1.0, beyond.re), -beyond.im};
}

// Components of the transmitted polarization in the bases of the edge, of length 1.
struct UtdIncident {
    double phi, beta;
};

__device__ __forceinline__ UtdIncident utd_incident(const UtdPath& path, f64x3 direction, f64x3 u)
{
    // ki X phih', from the right-handed (r, phih', e)
    const f64x3 beta = fmadd(path.source_r, -path.cos_b, mul(direction, -path.sin_b));
    UtdIncident in = {dot(u, path.source_phi), dot(u, beta)};
    double length = root(fmadd(in.phi, in.phi, mul(in.beta, in.beta)));
    if (!(length > UTD_TINY)) { // along the ray: a fixed axis takes its place
        const double along = fmadd(path.cos_b, direction.z, -mul(path.sin_b, path.source_r.z));
        const bool upright = fabs(along) < 0.9;
        in = upright ? UtdIncident{path.source_phi.z, beta.z} : UtdIncident{path.source_phi.y, beta.y};
        length = root(fmadd(in.phi, in.phi, mul(in.beta, in.beta)));
    }
    return UtdIncident{quot(in.phi, length), quot(in.beta, length)};
}

// Angles beyond face n belong to the nearer face.
__device__ __forceinline__ double clamped_angle(double a, double theta)
{
    return a <= theta ? a : sub(a, theta) < sub(2.0 * PI, a) ? theta : 0.0;
}

// The angle of a direction from face 0.
__device__ __forceinline__ double face_angle(const Wedge& w, f64x3 r, f64x3 phi)
{
    return clamped_angle(angle_of(dot(w.n0, r), dot(w.n0, phi)), w.theta);
}

// The field at the target for unit source power, of a path that is valid.
__device__ __forceinline__ c64x3 utd_field(const UtdPath& path, const Wedge& w, const UtdFace& face0,
                                           const UtdFace& face_n, f64x3 polarization, double lambda, u32 edge_mode)
{
    const double source = face_angle(w, path.source_r, path.source_phi);
    const double target = face_angle(w, path.target_r, path.target_phi);
    const UtdIncident in = utd_incident(path, w.direction, polarization);
    const double turn = quot(0.5, w.theta);
    // k L/pi = sin(beta0)^2 2 s s'/((s + s') lambda)
    const double parameter = mul(mul(2.0, path.sin_b), root(quot(mul(2.0, path.spread), lambda)));
    // The face nearer to the source sees its angle, the other one that of the target.
    const bool swapped = source > mul(0.5, w.theta);

    c64 phi = {0.0, 0.0};
    c64 beta = phi;
    // Two terms of the incident field, that of face 0, that of face n.
#pragma unroll 1
    for (u32 k = 0; k < 4; k++) {
        const bool reflection = k >= 2;
        const bool first = k == 2;
        if (reflection && !(first ? face0.reflects : face_n.reflects)) {
            continue;
        }
        const double angle = reflection ? add(target, source) : sub(target, source);
        const c64 q = utd_term(k == 1 || first ? sub(PI, angle) : add(PI, angle), w.theta, turn, parameter);
        if (!reflection) {
            phi = fmadd(q, -in.phi, phi);
            beta = fmadd(q, -in.beta, beta);
            continue;
        }
        const UtdFace f = {true, first ? face0.conducts : face_n.conducts,
                           c64{first ? face0.eta.re : face_n.eta.re, first ? face0.eta.im : face_n.eta.im},
                           first ? face0.mu : face_n.mu, first ? face0.gain : face_n.gain};
        const f64x3 n = {first ? w.n0.x : w.n1.x, first ? w.n0.y : w.n1.y, first ? w.n0.z : w.n1.z};
        const UtdOperator m = utd_operator(path, f, n, first != swapped);
        phi = add(phi, mul(q, fmadd(m.phi, in.phi, mul(m.cross, in.beta))));
        beta = add(beta, mul(q, fmadd(m.beta, in.beta, mul(m.cross, -in.phi))));
    }

    // lambda/(8 pi n D), n = theta/pi
    const double scale = quot(mul(0.125, lambda), mul(w.theta, path.length));
    c64 factor = mul(c64{-scale, scale}, turned_by(quot(path.length, lambda)));
    if (edge_mode == EDGE_FRESNEL) {
        const double per_metre = edge_scale(path, lambda);
        factor = mul(factor, edge_factor(mul(sub(w.t_min, path.t), per_metre), mul(sub(w.t_max, path.t), per_metre)));
    }
    phi = mul(phi, factor);
    beta = mul(beta, factor);
    // ko X phih
    const f64x3 b = fmadd(path.target_r, -path.cos_b, mul(w.direction, path.sin_b));
    const f64x3 a = path.target_phi;
    return c64x3{fmadd(beta, b.x, mul(phi, a.x)), fmadd(beta, b.y, mul(phi, a.y)), fmadd(beta, b.z, mul(phi, a.z))};
}
