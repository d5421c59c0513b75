/* SPDX-License-Identifier: Apache-2.0 */
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "driver.h"

enum { MAX_DEVICES = 16, ALIGN = 64, PAGE = 4096 };

struct fake_device {
    const struct fake *fake;
    atomic_uint_least64_t value; /* of the timeline; everything up to it is done */
};

frit_status fake_fail(const struct fake *fake, frit_err *err, frit_status status, const char *text)
{
    return fake->core->err_set(fake->host->self, err, status, 0, (frit_str){text, strlen(text)});
}

const struct fake *fake_of(const void *device)
{
    return ((const struct fake_device *)device)->fake;
}

/* ---- devices ---- */

frit_status fake_enumerate(void *instance, frit_device_info *out, uint64_t stride,
                           uint32_t capacity, uint32_t *count, frit_driver_info *driver,
                           frit_err *err)
{
    static const char *const ids[MAX_DEVICES] = {
        "a0c0", "a0d1", "b2", "b23", "c4", "c5", "c6", "c7",
        "c8",   "c9",   "ca", "cb",  "cc", "cd", "ce", "cf",
    };
    static const frit_heap heap = {.struct_size = sizeof(heap),
                                   .kind = FRIT_HEAP_DEVICE,
                                   .bytes = 1u << 30,
                                   .granularity = PAGE};
    const struct fake *fake = instance;

    (void)driver;
    (void)err;
    *count = fake->n_devices;
    for (uint32_t i = 0; i < fake->n_devices && i < capacity; i++) {
        frit_device_info *info =
            (frit_device_info *)(void *)((char *)out + (size_t)i * (size_t)stride);

        info->type = fake->type;
        info->index = i;
        info->stable_id = (frit_str){ids[i], strlen(ids[i])};
        info->name = FRIT_STR("a piece of host memory");
        info->fingerprint = FRIT_STR("fake-1");
        info->caps = FRIT_CAP_INLINE_QUEUE | FRIT_CAP_HOST_VISIBLE;
        info->align_bytes = ALIGN;
        info->n_heaps = 1;
        info->heap_stride = sizeof(heap);
        info->heaps = &heap;
        for (uint32_t dtype = 1; dtype < FRIT_DTYPE_LIMIT; dtype++)
            info->dtype_use[dtype] = frit_dtype_bits(dtype) ? FRIT_DTYPE_STORAGE : 0;
    }
    return FRIT_OK;
}

static frit_status device_open(void *instance, uint32_t index, const frit_open_params *params,
                               void **out, frit_err *err)
{
    const struct fake *fake = instance;
    struct fake_device *device;

    if (index >= fake->n_devices)
        return fake_fail(fake, err, FRIT_INVALID, "no such device");
    if (params->n_natives)
        return fake->core->err_set(fake->host->self, err, FRIT_UNSUPPORTED, 0,
                                   params->natives[0].name);
    device = fake->core->mem_alloc(fake->host->self, sizeof(*device), 64);
    if (!device)
        return fake_fail(fake, err, FRIT_NO_HOST_MEMORY, "no memory for a device");
    device->fake = fake;
    atomic_init(&device->value, 0);
    *out = device;
    return FRIT_OK;
}

static void device_close(void *self)
{
    const struct fake_device *device = self;

    device->fake->core->mem_free(device->fake->host->self, self);
}

/* ---- memory and transfers ---- */

static frit_status memory_alloc(void *self, const frit_alloc_desc *desc, frit_allocation *out,
                                frit_err *err)
{
    const struct fake *fake = ((struct fake_device *)self)->fake;
    uint64_t align = desc->align > ALIGN ? desc->align : ALIGN;
    void *memory = fake->core->mem_alloc(fake->host->self, desc->bytes, align);

    if (!memory)
        return fake_fail(fake, err, FRIT_NO_DEVICE_MEMORY, "no memory");
    out->memory = memory;
    out->address = (uint64_t)(uintptr_t)memory;
    out->host_pointer = memory;
    return FRIT_OK;
}

static void memory_free(void *self, frit_memory *memory)
{
    const struct fake *fake = ((struct fake_device *)self)->fake;

    fake->core->mem_free(fake->host->self, memory);
}

static frit_status memory_write(void *self, const frit_transfer *to, const void *from,
                                uint64_t *value, frit_err *err)
{
    struct fake_device *device = self;

    (void)err;
    memcpy((char *)to->memory + to->offset, from, to->bytes);
    *value = atomic_fetch_add(&device->value, 1) + 1;
    return FRIT_OK;
}

static frit_status memory_read(void *self, const frit_transfer *from, void *into, uint64_t *value,
                               frit_err *err)
{
    struct fake_device *device = self;

    (void)err;
    memcpy(into, (const char *)from->memory + from->offset, from->bytes);
    *value = atomic_fetch_add(&device->value, 1) + 1;
    return FRIT_OK;
}

static void *native_get(void *device, frit_memory *memory, frit_str name)
{
    (void)device;
    return name.len == 8 && memcmp(name.ptr, "host.ptr", 8) == 0 ? memory : NULL;
}

/* ---- the queue ---- */

static void fill(const frit_cmd *cmd)
{
    char *to = (char *)cmd->dst + cmd->dst_offset;

    for (uint64_t i = 0; i < cmd->bytes; i += cmd->pattern_bytes)
        memcpy(to + i, &cmd->pattern, cmd->pattern_bytes);
}

static const frit_cmd *cmd_at(const frit_cmd *cmds, uint32_t stride, uint32_t index)
{
    return (const frit_cmd *)(const void *)((const char *)cmds + (size_t)stride * index);
}

static frit_status submit(void *self, frit_queue *queue, const frit_cmd *cmds, uint32_t count,
                          uint32_t stride, const frit_point *waits, uint32_t n_waits,
                          uint64_t *value, frit_err *err)
{
    struct fake_device *device = self;

    (void)queue;
    (void)waits;
    (void)n_waits;
    for (uint32_t i = 0; i < count; i++) {
        if (cmd_at(cmds, stride, i)->kind == FRIT_CMD_LAUNCH)
            return fake_fail(device->fake, err, FRIT_UNSUPPORTED, "a fake driver runs nothing");
    }
    for (uint32_t i = 0; i < count; i++) {
        const frit_cmd *cmd = cmd_at(cmds, stride, i);

        if (cmd->kind == FRIT_CMD_COPY)
            memmove((char *)cmd->dst + cmd->dst_offset, (const char *)cmd->src + cmd->src_offset,
                    cmd->bytes);
        else if (cmd->kind == FRIT_CMD_FILL)
            fill(cmd);
    }
    *value = atomic_fetch_add(&device->value, 1) + 1;
    return FRIT_OK;
}

static frit_status wait_value(void *self, frit_queue *queue, uint64_t value, uint64_t timeout_ns,
                              frit_failure *failure, frit_err *err)
{
    struct fake_device *device = self;

    (void)queue;
    (void)timeout_ns;
    failure->status = FRIT_OK;
    if (value <= atomic_load(&device->value))
        return FRIT_OK;
    return fake_fail(device->fake, err, FRIT_INVALID, "a value that was never given");
}

/* ---- ops ---- */

static frit_status supports(void *self, const frit_op_desc *ops, uint32_t count, uint32_t stride,
                            uint64_t *bits, frit_err *err)
{
    (void)self;
    (void)ops;
    (void)stride;
    (void)err;
    memset(bits, 0, (count + 63) / 64 * sizeof(*bits));
    return FRIT_OK;
}

static frit_status op_program(void *self, const frit_op_desc *op, frit_program *out, frit_err *err)
{
    const struct fake_device *device = self;

    (void)op;
    (void)out;
    return fake_fail(device->fake, err, FRIT_UNSUPPORTED, "a fake driver runs nothing");
}

static const frit_backend backend = {
    .struct_size = FRIT_END_OF(frit_backend, op_program),
    .enumerate = fake_enumerate,
    .device_open = device_open,
    .device_close = device_close,
    .alloc = memory_alloc,
    .free = memory_free,
    .write = memory_write,
    .read = memory_read,
    .submit = submit,
    .wait = wait_value,
    .supports = supports,
    .op_program = op_program,
};

/* ---- the instance ---- */

frit_status fake_open(const frit_host_root *host, const char *driver_name, struct fake **out,
                      frit_err *err)
{
    const frit_host_core *core = host->get_interface(host->self, FRIT_STR(FRIT_HOST_CORE));
    struct fake *fake;

    if (!core || !FRIT_HAS(core, frit_host_core, mem_free))
        return FRIT_INCOMPATIBLE;
    fake = core->mem_alloc(host->self, sizeof(*fake), 64);
    if (!fake)
        return core->err_set(host->self, err, FRIT_NO_HOST_MEMORY, 0, FRIT_STR("no memory"));
    *fake = (struct fake){.host = host,
                          .core = core,
                          .n_devices = 1,
                          .type = FRIT_DEVICE_SOFTWARE,
                          .backend = backend,
                          .plain = backend};
    fake->backend.driver_name = (frit_str){driver_name, strlen(driver_name)};
    *out = fake;
    return FRIT_OK;
}

void fake_close(void *instance)
{
    const struct fake *fake = instance;

    fake->core->mem_free(fake->host->self, instance);
}

static bool is(frit_str id, frit_str name)
{
    return id.len == name.len && memcmp(id.ptr, name.ptr, name.len) == 0;
}

const void *fake_get_interface(void *instance, frit_str id)
{
    static const frit_native_table native = {.struct_size = sizeof(native), .get = native_get};
    const struct fake *fake = instance;

    if (is(id, FRIT_STR(FRIT_BACKEND)))
        return &fake->backend;
    return is(id, FRIT_STR(FRIT_NATIVE_TABLE)) ? &native : NULL;
}
