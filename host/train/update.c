/* SPDX-License-Identifier: Apache-2.0 */
/* What a step computes.  Numbers stand where tensors of rank 0 may: a number is a scalar of the
 * launch, so that a new one makes no new plan. */
#include "train/update.h"

#include <math.h>

uint32_t update_dtype(uint32_t dtype)
{
    return dtype == FRIT_F64 ? FRIT_F64 : FRIT_F32;
}

bool update_has_state(const frit_optimizer_config *config, enum state_kind kind, uint32_t dtype)
{
    const bool is_adam = config->kind != FRIT_SGD;

    switch (kind) {
    case STATE_FIRST:
        return is_adam || config->momentum != 0;
    case STATE_SECOND:
        return is_adam;
    case STATE_MAX_SECOND:
        return is_adam && config->flags & FRIT_OPTIMIZER_AMSGRAD;
    default:
        return update_dtype(dtype) != dtype;
    }
}

uint32_t update_n_corrections(const frit_optimizer_config *config)
{
    if (!config->scaler)
        return 0;
    return config->kind != FRIT_SGD ? 2 : config->momentum != 0 && config->dampening != 0;
}

/* ---- numbers ---- */

term update_correction(term correction, double beta)
{
    return t_add(t_mul(correction, t_num(beta)), t_num(1 - beta));
}

static void sgd_numbers(struct update *update, term add)
{
    update->keep[0] = t_num(update->config->momentum);
    update->add[0] = add;
    update->factor = t_num(update->rate);
}

static void adam_numbers(struct update *update)
{
    const frit_optimizer_config *c = update->config;

    update->keep[0] = t_num(c->beta1);
    update->add[0] = t_num(1 - c->beta1);
    update->keep[1] = t_num(c->beta2);
    update->add[1] = t_num(1 - c->beta2);
    update->decay = t_num(1 - update->rate * c->weight_decay);
}

void update_numbers(struct update *update, uint64_t steps)
{
    const frit_optimizer_config *c = update->config;
    const double first = 1 - pow(c->beta1, (double)steps);
    const double root = sqrt(1 - pow(c->beta2, (double)steps));

    if (c->kind == FRIT_SGD) {
        sgd_numbers(update, t_num(steps == 1 ? 1 : 1 - c->dampening));
        return;
    }
    adam_numbers(update);
    update->factor = t_num(update->rate * root / first);
    update->eps = t_num(c->eps * root);
}

/* ---- numbers of a step that may be skipped ---- */

/* 1 if the step counts, else 0. */
static term counts(const struct update *update)
{
    return t_cast(update->ok, FRIT_F32);
}

/* `number` if the step counts, else 0. */
static term or_0(const struct update *update, term number)
{
    return number.tensor ? t_keep(update->ok, number) : t_mul(counts(update), number);
}

/* `number` if the step counts, else 1; exact in both cases. */
static term or_1(const struct update *update, term number)
{
    if (number.tensor)
        return t_where(update->ok, number, t_num(1));
    return t_add(or_0(update, number), t_sub(t_num(1), counts(update)));
}

static void gate(struct update *update)
{
    const frit_optimizer_config *c = update->config;

    for (uint32_t k = 0; k < 2; k++) {
        if (!t_has(update->keep[k]) || (c->kind == FRIT_SGD && c->momentum == 0))
            continue;
        update->keep[k] = or_1(update, update->keep[k]);
        update->add[k] = or_0(update, update->add[k]);
    }
    update->factor = or_0(update, update->factor);
    if (t_has(update->eps))
        update->eps = or_1(update, update->eps);
    if (c->kind == FRIT_ADAMW && c->weight_decay != 0)
        update->decay = or_1(update, update->decay);
}

void update_numbers_on_device(struct update *update, const term *corrections, term before)
{
    const frit_optimizer_config *c = update->config;

    if (c->kind == FRIT_SGD) {
        sgd_numbers(update,
                    t_has(before) ? t_sub(t_num(1), t_mul(before, t_num(c->dampening))) : t_num(1));
    } else {
        const term root = t_op1(FRIT_OP_sqrt, corrections[1]);

        adam_numbers(update);
        update->factor = t_mul(t_div(root, corrections[0]), t_num(update->rate));
        update->eps = t_mul(root, t_num(c->eps));
    }
    gate(update);
}

/* ---- gradients ---- */

/* A tensor as this type; numbers have any. */
static term as(term t, uint32_t dtype)
{
    return t.tensor && frit_tensor_dtype(t.tensor) != dtype ? t_cast(t, dtype) : t;
}

term update_gradient(const struct update *update, term grad, uint32_t dtype)
{
    const double limit = update->config->clip_value;
    term g = as(grad, dtype);

    if (t_has(update->ok))
        g = t_mul(t_keep(update->ok, g), as(update->inverse, dtype));
    if (limit > 0)
        g = t_op(FRIT_OP_clamp, 3, (term[]){g, t_num(-limit), t_num(limit)}, NULL);
    return g;
}

/* Joining costs to write and read the elements once more.  Where submits run in the queue of a
 * device that is beside the processors a launch costs as much as some ten thousand elements (an
 * estimate); where they run inside the call a launch is a call, and joining 20 tensors of 64 to
 * 16,000 elements made a step 1.3 to 3 times slower (cpu, AVX-512, two processors). */
enum { SMALL = 16384 };

static int64_t elements(term t)
{
    const struct op_type type = t_type(t);

    return op_elements(&type);
}

static term flat(term t, uint32_t dtype)
{
    return t_reshape(as(t, dtype), &(struct op_type){.rank = 1, .dims = {elements(t)}});
}

/* Joins the small ones of this type; returns how many tensors there are for them, 0 or 1. */
static uint32_t join_small(const term *grads, uint32_t n, uint32_t dtype, term *out)
{
    frit_attrs_axis attrs = {.struct_size = sizeof(attrs)};
    uint32_t count = 0;

    for (uint32_t i = 0; i < n; i++) {
        if (elements(grads[i]) <= SMALL &&
            update_dtype(frit_tensor_dtype(grads[i].tensor)) == dtype)
            out[count++] = flat(grads[i], dtype);
    }
    if (count > 1)
        out[0] = t_op(FRIT_OP_cat, count, out, &attrs);
    return count > 0;
}

uint32_t update_flatten(const term *grads, uint32_t n, bool joins, term *out)
{
    static const uint32_t dtypes[] = {FRIT_F32, FRIT_F64};
    uint32_t count = 0;

    for (uint32_t k = 0; k < 2 && joins; k++)
        count += join_small(grads, n, dtypes[k], out + count);
    for (uint32_t i = 0; i < n; i++) {
        if (!joins || elements(grads[i]) > SMALL)
            out[count++] = as(grads[i], update_dtype(frit_tensor_dtype(grads[i].tensor)));
    }
    return count;
}

static term sum_all(term x)
{
    return t_sum(x, &(frit_axes){0}, false);
}

term update_norm(const term *grads, uint32_t n)
{
    term sum = sum_all(t_square(grads[0]));

    for (uint32_t i = 1; i < n; i++)
        sum = t_add(sum, as(sum_all(t_square(grads[i])), frit_tensor_dtype(sum.tensor)));
    return t_op1(FRIT_OP_sqrt, sum);
}

term update_clip(term norm, double limit)
{
    return t_op2(FRIT_OP_minimum, t_div(t_num(limit), t_add(norm, t_num(1e-6))), t_num(1));
}

/* The sum of zeros is 0 unless one is a product of 0 and what is not finite. */
term update_is_finite(const term *grads, uint32_t n)
{
    term sum = t_none();

    for (uint32_t i = 0; i < n; i++) {
        const term zero = as(sum_all(t_mul(grads[i], t_num(0))), FRIT_F32);

        sum = t_has(sum) ? t_add(sum, zero) : zero;
    }
    return t_eq(sum, t_num(0));
}

/* ---- parameters ---- */

/* The new moment k, from the old one and what is added. */
static term moment(const struct update *update, uint32_t k, term old, term g, uint32_t dtype)
{
    return t_add(t_mul(g, as(update->add[k], dtype)), t_mul(old, as(update->keep[k], dtype)));
}

static term sgd(const struct update *update, term p, term g, const term *states, term *out,
                uint32_t dtype)
{
    const frit_optimizer_config *c = update->config;

    if (c->weight_decay != 0)
        g = t_add(g, t_mul(p, t_num(c->weight_decay)));
    if (c->momentum != 0) {
        out[STATE_FIRST] = moment(update, 0, states[STATE_FIRST], g, dtype);
        g = c->flags & FRIT_OPTIMIZER_NESTEROV
                ? t_add(g, t_mul(out[STATE_FIRST], t_num(c->momentum)))
                : out[STATE_FIRST];
    }
    return t_sub(p, t_mul(g, as(update->factor, dtype)));
}

static term adam(const struct update *update, term p, term g, const term *states, term *out,
                 uint32_t dtype)
{
    const frit_optimizer_config *c = update->config;
    term second;

    if (c->weight_decay != 0 && c->kind == FRIT_ADAMW)
        p = t_mul(p, as(update->decay, dtype));
    else if (c->weight_decay != 0)
        g = t_add(g, t_mul(p, t_num(c->weight_decay)));
    out[STATE_FIRST] = moment(update, 0, states[STATE_FIRST], g, dtype);
    out[STATE_SECOND] = moment(update, 1, states[STATE_SECOND], t_square(g), dtype);
    second = out[STATE_SECOND];
    if (c->flags & FRIT_OPTIMIZER_AMSGRAD)
        second = out[STATE_MAX_SECOND] =
            t_op2(FRIT_OP_maximum, states[STATE_MAX_SECOND], out[STATE_SECOND]);
    second = t_add(t_op1(FRIT_OP_sqrt, second), as(update->eps, dtype));
    return t_sub(p, t_mul(t_div(out[STATE_FIRST], second), as(update->factor, dtype)));
}

void update_param(const struct update *update, term param, term grad, const term *states,
                  term *new_param, term *new_states)
{
    const uint32_t type = frit_tensor_dtype(param.tensor), dtype = update_dtype(type);
    const term p = t_has(states[STATE_MASTER]) ? states[STATE_MASTER] : param;
    const term g = t_has(update->clip) ? t_mul(grad, as(update->clip, dtype)) : grad;
    const term next = update->config->kind == FRIT_SGD
                          ? sgd(update, p, g, states, new_states, dtype)
                          : adam(update, p, g, states, new_states, dtype);

    if (t_has(states[STATE_MASTER]))
        new_states[STATE_MASTER] = next;
    *new_param = as(next, type);
}
