// Atomics of every width and operation, on global and shared memory.
extern "C" __global__ void atomicsGlobal(int* i, unsigned* u, unsigned long long* l, float* f, double* d, long long* sl) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(&i[0], t); atomicSub(&i[1], t); atomicMin(&i[2], -t); atomicMax(&i[3], t); atomicExch(&i[4], 5); atomicCAS(&i[5], 0, 9);
    atomicAnd(&i[6], ~(1 << (t & 31))); atomicOr(&i[7], 1 << (t & 31)); atomicXor(&i[8], 1 << (t & 31));
    atomicAdd(&u[0], 3u); atomicInc(&u[1], 10u); atomicDec(&u[2], 10u); atomicMin(&u[3], 1000u - t); atomicMax(&u[4], (unsigned)t);
    atomicAdd(&l[0], 1ull << 33); atomicMin(&l[1], (1ull << 40) - t); atomicMax(&l[2], (1ull << 40) + t); atomicCAS(&l[3], 0ull, 77ull);
    atomicExch(&l[4], 123456789012ull); atomicAnd(&l[5], ~(1ull << (t & 63))); atomicOr(&l[6], 1ull << (t & 63)); atomicXor(&l[7], 3ull);
    atomicAdd(&f[0], 0.5f); atomicAdd(&d[0], 0.25);
    atomicMin(&sl[0], (long long)-t); atomicMax(&sl[1], (long long)t);
}

extern "C" __global__ void atomicsShared(int* out) {
    __shared__ int a[4]; __shared__ float f; __shared__ unsigned long long l;
    int t = threadIdx.x;
    if (t < 4) a[t] = 0;
    if (t == 0) { f = 0; l = 0; }
    __syncthreads();
    int old = atomicAdd(&a[t & 3], 1);
    atomicAdd(&f, 1.0f); atomicAdd(&l, 1ull << 32);
    __syncthreads();
    if (t < 4) out[t] = a[t];
    if (t == 0) { out[4] = (int)f; out[5] = (int)(l >> 32); }
    atomicAdd(&out[6], old >= 0);
}

__device__ unsigned finished;
extern "C" __global__ void lastBlock(const int* in, int* partial, int* total) {
    __shared__ int s; __shared__ bool last;
    int t = threadIdx.x;
    if (t == 0) s = 0;
    __syncthreads();
    atomicAdd(&s, in[blockIdx.x * blockDim.x + t]);
    __syncthreads();
    if (t == 0) {
        partial[blockIdx.x] = s;
        __threadfence();
        last = atomicAdd(&finished, 1u) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && t == 0) { int sum = 0; for (int k = 0; k < gridDim.x; ++k) sum += ((volatile int*)partial)[k]; *total = sum; }
}
