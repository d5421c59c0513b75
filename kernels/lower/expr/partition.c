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

    *partition = (struct partition){
        .points = *points, .inner = BLOCK_NONE, .n = points->count, .lines = 1};
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
    partition->n_lines = lines;
}

void partition_init(struct partition *partition, const struct expr *e,
                    const struct delinearizer *points, uint32_t most)
{
    init(partition, e, points, most, sched_tuning(e->s).line);
}

void partition_init_columns(struct partition *partition, const struct expr *e,
                            const struct delinearizer *points, uint32_t columns)
{
    init(partition, e, points, columns, columns);
}

void partition_gather_lines(struct partition *partition, const struct expr *e)
{
    const uint32_t least = sched_tuning(e->s).group_least;
    uint32_t lines = 1;

    if (partition->inner == BLOCK_NONE || partition->blocks > 1 || partition->shared)
        return;
    while (2 * lines * partition->lanes <= least &&
           partition->n_lines / (2 * lines) >= e->s->target->units)
        lines *= 2;
    partition->lines = lines;
    partition->lanes *= lines;
    partition->groups = (partition->n_lines + lines - 1) / lines;
}

/* Lanes on one line. */
static uint32_t columns_of(const struct partition *partition)
{
    return partition->lanes / partition->lines;
}

static bool has_inner_blocks(const struct partition *partition)
{
    return partition->inner != BLOCK_NONE && partition->blocks > 1;
}

void partition_phase(struct partition *partition, struct expr *e)
{
    delinearize_phase(&partition->points, e);
    partition->end =
        partition->n % columns_of(partition) ? sched_index(e->s, partition->n) : KIR_NONE;
    partition->line_end = partition->n_lines % partition->lines
                              ? sched_index(e->s, partition->n_lines)
                              : KIR_NONE;
    if (!has_inner_blocks(partition))
        return;
    partition->n_blocks = sched_index(e->s, partition->blocks);
    partition->by_blocks = sched_divisor(e->s, partition->blocks);
}

/* The span of a lane where a group has several lines. */
static struct span span_of_lines(const struct partition *partition, const struct expr *e,
                                 uint32_t group, uint32_t lane)
{
    const uint32_t columns = columns_of(partition);
    struct kir_module *m = e->s->module;
    uint32_t line = kir_binary(m, KIR_shr, lane, kir_index(m, __builtin_ctz(columns)));

    return (struct span){
        .line = kir_binary(m, KIR_add,
                           kir_binary(m, KIR_mul, group, kir_index(m, partition->lines)), line),
        .first = KIR_NONE,
        .element = kir_binary(m, KIR_and, lane, kir_index(m, columns - 1))};
}

struct span partition_span(const struct partition *partition, const struct expr *e, uint32_t group,
                           uint32_t lane)
{
    struct kir_module *m = e->s->module;
    struct span span = {.line = KIR_NONE, .first = KIR_NONE, .element = lane};

    if (partition->lines > 1)
        return span_of_lines(partition, e, group, lane);
    if (partition->inner != BLOCK_NONE)
        span.line = group;
    if (has_inner_blocks(partition)) {
        span.line = sched_divide(e->s, &partition->by_blocks, group);
        group = kir_binary(e->s->module, KIR_sub, group,
                           kir_binary(e->s->module, KIR_mul, span.line, partition->n_blocks));
    }
    if (partition->blocks > 1 || (partition->shared && partition->inner == BLOCK_NONE)) {
        span.first = kir_binary(e->s->module, KIR_mul, group, kir_index(m, partition->lanes));
        span.element = kir_binary(e->s->module, KIR_add, span.first, lane);
    }
    return span;
}

uint32_t partition_mask(const struct partition *partition, const struct expr *e,
                        const struct span *span)
{
    struct kir_module *m = e->s->module;
    uint32_t mask = KIR_NONE, lines;

    if (partition->end != KIR_NONE)
        mask = kir_binary(m, KIR_lt, span->element, partition->end);
    if (partition->line_end == KIR_NONE)
        return mask;
    lines = kir_binary(m, KIR_lt, span->line, partition->line_end);
    return mask == KIR_NONE ? lines : kir_binary(m, KIR_and, mask, lines);
}

bool partition_is_full(const struct partition *partition)
{
    return partition->end == KIR_NONE && partition->line_end == KIR_NONE;
}

uint32_t partition_number(const struct partition *partition, const struct expr *e,
                          const struct span *span)
{
    uint32_t n;

    if (span->line == KIR_NONE)
        return span->element;
    n = partition->end == KIR_NONE ? sched_index(e->s, partition->n) : partition->end;
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
