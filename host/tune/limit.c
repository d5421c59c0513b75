/* SPDX-License-Identifier: Apache-2.0 */
#include "tune/limit.h"

enum {
    GROWTH_PERCENT = 105, /* of the rate before: it still grows */
    FEW = 2               /* steps before the one that may end the ladder so */
};

void tune_ladder_add(struct tune_ladder *ladder, uint64_t work, uint64_t ns)
{
    if (ladder->n_steps == TUNE_LIMIT_STEPS)
        return;
    ladder->work[ladder->n_steps] = work;
    ladder->ns[ladder->n_steps++] = ns;
}

static double rate(const struct tune_ladder *ladder, uint32_t step)
{
    return ladder->ns[step] ? (double)ladder->work[step] / (double)ladder->ns[step] : 0;
}

/* Whether more work than that of the last step runs at no higher rate. */
static bool is_filled(const struct tune_ladder *ladder)
{
    const uint32_t last = ladder->n_steps - 1;

    return ladder->ns[last] >= TUNE_LIMIT_FILLED_NS ||
           (last >= FEW && rate(ladder, last) * 100 < rate(ladder, last - 1) * GROWTH_PERCENT);
}

bool tune_ladder_is_whole(const struct tune_ladder *ladder)
{
    const uint32_t n = ladder->n_steps;

    return n == TUNE_LIMIT_STEPS || (n && (!ladder->ns[n - 1] || is_filled(ladder)));
}

uint64_t tune_ladder_ns(const struct tune_ladder *ladder, uint64_t work)
{
    uint32_t above = 0;
    double a, b;

    while (above < ladder->n_steps && ladder->work[above] <= work)
        above++;
    if (!above || (above == ladder->n_steps && !is_filled(ladder)))
        return 0;
    a = rate(ladder, above - 1);
    b = above < ladder->n_steps ? rate(ladder, above) : a;
    if (a <= 0 || b <= 0)
        return 0;
    return (uint64_t)((double)work / (a > b ? a : b));
}

uint64_t tune_limit_enough(uint64_t bytes_ns, uint64_t product_ns)
{
    const uint64_t least = bytes_ns > product_ns ? bytes_ns : product_ns;

    return least / 100 * TUNE_LIMIT_PERCENT + least % 100 * TUNE_LIMIT_PERCENT / 100;
}
