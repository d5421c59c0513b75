/* SPDX-License-Identifier: Apache-2.0 */
/* Devices on host memory, with a queue that runs inside of submit.  Each buffer has MARGIN bytes
 * of its own on both sides, so that candidates that write beside their results harm no other. */
#include <stdio.h>

#include "candidates.h"
#include "util/memory.h"

enum { MARGIN = 64, MAX_DEVICES = 4 };

static frit_status device_enumerate(void *self, frit_device_info *out, uint64_t stride,
                                    uint32_t capacity, uint32_t *count, frit_driver_info *driver,
                                    frit_err *err)
{
    static const frit_str ids[MAX_DEVICES] = {
        FRIT_STR_INIT("candidates-a"), FRIT_STR_INIT("candidates-b"), FRIT_STR_INIT("candidates-c"),
        FRIT_STR_INIT("candidates-d")};
    const struct instance *instance = self;
    const struct options *options = &instance->options;

    *count = (uint32_t)(options->devices < MAX_DEVICES ? options->devices : MAX_DEVICES);
    driver->reason = *count ? FRIT_REASON_NONE : FRIT_REASON_NO_DEVICE;
    for (uint32_t i = 0; i < *count && i < capacity; i++) {
        frit_device_info *info = plug_info_at(&instance->plug, out, stride, i, err);

        if (!info)
            return FRIT_INCOMPATIBLE;
        info->type = FRIT_DEVICE_SOFTWARE;
        info->index = i;
        info->stable_id = ids[i];
        info->name = FRIT_STR("programs with several candidates");
        info->fingerprint = options->fingerprint;
        info->caps = (options->captures ? 0 : FRIT_CAP_INLINE_QUEUE) |
                     (options->host_pointers ? FRIT_CAP_HOST_VISIBLE : 0);
        info->cache_bytes = (uint64_t)options->cache_bytes;
        info->n_heaps = 1;
        info->heap_stride = sizeof instance->heap;
        info->heaps = &instance->heap;
        for (uint32_t dtype = 1; dtype < FRIT_DTYPE_LIMIT; dtype++)
            info->dtype_use[dtype] = frit_dtype_bits(dtype) ? FRIT_DTYPE_STORAGE : 0;
        info->dtype_use[FRIT_F32] |= FRIT_DTYPE_ARITHMETIC;
    }
    return FRIT_OK;
}

static frit_status device_open(void *self, uint32_t index, const frit_open_params *params,
                               void **out, frit_err *err)
{
    struct instance *instance = self;
    frit_status status =
        plug_check_open(&instance->plug, index, (uint32_t)instance->options.devices, params, err);
    struct device *device;

    *out = NULL;
    if (status)
        return status;
    device = plug_new(&instance->plug, sizeof *device, "a device", err);
    if (!device)
        return FRIT_NO_HOST_MEMORY;
    hosted_init(&device->hosted, &instance->plug, &launch_driver, device,
                (uint64_t)instance->options.memory_bytes);
    device->instance = instance;
    atomic_init(&device->ticks, plug_now_ns(&instance->plug));
    *out = device;
    return FRIT_OK;
}

static void device_close(void *self)
{
    struct device *device = self;

    hosted_fini(&device->hosted);
    plug_free(&device->instance->plug, device);
}

/* ---- memory ---- */

static frit_status device_alloc(void *self, const frit_alloc_desc *desc, frit_allocation *out,
                                frit_err *err)
{
    struct device *device = self;
    struct hosted *hosted = &device->hosted;
    uint64_t front = desc->align > 2 * MARGIN ? desc->align : 2 * MARGIN;
    frit_status status = budget_take(&hosted->budget, desc->bytes, err);
    frit_memory *memory = NULL;

    if (status)
        return status;
    if (desc->bytes < UINT64_MAX - front - MARGIN)
        memory = plug_alloc(hosted->plug, front + desc->bytes + MARGIN, front);
    if (!memory)
        return budget_fail(&hosted->budget, desc->bytes, err);
    *memory = (frit_memory){.data = (char *)memory + front, .bytes = desc->bytes};
    memory_report(memory, out);
    if (!device->instance->options.host_pointers)
        out->host_pointer = NULL;
    return FRIT_OK;
}

/* ---- the queue ---- */

/* A copy of the commands in which timestamps are fills with what the simulated clock shows then. */
static void simulate(struct device *device, const frit_cmd *cmds, uint32_t count, uint32_t stride,
                     frit_cmd *to)
{
    for (uint32_t i = 0; i < count; i++) {
        to[i] = *(const frit_cmd *)(const void *)((const char *)cmds + (size_t)i * stride);
        if (to[i].kind == FRIT_CMD_LAUNCH && program_of(to[i].launch))
            atomic_fetch_add(&device->ticks, launch_charge(to[i].launch));
        if (to[i].kind != FRIT_CMD_TIMESTAMP)
            continue;
        to[i].kind = FRIT_CMD_FILL;
        to[i].bytes = to[i].pattern_bytes = sizeof to[i].pattern;
        to[i].pattern = atomic_load(&device->ticks);
    }
}

static frit_status device_submit(void *self, frit_queue *queue, const frit_cmd *cmds,
                                 uint32_t count, uint32_t stride, const frit_point *waits,
                                 uint32_t n_waits, uint64_t *value, frit_err *err)
{
    struct device *device = self;
    frit_status status;
    frit_cmd *copies;

    if (device->instance->options.clock != CLOCK_SIMULATED || count == 0)
        return hosted_submit(self, queue, cmds, count, stride, waits, n_waits, value, err);
    copies = plug_new(device->hosted.plug, count * sizeof *copies, "commands", err);
    if (!copies)
        return FRIT_NO_HOST_MEMORY;
    simulate(device, cmds, count, stride, copies);
    status = hosted_submit(self, queue, copies, count, sizeof *copies, waits, n_waits, value, err);
    plug_free(device->hosted.plug, copies);
    return status;
}

static frit_status device_clock(void *self, frit_clock *out, frit_err *err)
{
    struct device *device = self;
    frit_status status = hosted_clock(self, out, err);

    if (device->instance->options.clock == CLOCK_SIMULATED)
        out->ticks = atomic_load(&device->ticks);
    return status;
}

const frit_profile_table device_profile = {
    .struct_size = sizeof(frit_profile_table),
    .clock = device_clock,
};

const frit_backend device_backend = {
    .struct_size = FRIT_END_OF(frit_backend, op_program),
    .driver_name = FRIT_STR_INIT("candidates"),
    .enumerate = device_enumerate,
    .device_open = device_open,
    .device_close = device_close,
    .alloc = device_alloc,
    .free = hosted_free,
    .write = hosted_write,
    .read = hosted_read,
    .submit = device_submit,
    .wait = hosted_wait,
    .supports = program_supports,
    .op_program = program_create,
};
