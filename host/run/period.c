/* SPDX-License-Identifier: Apache-2.0 */
/* The failure function of Knuth, Morris and Pratt over ops.  Two ops count as the same by what they
 * compute; their operands are not compared, so that the first round of a loop, whose operands come
 * from before it, is a period like the others. */
#include "run/period.h"

#include <stdlib.h>

#include "base/array.h"
#include "graph/op.h"
#include "record/segment.h"

void period_fini(struct period *period)
{
    free(period->border);
    free(period->half);
    *period = (struct period){0};
}

void period_reset(struct period *period)
{
    period->count = 0;
}

static bool same_type(const struct op_type *a, const struct op_type *b)
{
    return a->dtype == b->dtype && a->rank == b->rank;
}

static bool same_op(const struct segment *segment, uint32_t a, uint32_t b)
{
    const struct recorded_op *x = segment->ops[a], *y = segment->ops[b];

    if (x->op != y->op || x->attrs_id != y->attrs_id || x->n_in != y->n_in || x->n_out != y->n_out)
        return false;
    for (uint32_t i = 0; i < x->n_in; i++) {
        if (x->in[i].kind != y->in[i].kind)
            return false;
    }
    for (uint32_t k = 0; k < x->n_out; k++) {
        if ((x->out[k] == SEGMENT_EXTERNAL) != (y->out[k] == SEGMENT_EXTERNAL) ||
            (x->out[k] != SEGMENT_EXTERNAL &&
             !same_type(&segment->types[x->out[k]], &segment->types[y->out[k]])))
            return false;
    }
    return true;
}

/* Fills borders[n] for the sequence of ops from `first` on. */
static void push(uint32_t *borders, uint32_t n, const struct segment *segment, uint32_t first)
{
    uint32_t length = n ? borders[n - 1] : 0;

    while (length && !same_op(segment, first + length, first + n))
        length = borders[length - 1];
    borders[n] = n ? length + same_op(segment, first + length, first + n) : 0;
}

/* Whether the last half of the first `n_calls` ops repeats itself, looked at when their number is a
 * power of two. */
static bool half_repeats(struct period *period, const struct segment *segment, uint32_t n_calls)
{
    uint32_t n = n_calls / 2;

    if (n_calls & (n_calls - 1) ||
        !array_grow(&period->half, &period->half_capacity, 0, n, sizeof(*period->half)))
        return false;
    for (uint32_t i = 0; i < n; i++)
        push(period->half, i, segment, n);
    return 2 * (n - period->half[n - 1]) <= n;
}

bool period_ends(struct period *period, const struct segment *segment, uint32_t n_calls)
{
    uint32_t length;

    if (!array_grow(&period->border, &period->border_capacity, period->count,
                    n_calls - period->count, sizeof(*period->border)))
        return true;
    for (; period->count < n_calls; period->count++)
        push(period->border, period->count, segment, 0);
    if (n_calls < PERIODIC_OPS)
        return false;
    length = n_calls - period->border[n_calls - 1];
    if (2 * length <= n_calls)
        return n_calls % length == 0;
    return n_calls >= APERIODIC_OPS || half_repeats(period, segment, n_calls);
}
