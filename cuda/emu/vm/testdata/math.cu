// Device library functions: what their inlined code needs.
extern "C" __global__ void mathF64(const double* x, const double* y, double* out) {
    int t = threadIdx.x, n = blockDim.x; double a = x[t], b = y[t]; int k = 0;
    out[n * k++ + t] = a / b; out[n * k++ + t] = sqrt(a); out[n * k++ + t] = fma(a, b, 1.0); out[n * k++ + t] = sin(a); out[n * k++ + t] = cos(a);
    out[n * k++ + t] = exp(b); out[n * k++ + t] = log(a); out[n * k++ + t] = atan2(a, b); out[n * k++ + t] = pow(a, b); out[n * k++ + t] = rsqrt(a);
    out[n * k++ + t] = floor(a); out[n * k++ + t] = ceil(b); out[n * k++ + t] = rint(a); out[n * k++ + t] = trunc(b); out[n * k++ + t] = fabs(b);
    out[n * k++ + t] = fmin(a, b); out[n * k++ + t] = fmax(a, b); out[n * k++ + t] = fmod(a, b); out[n * k++ + t] = cbrt(a); out[n * k++ + t] = erf(b);
    out[n * k++ + t] = hypot(a, b); out[n * k++ + t] = tan(b); out[n * k++ + t] = copysign(a, b); out[n * k++ + t] = ldexp(a, 3); out[n * k++ + t] = 1.0 / a;
}
extern "C" __global__ void mathF32(const float* x, const float* y, float* out) {
    int t = threadIdx.x, n = blockDim.x; float a = x[t], b = y[t]; int k = 0;
    out[n * k++ + t] = a / b; out[n * k++ + t] = sqrtf(a); out[n * k++ + t] = fmaf(a, b, 1.0f); out[n * k++ + t] = sinf(a); out[n * k++ + t] = cosf(a);
    out[n * k++ + t] = expf(b); out[n * k++ + t] = logf(a); out[n * k++ + t] = atan2f(a, b); out[n * k++ + t] = powf(a, b); out[n * k++ + t] = rsqrtf(a);
    out[n * k++ + t] = floorf(a); out[n * k++ + t] = ceilf(b); out[n * k++ + t] = rintf(a); out[n * k++ + t] = truncf(b); out[n * k++ + t] = fabsf(b);
    out[n * k++ + t] = fminf(a, b); out[n * k++ + t] = fmaxf(a, b); out[n * k++ + t] = fmodf(a, b); out[n * k++ + t] = cbrtf(a); out[n * k++ + t] = erff(b);
    out[n * k++ + t] = hypotf(a, b); out[n * k++ + t] = tanf(b); out[n * k++ + t] = copysignf(a, b); out[n * k++ + t] = ldexpf(a, 3); out[n * k++ + t] = 1.0f / a;
    out[n * k++ + t] = __sinf(a); out[n * k++ + t] = __expf(b); out[n * k++ + t] = __logf(a); out[n * k++ + t] = __fdividef(a, b); out[n * k++ + t] = __powf(a, b);
    out[n * k++ + t] = tanhf(b); out[n * k++ + t] = acosf(b / 100.0f); out[n * k++ + t] = roundf(a); out[n * k++ + t] = __saturatef(b); out[n * k++ + t] = sinf(a * 1e6f);
}
extern "C" __global__ void integers(const int* x, const int* y, int* out) {
    int t = threadIdx.x, n = blockDim.x; int a = x[t], b = y[t]; unsigned ua = a, ub = b; long long la = (long long)a << 20 ^ b, lb = (long long)b << 11 ^ a; int k = 0;
    out[n * k++ + t] = a / (b | 1); out[n * k++ + t] = a % (b | 1); out[n * k++ + t] = ua / (ub | 1); out[n * k++ + t] = ua % (ub | 1); out[n * k++ + t] = (int)(la / (lb | 1));
    out[n * k++ + t] = __mulhi(a, b); out[n * k++ + t] = __umulhi(ua, ub); out[n * k++ + t] = (int)__mul64hi(la, lb); out[n * k++ + t] = __popc(a); out[n * k++ + t] = __clz(a);
    out[n * k++ + t] = __ffs(a); out[n * k++ + t] = __brev(a); out[n * k++ + t] = __byte_perm(a, b, 0x3715); out[n * k++ + t] = __funnelshift_l(a, b, 7); out[n * k++ + t] = __funnelshift_rc(a, b, 40);
    out[n * k++ + t] = __popcll(la); out[n * k++ + t] = __clzll(la); out[n * k++ + t] = __mul24(a, b); out[n * k++ + t] = __sad(a, b, 3u); int dp; asm("dp4a.s32.s32 %0, %1, %2, 5;" : "=r"(dp) : "r"(a), "r"(b)); out[n * k++ + t] = dp;
    out[n * k++ + t] = abs(a); out[n * k++ + t] = min(a, b); out[n * k++ + t] = (int)max(ua, ub); out[n * k++ + t] = (short)a * (signed char)b; out[n * k++ + t] = (int)((unsigned short)a >> 3);
    out[n * k++ + t] = (int)(la >> 13); out[n * k++ + t] = (int)((unsigned long long)la % 1000003ull); out[n * k++ + t] = __float2int_rn((float)a * 0.37f); out[n * k++ + t] = __float_as_int(__int2float_rz(a)); out[n * k++ + t] = (int)(unsigned char)__double2uint_rd((double)ua * 0.5);
    out[n * k++ + t] = __rhadd(a, b); out[n * k++ + t] = (a & b) ^ (~a | b); out[n * k++ + t] = a < b ? (a == 5) : (b != 3); out[n * k++ + t] = __hadd(a, b); out[n * k++ + t] = __vadd4(a, b);
}
