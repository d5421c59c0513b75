/* SPDX-License-Identifier: Apache-2.0 */
/* What the engine's tests have to know of collective-nccl, which runs on the fakes of NCCL and CUDA
 * or, with ENGINE_HIP, of RCCL and HIP.  They take host memory for the device's. */
#include "engine.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#ifdef ENGINE_HIP
#define PICK(hip, cuda) hip
#else
#define PICK(hip, cuda) cuda
#endif

#define RUNTIME PICK("libfake-amdhip64-6.so", "libfake-cuda.so")

static const char *nccl_name = "libfake-" PICK("rccl", "nccl") ".so";
static struct fake_gpu *gpu;
static void *contexts[FAKE_MAX_DEVICES];
static int numbers[FAKE_MAX_DEVICES];
static bool uses_one_device;

static const char *path_of(const char *name)
{
    static _Thread_local char path[512];
    const char *build = getenv("FRIT_TEST_BUILD");

    snprintf(path, sizeof path, "%s/tests/fake/%s", build ? build : "build", name);
    return path;
}

static void *find(const char *name, const char *symbol)
{
    void *library = dlopen(path_of(name), RTLD_NOW | RTLD_LOCAL), *found;

    if (!library)
        fail_msg("%s", dlerror());
    found = dlsym(library, symbol);
    assert_non_null(found);
    return found;
}

void engine_use_library(const char *name)
{
    nccl_name = name;
}

struct fake_nccl *engine_fake(void)
{
    return find(nccl_name, FAKE_NCCL);
}

struct fake_gpu *engine_gpu(void)
{
    return gpu;
}

void *engine_device(uint32_t rank)
{
    const uint32_t device = uses_one_device ? 0 : rank % FAKE_MAX_DEVICES;

    return PICK((void *)&numbers[device], contexts[device]);
}

void engine_use_one_device(bool use)
{
    uses_one_device = use;
}

void engine_mend(void)
{
    gpu->reset();
    gpu->n_devices = FAKE_MAX_DEVICES;
    gpu->late_ns = 0;
}

/* ---- streams ---- */

static struct {
    int (*enter)(void *context);
    int (*set)(int number);
    int (*leave)(void **context);
    int (*retain)(void **context, int number);
    int (*create)(void **stream, unsigned flags);
    int (*destroy)(void *stream);
} runtime;

static void find_runtime(void)
{
#ifdef ENGINE_HIP
    *(void **)&runtime.set = find(RUNTIME, "hipSetDevice");
#else
    *(void **)&runtime.enter = find(RUNTIME, "cuCtxPushCurrent_v2");
    *(void **)&runtime.leave = find(RUNTIME, "cuCtxPopCurrent_v2");
    *(void **)&runtime.retain = find(RUNTIME, "cuDevicePrimaryCtxRetain");
#endif
    *(void **)&runtime.create = find(RUNTIME, PICK("hipStreamCreateWithFlags", "cuStreamCreate"));
    *(void **)&runtime.destroy = find(RUNTIME, PICK("hipStreamDestroy", "cuStreamDestroy_v2"));
}

static void enter(uint32_t rank)
{
    assert_int_equal(runtime.set ? runtime.set(numbers[rank]) : runtime.enter(contexts[rank]), 0);
}

static void leave(void)
{
    void *context;

    if (runtime.leave)
        (void)runtime.leave(&context);
}

void *engine_stream(uint32_t rank)
{
    void *stream = NULL;

    enter(rank);
    (void)runtime.create(&stream, 1);
    leave();
    return stream;
}

void engine_enqueue(uint32_t rank, void *stream, void (*run)(const void *data), const void *data,
                    uint64_t bytes)
{
    enter(rank);
    (void)gpu->enqueue(stream, run, data, bytes);
    leave();
}

void engine_end_stream(uint32_t rank, void *stream)
{
    enter(rank);
    (void)runtime.destroy(stream);
    leave();
}

/* ---- the engine ---- */

static void make_devices(void)
{
    for (int i = 0; i < FAKE_MAX_DEVICES; i++) {
        numbers[i] = i;
        if (runtime.retain)
            assert_int_equal(runtime.retain(&contexts[i], i), 0);
    }
}

static void start(void)
{
    if (gpu)
        return;
    gpu = find(RUNTIME, FAKE_GPU);
    find_runtime();
    engine_mend();
    make_devices();
}

static void set_device(uint32_t rank, frit_group_params *params)
{
    params->space = FRIT_STR(PICK("hip.ptr", "cuda.ptr"));
    params->device = engine_device(rank);
}

static bool is(frit_str id, const char *name)
{
    return id.len == strlen(name) && memcmp(id.ptr, name, id.len) == 0;
}

static const char *option(frit_str name)
{
    static char library[512], driver[512];

    snprintf(library, sizeof library, "%s", *nccl_name ? path_of(nccl_name) : "");
    snprintf(driver, sizeof driver, "%s", path_of(RUNTIME));
    if (is(name, PICK("rccl", "nccl")))
        return library;
    return is(name, PICK("hip", "cuda")) ? driver : "/nowhere/none.so";
}

const struct engine world_engine = {.plugin = "collective-nccl",
                                    .max_ranks = FAKE_MAX_DEVICES,
                                    .too_many_ranks = 1025,
                                    .foreign_space = "host.ptr",
                                    .scale = 6,
                                    .start = start,
                                    .set_device = set_device,
                                    .option = option};
