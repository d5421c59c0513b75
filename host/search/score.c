/* SPDX-License-Identifier: Apache-2.0 */
/* What a program saves, counted in whole tensors: plans know no sizes. */
#include "search/block.h"

enum { TENSOR_POINTS = 100, LAUNCH_POINTS = 10 };

/* Traffic and launches of ops one by one and as one program. */
struct tally {
    int64_t apart;
    int64_t together;
    int64_t launches;
};

/* A tensor of one element is no traffic. */
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

static bool is_view(const frit_op_desc *op)
{
    const frit_op_info *row = op_row(op->id);

    return row && row->cls == FRIT_CLASS_VIEW;
}

static bool first_met(struct search_ctx *ctx, uint32_t value)
{
    if (ctx->values[value].mark == ctx->round)
        return false;
    ctx->values[value].mark = ctx->round;
    return true;
}

static void count_apart(struct search_ctx *ctx, const frit_op_desc *op, struct tally *tally)
{
    if (is_view(op))
        return;
    tally->launches++;
    ctx->round++;
    for (uint32_t k = 0; k < op->n_in; k++)
        tally->apart += is_full(&op->in[k]) && first_met(ctx, op->in[k].value);
    for (uint32_t k = 0; k < op->n_out; k++)
        tally->apart += is_full(&op->out[k]);
}

/* Each value that comes from outside is read once: makers mark what they make. */
static void count_reads(struct search_ctx *ctx, const frit_op_desc *op, struct tally *tally)
{
    for (uint32_t k = 0; k < op->n_in; k++)
        tally->together += is_full(&op->in[k]) && first_met(ctx, op->in[k].value);
    for (uint32_t k = 0; k < op->n_out; k++) {
        if (op->out[k].kind == FRIT_OPERAND_TENSOR)
            first_met(ctx, op->out[k].value);
    }
}

uint64_t block_score(struct search_ctx *ctx, const uint32_t *ops, uint32_t n_ops)
{
    const frit_op_desc *all = ctx->ops.ops;
    struct tally tally = {0};
    int64_t points;

    for (uint32_t i = 0; i < n_ops; i++)
        count_apart(ctx, &all[ops[i]], &tally);
    if (tally.launches < 2)
        return 0;
    ctx->round++;
    for (uint32_t i = 0; i < n_ops; i++)
        count_reads(ctx, &all[ops[i]], &tally);
    ctx->round++;
    for (uint32_t i = 0; i < n_ops; i++) {
        for (uint32_t k = 0; k < all[ops[i]].n_dead; k++)
            ctx->values[all[ops[i]].dead[k]].mark = ctx->round;
    }
    for (uint32_t i = 0; i < n_ops; i++) {
        const frit_op_desc *op = &all[ops[i]];

        for (uint32_t k = 0; k < op->n_out; k++)
            tally.together += is_full(&op->out[k]) && first_met(ctx, op->out[k].value);
    }
    points = (tally.apart - tally.together) * TENSOR_POINTS + (tally.launches - 1) * LAUNCH_POINTS;
    return points > 0 ? (uint64_t)points : 0;
}
