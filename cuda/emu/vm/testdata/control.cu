// Control flow: divergent loops, breaks, switches, calls, recursion, function pointers, spin locks.
typedef unsigned int u32;

extern "C" __global__ void nested(const int* in, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int acc = 0;
    for (int a = 0; a < in[i] % 7; ++a) {
        for (int b = 0; b < (in[i] >> 3) % 5; ++b) {
            if ((a ^ b) == 3) continue;
            if (a * b > 8) break;
            acc += a * 10 + b;
            if (acc > 200) goto done;
        }
        if (acc & 1) acc += 3; else acc -= 1;
    }
done:
    out[i] = acc;
}

extern "C" __global__ void switches(const int* in, int* out) {
    int i = threadIdx.x, v = in[i];
    switch (v) {
    case 0: v = 11; break;
    case 1: v = in[(i + 1) & 31]; break;
    case 2: v *= 7;  // falls through
    case 3: v += 100; break;
    case 4: for (int k = 0; k < i; ++k) v ^= k * 3; break;
    case 5: v = -i; break;
    case 6: v = i * i; break;
    case 7: v = i / 3; break;
    case 8: v = 1 << (i & 7); break;
    default: v = 999;
    }
    out[i] = v;
}

__device__ __noinline__ int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
extern "C" __global__ void recursion(const int* in, int* out) { out[threadIdx.x] = fib(in[threadIdx.x]); }

struct Pair { int a; double b; float c[3]; };
__device__ __noinline__ Pair twist(Pair p, int k) { p.a += k; p.b *= 2.0; p.c[k % 3] += 1.5f; return p; }
extern "C" __global__ void structs(const int* in, double* out) {
    Pair p = {in[threadIdx.x], 0.25 * threadIdx.x, {1, 2, 3}};
    p = twist(p, threadIdx.x % 5);
    if (threadIdx.x & 1) p = twist(p, 7);
    out[threadIdx.x] = p.a + p.b + p.c[0] * 10 + p.c[1] * 100 + p.c[2] * 1000;
}

typedef int (*Op)(int, int);
__device__ __noinline__ int opAdd(int a, int b) { return a + b; }
__device__ __noinline__ int opSub(int a, int b) { return a - b; }
__device__ __noinline__ int opMul(int a, int b) { return a * b; }
__device__ Op table[3] = {opAdd, opSub, opMul};
extern "C" __global__ void pointers(const int* in, int* out) { out[threadIdx.x] = table[in[threadIdx.x] % 3](threadIdx.x, 5); }

__device__ int lockWord;
__device__ int guarded;
extern "C" __global__ void spinLock(int* order) {
    bool done = false;
    while (!done) {
        if (atomicCAS(&lockWord, 0, 1) == 0) {
            int v = *(volatile int*)&guarded;
            *(volatile int*)&guarded = v + 1;
            order[v] = blockIdx.x * blockDim.x + threadIdx.x;
            __threadfence();
            atomicExch(&lockWord, 0);
            done = true;
        }
    }
}

// The form that only works when lanes of a warp are scheduled independently.
extern "C" __global__ void spinLockHard(int* counter) {
    while (atomicCAS(&lockWord, 0, 1) != 0) {}
    int v = *(volatile int*)counter;
    *(volatile int*)counter = v + 1;
    __threadfence();
    atomicExch(&lockWord, 0);
}

extern "C" __global__ void reduceShared(const float* in, float* out, int n) {
    extern __shared__ float buf[];
    __shared__ int flag;
    int t = threadIdx.x;
    if (t == 0) flag = 7;
    buf[t] = t < n ? in[t] : 0.0f;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (t < s) buf[t] += buf[t + s];
        __syncthreads();
    }
    if (t == 0) { out[0] = buf[0]; out[1] = (float)flag; }
}

extern "C" __global__ void barrierCounts(const int* in, int* out) {
    int t = threadIdx.x, v = in[t];
    out[3 * t] = __syncthreads_count(v > 2);
    out[3 * t + 1] = __syncthreads_and(v >= 0);
    out[3 * t + 2] = __syncthreads_or(v == 77);
}

extern "C" __global__ void warpOps(const int* in, int* out) {
    int t = threadIdx.x, v = in[t], r = 0;
    u32 all = 0xffffffffu;
    for (int k = 0; k < v % 4; ++k) r += k;   // diverge first
    if (t & 1) r += 100; else r -= 100;
    int up = __shfl_up_sync(all, v, 3), down = __shfl_down_sync(all, v, 5), x = __shfl_xor_sync(all, v, 9), idx = __shfl_sync(all, v, t * 7, 8);
    u32 b = __ballot_sync(all, v & 1);
    int any = __any_sync(all, v == 13), every = __all_sync(all, v >= 0);
    u32 m = __match_any_sync(all, v % 3);
    int p; u32 ma = __match_all_sync(all, v >= 0, &p);
    int sum = 0;
    if (t < 16) { sum = v; for (int s = 8; s; s >>= 1) sum += __shfl_xor_sync(0xffffu, sum, s); }
    __syncwarp();
    int o = t * 12;
    out[o] = r; out[o + 1] = up; out[o + 2] = down; out[o + 3] = x; out[o + 4] = idx; out[o + 5] = b; out[o + 6] = any;
    out[o + 7] = every; out[o + 8] = m; out[o + 9] = ma; out[o + 10] = p; out[o + 11] = sum;
}

extern "C" __global__ void earlyExit(const int* in, int* out) {
    int t = threadIdx.x;
    if (in[t] % 3 == 0) return;
    __syncthreads();
    u32 live = __activemask();
    out[t] = __popc(__ballot_sync(live, 1)) + (int)(live != 0);
}
