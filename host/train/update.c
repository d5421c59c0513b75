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

void update_numbers(struct update *step, uint64_t steps)
{
    const frit_optimizer_config *c = step->config;
    const double first = 1 - pow(c->beta1, (double)steps);
    const double root = sqrt(1 - pow(c->beta2, (double)steps));

    step->damp = t_num(steps == 1 ? 1 : 1 - c->dampening);
    step->factor = t_num(step->rate * root / first);
    step->eps = t_num(c->eps * root);
}

void update_numbers_on_device(struct update *step, const term *corrections, term before)
{
    const frit_optimizer_config *c = step->config;
    term root;

    if (c->kind == FRIT_SGD) {
        step->damp = t_has(before) ? t_sub(t_num(1), t_mul(before, t_num(c->dampening))) : t_num(1);
        return;
    }
    root = t_op1(FRIT_OP_sqrt, corrections[1]);
    step->factor = t_mul(t_div(root, corrections[0]), t_num(step->rate));
    step->eps = t_mul(root, t_num(c->eps));
}

/* ---- gradients ---- */

/* A tensor as this type; numbers have any. */
static term as(term t, uint32_t dtype)
{
    return t.tensor && frit_tensor_dtype(t.tensor) != dtype ? t_cast(t, dtype) : t;
}

term update_gradient(const struct update *step, term grad, uint32_t dtype)
{
    const double limit = step->config->clip_value;
    term g = as(grad, dtype);

    if (t_has(step->inverse))
        g = t_mul(g, as(step->inverse, dtype));
    if (limit > 0)
        g = t_op(FRIT_OP_clamp, 3, (term[]){g, t_num(-limit), t_num(limit)}, NULL);
    return g;
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

/* a * x + b * y */
static term mix(term a, term x, double b, term y)
{
    return t_add(t_mul(x, a), t_mul(y, t_num(b)));
}

static term sgd(const struct update *step, term p, term g, const term *states, term *out,
                uint32_t dtype)
{
    const frit_optimizer_config *c = step->config;

    if (c->weight_decay != 0)
        g = t_add(g, t_mul(p, t_num(c->weight_decay)));
    if (c->momentum != 0) {
        out[STATE_FIRST] = mix(as(step->damp, dtype), g, c->momentum, states[STATE_FIRST]);
        g = c->flags & FRIT_OPTIMIZER_NESTEROV
                ? t_add(g, t_mul(out[STATE_FIRST], t_num(c->momentum)))
                : out[STATE_FIRST];
    }
    return t_sub(p, t_mul(g, t_num(step->rate)));
}

static term adam(const struct update *step, term p, term g, const term *states, term *out,
                 uint32_t dtype)
{
    const frit_optimizer_config *c = step->config;
    term second;

    if (c->weight_decay != 0 && c->kind == FRIT_ADAMW)
        p = t_mul(p, t_num(1 - step->rate * c->weight_decay));
    else if (c->weight_decay != 0)
        g = t_add(g, t_mul(p, t_num(c->weight_decay)));
    out[STATE_FIRST] = mix(t_num(1 - c->beta1), g, c->beta1, states[STATE_FIRST]);
    out[STATE_SECOND] = mix(t_num(1 - c->beta2), t_square(g), c->beta2, states[STATE_SECOND]);
    second = out[STATE_SECOND];
    if (c->flags & FRIT_OPTIMIZER_AMSGRAD)
        second = out[STATE_MAX_SECOND] =
            t_op2(FRIT_OP_maximum, states[STATE_MAX_SECOND], out[STATE_SECOND]);
    second = t_add(t_op1(FRIT_OP_sqrt, second), as(step->eps, dtype));
    return t_sub(p, t_mul(t_div(out[STATE_FIRST], second), as(step->factor, dtype)));
}

void update_param(const struct update *step, term param, term grad, const term *states,
                  term *new_param, term *new_states)
{
    const uint32_t type = frit_tensor_dtype(param.tensor), dtype = update_dtype(type);
    const term p = t_has(states[STATE_MASTER]) ? states[STATE_MASTER] : param;
    const term g = t_has(step->clip) ? t_mul(grad, as(step->clip, dtype)) : grad;
    term next = step->config->kind == FRIT_SGD ? sgd(step, p, g, states, new_states, dtype)
                                               : adam(step, p, g, states, new_states, dtype);

    for (uint32_t k = 0; k < STATE_MASTER && t_has(step->ok); k++) {
        if (t_has(new_states[k]))
            new_states[k] = t_where(step->ok, new_states[k], states[k]);
    }
    if (t_has(step->ok))
        next = t_where(step->ok, next, p);
    if (t_has(states[STATE_MASTER]))
        new_states[STATE_MASTER] = next;
    *new_param = as(next, type);
}
