/* SPDX-License-Identifier: Apache-2.0 */
/* The fusers: `map` takes elementwise rows, conversions, views and what is made from nothing; `row`
 * takes reductions over one axis as well, in any order; `chain` takes a few elementwise rows of f32
 * on tensors of the same dims. */
#include <string.h>

#include "blocks.h"

struct fuser {
    const struct instance *instance;
    const frit_fuser_device *device;
    enum fuser_kind kind;
    struct block block;
};

static const struct {
    frit_str name;
    uint32_t quality;
    frit_str format; /* of its kernels */
} kinds[FUSER_KINDS] = {
    [FUSER_MAP] = {{"map", 3}, 800, {FRIT_FORMAT_HOST_FN, sizeof(FRIT_FORMAT_HOST_FN) - 1}},
    [FUSER_ROW] = {{"row", 3}, 700, {FRIT_FORMAT_HOST_FN, sizeof(FRIT_FORMAT_HOST_FN) - 1}},
    [FUSER_CHAIN] = {{"chain", 5}, 1000, {FRIT_FORMAT_SPIRV, sizeof(FRIT_FORMAT_SPIRV) - 1}},
    [FUSER_CHAIN_PTX] = {{"chain", 5}, 1000, {FRIT_FORMAT_PTX, sizeof(FRIT_FORMAT_PTX) - 1}},
};

frit_str fuser_name(enum fuser_kind kind)
{
    return kinds[kind].name;
}

static struct fuser *fuser_create(const struct instance *instance, const frit_fuser_device *device,
                                  enum fuser_kind kind)
{
    struct fuser *fuser = instance->core->mem_alloc(instance->host->self, sizeof(*fuser), 64);

    if (!fuser)
        return NULL;
    fuser->instance = instance;
    fuser->device = device;
    fuser->kind = kind;
    memset(&fuser->block, 0, offsetof(struct block, values));
    return fuser;
}

static void fuser_destroy(void *self)
{
    const struct fuser *fuser = self;

    if (fuser)
        fuser->instance->core->mem_free(fuser->instance->host->self, self);
}

static bool device_takes(const frit_fuser_device *device, frit_str format)
{
    for (uint32_t i = 0; i < device->info->n_formats; i++) {
        const frit_str *taken = &device->info->formats[i];

        if (taken->len == format.len && memcmp(taken->ptr, format.ptr, format.len) == 0)
            return true;
    }
    return false;
}

/* Host functions run where memory has an address here. */
static bool device_fits(const frit_fuser_device *device, enum fuser_kind kind)
{
    if (device->same_plugin || !FRIT_HAS(device, frit_fuser_device, native_get) ||
        !device->kernel_load || !device->kernel_unload || !device_takes(device, kinds[kind].format))
        return false;
    if (is_chain(kind))
        return device->info->max_bindings == 0 || device->info->max_bindings >= CHAIN_ARGS;
    return device->native_get && device->info->caps & FRIT_CAP_HOST_VISIBLE;
}

static frit_status fuser_prototypes(void *instance, const frit_fuser_device *device,
                                    frit_fuser *out, uint64_t stride, uint32_t capacity,
                                    uint32_t *count, frit_err *err)
{
    uint32_t n = 0;

    for (uint32_t kind = 0; kind < FUSER_KINDS; kind++) {
        frit_fuser *fuser = (frit_fuser *)(void *)((char *)out + n * stride);

        if (!device_fits(device, (enum fuser_kind)kind) || n++ >= capacity)
            continue;
        fuser->prototype = fuser_create(instance, device, (enum fuser_kind)kind);
        if (!fuser->prototype) {
            while (--n > 0)
                fuser_destroy(((frit_fuser *)(void *)((char *)out + (n - 1) * stride))->prototype);
            *count = 0;
            return blocks_fail(instance, err, FRIT_NO_HOST_MEMORY, "blocks: no memory for a fuser");
        }
        fuser->version = 1;
        fuser->name = kinds[kind].name;
    }
    *count = n;
    return FRIT_OK;
}

static frit_status fuser_clone(const void *self, void **out, frit_err *err)
{
    const struct fuser *fuser = self;
    struct fuser *copy = fuser_create(fuser->instance, fuser->device, fuser->kind);

    *out = copy;
    if (!copy)
        return blocks_fail(fuser->instance, err, FRIT_NO_HOST_MEMORY,
                           "blocks: no memory for a fuser");
    block_copy(&copy->block, &fuser->block);
    return FRIT_OK;
}

static void fuser_reset(void *self)
{
    memset(&((struct fuser *)self)->block, 0, offsetof(struct block, values));
}

static void fuser_push(void *self, const frit_op_desc *ops, uint32_t count, uint32_t stride)
{
    struct fuser *fuser = self;

    for (uint32_t i = 0; i < count; i++) {
        const void *op = (const char *)ops + (size_t)i * stride;

        block_push(&fuser->block, fuser->kind, op);
    }
}

static void fuser_state(const void *self, frit_fuser_state *out)
{
    const struct fuser *fuser = self;

    out->open = !fuser->block.closed;
    out->ready = fuser->block.accepted > 0;
    out->accepted = fuser->block.accepted;
    out->quality = kinds[fuser->kind].quality;
}

static frit_status fuser_finish(void *self, frit_program *out, frit_err *err)
{
    struct fuser *fuser = self;

    block_trim(&fuser->block);
    return program_create(fuser->instance, fuser->device, fuser->kind, &fuser->block, out, err);
}

/* Whether the bytes are the state of what was pushed, which is all of the ops. */
static bool fuser_is(struct fuser *fuser, uint32_t n_ops, const void *bytes, uint64_t n_bytes)
{
    struct state state;

    if (n_ops == 0 || fuser->block.accepted != n_ops)
        return false;
    block_trim(&fuser->block);
    state = state_of(&fuser->block, fuser->kind);
    return n_bytes == sizeof(state) && memcmp(bytes, &state, sizeof(state)) == 0;
}

static frit_status fuser_from_state(void *instance, const frit_fuser_device *device, frit_str name,
                                    const frit_op_desc *ops, uint32_t n_ops, uint32_t op_stride,
                                    const void *bytes, uint64_t n_bytes, frit_program *out,
                                    frit_err *err)
{
    for (uint32_t kind = 0; kind < FUSER_KINDS; kind++) {
        struct fuser *fuser;
        frit_status status;

        if (name.len != kinds[kind].name.len ||
            memcmp(name.ptr, kinds[kind].name.ptr, name.len) != 0 ||
            !device_takes(device, kinds[kind].format))
            continue;
        fuser = fuser_create(instance, device, (enum fuser_kind)kind);
        if (!fuser)
            return blocks_fail(instance, err, FRIT_NO_HOST_MEMORY, "blocks: no memory for a fuser");
        fuser_push(fuser, ops, n_ops, op_stride);
        if (fuser_is(fuser, n_ops, bytes, n_bytes))
            status = program_create(instance, device, fuser->kind, &fuser->block, out, err);
        else
            status = blocks_fail(instance, err, FRIT_INCOMPATIBLE,
                                 "blocks: the saved program is of other ops");
        fuser_destroy(fuser);
        return status;
    }
    return blocks_fail(instance, err, FRIT_INCOMPATIBLE, "blocks: no fuser of this name");
}

const frit_fuser_table fuser_table = {
    .struct_size = sizeof(fuser_table),
    .prototypes = fuser_prototypes,
    .clone = fuser_clone,
    .destroy = fuser_destroy,
    .reset = fuser_reset,
    .push = fuser_push,
    .state = fuser_state,
    .finish = fuser_finish,
    .from_state = fuser_from_state,
};
