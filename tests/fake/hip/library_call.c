/* SPDX-License-Identifier: Apache-2.0 */
/* What libraries beside the runtime need of it: NVRTC and the libraries for products. */
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime.h"

struct fake_gpu fake_gpu __attribute__((visibility("default")));

gpu_result call_begin(const char *name)
{
    const uint64_t number = atomic_fetch_add(&fake_gpu.calls, 1) + 1;

    if (fake_gpu.yields)
        sched_yield();
    if (number != atomic_load(&fake_gpu.failing_call))
        return GPU_SUCCESS;
    fake_gpu.failed_name = name;
    return fake_gpu.failing_result;
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

void *must_alloc(size_t bytes)
{
    void *memory = calloc(1, bytes ? bytes : 1);

    if (!memory)
        abort_wrong_call("no memory");
    return memory;
}
