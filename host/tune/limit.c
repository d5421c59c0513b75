/* SPDX-License-Identifier: Apache-2.0 */
#include "tune/limit.h"

enum {
    GROWTH_PERCENT = 105, /* of the rate before: it still grows */
    FEW = 3               /* steps before the one that may end the ladder so */
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

static bool grows(const struct tune_ladder *ladder, uint32_t step)
{
    return rate(ladder, step) * 100 >= rate(ladder, step - 1) * GROWTH_PERCENT;
}

/* Whether more work than that of the last step runs at no higher rate. */
static bool is_filled(const struct tune_ladder *ladder)
{
    const uint32_t last = ladder->n_steps - 1;

    return ladder->ns[last] >= TUNE_LIMIT_FILLED_NS ||
           (last >= FEW && !grows(ladder, last) && !grows(ladder, last - 1));
}

bool tune_ladder_is_whole(const struct tune_ladder *ladder)
{
    const uint32_t n = ladder->n_steps;

    return n == TUNE_LIMIT_STEPS || (n && (!ladder->ns[n - 1] || is_filled(ladder)));
}

/* On the line from a step to another one, at so much work; a line never falls. */
static double on_line(const struct tune_ladder *ladder, uint32_t from, uint32_t to, uint64_t work)
{
    const double x = (double)ladder->work[from], y = (double)ladder->ns[from];
    const double rise = (double)ladder->ns[to] - y;

    return y + (rise > 0 ? rise : 0) * ((double)work - x) / ((double)ladder->work[to] - x);
}

uint64_t tune_ladder_ns(const struct tune_ladder *ladder, uint64_t work)
{
    const uint32_t n = ladder->n_steps;
    uint32_t above = 0;
    double before, other;

    while (above < n && ladder->work[above] <= work)
        above++;
    if (above < 2 || (above == n && !is_filled(ladder)))
        return 0;
    for (uint32_t i = above - 2; i < n && i <= above; i++)
        if (!ladder->ns[i])
            return 0;
    before = on_line(ladder, above - 2, above - 1, work);
    other = above < n ? on_line(ladder, above - 1, above, work)
                      : (double)work / rate(ladder, above - 1);
    return (uint64_t)(before < other ? before : other);
}

static uint64_t percent_of_longer(uint64_t a, uint64_t b, uint64_t percent)
{
    const uint64_t longer = a > b ? a : b;

    return longer / 100 * percent + longer % 100 * percent / 100;
}

uint64_t tune_limit_enough(uint64_t bytes_ns, uint64_t product_ns)
{
    return percent_of_longer(bytes_ns, product_ns, TUNE_LIMIT_ENOUGH);
}

uint64_t tune_limit_least(uint64_t bytes_ns, uint64_t product_ns)
{
    return percent_of_longer(bytes_ns, product_ns, TUNE_LIMIT_WRONG);
}
