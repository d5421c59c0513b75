/* SPDX-License-Identifier: Apache-2.0 */
/* Fusers: one per schedule.  What is pushed is copied into a block, and the schedule says after
 * each op how many of the first it covers.  Its answer is kept, so that asking for the state costs
 * nothing; a cover once found stays one, since finish cuts the block to it. */
#include <stdlib.h>

#include "base/fail.h"
#include "fuse/program.h"
#include "kernels.h"

struct fuser {
    const struct kernels_device *device;
    const struct schedule *schedule;
    struct block block;
    bool closed;
    uint32_t accepted, quality;
};

static struct fuser *fuser_create(const struct kernels_device *device,
                                  const struct schedule *schedule)
{
    struct fuser *fuser = calloc(1, sizeof(*fuser));

    if (!fuser)
        return NULL;
    fuser->device = device;
    fuser->schedule = schedule;
    block_init(&fuser->block);
    return fuser;
}

static frit_fuser *slot_at(frit_fuser *out, uint64_t stride, uint32_t i)
{
    return (frit_fuser *)(void *)((char *)out + i * stride);
}

frit_status kernels_prototypes(const struct kernels_device *device, frit_fuser *out,
                               uint64_t stride, uint32_t capacity, uint32_t *count, frit_err *err)
{
    *count = n_schedules;
    for (uint32_t i = 0; i < n_schedules && i < capacity; i++) {
        frit_fuser *slot = slot_at(out, stride, i);

        slot->version = PROGRAM_VERSION;
        slot->name = str_of(schedules[i]->name);
        slot->prototype = fuser_create(device, schedules[i]);
        if (slot->prototype)
            continue;
        while (i-- > 0)
            kernels_destroy(slot_at(out, stride, i)->prototype);
        return fail_memory(err, sizeof(struct fuser));
    }
    return FRIT_OK;
}

frit_status kernels_clone(const void *fuser, void **out, frit_err *err)
{
    const struct fuser *from = fuser;
    struct fuser *to = fuser_create(from->device, from->schedule);
    frit_status st;

    *out = NULL;
    if (!to)
        return fail_memory(err, sizeof(*to));
    st = block_copy(&from->block, &to->block, err);
    if (st) {
        kernels_destroy(to);
        return st;
    }
    to->closed = from->closed;
    to->accepted = from->accepted;
    to->quality = from->quality;
    *out = to;
    return FRIT_OK;
}

void kernels_destroy(void *fuser)
{
    struct fuser *f = fuser;

    if (!f)
        return;
    block_fini(&f->block);
    free(f);
}

void kernels_reset(void *fuser)
{
    struct fuser *f = fuser;

    block_reset(&f->block);
    f->closed = false;
    f->accepted = f->quality = 0;
}

/* Whether a program of the first `n_ops` has no more arguments than it may.  What only later ops
 * use or make counts too. */
static bool args_fit(const struct fuser *f, uint32_t n_ops)
{
    const struct block *block = &f->block;
    uint32_t n_in = 0, n_out = 0, most = f->device->target.bindings;

    for (uint32_t i = 0; i < block->n_values; i++) {
        const struct block_value *value = &block->values[i];

        if (value->maker == BLOCK_NONE)
            n_in++;
        else
            n_out += value->dies >= n_ops;
    }
    return n_out <= FRIT_MAX_OUTPUTS && (!most || n_in + n_out <= most);
}

static void push(struct fuser *f, const frit_op_desc *op)
{
    bool open = false;
    uint32_t quality = 0, n;

    if (!op_types_fit(&f->device->target, op) || block_push(&f->block, op, NULL)) {
        f->closed = true;
        return;
    }
    n = f->schedule->accepts(&f->block, &open, &quality);
    if (n > f->accepted && args_fit(f, n)) {
        f->accepted = n;
        f->quality = quality;
    }
    f->closed = !open;
}

void kernels_push(void *fuser, const frit_op_desc *ops, uint32_t count, uint32_t stride)
{
    struct fuser *f = fuser;

    for (uint32_t i = 0; i < count && !f->closed; i++)
        push(f, (const frit_op_desc *)(const void *)((const char *)ops + (size_t)i * stride));
}

void kernels_state(const void *fuser, frit_fuser_state *out)
{
    const struct fuser *f = fuser;

    out->open = !f->closed;
    out->ready = f->accepted > 0;
    out->accepted = f->accepted;
    out->quality = f->quality;
}

/* The program takes the block: nobody pushes any more. */
frit_status kernels_finish(void *fuser, frit_program *out, frit_err *err)
{
    struct fuser *f = fuser;
    struct block block = f->block;

    block_init(&f->block);
    return program_of_block(f->device, f->schedule, &block, f->accepted, out, err);
}
