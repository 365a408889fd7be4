// Self-test of one directed link between two devices, the traffic of a search
// without the search, and an empty kernel that measures what a launch costs. The pattern of a word is a function of its
// index and of a seed, so a dropped, repeated, shifted or stale transfer shows
// as a mismatch, which a constant pattern would hide.

struct PeerFillParams {
    unsigned *dst;             // count words, may lie in a peer's memory
    unsigned long long count;  // words
    unsigned seed;
    unsigned reserved;
};

struct PeerCheckParams {
    const unsigned *src;            // count words, may lie in a peer's memory
    unsigned long long count;       // words
    unsigned long long *mismatches; // one counter, the caller clears it
    unsigned seed;
    unsigned reserved;
};

struct PeerAddParams {
    unsigned long long *dst;   // count words of 64 bits, may lie in a peer's memory
    unsigned long long count;
    unsigned from, to;         // seeds
};

struct PeerRowsParams {
    const unsigned *origins;    // 3 count words, may lie in a peer's memory, as all
    const unsigned *directions; // 3 count words
    unsigned *winners;          // count words
    unsigned long long count;   // rows
};

// The finaliser of a 64-bit mixer: every input bit reaches every output bit.
__device__ static unsigned pattern(unsigned long long i, unsigned seed) {
    unsigned long long x = i ^ ((unsigned long long)seed << 32 | seed);
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdull;
    x ^= x >> 33;
    x *= 0xc4ceb9fe1a85ec53ull;
    x ^= x >> 33;
    return (unsigned)x ^ (unsigned)(x >> 32);
}

__device__ static unsigned long long first_index() {
    return (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
}

__device__ static unsigned long long stride() {
    return (unsigned long long)gridDim.x * blockDim.x;
}

// Any one-dimensional grid is right: threads stride over the words.
extern "C" __global__ void peer_fill(const PeerFillParams p) {
    for (unsigned long long i = first_index(); i < p.count; i += stride())
        p.dst[i] = pattern(i, p.seed);
}

// Adds the number of words that differ from the pattern to *mismatches.
extern "C" __global__ void peer_check(const PeerCheckParams p) {
    unsigned long long wrong = 0;
    for (unsigned long long i = first_index(); i < p.count; i += stride())
        wrong += p.src[i] != pattern(i, p.seed);
    if (wrong != 0)
        atomicAdd(p.mismatches, wrong);
}

__device__ static unsigned long long pattern_pair(unsigned long long i, unsigned seed) {
    return pattern(2 * i, seed) | (unsigned long long)pattern(2 * i + 1, seed) << 32;
}

// Makes one pattern of another by additions of 64 bits, two for every word by two threads.
extern "C" __global__ void peer_add(const PeerAddParams p) {
    for (unsigned long long i = first_index(); i < p.count; i += stride()) {
        const unsigned long long other = (i + p.count / 2) % p.count;
        atomicAdd_system(p.dst + i, pattern_pair(i, p.to));
        atomicAdd_system(p.dst + other, -pattern_pair(other, p.from));
    }
}

// Reads 24 bytes and writes 4 bytes per row, in the pattern of a search that runs
// on a peer's rows: one thread per row. Its time against that of copies of the
// same bytes says which way of reaching the peer is the better one.
extern "C" __global__ void peer_rows(const PeerRowsParams p) {
    const unsigned long long i = first_index();
    if (i >= p.count)
        return;
    const unsigned *o = p.origins + 3 * i, *d = p.directions + 3 * i;
    p.winners[i] = o[0] ^ o[1] ^ o[2] ^ d[0] ^ d[1] ^ d[2];
}

extern "C" __global__ void empty() {
}
