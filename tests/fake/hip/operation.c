/* SPDX-License-Identifier: Apache-2.0 */
/* What operations do, and the functions that enqueue copies and fills. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "stream.h"

/* ---- running ---- */

/* Reports a mistake of the caller if memory of an enqueued operation was freed before it runs. */
static void check_memory(const char *what, const void *at, size_t bytes)
{
    if (bytes && !memory_is_device((uintptr_t)at, bytes))
        abort_wrong_call("%s of %zu bytes at %p, which were freed meanwhile", what, bytes, at);
}

static void run_copy(const struct operation *op)
{
    memmove(op->copy.to, op->copy.from, op->copy.bytes);
}

static void run_set(const struct operation *op)
{
    char *to = op->set.to;

    check_memory("a fill", to, op->set.count * op->set.width);
    for (size_t i = 0; i < op->set.count; i++)
        memcpy(to + i * op->set.width, &op->set.pattern, op->set.width);
}

/* Shared memory of a block: the page after it cannot be accessed. */
struct shared {
    char *pages;
    size_t bytes;
    void *start;
};

enum { PAGE = 4096, SHARED_ALIGN = 16, POISON = 0xff };

static struct shared shared_init(uint32_t bytes)
{
    const size_t aligned = (bytes + SHARED_ALIGN - 1u) / SHARED_ALIGN * SHARED_ALIGN;
    const size_t inside = (aligned + PAGE - 1) / PAGE * PAGE;
    struct shared shared = {.bytes = inside + PAGE};

    shared.pages =
        mmap(NULL, shared.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (shared.pages == MAP_FAILED || mprotect(shared.pages + inside, PAGE, PROT_NONE))
        abort_wrong_call("no memory for a kernel");
    shared.start = shared.pages + inside - aligned;
    memset(shared.start, POISON, aligned);
    return shared;
}

static void run_kernel(const struct operation *op)
{
    const uint32_t *grid = op->kernel.grid;
    const gpu_function function = op->kernel.function;
    struct shared shared = shared_init(op->kernel.shared_bytes);

    module_lock(function->module);
    if (function->dims) {
        memcpy(function->dims, op->kernel.group, sizeof op->kernel.group);
        memcpy(function->dims + 3, grid, sizeof op->kernel.grid);
    }
    for (uint32_t z = 0; z < grid[2]; z++)
        for (uint32_t y = 0; y < grid[1]; y++)
            for (uint32_t x = 0; x < grid[0]; x++)
                function->run(op->kernel.words, (const uint32_t[3]){x, y, z}, shared.start);
    module_unlock(function->module);
    munmap(shared.pages, shared.bytes);
}

gpu_result operation_run(const struct operation *op)
{
    switch (op->kind) {
    case OPERATION_COPY:
        run_copy(op);
        break;
    case OPERATION_SET:
        run_set(op);
        break;
    case OPERATION_KERNEL:
        run_kernel(op);
        break;
    case OPERATION_CALL:
        op->call.run(op->call.data);
        break;
    case OPERATION_GRAPH:
        for (const struct operation *w = op->graph.exec->first; w; w = w->next)
            (void)operation_run(w);
        break;
    case OPERATION_RECORD:
    case OPERATION_WAIT:
        break;
    }
    return GPU_SUCCESS;
}

/* ---- ownership ---- */

void operation_fini(struct operation *op)
{
    if (op->kind == OPERATION_COPY && op->copy.owns_from)
        free((void *)(uintptr_t)op->copy.from);
    if (op->kind == OPERATION_CALL)
        free(op->call.data);
    if (op->kind == OPERATION_KERNEL) {
        free(op->kernel.words);
        module_unref(op->kernel.function->module);
    }
}

static void *copy_of(const void *from, size_t bytes)
{
    void *to = must_alloc(bytes);

    memcpy(to, from, bytes);
    return to;
}

struct operation *operation_copy_list(const struct operation *first)
{
    struct operation *copies = NULL, **end = &copies;

    for (const struct operation *w = first; w; w = w->next) {
        struct operation *copy = must_alloc(sizeof *copy);

        *copy = *w;
        copy->next = NULL;
        if (w->kind == OPERATION_KERNEL) {
            copy->kernel.words =
                copy_of(w->kernel.words, w->kernel.n_words * sizeof *w->kernel.words);
            module_ref(w->kernel.function->module);
        }
        if (w->kind == OPERATION_CALL)
            copy->call.data = copy_of(w->call.data, w->call.bytes);
        *end = copy;
        end = &copy->next;
    }
    return copies;
}

void operation_free_list(struct operation *first)
{
    while (first) {
        struct operation *next = first->next;

        operation_fini(first);
        free(first);
        first = next;
    }
}

/* ---- copies ---- */

gpu_result operation_copy(gpu_stream stream, void *to, const void *from, size_t bytes)
{
    return stream_push(stream,
                       &(struct operation){.kind = OPERATION_COPY,
                                           .copy = {.to = to, .from = from, .bytes = bytes}});
}

/* Whether the stream's device may access the range.  Other devices' memory is for peer copies: the
 * vendors let it be accessed in some cases, on which the driver must not rely. */
static bool may_access(gpu_stream stream, gpu_ptr at, size_t bytes)
{
    return !bytes || memory_is_on(stream->context->device, at, bytes);
}

/* Pinned memory is read when the copy runs, other memory at once. */
gpu_result fake_MemcpyHtoDAsync(gpu_ptr to, const void *from, size_t bytes, gpu_stream stream)
{
    gpu_result result = stream_begin("MemcpyHtoDAsync", stream);
    void *copy;

    if (result || !may_access(stream, to, bytes))
        return result ? result : FAKE_INVALID_VALUE;
    if (memory_is_pinned(from, bytes))
        return operation_copy(stream, (void *)(uintptr_t)to, from, bytes);
    if (stream->capture)
        return FAKE_CAPTURE_UNSUPPORTED;
    copy = copy_of(from, bytes);
    return stream_push(stream, &(struct operation){.kind = OPERATION_COPY,
                                                   .copy = {.to = (void *)(uintptr_t)to,
                                                            .from = copy,
                                                            .bytes = bytes,
                                                            .owns_from = true}});
}

/* To memory that is not pinned a copy is over when the call returns. */
gpu_result fake_MemcpyDtoHAsync(void *to, gpu_ptr from, size_t bytes, gpu_stream stream)
{
    gpu_result result = stream_begin("MemcpyDtoHAsync", stream);

    if (result || !may_access(stream, from, bytes))
        return result ? result : FAKE_INVALID_VALUE;
    if (!memory_is_pinned(to, bytes) && stream->capture)
        return FAKE_CAPTURE_UNSUPPORTED;
    result = operation_copy(stream, to, (const void *)(uintptr_t)from, bytes);
    return result || memory_is_pinned(to, bytes) ? result : stream_drain(stream);
}

gpu_result fake_MemcpyDtoDAsync(gpu_ptr to, gpu_ptr from, size_t bytes, gpu_stream stream)
{
    gpu_result result = stream_begin("MemcpyDtoDAsync", stream);

    if (!result && (!may_access(stream, to, bytes) || !may_access(stream, from, bytes)))
        result = FAKE_INVALID_VALUE;
    return result ? result
                  : operation_copy(stream, (void *)(uintptr_t)to, (const void *)(uintptr_t)from,
                                   bytes);
}

/* ---- fills ---- */

static gpu_result push_set(const char *name, gpu_ptr to, uint32_t pattern, uint32_t width,
                           size_t count, gpu_stream stream)
{
    gpu_result result = stream_begin(name, stream);

    if (!result && (to % width || !may_access(stream, to, count * width)))
        result = FAKE_INVALID_VALUE;
    return result ? result
                  : stream_push(stream, &(struct operation){.kind = OPERATION_SET,
                                                            .set = {.to = (void *)(uintptr_t)to,
                                                                    .pattern = pattern,
                                                                    .width = width,
                                                                    .count = count}});
}

gpu_result fake_MemsetD8Async(gpu_ptr to, unsigned char pattern, size_t count, gpu_stream stream)
{
    return push_set("MemsetD8Async", to, pattern, 1, count, stream);
}

gpu_result fake_MemsetD16Async(gpu_ptr to, unsigned short pattern, size_t count, gpu_stream stream)
{
    return push_set("MemsetD16Async", to, pattern, 2, count, stream);
}

gpu_result fake_MemsetD32Async(gpu_ptr to, unsigned pattern, size_t count, gpu_stream stream)
{
    return push_set("MemsetD32Async", to, pattern, 4, count, stream);
}

/* ---- launches ---- */

/* HIP_LAUNCH_PARAM_END and CU_LAUNCH_PARAM_END. */
#define LAUNCH_END ((void *)(uintptr_t)FAKE_PICK(3, 0))

/* The parameters of a launch.  Of the forms that a launch may have, the fake supports only `extra`:
 * a list of keys and values, which HIP accepts in this order only. */
static gpu_result read_parameters(void **extra, const void **words, size_t *bytes)
{
    if (!extra || extra[0] != GPU_LAUNCH_BUFFER || extra[2] != GPU_LAUNCH_BUFFER_SIZE ||
        extra[4] != LAUNCH_END)
        return FAKE_PICK(FAKE_NOT_INITIALIZED, FAKE_INVALID_VALUE);
    *words = extra[1];
    *bytes = *(const size_t *)extra[3];
    return *bytes % sizeof(uint64_t) == 0 && *bytes <= FAKE_PARAMETERS ? GPU_SUCCESS
                                                                       : FAKE_INVALID_VALUE;
}

static gpu_result check_launch(const struct operation *op)
{
    const uint32_t *grid = op->kernel.grid, *group = op->kernel.group;
    const gpu_function function = op->kernel.function;
    const uint64_t threads = (uint64_t)group[0] * group[1] * group[2];

    if (!grid[0] || !grid[1] || !grid[2] || grid[0] > INT32_MAX || grid[1] > UINT16_MAX ||
        grid[2] > UINT16_MAX || !threads || threads > FAKE_THREADS)
        return FAKE_INVALID_VALUE;
    if (op->kernel.shared_bytes > function->shared_bytes)
        return FAKE_INVALID_VALUE;
    if (function->threads && (group[0] != function->threads || threads != group[0]))
        abort_wrong_call("a block of %u x %u x %u threads for a kernel of %u", group[0], group[1],
                         group[2], function->threads);
    if (function->n_words && op->kernel.n_words != function->n_words)
        abort_wrong_call("%u words of parameters for a kernel of %u", op->kernel.n_words,
                         function->n_words);
    return GPU_SUCCESS;
}

gpu_result fake_LaunchKernel(gpu_function function, unsigned grid_x, unsigned grid_y,
                             unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,
                             unsigned shared_bytes, gpu_stream stream, void **params, void **extra)
{
    gpu_result result = stream_begin("LaunchKernel", stream);
    const void *words;
    size_t bytes;
    struct operation op = {.kind = OPERATION_KERNEL,
                           .kernel = {.function = function,
                                      .grid = {grid_x, grid_y, grid_z},
                                      .group = {block_x, block_y, block_z},
                                      .shared_bytes = shared_bytes}};

    if (!result)
        result = params ? FAKE_NOT_SUPPORTED : read_parameters(extra, &words, &bytes);
    if (result)
        return result;
    op.kernel.n_words = (uint32_t)(bytes / sizeof(uint64_t));
    result = check_launch(&op);
    if (result)
        return result;
    op.kernel.words = copy_of(words, bytes);
    module_ref(function->module);
    return stream_push(stream, &op);
}

/* ---- calls ---- */

static int enqueue(void *stream, void (*run)(const void *data), const void *data, uint64_t bytes,
                   bool waits)
{
    gpu_result result = stream_begin("a call of another library", stream);

    return result ? result
                  : stream_push(stream, &(struct operation){.kind = OPERATION_CALL,
                                                            .call = {.run = run,
                                                                     .data = copy_of(data, bytes),
                                                                     .bytes = bytes,
                                                                     .waits = waits}});
}

int operation_enqueue(void *stream, void (*run)(const void *data), const void *data, uint64_t bytes)
{
    return enqueue(stream, run, data, bytes, false);
}

int operation_enqueue_waiting(void *stream, void (*run)(const void *data), const void *data,
                              uint64_t bytes)
{
    return enqueue(stream, run, data, bytes, true);
}
