/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts of CUDA: a stack per thread. */
#include <stdlib.h>

#include "runtime.h"

enum { MAX_DEPTH = 64 };

struct gpu_context_object contexts[FAKE_MAX_DEVICES] = {{.device = 0}, {.device = 1}, {.device = 2},
                                                        {.device = 3}, {.device = 4}, {.device = 5},
                                                        {.device = 6}, {.device = 7}};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local gpu_context stack[MAX_DEPTH];
static _Thread_local uint32_t depth;

gpu_context context_current(void)
{
    return depth ? stack[depth - 1] : NULL;
}

static void push(gpu_context context)
{
    if (depth == MAX_DEPTH)
        abort_wrong_call("%d contexts on a thread's stack", MAX_DEPTH);
    stack[depth++] = context;
}

gpu_result fake_ContextPush(gpu_context context)
{
    gpu_result result = call_begin("ContextPush");

    if (result || !context)
        return result ? result : FAKE_INVALID_CONTEXT;
    push(context);
    return GPU_SUCCESS;
}

/* An error may be one of earlier work: the context is popped all the same. */
gpu_result fake_ContextPop(gpu_context *context)
{
    gpu_result result = call_begin("ContextPop");

    if (!depth)
        return FAKE_INVALID_CONTEXT;
    *context = stack[--depth];
    return result;
}

/* For engines of collectives; the driver has no use for it. */
gpu_result fake_context_get_device(int *device) __asm__("cuCtxGetDevice")
    __attribute__((visibility("default")));

gpu_result fake_context_get_device(int *device)
{
    gpu_result result = call_begin("ContextGetDevice");

    if (result || !depth)
        return result ? result : FAKE_INVALID_CONTEXT;
    *device = stack[depth - 1]->device;
    return GPU_SUCCESS;
}

gpu_result fake_PrimaryContextRetain(gpu_context *context, int device)
{
    gpu_result result = call_begin("PrimaryContextRetain");

    if (result || device < 0 || (uint32_t)device >= fake_gpu.n_devices)
        return result ? result : FAKE_INVALID_DEVICE;
    pthread_mutex_lock(&lock);
    contexts[device].n_retained++;
    pthread_mutex_unlock(&lock);
    fake_gpu.alive[FAKE_CONTEXT]++;
    *context = &contexts[device];
    return GPU_SUCCESS;
}

/* The last release destroys the context, and with it a fatal error and access to peers. */
gpu_result fake_PrimaryContextRelease(int device)
{
    gpu_result result = call_begin("PrimaryContextRelease");

    pthread_mutex_lock(&lock);
    if (device < 0 || device >= FAKE_MAX_DEVICES || !contexts[device].n_retained) {
        pthread_mutex_unlock(&lock);
        return FAKE_INVALID_CONTEXT;
    }
    if (--contexts[device].n_retained == 0) {
        contexts[device].fatal = 0;
        peer_forget(&contexts[device]);
    }
    pthread_mutex_unlock(&lock);
    fake_gpu.alive[FAKE_CONTEXT]--;
    return result;
}

/* ---- an application's ---- */

static void *current(void)
{
    return context_current();
}

static uint32_t get_depth(void)
{
    return depth;
}

static void *use_device(int device)
{
    gpu_context context = must_alloc(sizeof *context);

    context->device = device;
    push(context);
    return context;
}

static void unuse_device(void)
{
    free(stack[--depth]);
}

void context_setup(struct fake_gpu *control)
{
    control->current = current;
    control->depth = get_depth;
    control->use_device = use_device;
    control->unuse_device = unuse_device;
}
