/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime.h"
#include "stream.h"

enum { DEFAULT_LATE_NS = 100000 };
#define DEFAULT_BYTES (4ull << 30)

static _Atomic bool is_ready; /* Init has succeeded in this process */

struct fake_gpu fake_gpu __attribute__((visibility("default")));

/* ---- settings ---- */

static uint64_t setting(const char *name, uint64_t usual)
{
    char variable[64];
    const char *text;

    snprintf(variable, sizeof variable, "FRIT_FAKE_GPU_%s", name);
    text = getenv(variable);
    return text ? strtoull(text, NULL, 0) : usual;
}

static void reset(void)
{
    fake_gpu.n_devices = (uint32_t)setting("DEVICES", FAKE_DEVICES);
    fake_gpu.seed = setting("SEED", 1);
    fake_gpu.late_ns = setting("LATE_NS", DEFAULT_LATE_NS);
    fake_gpu.device_bytes = setting("BYTES", DEFAULT_BYTES);
    fake_gpu.init_result = 0;
    fake_gpu.compute_mode = 0;
    fake_gpu.failing_call = fake_gpu.failing_operation = 0;
    fake_gpu.failing_result = fake_gpu.failing_operation_result = 0;
    fake_gpu.calls = fake_gpu.n_operations = 0;
    fake_gpu.failed_name = NULL;
    fake_gpu.has_no_peers = false;
    fake_gpu.enabled_peers = fake_gpu.peer_copies = fake_gpu.staged_copies = 0;
    for (int i = 0; i < FAKE_MAX_DEVICES; i++) {
        contexts[i].fatal = 0;
        peer_forget(&contexts[i]);
    }
}

/* A child of the process that has called Init has no runtime, as with the vendors'. */
static void on_fork(void)
{
    is_ready = false;
}

__attribute__((constructor)) static void setup(void)
{
    pthread_atfork(NULL, NULL, on_fork);
    reset();
    fake_gpu.reset = reset;
    fake_gpu.hold = stream_hold;
    fake_gpu.enqueue = operation_enqueue;
    fake_gpu.enqueue_waiting = operation_enqueue_waiting;
    fake_gpu.has_memory = memory_is_device;
    context_setup(&fake_gpu);
}

/* ---- calls ---- */

gpu_result call_begin(const char *name)
{
    const uint64_t number = atomic_fetch_add(&fake_gpu.calls, 1) + 1;
    gpu_result result;
    gpu_context context;

    if (number != atomic_load(&fake_gpu.failing_call))
        return GPU_SUCCESS;
    result = fake_gpu.failing_result;
    fake_gpu.failed_name = name;
    context = context_current();
    if (result_is_fatal(result) && context)
        stream_lose(context, result);
    return result;
}

gpu_result call_begin_on(const char *name, gpu_context *context)
{
    gpu_result result = call_begin(name);

    *context = context_current();
    if (result)
        return result;
    if (!is_ready)
        return FAKE_NOT_INITIALIZED;
    return *context ? (*context)->fatal : FAKE_INVALID_CONTEXT;
}

void abort_wrong_call(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fprintf(stderr, "fake GPU: ");
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n");
    va_end(args);
    abort();
}

bool result_is_fatal(gpu_result result)
{
    return result == 214 || result == 220 ||
           (result >= 700 && result < 720 && result != 701 && result != 704 && result != 705);
}

void *must_alloc(size_t bytes)
{
    void *memory = calloc(1, bytes ? bytes : 1);

    if (!memory)
        abort_wrong_call("no memory");
    return memory;
}

uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

gpu_result fake_Init(unsigned flags)
{
    gpu_result result = call_begin("Init");

    if (result || flags)
        return result ? result : FAKE_INVALID_VALUE;
    result = fake_gpu.init_result ? fake_gpu.init_result
             : fake_gpu.n_devices ? GPU_SUCCESS
                                  : GPU_NO_DEVICE;
    if (!result)
        is_ready = true;
    return result;
}

gpu_result fake_DriverGetVersion(int *version)
{
    gpu_result result = call_begin("DriverGetVersion");

#ifdef FAKE_HIP
    *version = 50221153;
#else
    *version = 12080;
#endif
    return result;
}
