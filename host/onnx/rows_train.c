/* SPDX-License-Identifier: Apache-2.0 */
/* The optimisers of ONNX's training domain: operands are a rate, the number of the step, and for
 * each of several tensors the values, gradients and states, first all values, then all gradients.
 */
#include "onnx/emit.h"
#include "onnx/problem.h"
#include "onnx/rows.h"

/* One tensor's step. */
struct train_step {
    val *rate, *number; /* of rank 0 and the tensor's type */
    val *x, *g, *state[2];
};

/* a * factor + b */
static val *scaled_sum(struct import_node *n, val *a, double factor, val *b)
{
    return e_add(n, e_mul(n, a, e_num(n, factor)), b);
}

static val *is_later(struct import_node *n, const struct train_step *s)
{
    return e_bin(n, FRIT_OP_gt, s->number, e_num(n, 0));
}

/* 1 - factor^number */
static val *bias_of(struct import_node *n, const struct train_step *s, double factor)
{
    val *power = e_bin(n, FRIT_OP_pow, e_num(n, factor), s->number);

    return e_sub(n, e_num(n, 1), power);
}

/* x - rate * direction / (sqrt(h) + epsilon) */
static val *descend(struct import_node *n, val *x, val *rate, val *direction, val *h)
{
    val *size = e_add(n, e_un(n, FRIT_OP_sqrt, h), e_num(n, attr_float(n, "epsilon", 1e-6)));

    return e_sub(n, x, e_mul(n, rate, e_div(n, direction, size)));
}

static void adagrad(struct import_node *n, struct train_step *s)
{
    val *decay = scaled_sum(n, s->number, attr_float(n, "decay_factor", 0), e_num(n, 1));

    s->state[0] = e_add(n, s->state[0], e_un(n, FRIT_OP_square, s->g));
    s->x = descend(n, s->x, e_div(n, s->rate, decay), s->g, s->state[0]);
}

static void adam(struct import_node *n, struct train_step *s)
{
    const double alpha = attr_float(n, "alpha", 0.9), beta = attr_float(n, "beta", 0.999);
    val *rate = e_div(n, e_mul(n, s->rate, e_un(n, FRIT_OP_sqrt, bias_of(n, s, beta))),
                      bias_of(n, s, alpha));

    rate = e_where(n, is_later(n, s), rate, s->rate);
    s->state[0] = scaled_sum(n, s->state[0], alpha, e_mul(n, s->g, e_num(n, 1 - alpha)));
    s->state[1] = scaled_sum(n, s->state[1], beta,
                             e_mul(n, e_un(n, FRIT_OP_square, s->g), e_num(n, 1 - beta)));
    s->x = e_mul(n, descend(n, s->x, rate, s->state[0], s->state[1]),
                 e_num(n, 1 - attr_float(n, "norm_coefficient_post", 0)));
}

static void momentum(struct import_node *n, struct train_step *s)
{
    const double alpha = attr_float(n, "alpha", 0);
    val *ones = e_full(n, e_dtype(s->x), e_num(n, 1), FRIT_RANK0);
    val *factor =
        e_where(n, is_later(n, s), e_mul(n, ones, e_num(n, attr_float(n, "beta", 0))), ones);
    val *direction;

    s->state[0] = scaled_sum(n, s->state[0], alpha, e_mul(n, s->g, factor));
    direction = attr_is(n, "mode", "standard", "nesterov") ? scaled_sum(n, s->state[0], alpha, s->g)
                                                           : s->state[0];
    s->x = e_sub(n, s->x, e_mul(n, s->rate, direction));
}

void onnx_row_optimiser(struct import_node *n, uint32_t arg)
{
    static void (*const rules[])(struct import_node *, struct train_step *) = {
        [OPTIMISER_ADAGRAD] = adagrad, [OPTIMISER_ADAM] = adam, [OPTIMISER_MOMENTUM] = momentum};
    const uint32_t n_states = arg == OPTIMISER_ADAM ? 2 : 1, per = 2 + n_states;
    const uint32_t count = n->n_in > 2 ? (n->n_in - 2) / per : 0;

    if (!count || (n->n_in - 2) % per) {
        problem_node(n, "%u operands; a rate, a step and %u per tensor are wanted", n->n_in, per);
        return;
    }
    for (uint32_t i = 0; i < count && !n->failed; i++) {
        struct train_step s = {.x = e_in(n, 2 + i), .g = e_in(n, 2 + count + i)};

        s.rate = e_reshape(n, e_like(n, e_in(n, 0), s.x), FRIT_RANK0);
        s.number = e_reshape(n, e_like(n, e_in(n, 1), s.x), FRIT_RANK0);
        for (uint32_t k = 0; k < n_states; k++)
            s.state[k] = e_in(n, 2 + (2 + k) * count + i);
        s.g = scaled_sum(n, s.x, attr_float(n, "norm_coefficient", 0), s.g);
        rules[arg](n, &s);
        e_out(n, i, s.x);
        for (uint32_t k = 0; k < n_states; k++)
            e_out(n, (1 + k) * count + i, s.state[k]);
    }
}
