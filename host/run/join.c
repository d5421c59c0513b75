/* SPDX-License-Identifier: Apache-2.0 */
#include "run/join.h"

#include <stdlib.h>

#include "device/device.h"
#include "plan/plan.h"
#include "record/segment.h"
#include "record/stream.h"

enum {
    RUNS = 64,         /* that are kept: the longest period */
    SEQUENCES = 8,     /* of one stream */
    MAX_FAILURES = 16, /* then a sequence is not joined again */
    MAX_UNBOUND = 64   /* runs as one that are no replays, in turn */
};

/* One run of the stream.  Plan 0: it was not a replay, and equals no other. */
struct past_run {
    uint64_t plan;     /* serial */
    const void *bound; /* may be gone */
    uint32_t n_calls;
    bool drained; /* behind it */
};

struct sequence {
    uint64_t plan;    /* serial of the first one */
    uint32_t first;   /* ops matched where the first one was found */
    uint32_t n_calls; /* of all */
    bool drained;     /* behind the last one */
    bool joined;
    bool learnt;       /* it ran as one */
    uint32_t failures; /* runs of it that turned out to be something else */
    uint32_t unbound;  /* runs as one since the last replay */
};

struct plan_join {
    struct past_run runs[RUNS];
    uint64_t n_runs;
    /* repeats[n - 1]: how many runs up to the last one were each equal to the n-th before it. */
    uint64_t repeats[RUNS];
    struct past_run last; /* not in `runs` yet: a drain may follow */
    bool has_last;
    struct sequence sequences[SEQUENCES];
    uint32_t n_sequences;
};

void join_destroy(struct plan_join *join)
{
    free(join);
}

static bool is_wanted(const frit_device *device)
{
    return device->capture && !(device->info->caps & FRIT_CAP_INLINE_QUEUE);
}

/* ---- sequences ---- */

static struct sequence *find(struct plan_join *join, uint64_t plan)
{
    for (uint32_t i = 0; i < join->n_sequences; i++) {
        if (join->sequences[i].plan == plan)
            return &join->sequences[i];
    }
    return NULL;
}

/* One for this first plan; where there are as many as there may be, one that is not joined goes. */
static struct sequence *sequence_for(struct plan_join *join, uint64_t plan)
{
    struct sequence *found = find(join, plan);

    if (found)
        return found;
    if (join->n_sequences < SEQUENCES)
        found = &join->sequences[join->n_sequences++];
    for (uint32_t i = 0; i < SEQUENCES && !found; i++) {
        if (!join->sequences[i].joined)
            found = &join->sequences[i];
    }
    if (found)
        *found = (struct sequence){.plan = plan};
    return found;
}

static void fail(struct sequence *sequence)
{
    sequence->failures += sequence->joined;
    sequence->joined = sequence->learnt = false;
}

/* ---- what was run ---- */

static struct past_run *run_before(struct plan_join *join, uint64_t n)
{
    return &join->runs[(join->n_runs - n) % RUNS];
}

static bool same_run(const struct past_run *a, const struct past_run *b)
{
    return a->plan && a->plan == b->plan && a->bound == b->bound && a->drained == b->drained;
}

static uint32_t shortest_period(const struct plan_join *join)
{
    for (uint32_t n = 1; n <= RUNS; n++) {
        if (join->repeats[n - 1] >= (uint64_t)(JOIN_PERIODS - 1) * n)
            return n;
    }
    return 0;
}

/* The last runs that belong together: the period, or, where that has drains, those since the one
 * before the last. */
static uint32_t count_parts(struct plan_join *join, uint32_t period)
{
    bool drains = false;

    for (uint32_t n = 1; n <= period; n++) {
        if (n > 1 && run_before(join, n)->drained)
            return run_before(join, 1)->drained ? n - 1 : 0;
        drains |= run_before(join, n)->drained;
    }
    return drains && !run_before(join, 1)->drained ? 0 : period;
}

static void add_sequence(struct plan_join *join, uint32_t period, uint32_t n_parts,
                         uint64_t max_ops)
{
    const struct past_run *first = run_before(join, n_parts);
    struct sequence *sequence;
    uint64_t n_calls = 0;

    for (uint32_t n = 1; n <= n_parts; n++)
        n_calls += run_before(join, n)->n_calls;
    if (n_parts < 2 || n_calls >= max_ops || n_calls > JOIN_MAX_OPS)
        return;
    sequence = sequence_for(join, first->plan);
    if (!sequence || sequence->failures >= MAX_FAILURES || sequence->joined ||
        join->repeats[period - 1] < ((uint64_t)(JOIN_PERIODS - 1) * period) << sequence->failures)
        return;
    *sequence = (struct sequence){.plan = first->plan,
                                  .n_calls = (uint32_t)n_calls,
                                  .drained = run_before(join, 1)->drained,
                                  .joined = true,
                                  .failures = sequence->failures};
}

/* The last run has its end. */
static void push(struct stream *stream)
{
    struct plan_join *join = stream->plan_join;
    uint32_t period;

    if (!join->has_last)
        return;
    for (uint32_t n = 1; n <= RUNS; n++) {
        bool same = n <= join->n_runs && same_run(&join->last, run_before(join, n));

        join->repeats[n - 1] = same ? join->repeats[n - 1] + 1 : 0;
    }
    join->runs[join->n_runs++ % RUNS] = join->last;
    join->has_last = false;
    period = shortest_period(join);
    if (period)
        add_sequence(join, period, count_parts(join, period),
                     (uint64_t)stream->device->config.max_ops);
}

/* A segment that was joined ran as one. */
static void note_joined(struct sequence *sequence, uint32_t n_calls, uint64_t plan)
{
    if (!sequence->joined || n_calls != sequence->n_calls)
        return;
    sequence->learnt = true;
    sequence->unbound = plan ? 0 : sequence->unbound + 1;
    if (sequence->unbound == MAX_UNBOUND)
        fail(sequence);
}

void join_note_run(struct stream *stream, const struct segment *segment, uint32_t n_calls,
                   uint64_t plan)
{
    struct plan_join *join = stream->plan_join;

    if (!is_wanted(stream->device))
        return;
    if (!join)
        join = stream->plan_join = calloc(1, sizeof(*join));
    if (!join)
        return;
    push(stream);
    join->has_last = true;
    join->last =
        (struct past_run){.plan = plan, .bound = segment->last_bound_plan, .n_calls = n_calls};
    if (segment->joined_sequence)
        note_joined(&join->sequences[segment->joined_sequence - 1], n_calls, plan);
}

void join_note_drain(struct stream *stream)
{
    struct plan_join *join = stream->plan_join;

    if (!join)
        return;
    join->last.drained = true;
    push(stream);
}

/* ---- recording on ---- */

/* A plan is found: whether a sequence begins with it. */
static enum join_step begin(struct stream *stream, const struct plan *plan)
{
    struct segment *segment = stream->segment;
    struct sequence *sequence = find(stream->plan_join, plan->serial);

    if (!sequence || !sequence->joined || segment->n_matched >= sequence->n_calls)
        return JOIN_NONE;
    sequence->first = segment->n_matched;
    segment->joined_sequence = (uint32_t)(sequence - stream->plan_join->sequences) + 1;
    return JOIN_GO_ON;
}

/* Inside one.  The first time it is whatever comes; later ones come the same way.  A sequence that
 * runs as one plan may be part of another. */
static enum join_step go_on(struct stream *stream, const struct sequence *sequence,
                            enum lazy_kind kind, const struct plan *plan)
{
    const struct segment *segment = stream->segment;

    if (!sequence->joined)
        return JOIN_GIVE_UP;
    if (segment->n_matched < sequence->n_calls) {
        if (kind == LAZY_UNKNOWN && sequence->learnt)
            return JOIN_GIVE_UP;
        if (kind == LAZY_UNKNOWN)
            walker_set_lazy(&stream->walker, NULL);
        return JOIN_GO_ON;
    }
    if (sequence->drained || segment->n_matched > sequence->n_calls || kind == LAZY_GO_ON)
        return JOIN_GIVE_UP;
    return kind == LAZY_RUN ? begin(stream, plan) : JOIN_ALL;
}

enum join_step join_step(struct stream *stream, enum lazy_kind kind, const struct plan *plan)
{
    struct segment *segment = stream->segment;
    struct sequence *sequence;

    if (!stream->plan_join)
        return JOIN_NONE;
    sequence = segment->joined_sequence
                   ? &stream->plan_join->sequences[segment->joined_sequence - 1]
                   : NULL;
    if (sequence && segment->n_matched > sequence->first)
        return go_on(stream, sequence, kind, plan);
    if (kind == LAZY_RUN || (sequence && segment->n_matched == sequence->first))
        segment->joined_sequence = 0; /* it came another way */
    return kind == LAZY_RUN ? begin(stream, plan) : JOIN_NONE;
}

void join_rematch(struct stream *stream)
{
    struct segment *segment = stream->segment;

    if (segment->joined_sequence)
        fail(&stream->plan_join->sequences[segment->joined_sequence - 1]);
    segment->joined_sequence = 0;
    for (uint32_t i = 0; i < segment->n_ops; i++)
        segment->ops[i]->search_continues = false;
    segment->n_matched = segment->n_confirmed = 0;
    segment->n_predicted = 0;
    segment->on_prediction = false;
    walker_restart(&stream->walker);
}
