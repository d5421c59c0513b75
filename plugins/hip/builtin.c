/* SPDX-License-Identifier: Apache-2.0 */
#include "builtin.h"

#include <stdio.h>
#include <string.h>

#include "compile.h"
#include "device.h"
#include "launch.h"
#include "plugin.h"
#include "vendor.h"

enum { THREADS = 256, MAX_BLOCKS = 4096, STORE_THREADS = 64 };

/* The first word of each parameter struct is what launch_grid writes.  The clock is in nanoseconds
 * on NVIDIA; on AMD it counts at 100 MHz. */
static const char common[] =
    "typedef unsigned long long u64;\n"
    "struct fill { u64 head, to, pattern, n; };\n"
    "struct clock_ { u64 head, to; };\n"
    "struct store { u64 head, to, n, words[440]; };\n"
    "extern \"C\" __global__ void fill(const struct fill p)\n"
    "{\n"
    "    for (u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i < p.n;\n"
    "         i += (u64)gridDim.x * blockDim.x)\n"
    "        ((u64 *)p.to)[i] = p.pattern;\n"
    "}\n"
    "extern \"C\" __global__ void clock_now(const struct clock_ p)\n"
    "{\n"
    "    *(volatile u64 *)p.to = NOW();\n"
    "}\n"
    "extern \"C\" __global__ void store(const struct store p)\n"
    "{\n"
    "    for (unsigned i = threadIdx.x; i < p.n; i += blockDim.x)\n"
    "        ((u64 *)p.to)[i] = p.words[i];\n"
    "}\n";
static const char now_cuda[] = "__device__ inline unsigned long long NOW()\n"
                               "{\n"
                               "    unsigned long long t;\n"
                               "    asm volatile(\"mov.u64 %0, %%globaltimer;\" : \"=l\"(t));\n"
                               "    return t;\n"
                               "}\n";
static const char now_hip[] =
    "__device__ inline unsigned long long NOW() { return __builtin_amdgcn_s_memrealtime(); }\n";

_Static_assert(BUILTIN_STORE_WORDS == 440, "as in the text of struct store");

static frit_status load(struct device *device, const void *code, frit_err *err)
{
    static const char *const names[N_BUILTINS] = {"fill", "clock_now", "store"};
    struct builtins *builtins = &device->builtins;
    gpu_result result = device->api->ModuleLoadData(&builtins->module, code);

    for (uint32_t i = 0; i < N_BUILTINS && !result; i++)
        result =
            device->api->ModuleGetFunction(&builtins->functions[i], builtins->module, names[i]);
    builtins->is_ready = !result;
    return result ? device_fail(device, result, "loading a kernel", err) : FRIT_OK;
}

static frit_status make(struct device *device, frit_err *err)
{
    char text[sizeof common + sizeof now_cuda + sizeof now_hip];
    uint64_t n_bytes;
    void *code;
    frit_status status;

    snprintf(text, sizeof text, "%s%s", vendor.dialect == CTEXT_HIP ? now_hip : now_cuda, common);
    status = compile_text(device, "builtins", text, false, &code, &n_bytes, err);
    if (!status)
        status = load(device, code, err);
    hip_free(device->instance, code);
    return status;
}

static frit_status launch(struct frit_queue *queue, gpu_stream stream, enum builtin which,
                          const uint32_t grid[3], const uint32_t group[3], uint64_t *params,
                          uint32_t n, frit_err *err)
{
    struct device *device = queue->device;
    const struct launch_target target = {device, stream};
    frit_status status = FRIT_OK;

    pthread_mutex_lock(&device->compile_lock);
    if (!device->builtins.is_ready)
        status = make(device, err);
    pthread_mutex_unlock(&device->compile_lock);
    return status ? status
                  : launch_grid(&target, device->builtins.functions[which], grid, group, 0, params,
                                n, err);
}

frit_status builtin_fill(struct frit_queue *queue, gpu_stream stream, uint64_t address,
                         uint64_t pattern, uint64_t n, frit_err *err)
{
    const uint64_t blocks = (n + THREADS - 1) / THREADS;
    const uint32_t grid[3] = {blocks < MAX_BLOCKS ? (uint32_t)blocks : MAX_BLOCKS, 1, 1};
    uint64_t params[] = {0, address, pattern, n};

    return launch(queue, stream, BUILTIN_FILL, grid, (const uint32_t[3]){THREADS, 1, 1}, params, 4,
                  err);
}

frit_status builtin_clock(struct frit_queue *queue, uint64_t address, frit_err *err)
{
    const uint32_t one[3] = {1, 1, 1};
    uint64_t params[] = {0, address};

    return launch(queue, queue->stream, BUILTIN_CLOCK, one, one, params, 2, err);
}

frit_status builtin_store(struct frit_queue *queue, uint64_t address, const uint64_t *words,
                          uint32_t n, frit_err *err)
{
    uint64_t params[3 + BUILTIN_STORE_WORDS] = {0, address, n};

    memcpy(params + 3, words, n * sizeof *words);
    return launch(queue, queue->stream, BUILTIN_STORE, (const uint32_t[3]){1, 1, 1},
                  (const uint32_t[3]){STORE_THREADS, 1, 1}, params, 3 + BUILTIN_STORE_WORDS, err);
}

void builtins_close(struct device *device)
{
    if (device->builtins.module)
        (void)device->api->ModuleUnload(device->builtins.module);
}
