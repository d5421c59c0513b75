/* SPDX-License-Identifier: Apache-2.0 */
/* The fuser of option.fuses: chains of add and mul of f32 whose operands all have the extents of
 * the first result, or are scalars.  Its programs have the one candidate `fused`. */
#include <string.h>

#include "candidates.h"
#include "util/op.h"

struct fuser {
    struct instance *instance;
    bool is_closed;
    frit_operand shape; /* of the results */
    uint32_t n;
    struct step steps[MAX_STEPS];
};

/* ---- fusers ---- */

static frit_status fuser_prototypes(void *instance, const frit_fuser_device *device,
                                    frit_fuser *out, uint64_t stride, uint32_t capacity,
                                    uint32_t *count, frit_err *err)
{
    struct instance *own = instance;
    struct fuser *fuser;

    (void)stride;
    *count = device->same_plugin && own->options.fuses > 1 && capacity ? 1 : 0;
    if (!*count)
        return FRIT_OK;
    fuser = plug_new(&own->plug, sizeof *fuser, "a fuser", err);
    if (!fuser)
        return FRIT_NO_HOST_MEMORY;
    fuser->instance = own;
    out->version = 1;
    out->name = FRIT_STR("chains");
    out->prototype = fuser;
    return FRIT_OK;
}

static frit_status fuser_clone(const void *self, void **out, frit_err *err)
{
    const struct fuser *from = self;

    *out = plug_new(&from->instance->plug, sizeof *from, "a fuser", err);
    if (!*out)
        return FRIT_NO_HOST_MEMORY;
    memcpy(*out, from, sizeof *from);
    return FRIT_OK;
}

static void fuser_destroy(void *self)
{
    struct fuser *fuser = self;

    if (fuser)
        plug_free(&fuser->instance->plug, fuser);
}

static void fuser_reset(void *self)
{
    struct fuser *fuser = self;

    fuser->is_closed = false;
    fuser->n = 0;
}

static bool has_shape(const struct fuser *fuser, const frit_operand *operand)
{
    const frit_operand *shape = &fuser->shape;

    return operand->rank == shape->rank &&
           memcmp(operand->extent, shape->extent, sizeof shape->extent) == 0;
}

static bool takes(struct fuser *fuser, const frit_op_desc *op)
{
    if (fuser->n == MAX_STEPS || (int64_t)fuser->n >= fuser->instance->options.fuses ||
        op->n_dead > MAX_DEAD || (op->id != FRIT_OP_add && op->id != FRIT_OP_mul) ||
        !op_known(op) || op->out->kind != FRIT_OPERAND_TENSOR || op->out->dtype != FRIT_F32)
        return false;
    if (fuser->n == 0)
        fuser->shape = *op->out;
    for (uint32_t k = 0; k < op->n_in; k++) {
        const frit_operand *in = frit_operand_at(op, op->in, k);

        if (in->kind == FRIT_OPERAND_TENSOR && (in->dtype != FRIT_F32 || !has_shape(fuser, in)))
            return false;
    }
    return has_shape(fuser, op->out);
}

static void push_one(struct fuser *fuser, const frit_op_desc *op)
{
    struct step *step = &fuser->steps[fuser->n];

    fuser->is_closed |= !takes(fuser, op);
    if (fuser->is_closed)
        return;
    *step = (struct step){.op = op->id, .out = op->out->value, .n_dead = op->n_dead};
    for (uint32_t k = 0; k < op->n_in; k++) {
        const frit_operand *in = frit_operand_at(op, op->in, k);

        step->in[k] = in->kind == FRIT_OPERAND_TENSOR ? in->value : NO_VALUE;
    }
    for (uint32_t i = 0; i < op->n_dead; i++)
        step->dead[i] = op->dead[i];
    fuser->n++;
}

static void fuser_push(void *self, const frit_op_desc *ops, uint32_t count, uint32_t stride)
{
    for (uint32_t i = 0; i < count; i++)
        push_one(self,
                 (const frit_op_desc *)(const void *)((const char *)ops + (size_t)i * stride));
}

static void fuser_state(const void *self, frit_fuser_state *out)
{
    const struct fuser *fuser = self;

    out->open = !fuser->is_closed;
    out->ready = fuser->n > 0;
    out->accepted = fuser->n;
    out->quality = fuser->n ? 1000 : 0;
}

static frit_status fuser_finish(void *self, frit_program *out, frit_err *err)
{
    struct fuser *fuser = self;

    return program_fuse(fuser->instance, fuser->steps, fuser->n, out, err);
}

const frit_fuser_table fuser_table = {
    .struct_size = sizeof(frit_fuser_table),
    .prototypes = fuser_prototypes,
    .clone = fuser_clone,
    .destroy = fuser_destroy,
    .reset = fuser_reset,
    .push = fuser_push,
    .state = fuser_state,
    .finish = fuser_finish,
};

/* ---- what its programs compute ---- */

static uint32_t find(const uint32_t *list, uint32_t n, uint32_t value)
{
    uint32_t i = 0;

    while (i < n && list[i] != value)
        i++;
    return i;
}

static bool is_made(const struct program *program, uint32_t value, bool dead)
{
    for (uint32_t s = 0; s < program->n_steps; s++) {
        const struct step *step = &program->steps[s];

        if (dead ? find(step->dead, step->n_dead, value) < step->n_dead : step->out == value)
            return true;
    }
    return false;
}

/* Operands in the order of their first use, then results that live on. */
void fused_list_args(struct program *program)
{
    uint32_t n = 0, n_in;

    for (uint32_t s = 0; s < program->n_steps; s++)
        for (uint32_t k = 0; k < 2; k++) {
            const uint32_t value = program->steps[s].in[k];

            if (value != NO_VALUE && !is_made(program, value, false) &&
                find(program->args, n, value) == n)
                program->args[n++] = value;
        }
    n_in = n;
    for (uint32_t s = 0; s < program->n_steps; s++)
        if (!is_made(program, program->steps[s].out, true))
            program->args[n++] = program->steps[s].out;
    program->n_in = n_in;
    program->n_args = n;
}

static float *element(const frit_arg *arg, int64_t i)
{
    int64_t at = 0;

    for (uint32_t d = arg->rank; d-- > 0; i /= arg->dims[d])
        at += i % arg->dims[d] * arg->strides[d];
    return (float *)(void *)hosted_element(arg) + at;
}

static float operand(const struct program *program, const frit_launch *launch, const float *made,
                     uint32_t value, int64_t i)
{
    for (uint32_t s = 0; s < program->n_steps; s++)
        if (program->steps[s].out == value)
            return made[s];
    return *element(frit_arg_at(launch, find(program->args, program->n_args, value)), i);
}

static void compute_element(const struct program *program, const frit_launch *launch, int64_t i)
{
    float made[MAX_STEPS], in[2];
    uint32_t scalars = 0;

    for (uint32_t s = 0; s < program->n_steps; s++) {
        const struct step *step = &program->steps[s];

        for (uint32_t k = 0; k < 2; k++)
            in[k] = step->in[k] == NO_VALUE ? compute_scalar(launch, scalars++)
                                            : operand(program, launch, made, step->in[k], i);
        made[s] = step->op == FRIT_OP_add ? in[0] + in[1] : in[0] * in[1];
    }
    for (uint32_t s = 0; s < program->n_steps; s++) {
        const uint32_t at = find(program->args, program->n_args, program->steps[s].out);

        if (at < program->n_args)
            *element(frit_arg_at(launch, at), i) = made[s];
    }
}

void fused_compute(const struct program *program, const frit_launch *launch)
{
    const int64_t n = compute_size(launch);

    for (int64_t i = 0; i < n; i++)
        compute_element(program, launch, i);
}
