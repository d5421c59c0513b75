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

static const char *nccl_name = "libfake-" PICK("rccl", "nccl") ".so";
static struct fake_gpu *gpu;
static void *contexts[FAKE_MAX_DEVICES];
static int numbers[FAKE_MAX_DEVICES];

static const char *path_of(const char *name)
{
    static _Thread_local char path[512];
    const char *build = getenv("FRIT_TEST_BUILD");

    snprintf(path, sizeof path, "%s/tests/fake/%s", build ? build : "build", name);
    return path;
}

static void *load(const char *name, const char *symbol)
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
    return load(nccl_name, FAKE_NCCL);
}

struct fake_gpu *engine_gpu(void)
{
    return gpu;
}

void *engine_device(uint32_t rank)
{
    return PICK((void *)&numbers[rank], contexts[rank]);
}

/* The contexts stay on the stack of the first thread, so that they live. */
static void start(void)
{
    if (gpu)
        return;
    gpu = load(PICK("libfake-amdhip64-6.so", "libfake-cuda.so"), FAKE_GPU);
    gpu->n_devices = FAKE_MAX_DEVICES;
    gpu->late_ns = 0;
    for (int i = 0; i < FAKE_MAX_DEVICES; i++) {
        numbers[i] = i;
        contexts[i] = PICK(NULL, gpu->use_device(i));
    }
}

static void set_device(uint32_t rank, frit_group_params *params)
{
    params->space = FRIT_STR(PICK("hip.ptr", "cuda.ptr"));
    params->device = engine_device(rank % FAKE_MAX_DEVICES);
}

static bool is(frit_str id, const char *name)
{
    return id.len == strlen(name) && memcmp(id.ptr, name, id.len) == 0;
}

static const char *option(frit_str name)
{
    static char library[512], runtime[512];

    snprintf(library, sizeof library, "%s", *nccl_name ? path_of(nccl_name) : "");
    snprintf(runtime, sizeof runtime, "%s",
             path_of(PICK("libfake-amdhip64-6.so", "libfake-cuda.so")));
    if (is(name, PICK("rccl", "nccl")))
        return library;
    return is(name, PICK("hip", "cuda")) ? runtime : "/nowhere/none.so";
}

const struct engine engine = {.plugin = "collective-nccl",
                              .max_ranks = FAKE_MAX_DEVICES,
                              .too_many_ranks = 1025,
                              .foreign_space = "host.ptr",
                              .scale = 6,
                              .start = start,
                              .set_device = set_device,
                              .option = option};
