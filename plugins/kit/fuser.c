/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Fusers: a block that remembers what was pushed, and the driver's word on what fits. */
#include <string.h>

#include "kit/inside.h"
#include "kit/program.h"
#include "kit/state.h"

struct fuser {
    const struct kit_device *device;
    const struct kit_fuser *kind;
    struct kit_block block;
};

static struct fuser *fuser_create(const struct kit_device *device, const struct kit_fuser *kind)
{
    struct fuser *fuser =
        plug_alloc(&device->instance->plug, sizeof *fuser, _Alignof(struct fuser));

    if (!fuser)
        return NULL;
    fuser->device = device;
    fuser->kind = kind;
    memset(&fuser->block, 0, offsetof(struct kit_block, values));
    return fuser;
}

static void fuser_destroy(void *self)
{
    const struct fuser *fuser = self;

    if (fuser)
        plug_free(&fuser->device->instance->plug, self);
}

static frit_status fail_no_memory(const struct kit_instance *instance, frit_err *err)
{
    return plug_fail(&instance->plug, err, FRIT_NO_HOST_MEMORY, "no memory for a fuser");
}

static frit_fuser *prototype_at(frit_fuser *first, uint64_t stride, uint32_t i)
{
    return (frit_fuser *)(void *)((char *)first + i * stride);
}

static frit_status fuser_prototypes(void *self, const frit_fuser_device *device, frit_fuser *out,
                                    uint64_t stride, uint32_t capacity, uint32_t *count,
                                    frit_err *err)
{
    const struct kit_instance *instance = self;
    const struct kit_driver *driver = instance->driver;

    *count = device->same_plugin ? driver->n_fusers : 0;
    for (uint32_t i = 0; i < *count && i < capacity; i++) {
        frit_fuser *fuser = prototype_at(out, stride, i);

        fuser->version = driver->fusers[i].version;
        fuser->name = driver->fusers[i].name;
        fuser->prototype = fuser_create(device->device, &driver->fusers[i]);
        if (fuser->prototype)
            continue;
        while (i-- > 0)
            fuser_destroy(prototype_at(out, stride, i)->prototype);
        *count = 0;
        return fail_no_memory(instance, err);
    }
    return FRIT_OK;
}

static frit_status fuser_clone(const void *self, void **out, frit_err *err)
{
    const struct fuser *fuser = self;
    struct fuser *copy = fuser_create(fuser->device, fuser->kind);

    *out = copy;
    if (!copy)
        return fail_no_memory(fuser->device->instance, err);
    block_copy(&copy->block, &fuser->block);
    return FRIT_OK;
}

static void fuser_reset(void *self)
{
    memset(&((struct fuser *)self)->block, 0, offsetof(struct kit_block, values));
}

/* Pushes ops while the fuser takes them; the first that it does not closes the block. */
static void push(const struct kit_driver *driver, const struct kit_fuser *kind,
                 struct kit_block *block, const frit_op_desc *ops, uint32_t count, uint32_t stride)
{
    for (uint32_t i = 0; i < count && !block->closed; i++) {
        const frit_op_desc *op =
            (const frit_op_desc *)(const void *)((const char *)ops + (size_t)i * stride);

        if (!kit_row_of(driver, op) || (kind->accepts && !kind->accepts(block, op)))
            block->closed = 1;
        else
            (void)block_push(block, op);
    }
}

static void fuser_push(void *self, const frit_op_desc *ops, uint32_t count, uint32_t stride)
{
    struct fuser *fuser = self;

    push(fuser->device->instance->driver, fuser->kind, &fuser->block, ops, count, stride);
}

static void fuser_state(const void *self, frit_fuser_state *out)
{
    const struct fuser *fuser = self;

    out->open = !fuser->block.closed;
    out->ready = fuser->block.accepted > 0;
    out->accepted = fuser->block.accepted;
    out->quality = fuser->kind->quality;
}

static frit_status fuser_finish(void *self, frit_program *out, frit_err *err)
{
    struct fuser *fuser = self;

    block_bind(&fuser->block);
    return program_make(fuser->device, NULL, fuser->kind, &fuser->block, out, err);
}

/* NULL where there is none. */
static const struct kit_fuser *fuser_named(const struct kit_driver *driver, frit_str name)
{
    for (uint32_t i = 0; i < driver->n_fusers; i++)
        if (plug_is(name, driver->fusers[i].name))
            return &driver->fusers[i];
    return NULL;
}

static frit_status fuser_from_state(void *self, const frit_fuser_device *device, frit_str name,
                                    const frit_op_desc *ops, uint32_t n_ops, uint32_t op_stride,
                                    const void *bytes, uint64_t n_bytes, frit_program *out,
                                    frit_err *err)
{
    const struct kit_instance *instance = self;
    const struct kit_driver *driver = instance->driver;
    const struct kit_fuser *kind = device->same_plugin ? fuser_named(driver, name) : NULL;
    struct kit_block block;

    memset(&block, 0, offsetof(struct kit_block, values));
    if (kind)
        push(driver, kind, &block, ops, n_ops, op_stride);
    if (kind && !block.closed && block.accepted == n_ops && n_ops > 0) {
        block_bind(&block);
        if (state_fits(&block, kind->version, bytes, n_bytes))
            return program_make(device->device, NULL, kind, &block, out, err);
    }
    return plug_fail(&instance->plug, err, FRIT_INCOMPATIBLE, "no saved program of fuser '%.*s'",
                     (int)(name.len < 32 ? name.len : 32), name.ptr ? name.ptr : "");
}

const frit_fuser_table fuser_slots = {
    .struct_size = sizeof(frit_fuser_table),
    .prototypes = fuser_prototypes,
    .clone = fuser_clone,
    .destroy = fuser_destroy,
    .reset = fuser_reset,
    .push = fuser_push,
    .state = fuser_state,
    .finish = fuser_finish,
    .from_state = fuser_from_state,
};
