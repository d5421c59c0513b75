/* SPDX-License-Identifier: Apache-2.0 */
/* Fusers, one per schedule.  Pushed ops are copied into a block and matched op by op.  The longest
 * prefix that a program can cover is recorded, so that the state is available at no cost; it stays
 * valid when more ops are pushed, since finish truncates the block to it. */
#include <stdlib.h>

#include "base/fail.h"
#include "fuse/op.h"
#include "fuse/program.h"
#include "kernels.h"
#include "lower/rows/cost.h"

struct fuser {
    const struct kernels_device *device;
    const struct schedule *schedule;
    struct block block;
    struct matcher matcher;
    bool closed;
    uint32_t accepted;
    uint32_t n_instructions; /* of all pushed ops */
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
    if (!matcher_init(&fuser->matcher, schedule, &device->target)) {
        free(fuser);
        return NULL;
    }
    return fuser;
}

static frit_fuser *slot_at(frit_fuser *out, uint64_t stride, uint32_t i)
{
    return (frit_fuser *)(void *)((char *)out + i * stride);
}

static const struct schedule *schedule_of(const struct kernels_device *device, uint32_t i)
{
    return schedules[i] == &sched_contract && device->library ? &sched_contract_alone
                                                              : schedules[i];
}

frit_status kernels_prototypes(const struct kernels_device *device, frit_fuser *out,
                               uint64_t stride, uint32_t capacity, uint32_t *count, frit_err *err)
{
    *count = device ? n_schedules : 0;
    for (uint32_t i = 0; i < *count && i < capacity; i++) {
        frit_fuser *slot = slot_at(out, stride, i);

        slot->version = PROGRAM_VERSION;
        slot->name = str_of(schedules[i]->name);
        slot->prototype = fuser_create(device, schedule_of(device, i));
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
    while (to->matcher.n_ops < from->matcher.n_ops && !to->matcher.closed)
        matcher_push(&to->matcher, &to->block);
    if (to->matcher.n_ops < from->matcher.n_ops) {
        kernels_destroy(to);
        return fail_memory(err, from->block.n_values);
    }
    to->closed = from->closed;
    to->accepted = from->accepted;
    to->n_instructions = from->n_instructions;
    *out = to;
    return FRIT_OK;
}

void kernels_destroy(void *fuser)
{
    struct fuser *f = fuser;

    if (!f)
        return;
    matcher_fini(&f->matcher);
    block_fini(&f->block);
    free(f);
}

void kernels_reset(void *fuser)
{
    struct fuser *f = fuser;

    block_reset(&f->block);
    matcher_reset(&f->matcher);
    f->closed = false;
    f->accepted = f->n_instructions = 0;
}

/* Whether a program of all ops has at most as many arguments as the device supports. */
static bool args_fit(const struct fuser *f)
{
    const struct kir_target *target = &f->device->target;
    uint32_t max = f->schedule->of_components ? target->launch_args : target->bindings;

    return !max || f->matcher.n_inputs + f->matcher.n_outputs <= max;
}

/* Whether the last op makes the kernel too large.  The limit does not apply to components: equal
 * ones share a kernel. */
static bool is_too_large(const struct fuser *f)
{
    return !f->schedule->of_components && f->block.n_ops && f->n_instructions > LOWER_MAX_COST;
}

static void push(struct fuser *f, const frit_op_desc *op)
{
    f->n_instructions += lower_cost(op->id);
    if (is_too_large(f) || !op_types_fit(&f->device->target, op) ||
        block_push(&f->block, op, NULL)) {
        f->closed = true;
        return;
    }
    matcher_push(&f->matcher, &f->block);
    if (f->matcher.fits && args_fit(f))
        f->accepted = f->matcher.n_ops;
    f->closed = f->matcher.closed;
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
    out->quality = f->accepted ? f->schedule->quality : 0;
}

/* The program takes the block; no ops may be pushed afterwards. */
frit_status kernels_finish(void *fuser, frit_program *out, frit_err *err)
{
    struct fuser *f = fuser;
    struct block block = f->block;

    block_init(&f->block);
    return program_of_block(f->device, f->schedule, &block, f->accepted, out, err);
}
