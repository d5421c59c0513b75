/* SPDX-License-Identifier: Apache-2.0 */
#include "lower/share.h"

enum {
    LEAST_LINE = 64, /* innermost extent that is cut by itself */
    WASTE = 8,       /* a group size is taken if at most 1 / WASTE of the lanes idle */
    SMALL = 8        /* times as many lanes has a group of a large space as one of a small one */
};

/* Of a line the largest group of which few lanes idle; else one that holds all, if there is one. */
static uint32_t choose_lanes(uint32_t most, int64_t n, bool line)
{
    uint32_t lanes = most;

    while (lanes > LEAST_LINE && line && (n + lanes - 1) / lanes * lanes - n > n / WASTE)
        lanes /= 2;
    return sched_lanes(lanes, n);
}

/* Two sizes, so that spaces have few kinds of groups. */
static uint32_t shared_lanes(uint32_t most, int64_t n)
{
    return n <= most / 2 && most / SMALL >= SCHED_LEAST ? most / SMALL : most;
}

void share_init(struct share *share, const struct expr *e, const struct walk *walk, uint32_t most)
{
    int64_t inner = walk->n > 1 ? e->space.extent[walk->dim[walk->n - 1]] : 0, lines = 1;

    *share = (struct share){.walk = *walk, .inner = BLOCK_NONE, .n = walk->count};
    if (inner >= LEAST_LINE) {
        lines = walk->count / inner;
        share->inner = share->walk.dim[--share->walk.n];
        share->n = inner;
    }
    share->shared = e->s->shared;
    share->lanes = share->shared && share->inner == BLOCK_NONE
                       ? shared_lanes(most, share->n)
                       : choose_lanes(most, share->n, share->inner != BLOCK_NONE);
    share->blocks = (share->n + share->lanes - 1) / share->lanes;
    share->groups = lines * share->blocks;
}

static bool divides(const struct share *share)
{
    return share->inner != BLOCK_NONE && share->blocks > 1;
}

void share_phase(struct share *share, struct expr *e)
{
    walk_phase(&share->walk, e);
    share->end = share->n % share->lanes ? sched_index(e->s, share->n) : KIR_NONE;
    if (!divides(share))
        return;
    share->n_blocks = sched_index(e->s, share->blocks);
    share->by_blocks = sched_divisor(e->s, share->blocks);
}

struct span share_span(const struct share *share, const struct expr *e, uint32_t group,
                       uint32_t lane)
{
    struct kir_module *m = e->s->module;
    struct span span = {.line = KIR_NONE, .first = KIR_NONE, .element = lane};

    if (share->inner != BLOCK_NONE)
        span.line = group;
    if (divides(share)) {
        span.line = sched_divide(e->s, &share->by_blocks, group);
        group = kir_binary(e->s->module, KIR_sub, group,
                           kir_binary(e->s->module, KIR_mul, span.line, share->n_blocks));
    }
    if (share->blocks > 1 || (share->shared && share->inner == BLOCK_NONE)) {
        span.first = kir_binary(e->s->module, KIR_mul, group, kir_index(m, share->lanes));
        span.element = kir_binary(e->s->module, KIR_add, span.first, lane);
    }
    return span;
}

uint32_t share_mask(const struct share *share, const struct expr *e, const struct span *span)
{
    return share->end == KIR_NONE ? KIR_NONE
                                  : kir_binary(e->s->module, KIR_lt, span->element, share->end);
}

uint32_t share_number(const struct share *share, const struct expr *e, const struct span *span)
{
    uint32_t n;

    if (span->line == KIR_NONE)
        return span->element;
    n = share->end == KIR_NONE ? sched_index(e->s, share->n) : share->end;
    return kir_binary(e->s->module, KIR_add, kir_binary(e->s->module, KIR_mul, span->line, n),
                      span->element);
}

void share_set_common(const struct share *share, struct expr *e, const struct span *span)
{
    if (span->line != KIR_NONE)
        walk_set(&share->walk, e, span->line);
}

void share_set_own(const struct share *share, struct expr *e, const struct span *span)
{
    if (span->line != KIR_NONE)
        expr_set(e, share->inner, span->element);
    else
        walk_set(&share->walk, e, span->element);
}
