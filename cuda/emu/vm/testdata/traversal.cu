// Closest hit over a binary BVH whose nodes hold the boxes of both children: the shape of a
// ray tracing kernel, divergent in loop counts, in leaves and in the stack depth.
struct Node { float4 ax, bx; float4 z; int4 child; };  // child >= 0: inner node, < 0: ~first triangle, count in z/w

__device__ __forceinline__ bool box(float lox, float hix, float loy, float hiy, float loz, float hiz,
                                    float3 o, float3 inv, float tmax, float& tnear) {
    float x0 = __fmul_rn(__fsub_rn(lox, o.x), inv.x), x1 = __fmul_rn(__fsub_rn(hix, o.x), inv.x);
    float y0 = __fmul_rn(__fsub_rn(loy, o.y), inv.y), y1 = __fmul_rn(__fsub_rn(hiy, o.y), inv.y);
    float z0 = __fmul_rn(__fsub_rn(loz, o.z), inv.z), z1 = __fmul_rn(__fsub_rn(hiz, o.z), inv.z);
    float near = fmaxf(fmaxf(fminf(x0, x1), fminf(y0, y1)), fmaxf(fminf(z0, z1), 0.0f));
    float far = fminf(fminf(fmaxf(x0, x1), fmaxf(y0, y1)), fminf(fmaxf(z0, z1), tmax));
    tnear = near;
    return near <= far;
}

__device__ __forceinline__ float3 sub(float3 a, float3 b) { return make_float3(__fsub_rn(a.x, b.x), __fsub_rn(a.y, b.y), __fsub_rn(a.z, b.z)); }
__device__ __forceinline__ float dop(float a, float b, float c, float d) { float cd = __fmul_rn(c, d); return __fadd_rn(__fmaf_rn(a, b, -cd), __fmaf_rn(-c, d, cd)); }
__device__ __forceinline__ float3 cross(float3 a, float3 b) { return make_float3(dop(a.y, b.z, a.z, b.y), dop(a.z, b.x, a.x, b.z), dop(a.x, b.y, a.y, b.x)); }
__device__ __forceinline__ float dot(float3 a, float3 b) { return __fmaf_rn(a.x, b.x, __fmaf_rn(a.y, b.y, __fmul_rn(a.z, b.z))); }

extern "C" __global__ void __launch_bounds__(128) traverse(const Node* __restrict__ nodes, const float* __restrict__ vertices,
        const int* __restrict__ faces, const float* __restrict__ org, const float* __restrict__ dir,
        float* __restrict__ tout, int* __restrict__ prim, unsigned count) {
    unsigned row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= count) return;
    float3 o = make_float3(org[3 * row], org[3 * row + 1], org[3 * row + 2]);
    float3 d = make_float3(dir[3 * row], dir[3 * row + 1], dir[3 * row + 2]);
    float3 inv = make_float3(__fdiv_rn(1.0f, d.x), __fdiv_rn(1.0f, d.y), __fdiv_rn(1.0f, d.z));
    float best = __int_as_float(0x7f800000);
    int winner = -1;
    int stack[64];
    int top = 0, node = 0;
    for (;;) {
        if (node >= 0) {
            float4 ax = nodes[node].ax, bx = nodes[node].bx, z = nodes[node].z;
            int4 c = nodes[node].child;
            float ta, tb;
            bool ha = box(ax.x, ax.y, ax.z, ax.w, z.x, z.y, o, inv, best, ta);
            bool hb = box(bx.x, bx.y, bx.z, bx.w, z.z, z.w, o, inv, best, tb);
            if (ha && hb) {
                bool swap = tb < ta;
                stack[top++] = swap ? c.x : c.y;
                node = swap ? c.y : c.x;
                continue;
            }
            if (ha || hb) { node = ha ? c.x : c.y; continue; }
        } else {
            int bits = ~node, first = bits >> 3, n = (bits & 7) + 1;
            for (int i = first; i < first + n; ++i) {
                int f0 = faces[3 * i], f1 = faces[3 * i + 1], f2 = faces[3 * i + 2];
                float3 v0 = make_float3(vertices[3 * f0], vertices[3 * f0 + 1], vertices[3 * f0 + 2]);
                float3 v1 = make_float3(vertices[3 * f1], vertices[3 * f1 + 1], vertices[3 * f1 + 2]);
                float3 v2 = make_float3(vertices[3 * f2], vertices[3 * f2 + 1], vertices[3 * f2 + 2]);
                float3 e1 = sub(v1, v0), e2 = sub(v2, v0), s = sub(o, v0);
                float3 p = cross(d, e2), q = cross(s, e1);
                float det = dot(e1, p);
                if (det == 0.0f) continue;
                float u = __fdiv_rn(dot(s, p), det), v = __fdiv_rn(dot(d, q), det), t = __fdiv_rn(dot(e2, q), det);
                if (u < 0.0f || v < 0.0f || __fadd_rn(u, v) > 1.0f || !(t > 0.0f)) continue;
                if (t < best || (t == best && i < winner)) { best = t; winner = i; }
            }
        }
        if (top == 0) break;
        node = stack[--top];
    }
    tout[row] = best;
    prim[row] = winner;
}
