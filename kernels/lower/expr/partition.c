/* SPDX-License-Identifier: Apache-2.0 */
#include "lower/expr/partition.h"

/* The group size for `n` points: along one dim (`line`) the largest that leaves few lanes idle. */
static uint32_t choose_lanes(const struct kir_tuning *tuning, uint32_t most, int64_t n, bool line)
{
    uint32_t lanes = most;

    while (lanes > tuning->line && line &&
           (n + lanes - 1) / lanes * lanes - n > n / tuning->idle_part)
        lanes /= 2;
    return sched_lanes(lanes, n);
}

/* One of only two group sizes, so that few modules serve all spaces. */
static uint32_t shared_lanes(const struct kir_tuning *tuning, uint32_t most, int64_t n)
{
    const uint32_t small = most / tuning->shared_ratio;

    return n <= most / 2 && small >= SCHED_MIN_LANES ? small : most;
}

/* The innermost dim is divided by itself if its extent is at least `line`. */
static void init(struct partition *partition, const struct expr *e,
                 const struct delinearizer *points, uint32_t most, int64_t line)
{
    const struct kir_tuning tuning = sched_tuning(e->s);
    int64_t inner = points->n > 1 ? e->space.extent[points->dim[points->n - 1]] : 0, lines = 1;

    *partition =
        (struct partition){.points = *points, .inner = BLOCK_NONE, .n = points->count, .spans = 1};
    if (inner >= line) {
        lines = points->count / inner;
        partition->inner = partition->points.dim[--partition->points.n];
        partition->n = inner;
    }
    partition->shared = e->s->shared;
    partition->lanes =
        partition->shared && partition->inner == BLOCK_NONE
            ? shared_lanes(&tuning, most, partition->n)
            : choose_lanes(&tuning, most, partition->n, partition->inner != BLOCK_NONE);
    partition->blocks = (partition->n + partition->lanes - 1) / partition->lanes;
    partition->groups = lines * partition->blocks;
    partition->n_spans = partition->groups;
}

void partition_init(struct partition *partition, const struct expr *e,
                    const struct delinearizer *points, uint32_t most)
{
    init(partition, e, points, most, sched_tuning(e->s).line);
}

void partition_init_lines(struct partition *partition, const struct expr *e,
                          const struct delinearizer *points, uint32_t most, int64_t line)
{
    init(partition, e, points, most, line);
}

void partition_gather(struct partition *partition, const struct expr *e)
{
    const uint32_t spans = sched_tuning(e->s).group_least / partition->lanes;

    if (partition->inner == BLOCK_NONE || partition->shared || spans < 2 ||
        partition->n_spans / spans < e->s->target->units)
        return;
    partition->spans = spans;
    partition->lanes *= spans;
    partition->groups = (partition->n_spans + spans - 1) / spans;
}

/* Lanes on one block. */
static uint32_t span_lanes(const struct partition *partition)
{
    return partition->lanes / partition->spans;
}

static bool has_inner_blocks(const struct partition *partition)
{
    return partition->inner != BLOCK_NONE && partition->blocks > 1;
}

void partition_phase(struct partition *partition, struct expr *e)
{
    delinearize_phase(&partition->points, e);
    partition->end =
        partition->n % span_lanes(partition) ? sched_add_index(e->s, partition->n) : KIR_NONE;
    partition->span_end = partition->n_spans % partition->spans
                              ? sched_add_index(e->s, partition->n_spans)
                              : KIR_NONE;
    if (!has_inner_blocks(partition))
        return;
    partition->n_blocks = sched_add_index(e->s, partition->blocks);
    partition->by_blocks = sched_add_divisor(e->s, partition->blocks);
}

/* Splits a group of several spans: the number of the lane's span, and *lane in it. */
static uint32_t split_group(const struct partition *partition, const struct expr *e, uint32_t group,
                            uint32_t *lane)
{
    const uint32_t lanes = span_lanes(partition);
    struct kir_module *m = e->s->module;
    uint32_t own = kir_binary(m, KIR_shr, *lane, kir_index(m, __builtin_ctz(lanes)));

    *lane = kir_binary(m, KIR_and, *lane, kir_index(m, lanes - 1));
    return kir_binary(m, KIR_add, kir_binary(m, KIR_mul, group, kir_index(m, partition->spans)),
                      own);
}

struct span partition_span(const struct partition *partition, const struct expr *e, uint32_t group,
                           uint32_t lane)
{
    struct kir_module *m = e->s->module;
    struct span span = {.line = KIR_NONE, .first = KIR_NONE};

    if (partition->spans > 1)
        group = split_group(partition, e, group, &lane);
    span.number = group;
    span.element = lane;
    if (partition->inner != BLOCK_NONE)
        span.line = group;
    if (has_inner_blocks(partition)) {
        span.line = sched_divide(e->s, &partition->by_blocks, group);
        group = kir_binary(e->s->module, KIR_sub, group,
                           kir_binary(e->s->module, KIR_mul, span.line, partition->n_blocks));
    }
    if (partition->blocks > 1 || (partition->shared && partition->inner == BLOCK_NONE)) {
        span.first = kir_binary(e->s->module, KIR_mul, group, kir_index(m, span_lanes(partition)));
        span.element = kir_binary(e->s->module, KIR_add, span.first, lane);
    }
    return span;
}

uint32_t partition_mask(const struct partition *partition, const struct expr *e,
                        const struct span *span)
{
    struct kir_module *m = e->s->module;
    uint32_t mask = KIR_NONE, has_span;

    if (partition->end != KIR_NONE)
        mask = kir_binary(m, KIR_lt, span->element, partition->end);
    if (partition->span_end == KIR_NONE)
        return mask;
    has_span = kir_binary(m, KIR_lt, span->number, partition->span_end);
    return mask == KIR_NONE ? has_span : kir_binary(m, KIR_and, mask, has_span);
}

bool partition_is_full(const struct partition *partition)
{
    return partition->end == KIR_NONE && partition->span_end == KIR_NONE;
}

uint32_t partition_number(const struct partition *partition, const struct expr *e,
                          const struct span *span)
{
    uint32_t n;

    if (span->line == KIR_NONE)
        return span->element;
    n = partition->end == KIR_NONE ? sched_add_index(e->s, partition->n) : partition->end;
    return kir_binary(e->s->module, KIR_add, kir_binary(e->s->module, KIR_mul, span->line, n),
                      span->element);
}

void partition_set_uniform(const struct partition *partition, struct expr *e,
                           const struct span *span)
{
    if (span->line != KIR_NONE)
        delinearize_set(&partition->points, e, span->line);
}

void partition_set_varying(const struct partition *partition, struct expr *e,
                           const struct span *span)
{
    if (span->line != KIR_NONE)
        expr_set(e, partition->inner, span->element);
    else
        delinearize_set(&partition->points, e, span->element);
}
