/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The ops.  What each one means is in OPS.md; floats are rounded once per op. */
#include "rows.h"

#include <math.h>
#include <string.h>

/* ---- elementwise: some elements at a time, so that the values between the ops stay in the cache
 * ---- */

enum { LANES = 256 };

typedef void map_fn(float *y, const float *a, const float *b);

#define MAP(name, expression)                                        \
    static void map_##name(float *y, const float *a, const float *b) \
    {                                                                \
        (void)b;                                                     \
        for (int i = 0; i < LANES; i++)                              \
            y[i] = (float)(expression);                              \
    }
MAP(copy, a[i])
MAP(add, a[i] + b[i])
MAP(sub, a[i] - b[i])
MAP(mul, a[i] * b[i])
MAP(div, a[i] / b[i])
MAP(maximum, isnan(a[i]) || a[i] >= b[i] ? a[i] : b[i]) /* NaN wins, ties take the first */
MAP(exp, exp((double)a[i]))
MAP(erf, erf((double)a[i]))

static map_fn *const maps[FRIT_OP_LIMIT] = {
    [FRIT_OP_copy] = map_copy,       [FRIT_OP_add] = map_add, [FRIT_OP_sub] = map_sub,
    [FRIT_OP_mul] = map_mul,         [FRIT_OP_div] = map_div, [FRIT_OP_exp] = map_exp,
    [FRIT_OP_maximum] = map_maximum, [FRIT_OP_erf] = map_erf,
};

static void move(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t n)
{
    if (to_step == sizeof(float) && from_step == sizeof(float))
        memcpy(to, from, (size_t)n * sizeof(float));
    else
        for (int64_t i = 0; i < n; i++)
            memcpy(to + i * to_step, from + i * from_step, sizeof(float));
}

/* An operand as numbers: a value of the block, or a scalar. */
static const float *operand(const struct kit_call *call, uint32_t op, uint32_t i,
                            float (*values)[LANES], float *scalar)
{
    uint16_t value = call->block->ops[op].in_value[i];

    for (int k = 0; k < LANES && value == KIT_NONE; k++)
        scalar[k] = (float)kit_scalar(call, op, i);
    return value == KIT_NONE ? scalar : values[value];
}

/* `n` elements of each value, from where the walk is.  All is read before anything is written, so
 * that results may take the memory of inputs. */
static void run_lanes(const struct kit_call *call, const struct walk *walk, int64_t done, int64_t n,
                      float (*values)[LANES])
{
    const struct kit_block *block = call->block;
    float scalars[2][LANES];

    for (uint32_t k = 0; k < block->n_in; k++)
        if (block->args[k] != KIT_NONE)
            move((char *)values[block->args[k]], sizeof(float),
                 call->args[k].data + walk->at[k] + done * walk->step[k], walk->step[k], n);
    for (uint32_t op = 0; op < block->n_ops; op++) {
        const struct kit_op *own = &block->ops[op];

        maps[own->id](values[own->out_value[0]], operand(call, op, 0, values, scalars[0]),
                      own->n_in > 1 ? operand(call, op, 1, values, scalars[1]) : NULL);
    }
    for (uint32_t k = block->n_in; k < block->n_args; k++)
        move(call->args[k].data + walk->at[k] + done * walk->step[k], walk->step[k],
             (char *)values[block->args[k]], sizeof(float), n);
}

frit_status run_maps(const struct kit_call *call, frit_err *err)
{
    float values[KIT_VALUES][LANES];
    struct walk walk;

    (void)err;
    memset(values, 0, call->block->n_values * sizeof *values);
    kit_walk(call, &walk);
    for (bool more = walk_first(&walk); more; more = walk_next(&walk))
        for (int64_t done = 0; done < walk.count; done += LANES)
            run_lanes(call, &walk, done, walk.count - done < LANES ? walk.count - done : LANES,
                      values);
    return FRIT_OK;
}

/* ---- sum: a walk over the results, and inside of it one over what each is the sum of ---- */

static float add_up(struct walk *terms, const char *from)
{
    double sum = 0;
    float term;

    for (bool more = walk_first(terms); more; more = walk_next(terms))
        for (int64_t i = 0; i < terms->count; i++) {
            memcpy(&term, from + terms->at[0] + i * terms->step[0], sizeof term);
            sum += (double)term;
        }
    return (float)sum;
}

frit_status run_sum(const struct kit_call *call, frit_err *err)
{
    const frit_attrs_reduce *attrs = &call->block->ops[0].attrs.reduce;
    const struct kit_tensor *x = &call->args[0], *y = &call->args[1];
    struct walk results, terms;
    bool reduced[FRIT_MAX_RANK] = {false};
    uint32_t out = 0;

    (void)err;
    walk_init(&results, WALK_ELEMENTS, 2);
    walk_init(&terms, WALK_ROWS, 1);
    for (int64_t i = 0; i < attrs->axes.count; i++)
        reduced[attrs->axes.axis[i]] = true;
    for (uint32_t d = 0; d < x->rank; d++) {
        if (reduced[d])
            walk_push(&terms, x->dims[d], &x->strides[d]);
        else
            walk_push(&results, x->dims[d], (int64_t[]){y->strides[out], x->strides[d]});
        out += !reduced[d] || attrs->keep;
    }
    for (bool more = walk_first(&results); more; more = walk_next(&results)) {
        float sum = add_up(&terms, x->data + results.at[1]);

        memcpy(y->data + results.at[0], &sum, sizeof sum);
    }
    return FRIT_OK;
}

/* ---- matmul: dense operands, a matrix at a time ---- */

static void multiply(float *y, const float *a, const float *b, const int64_t dims[3])
{
    for (int64_t i = 0; i < dims[0]; i++)
        for (int64_t j = 0; j < dims[1]; j++) {
            double sum = 0;

            for (int64_t k = 0; k < dims[2]; k++)
                sum += (double)a[i * dims[2] + k] * (double)b[k * dims[1] + j];
            y[i * dims[1] + j] = (float)sum;
        }
}

frit_status run_matmul(const struct kit_call *call, frit_err *err)
{
    const struct kit_tensor *a = &call->args[0], *b = &call->args[1], *y = &call->args[2];
    const uint32_t rank = y->rank;
    const int64_t dims[3] = {y->dims[rank - 2], y->dims[rank - 1], a->dims[a->rank - 1]};
    struct walk walk;

    (void)err;
    walk_init(&walk, WALK_ELEMENTS, 3);
    for (uint32_t d = 0; d < rank - 2; d++)
        walk_push(
            &walk, y->dims[d],
            (int64_t[]){kit_stride(y, rank, d), kit_stride(a, rank, d), kit_stride(b, rank, d)});
    for (bool more = walk_first(&walk); more; more = walk_next(&walk))
        multiply((float *)(void *)(y->data + walk.at[0]), (float *)(void *)(a->data + walk.at[1]),
                 (float *)(void *)(b->data + walk.at[2]), dims);
    return FRIT_OK;
}
