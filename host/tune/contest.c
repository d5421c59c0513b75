/* SPDX-License-Identifier: Apache-2.0 */
#include "tune/contest.h"

#include <stdlib.h>
#include <string.h>

enum {
    SLOW_PERCENT = 150, /* of the best: out */
    CALM_PERCENT = 2,   /* improvement that is none */
    CALM_ROUNDS = 2,
    EQUAL_PERCENT = 3,
    MAX_LATE = 2, /* trials in a row that take too long: one may have been interrupted */
    SURVIVORS = 2 /* that are never out for being slow */
};

/* ---- who takes part ---- */

static bool is_in_batch(const struct contest *contest, uint32_t i)
{
    return contest->list[i].priority == contest->batch;
}

static uint32_t count_live(const struct contest *contest)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < contest->count; i++)
        n += is_in_batch(contest, i) && contest->list[i].state == CONTEST_LIVE;
    return n;
}

/* The highest priority below `above`; -1: none. */
static int64_t next_priority(const struct contest *contest, int64_t above)
{
    int64_t found = -1;

    for (uint32_t i = 0; i < contest->count; i++) {
        const int64_t priority = contest->list[i].priority;

        if (priority < above && priority > found)
            found = priority;
    }
    return found;
}

static void begin_batch(struct contest *contest, int64_t above)
{
    contest->batch = next_priority(contest, above);
    contest->first_pass = true;
    contest->next = 0;
    contest->over = contest->batch < 0;
    for (uint32_t i = 0; i < contest->count && !contest->over; i++)
        if (is_in_batch(contest, i))
            contest->list[i].state = CONTEST_LIVE;
}

void contest_begin(struct contest *contest, const struct contest_rules *rules,
                   struct contestant *list, uint32_t count)
{
    *contest = (struct contest){.rules = *rules, .list = list, .count = count};
    for (uint32_t i = 0; i < count; i++)
        list[i] = (struct contestant){.priority = list[i].priority};
    begin_batch(contest, (int64_t)INT32_MAX + 1);
}

/* ---- rounds ---- */

static bool is_above(uint64_t ns, int percent, uint64_t of_ns)
{
    return (double)ns * 100 > (double)of_ns * percent;
}

static bool is_slow(const struct contest *contest, const struct contestant *one)
{
    return one->n_samples >= contest->rules.min_samples &&
           is_above(one->best_ns, SLOW_PERCENT, contest->best_ns);
}

/* The slowest first, so that the best of the slow ones stay. */
static void eliminate(struct contest *contest)
{
    for (uint32_t live = count_live(contest); live > SURVIVORS; live--) {
        struct contestant *slowest = NULL;

        for (uint32_t i = 0; i < contest->count; i++) {
            struct contestant *one = &contest->list[i];

            if (is_in_batch(contest, i) && one->state == CONTEST_LIVE && is_slow(contest, one) &&
                (!slowest || one->best_ns >= slowest->best_ns))
                slowest = one;
        }
        if (!slowest)
            return;
        slowest->state = CONTEST_OUT;
    }
}

static bool has_converged(const struct contest *contest, const struct contestant *one)
{
    return one->n_samples >= contest->rules.max_samples ||
           (one->n_samples >= contest->rules.min_samples && one->calm >= CALM_ROUNDS);
}

static bool all_have_converged(const struct contest *contest)
{
    const bool alone = count_live(contest) == 1;

    for (uint32_t i = 0; i < contest->count; i++) {
        const struct contestant *one = &contest->list[i];

        if (is_in_batch(contest, i) && one->state == CONTEST_LIVE && !has_converged(contest, one) &&
            !(alone && one->n_samples >= contest->rules.min_samples))
            return false;
    }
    return true;
}

static bool batch_has_sample(const struct contest *contest)
{
    for (uint32_t i = 0; i < contest->count; i++)
        if (is_in_batch(contest, i) && contest->list[i].state != CONTEST_FAILED &&
            contest->list[i].n_samples)
            return true;
    return false;
}

static void end_round(struct contest *contest)
{
    contest->next = 0;
    contest->first_pass = false;
    if (!batch_has_sample(contest)) {
        begin_batch(contest, contest->batch);
        return;
    }
    eliminate(contest);
    contest->over = contest->over || all_have_converged(contest);
}

/* After a first sample that is quick enough the same candidate goes on. */
static bool goes_on(const struct contest *contest, const struct contestant *one)
{
    return one->state == CONTEST_LIVE && one->n_samples == 1 &&
           one->samples[0] <= contest->rules.enough_ns &&
           one->n_samples < contest->rules.max_samples;
}

static bool is_due(const struct contest *contest, uint32_t i)
{
    const struct contestant *one = &contest->list[i];

    return is_in_batch(contest, i) && one->state == CONTEST_LIVE &&
           (contest->first_pass ? !one->warm || !one->n_samples || goes_on(contest, one)
                                : !has_converged(contest, one));
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return !a ? b : !b || a < b ? a : b;
}

/* A first trial may load or compile, and has the candidate's own limit only. */
static uint64_t limit_of(const struct contest *contest, const struct contestant *one)
{
    const uint64_t cut =
        contest->best_ns < UINT64_MAX / CONTEST_CUT ? contest->best_ns * CONTEST_CUT : 0;
    const uint64_t own =
        contest->rules.candidate_ns ? contest->rules.candidate_ns - one->spent_ns : 0;

    return one->warm ? smaller(cut, own) : own;
}

bool contest_next(struct contest *contest, struct contest_turn *out)
{
    while (!contest->over) {
        while (contest->next < contest->count && !is_due(contest, contest->next))
            contest->next++;
        if (contest->next < contest->count) {
            const struct contestant *one = &contest->list[contest->next];

            *out = (struct contest_turn){contest->next, !one->warm, limit_of(contest, one)};
            return true;
        }
        end_round(contest);
    }
    return false;
}

/* ---- what trials say ---- */

static void spend(struct contest *contest, struct contestant *one, uint64_t ns)
{
    one->spent_ns += ns;
    contest->spent_ns += ns;
    if (contest->rules.candidate_ns && one->spent_ns >= contest->rules.candidate_ns)
        one->state = CONTEST_OUT;
    if (contest->rules.budget_ns && contest->spent_ns >= contest->rules.budget_ns)
        contest->over = true;
}

static void take_sample(struct contest *contest, struct contestant *one, uint64_t ns)
{
    const uint64_t before = one->best_ns;
    uint32_t quick = 0;

    one->samples[one->n_samples++] = ns;
    one->best_ns = one->n_samples == 1 ? ns : smaller(before, ns);
    if (one->n_samples > 1)
        one->calm = is_above(one->best_ns, 100 - CALM_PERCENT, before) ? one->calm + 1 : 0;
    contest->best_ns = smaller(contest->best_ns, ns);
    if (ns < contest->rules.least_ns) {
        contest->refuted = true;
        contest->rules.enough_ns = 0;
    }
    for (uint32_t i = 0; i < one->n_samples; i++)
        quick += one->samples[i] <= contest->rules.enough_ns;
    contest->enough = contest->enough || quick >= CONTEST_ENOUGH;
    contest->over = contest->over || contest->enough;
}

void contest_took(struct contest *contest, const struct contest_turn *turn, uint64_t ns)
{
    struct contestant *one = &contest->list[turn->candidate];
    const bool late = turn->limit_ns && ns > turn->limit_ns;

    one->n_late = late ? one->n_late + 1 : 0;
    if (one->n_late == MAX_LATE)
        one->state = CONTEST_OUT;
    if (turn->is_warm_up)
        one->warm = true;
    else if (!late)
        take_sample(contest, one, ns ? ns : 1);
    spend(contest, one, ns);
    if (!turn->is_warm_up && !goes_on(contest, one))
        contest->next++;
}

void contest_failed(struct contest *contest, const struct contest_turn *turn)
{
    contest->list[turn->candidate].state = CONTEST_FAILED;
}

/* ---- the result ---- */

static int by_value(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* The first sample may have filled caches, and is left out where there are three. */
uint64_t contest_score(const struct contestant *one)
{
    const uint32_t from = one->n_samples >= 3, n = one->n_samples - from;
    uint64_t sorted[CONTEST_SAMPLES];

    if (one->state == CONTEST_FAILED || one->n_samples == 0)
        return UINT64_MAX;
    memcpy(sorted, one->samples + from, n * sizeof(*sorted));
    qsort(sorted, n, sizeof(*sorted), by_value);
    return (sorted[0] * 4 + sorted[(n - 1) / 2]) / 5;
}

/* Of those whose scores are within EQUAL_PERCENT of the best that is left the first comes next. */
static uint32_t best_of(const struct contest *contest, const uint32_t *ranking, uint32_t n)
{
    uint64_t best = UINT64_MAX;

    for (int round = 0; round < 2; round++)
        for (uint32_t i = 0; i < contest->count; i++) {
            const uint64_t score = contest_score(&contest->list[i]);
            bool taken = score == UINT64_MAX;

            for (uint32_t k = 0; k < n && !taken; k++)
                taken = ranking[k] == i;
            if (taken)
                continue;
            if (round && !is_above(score, 100 + EQUAL_PERCENT, best))
                return i;
            best = !round && score < best ? score : best;
        }
    return UINT32_MAX;
}

uint32_t contest_rank(const struct contest *contest, uint32_t *ranking)
{
    uint32_t n = 0, next;

    while (n < contest->count && (next = best_of(contest, ranking, n)) != UINT32_MAX)
        ranking[n++] = next;
    return n;
}
