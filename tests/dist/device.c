/* SPDX-License-Identifier: Apache-2.0 */
#include "device.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* FUNCTION(name, argument types...) */
#define FUNCTIONS(FUNCTION)                                                                      \
    FUNCTION(cuInit, unsigned)                                                                   \
    FUNCTION(cuDeviceGetCount, int *)                                                            \
    FUNCTION(cuDeviceGet, int *, int)                                                            \
    FUNCTION(cuDeviceGetName, char *, int, int)                                                  \
    FUNCTION(cuDeviceGetAttribute, int *, int, int)                                              \
    FUNCTION(cuDevicePrimaryCtxRetain, void **, int)                                             \
    FUNCTION(cuCtxPushCurrent_v2, void *)                                                        \
    FUNCTION(cuMemAlloc_v2, uint64_t *, size_t)                                                  \
    FUNCTION(cuMemFree_v2, uint64_t)                                                             \
    FUNCTION(cuMemcpyHtoDAsync_v2, uint64_t, const void *, size_t, void *)                       \
    FUNCTION(cuMemcpyDtoHAsync_v2, void *, uint64_t, size_t, void *)                             \
    FUNCTION(cuStreamCreate, void **, unsigned)                                                  \
    FUNCTION(cuStreamSynchronize, void *)                                                        \
    FUNCTION(cuModuleLoadData, void **, const void *)                                            \
    FUNCTION(cuModuleGetFunction, void **, void *, const char *)                                 \
    FUNCTION(cuLaunchKernel, void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
             unsigned, void *, void **, void **)

static struct {
#define MEMBER(name, ...) int (*name)(__VA_ARGS__);
    FUNCTIONS(MEMBER)
#undef MEMBER
} cuda;

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void end(const char *what, int result)
{
    fprintf(stderr, "gpus: %s failed (error %d)\n", what, result);
    exit(1);
}

#define MUST(call)               \
    do {                         \
        const int result = call; \
        if (result)              \
            end(#call, result);  \
    } while (0)

static void load(void)
{
    const char *file = getenv("GPUS_CUDA");
    void *library = dlopen(file && *file ? file : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

    if (!library) {
        fprintf(stderr, "gpus: %s\n", dlerror());
        exit(1);
    }
#define FIND(name, ...)                           \
    *(void **)&cuda.name = dlsym(library, #name); \
    if (!cuda.name)                               \
        end(#name, -1);
    FUNCTIONS(FIND)
#undef FIND
    MUST(cuda.cuInit(0));
}

uint32_t device_count(void)
{
    int n = 0;

    pthread_once(&once, load);
    MUST(cuda.cuDeviceGetCount(&n));
    return (uint32_t)n;
}

void device_open(struct device *device, uint32_t number)
{
    int handle;

    pthread_once(&once, load);
    MUST(cuda.cuDeviceGet(&handle, (int)number));
    MUST(cuda.cuDeviceGetName(device->name, sizeof device->name, handle));
    MUST(cuda.cuDeviceGetAttribute(&device->processors, 16, handle));
    MUST(cuda.cuDevicePrimaryCtxRetain(&device->context, handle));
    MUST(cuda.cuCtxPushCurrent_v2(device->context));
    device->stream = device_new_stream();
}

uint64_t device_alloc(size_t bytes)
{
    uint64_t at = 0;

    MUST(cuda.cuMemAlloc_v2(&at, bytes));
    return at;
}

void device_free(uint64_t at)
{
    MUST(cuda.cuMemFree_v2(at));
}

void device_write(const struct device *device, uint64_t at, const void *from, size_t bytes)
{
    MUST(cuda.cuMemcpyHtoDAsync_v2(at, from, bytes, device->stream));
    MUST(cuda.cuStreamSynchronize(device->stream));
}

void device_read(const struct device *device, void *to, uint64_t at, size_t bytes)
{
    MUST(cuda.cuMemcpyDtoHAsync_v2(to, at, bytes, device->stream));
    MUST(cuda.cuStreamSynchronize(device->stream));
}

void *device_new_stream(void)
{
    void *stream = NULL;

    MUST(cuda.cuStreamCreate(&stream, 1 /* not ordered with the default stream */));
    return stream;
}

void device_synchronize(void *stream)
{
    MUST(cuda.cuStreamSynchronize(stream));
}

/* ---- the kernel ---- */

static const char spin[] = ".version 7.0\n"
                           ".target sm_70\n"
                           ".address_size 64\n"
                           ".visible .entry spin(.param .u64 p_out, .param .u32 p_rounds)\n"
                           "{\n"
                           "    .reg .pred %p;\n"
                           "    .reg .f32 %f<2>;\n"
                           "    .reg .u32 %r<2>;\n"
                           "    .reg .u64 %d;\n"
                           "    ld.param.u64 %d, [p_out];\n"
                           "    ld.param.u32 %r0, [p_rounds];\n"
                           "    mov.f32 %f0, 0f3F800000;\n"
                           "    mov.f32 %f1, 0f3F000000;\n"
                           "    mov.u32 %r1, 0;\n"
                           "again:\n"
                           "    fma.rn.f32 %f0, %f0, %f1, %f1;\n"
                           "    add.u32 %r1, %r1, 1;\n"
                           "    setp.lt.u32 %p, %r1, %r0;\n"
                           "    @%p bra again;\n"
                           "    st.global.f32 [%d], %f0;\n"
                           "    ret;\n"
                           "}\n";

void *device_spin_kernel(void)
{
    void *module, *kernel;

    MUST(cuda.cuModuleLoadData(&module, spin));
    MUST(cuda.cuModuleGetFunction(&kernel, module, "spin"));
    return kernel;
}

void device_spin(const struct device *device, void *kernel, void *stream, uint64_t memory,
                 uint32_t rounds)
{
    void *params[] = {&memory, &rounds};

    MUST(cuda.cuLaunchKernel(kernel, (unsigned)device->processors, 1, 1, 512, 1, 1, 0, stream,
                             params, NULL));
}
