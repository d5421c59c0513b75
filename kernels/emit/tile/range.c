/* SPDX-License-Identifier: Apache-2.0 */
/* Masks that are true in one range of lanes: comparisons of a line with a single element, and what
 * `and` makes of them.  They cost nothing per lane.
 *
 * A comparison is a range only when the line does not leave the range of its type; else, and where
 * a number does not fit, its lanes are computed one by one, which is right whatever they are. */
#include "emit/tile/range.h"

#include "emit/tile/code.h"

#include <assert.h>

#include "ir/kir.h"

static bool is_unsigned(uint32_t op)
{
    return op == KIR_ult || op == KIR_ule;
}

static int64_t read(const char *at, const struct tile_step *step)
{
    if (step->type == KIR_I64)
        return *(const int64_t *)at;
    return is_unsigned(step->op) ? (int64_t) * (const uint32_t *)at : *(const int32_t *)at;
}

/* Whether first .. first + step * (n - 1) stay numbers of the type; unsigned 64-bit numbers have to
 * be small enough to be signed ones. */
static bool stays(const struct tile_step *step, int64_t first, int64_t other)
{
    bool is_u = is_unsigned(step->op);
    int64_t last, least = is_u ? 0 : INT32_MIN, most = is_u ? UINT32_MAX : INT32_MAX;

    if (__builtin_mul_overflow((int64_t)step->imm, (int64_t)step->n - 1, &last) ||
        __builtin_add_overflow(last, first, &last))
        return false;
    if (step->type == KIR_I32)
        return last >= least && last <= most;
    return !is_u || (first >= 0 && last >= 0 && other >= 0);
}

static int32_t clamped(int64_t lane, uint32_t n)
{
    return lane < 0 ? 0 : lane > n ? (int32_t)n : (int32_t)lane;
}

/* Lanes with first + lane * by < limit, by > 0: how many. */
static int32_t below(int64_t gap, int64_t by, uint32_t n)
{
    return gap <= 0 ? 0 : clamped((gap - 1) / by + 1, n);
}

/* line < other, or with `or_same` line <= other; false: a number does not fit. */
static bool order(struct tile_range *out, int64_t first, int64_t by, int64_t other, bool or_same,
                  uint32_t n)
{
    int64_t gap; /* lanes with by * lane < gap */

    if (__builtin_sub_overflow(other, first, &gap) ||
        __builtin_add_overflow(gap, (int64_t)or_same, &gap) || gap < INT64_MIN + 2)
        return false;
    if (by > 0)
        *out = (struct tile_range){0, below(gap, by, n)};
    else /* -by * lane > -gap: not those with -by * lane < 1 - gap */
        *out = (struct tile_range){below(1 - gap, -by, n), (int32_t)n};
    return true;
}

static bool same(struct tile_range *out, int64_t first, int64_t by, int64_t other, uint32_t n)
{
    int64_t gap, lane;

    if (__builtin_sub_overflow(other, first, &gap))
        return false;
    lane = gap % by == 0 ? gap / by : -1;
    *out = lane < 0 || lane >= n ? (struct tile_range){0, 0}
                                 : (struct tile_range){(int32_t)lane, (int32_t)lane + 1};
    return true;
}

/* An unsigned comparison of a line that ascends from below 0, as a signed one, through 0: its lanes
 * begin there.  So do the coordinates of windows that reach over an edge. */
static bool from_below(const struct tile_step *step, int64_t first, int64_t other, bool or_same,
                       struct tile_range *out)
{
    int64_t by = (int64_t)step->imm, last;

    if (step->type != KIR_I32 || !is_unsigned(step->op) || step->swapped || by <= 0 ||
        other > INT32_MAX)
        return false;
    first = (int32_t)first;
    if (first >= 0 || __builtin_mul_overflow(by, (int64_t)step->n - 1, &last) ||
        __builtin_add_overflow(last, first, &last) || last > INT32_MAX)
        return false;
    out->first = below(-first, by, step->n);
    out->end = below(other - first + or_same, by, step->n);
    return true;
}

static bool find(const struct tile_step *step, int64_t first, int64_t other, struct tile_range *out)
{
    int64_t by = (int64_t)step->imm;
    bool or_same = step->op == KIR_le || step->op == KIR_ule;

    assert(by != 0);
    if (by == INT64_MIN)
        return false;
    if (!stays(step, first, other))
        return from_below(step, first, other, or_same, out);
    if (step->op == KIR_eq)
        return same(out, first, by, other, step->n);
    if (!step->swapped)
        return order(out, first, by, other, or_same, step->n);
    /* other < line: where not line <= other. */
    if (!order(out, first, by, other, !or_same, step->n))
        return false;
    *out = out->first ? (struct tile_range){0, out->first}
                      : (struct tile_range){out->end, (int32_t)step->n};
    return true;
}

/* Some lanes of a line at a time, compared by the loop for arrays. */
static void compare_lanes(const struct tile_step *step, char *scratch, uint64_t first)
{
    uint32_t *lanes = (uint32_t *)(scratch + step->out);
    union {
        uint32_t narrow[64];
        uint64_t wide[64];
    } line;

    for (uint32_t i = 0, n; i < step->n; i += n, first += n * step->imm) {
        n = step->n - i < 64 ? step->n - i : 64;
        for (uint32_t j = 0; j < n; j++) {
            if (step->type == KIR_I64)
                line.wide[j] = first + j * step->imm;
            else
                line.narrow[j] = (uint32_t)(first + j * step->imm);
        }
        step->loop(lanes + i, step->swapped ? (void *)(scratch + step->a) : &line,
                   step->swapped ? (void *)&line : scratch + step->b, &line, n, 0);
    }
}

void tile_range(const struct tile_step *step, char *scratch)
{
    struct tile_range *range = tile_range_of(scratch + step->out);
    int64_t line = read(scratch + (step->swapped ? step->b : step->a), step);
    int64_t other = read(scratch + (step->swapped ? step->a : step->b), step);

    if (find(step, line, other, range))
        return;
    *range = (struct tile_range){-1, -1};
    compare_lanes(step, scratch, (uint64_t)line);
}

static void fill(uint32_t *lanes, uint32_t n)
{
    const struct tile_range range = *tile_range_of(lanes);

    if (range.first < 0)
        return;
    for (uint32_t i = 0; i < n; i++)
        lanes[i] = (int32_t)i >= range.first && (int32_t)i < range.end;
}

void tile_range_fill(const struct tile_step *step, char *scratch)
{
    fill((uint32_t *)(scratch + step->out), step->n);
}

static struct tile_range mask_range(uint32_t mask, char *at, uint32_t n)
{
    if (mask == MASK_ONE)
        return (struct tile_range){0, *(const uint32_t *)at ? (int32_t)n : 0};
    return *tile_range_of(at);
}

/* Of two masks of which one at least has lanes. */
static void lanes_and(const struct tile_step *step, char *scratch)
{
    uint32_t *out = (uint32_t *)(scratch + step->out);
    uint32_t *a = (uint32_t *)(scratch + step->a), *b = (uint32_t *)(scratch + step->b);

    if (step->mask == MASK_RANGE)
        fill(a, step->n);
    if (step->mask_b == MASK_RANGE)
        fill(b, step->n);
    for (uint32_t i = 0; i < step->n; i++)
        out[i] = a[step->mask == MASK_ONE ? 0 : i] & b[step->mask_b == MASK_ONE ? 0 : i];
    *tile_range_of(out) = (struct tile_range){-1, -1};
}

void tile_range_and(const struct tile_step *step, char *scratch)
{
    struct tile_range a = mask_range(step->mask, scratch + step->a, step->n);
    struct tile_range b = mask_range(step->mask_b, scratch + step->b, step->n);

    if (a.first < 0 || b.first < 0) {
        lanes_and(step, scratch);
        return;
    }
    a.first = a.first > b.first ? a.first : b.first;
    a.end = a.end < b.end ? a.end : b.end;
    *tile_range_of(scratch + step->out) = a.first < a.end ? a : (struct tile_range){0, 0};
}
