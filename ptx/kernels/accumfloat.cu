// What AccumDfrDirect is compared with: the same lanes with a thread for each, which adds
// its contribution to the cell with a float atomic. Sums depend on the order of the lanes.

#include "dfrlane.cuh"
#include "trace.cuh"

struct AccumFloatParams {
    const Node* pool;
    const Leg* legs;
    float* power;
    double factor; // (lambda/(4 pi))^2 times the area of a cell
    Cells cells;
    u32 key;
    u32 states;
    u32 pairs;    // states times cells
    u32 per_pair; // lanes of every pair,
    u32 one_more; // and one more of the pairs below this
    u32 lanes;
};

extern "C" __global__ void __launch_bounds__(SEARCH_THREADS, 8) accum_float(const __grid_constant__ AccumFloatParams p)
{
    trace_begin();
    const u32 lane = blockIdx.x * SEARCH_THREADS + threadIdx.x;
    if (lane >= p.lanes) {
        return;
    }
    const u32 pair = lane % p.pairs;
    const u32 cell = pair / p.states;
    const Leg leg = p.legs[pair % p.states];
    const f32x3 target = cell_centre(p.cells, cell);
    const f32x3 q = edge_point(leg, uniform01(lane, p.key));
    const f32x3 near = lifted(q, leg.offset);
    if (occluded(p.pool, leg.src, near) || occluded(p.pool, near, target)) {
        return;
    }
    const float weight = __double2float_rn(__dmul_rn(leg.scale, p.factor));
    const float k = quot(weight, (float)(p.per_pair + (pair < p.one_more)));
    atomicAdd(p.power + cell, quot(k, mul(squared(sub(q, leg.src)), squared(sub(target, q)))));
}
