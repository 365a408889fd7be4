// Memory faults, one kernel per kind, and accesses of every width.
extern "C" __global__ void copyWidths(const char* a, const short* b, const int2* c, const double2* d, const float4* e, const uchar4* g, char* out) {
    int t = threadIdx.x;
    out[t] = a[t] + 1; ((short*)(out + 64))[t] = b[t] - 2; ((int2*)(out + 128))[t] = make_int2(c[t].y, c[t].x);
    double2 v = d[t]; ((double2*)(out + 512))[t] = make_double2(v.y + 1, v.x);
    float4 f = e[t]; ((float4*)(out + 1024))[t] = make_float4(f.w, f.z, f.y, f.x);
    uchar4 q = g[t]; ((uchar4*)(out + 2048))[t] = make_uchar4(q.w, q.z, q.y, q.x);
}
extern "C" __global__ void readAt(const int* p, int* out, int lane) { int t = threadIdx.x; int v = 0;
    if (t == lane) v = *p;
    out[t] = v; }
extern "C" __global__ void writeAt(int* p, int lane) { if (threadIdx.x == lane) *p = 5; }
__constant__ int table[8] = {1, 2, 3, 4, 5, 6, 7, 8};
extern "C" __global__ void readConst(int* out) { out[threadIdx.x] = table[threadIdx.x & 7]; }
extern "C" __global__ void sharedAt(int i, int* out) { __shared__ int s[32]; volatile int* v = s; v[threadIdx.x] = threadIdx.x; __syncthreads();
    out[threadIdx.x] = v[threadIdx.x == 9 ? i : 0]; }
extern "C" __global__ void sharedUnwritten(int* out) { __shared__ int s[64]; s[threadIdx.x] = 1; __syncthreads(); out[threadIdx.x] = s[threadIdx.x + 1]; }
extern "C" __global__ void localAt(int i, int* out) { int a[16]; for (int k = 0; k < 16; ++k) a[(k * 5 + i) & 15] = k; out[threadIdx.x] = a[threadIdx.x == 3 ? i : 1]; }
extern "C" __global__ void race(int* out) { __shared__ int s[64]; s[threadIdx.x] = 0; __syncthreads(); s[threadIdx.x] = threadIdx.x;
    out[threadIdx.x] = s[threadIdx.x ^ 32]; }
extern "C" __global__ void noRace(int* out) { __shared__ int s[64]; __shared__ int same; s[threadIdx.x] = threadIdx.x; same = 4; __syncthreads();
    out[threadIdx.x] = s[threadIdx.x ^ 32] + same; }
extern "C" __global__ void deadlock(int* out) { if (threadIdx.x < 32) asm volatile("bar.sync 1, 64;"); out[threadIdx.x] = 1; }
extern "C" __global__ void trapAt(int lane) { if (threadIdx.x == lane) __trap(); }
struct Big { int v[20]; };
extern "C" __global__ void params(const __grid_constant__ Big b, int i, int* out) { out[threadIdx.x] = b.v[(threadIdx.x + i) % 20]; }
extern "C" __global__ void generic(int which, int* g, int* out) { __shared__ int s[32]; int l[4]; 
    for (int k = 0; k < 4; ++k) l[k] = k * which; 
    s[threadIdx.x] = 3; int* p = which == 0 ? g : which == 1 ? s : &l[threadIdx.x & 3];
    *p += 1; out[threadIdx.x] = *p + (__isShared(p) ? 100 : __isLocal(p) ? 200 : __isGlobal(p) ? 300 : 0); }
