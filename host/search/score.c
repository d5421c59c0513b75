/* SPDX-License-Identifier: Apache-2.0 */
/* Scores: the traffic and launches that a program saves, counted in whole tensors, since plans do
 * not depend on sizes.  A block has a tally for each prefix, so that every prefix's score is known;
 * tallies are computed once, when an op is added. */
#include "search/score.h"

#include <frit/op_table.h>

#include "search/block.h"

#include "graph/op.h"
#include "search/dag.h"

enum { TENSOR_POINTS = 100, LAUNCH_POINTS = 10 };

/* Whether the tensor may have more than one element; others do not count as traffic. */
static bool is_full(const frit_operand *operand)
{
    if (operand->kind != FRIT_OPERAND_TENSOR)
        return false;
    for (uint32_t d = 0; d < operand->rank; d++) {
        if (operand->extent[d] > 1)
            return true;
    }
    return false;
}

/* State of a tally; `known`: the set, of at most one block, whose values are marked. */
struct tallying {
    struct search_ctx *ctx;
    uint64_t known;
    struct tally *sum;
};

static bool is_made(const struct tallying *t, const struct search_value *value)
{
    return value->maker & t->known || value->made == t->ctx->tally;
}

static bool is_inside(const struct tallying *t, const struct search_value *value)
{
    return value->readers & t->known || value->read == t->ctx->tally || is_made(t, value);
}

/* A single op reads each distinct operand once; a program reads those that none of its ops makes or
 * has read. */
static void count_reads(const struct tallying *t, const frit_op_desc *op, bool view)
{
    t->ctx->tallied++;
    for (uint32_t k = 0; k < op->n_in; k++) {
        struct search_value *value;

        if (op->in[k].kind != FRIT_OPERAND_TENSOR)
            continue;
        value = &t->ctx->values[op->in[k].value];
        if (is_full(&op->in[k])) {
            t->sum->apart += !view && value->seen != t->ctx->tallied;
            t->sum->together += !is_inside(t, value);
        }
        value->seen = t->ctx->tallied;
        value->read = t->ctx->tally;
    }
}

/* A program writes results that do not die in it. */
static void count_writes(const struct tallying *t, const frit_op_desc *op, bool view)
{
    for (uint32_t k = 0; k < op->n_out; k++) {
        if (op->out[k].kind != FRIT_OPERAND_TENSOR)
            continue;
        t->sum->apart += !view && is_full(&op->out[k]);
        t->sum->together += is_full(&op->out[k]);
        t->ctx->values[op->out[k].value].made = t->ctx->tally;
    }
}

/* Values die at their last use, so each is an operand or a result of the op; none is listed twice.
 */
static void count_deaths(const struct tallying *t, const frit_op_desc *op)
{
    for (uint32_t i = 0; i < op->n_dead; i++) {
        const struct search_value *value = &t->ctx->values[op->dead[i]];
        bool full = false;

        for (uint32_t k = 0; k < op->n_in + op->n_out && !full; k++) {
            const frit_operand *operand = k < op->n_in ? &op->in[k] : &op->out[k - op->n_in];

            full = operand->kind == FRIT_OPERAND_TENSOR && operand->value == op->dead[i] &&
                   is_full(operand);
        }
        t->sum->together -= full && is_made(t, value);
    }
}

void block_tally(struct search_ctx *ctx, struct block *block, uint32_t first)
{
    struct tally sum = first ? block->tallies[first - 1] : (struct tally){0};
    struct tallying t = {ctx, first ? dag_bit(block->number) : 0, &sum};

    ctx->tally++;
    for (uint32_t i = first; i < block->n_ops; i++) {
        const frit_op_desc *op = &ctx->ops.ops[block->ops[i]];
        bool view = op_is_view(op->id);

        sum.launches += !view;
        count_reads(&t, op, view);
        count_writes(&t, op, view);
        count_deaths(&t, op);
        block->tallies[i] = sum;
    }
}

uint64_t block_score(const struct block *block, uint32_t n_ops)
{
    const struct tally *sum;
    int64_t points;

    if (!n_ops || block->tallies[n_ops - 1].launches < 2)
        return 0;
    sum = &block->tallies[n_ops - 1];
    points = ((int64_t)sum->apart - sum->together) * TENSOR_POINTS +
             ((int64_t)sum->launches - 1) * LAUNCH_POINTS;
    return points > 0 ? (uint64_t)points : 0;
}
