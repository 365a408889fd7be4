/* Times the issue of kernel launches through the CUDA driver API, as `bench launch` does in Go, and prints one line of
 * JSON. Batches of launches are timed on the host; between batches the stream drains outside the timed part, so that
 * the launch queue never fills and the time is that of the call alone.
 *
 *     cc -O2 -o launch_c launch.c -ldl
 *     ./launch_c FILE.ptx KERNEL DEVICE BATCH BATCHES
 *
 * The driver is loaded at run time and the few declarations are stated here, so neither headers nor a library of the
 * CUDA toolkit are needed to build it. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef int result;
typedef void *handle;

static result (*init)(unsigned);
static result (*device_get)(int *, int);
static result (*context_retain)(handle *, int);
static result (*context_release)(int);
static result (*context_set)(handle);
static result (*module_load)(handle *, const void *);
static result (*module_function)(handle *, handle, const char *);
static result (*stream_create)(handle *, unsigned);
static result (*stream_wait)(handle);
static result (*launch)(handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, handle, void **, void **);

enum { NON_BLOCKING = 1 };

static void check(result r, const char *what) {
    if (r != 0) {
        fprintf(stderr, "launch_c: %s: CUDA error %d\n", what, r);
        exit(1);
    }
}

static void *symbol(void *library, const char *name) {
    void *p = dlsym(library, name);
    if (p == NULL) {
        fprintf(stderr, "launch_c: the driver lacks %s\n", name);
        exit(1);
    }
    return p;
}

static void load_driver(void) {
    void *lib = dlopen("libcuda.so.1", RTLD_NOW);
    if (lib == NULL) {
        fprintf(stderr, "launch_c: %s\n", dlerror());
        exit(1);
    }
    *(void **)&init = symbol(lib, "cuInit");
    *(void **)&device_get = symbol(lib, "cuDeviceGet");
    *(void **)&context_retain = symbol(lib, "cuDevicePrimaryCtxRetain");
    *(void **)&context_release = symbol(lib, "cuDevicePrimaryCtxRelease_v2");
    *(void **)&context_set = symbol(lib, "cuCtxSetCurrent");
    *(void **)&module_load = symbol(lib, "cuModuleLoadData");
    *(void **)&module_function = symbol(lib, "cuModuleGetFunction");
    *(void **)&stream_create = symbol(lib, "cuStreamCreate");
    *(void **)&stream_wait = symbol(lib, "cuStreamSynchronize");
    *(void **)&launch = symbol(lib, "cuLaunchKernel");
}

static char *read_text(const char *path) {
    FILE *f = fopen(path, "rb");
    if (f == NULL) {
        perror(path);
        exit(1);
    }
    size_t size = 0, room = 1 << 16;
    char *text = malloc(room);
    while (text != NULL) {
        size_t n = fread(text + size, 1, room - size - 1, f);
        if (n == 0)
            break;
        size += n;
        if (room - size < 2)
            text = realloc(text, room *= 2);
    }
    if (text == NULL || ferror(f)) {
        fprintf(stderr, "launch_c: %s cannot be read\n", path);
        exit(1);
    }
    fclose(f);
    text[size] = 0;
    return text;
}

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    if (argc != 6 || atoi(argv[4]) < 1 || atoi(argv[5]) < 1) {
        fprintf(stderr, "usage: launch_c FILE.ptx KERNEL DEVICE BATCH BATCHES\n");
        return 2;
    }
    int ordinal = atoi(argv[3]), batch = atoi(argv[4]), batches = atoi(argv[5]), device;
    handle context, module, kernel, stream;
    load_driver();
    check(init(0), "cuInit");
    check(device_get(&device, ordinal), "cuDeviceGet");
    check(context_retain(&context, device), "cuDevicePrimaryCtxRetain");
    check(context_set(context), "cuCtxSetCurrent");
    check(module_load(&module, read_text(argv[1])), "cuModuleLoadData");
    check(module_function(&kernel, module, argv[2]), "cuModuleGetFunction");
    check(stream_create(&stream, NON_BLOCKING), "cuStreamCreate");

    double *ns = malloc(sizeof *ns * (size_t)batches);
    if (ns == NULL)
        return 1;
    for (int i = -1; i < batches; i++) { /* the first batch is a warm-up */
        int64_t start = now();
        for (int k = 0; k < batch; k++)
            check(launch(kernel, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL), "cuLaunchKernel");
        int64_t end = now();
        check(stream_wait(stream), "cuStreamSynchronize");
        if (i >= 0)
            ns[i] = (double)(end - start) / batch;
    }
    qsort(ns, (size_t)batches, sizeof *ns, ascending);
    printf("{\"min_ns\": %.1f, \"median_ns\": %.1f}\n", ns[0], ns[batches / 2]);
    free(ns);
    check(context_release(device), "cuDevicePrimaryCtxRelease");
    return 0;
}
