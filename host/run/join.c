/* SPDX-License-Identifier: Apache-2.0 */
#include "run/join.h"

#include <stdlib.h>

#include "device/device.h"
#include "plan/plan.h"
#include "record/segment.h"
#include "record/stream.h"

enum {
    RUNS = 64,         /* runs that are remembered; also the longest period */
    SEQUENCES = 8,     /* per stream */
    MAX_FAILURES = 16, /* after this many a sequence is never joined again */
    MAX_UNBOUND = 64   /* consecutive joined runs without a replay, after which joining stops */
};

/* One run of the stream. */
struct past_run {
    uint64_t plan_serial; /* 0: the run was not a replay, and is never the same as another */
    const void *bound;    /* its bound plan, for comparison only: may have been freed */
    uint32_t n_calls;
    bool drained; /* a drain followed */
};

struct sequence {
    uint64_t first_plan;      /* serial of its first plan */
    uint32_t n_first_matched; /* ops that were matched when the first plan was found */
    uint32_t n_calls;         /* ops of all its plans */
    bool drained;             /* a drain follows the last plan */
    bool joined;
    bool learnt;       /* it was joined and ran as one plan: the trie knows the way to its end */
    uint32_t failures; /* times it was joined and other ops came */
    uint32_t unbound;  /* joined runs since the last one that was a replay */
};

struct plan_join {
    struct past_run runs[RUNS];
    uint64_t n_runs;
    /* repeats[n - 1]: how many of the latest runs, without a gap, are each the same as the run n
     * before it. */
    uint64_t repeats[RUNS];
    struct past_run last; /* not in `runs` yet, since a drain may still follow */
    bool has_last;
    struct sequence sequences[SEQUENCES];
    uint32_t n_sequences;
};

void join_destroy(struct plan_join *join)
{
    free(join);
}

static bool replays_are_recorded(const frit_device *device)
{
    return device->capture && !(device->info->caps & FRIT_CAP_INLINE_QUEUE);
}

/* ---- sequences ---- */

static struct sequence *find_sequence(struct plan_join *join, uint64_t plan)
{
    for (uint32_t i = 0; i < join->n_sequences; i++) {
        if (join->sequences[i].first_plan == plan)
            return &join->sequences[i];
    }
    return NULL;
}

/* The sequence that begins with this plan, created if needed; when all are in use, it replaces one
 * that is not joined.  NULL: all are joined. */
static struct sequence *sequence_for(struct plan_join *join, uint64_t plan)
{
    struct sequence *found = find_sequence(join, plan);

    if (found)
        return found;
    if (join->n_sequences < SEQUENCES)
        found = &join->sequences[join->n_sequences++];
    for (uint32_t i = 0; i < SEQUENCES && !found; i++) {
        if (!join->sequences[i].joined)
            found = &join->sequences[i];
    }
    if (found)
        *found = (struct sequence){.first_plan = plan};
    return found;
}

static void unjoin(struct sequence *sequence)
{
    sequence->failures += sequence->joined;
    sequence->joined = sequence->learnt = false;
}

/* ---- past runs ---- */

static struct past_run *run_before(struct plan_join *join, uint64_t n)
{
    return &join->runs[(join->n_runs - n) % RUNS];
}

static bool same_run(const struct past_run *a, const struct past_run *b)
{
    return a->plan_serial && a->plan_serial == b->plan_serial && a->bound == b->bound &&
           a->drained == b->drained;
}

static uint32_t shortest_period(const struct plan_join *join)
{
    for (uint32_t n = 1; n <= RUNS; n++) {
        if (join->repeats[n - 1] >= (uint64_t)(JOIN_PERIODS - 1) * n)
            return n;
    }
    return 0;
}

/* How many of the latest runs form the sequence: the whole period, or, if drains fall into it, the
 * runs since the last drain but one, which end at the last.  0: a drain falls into the period, but
 * not at its end. */
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
    sequence = sequence_for(join, first->plan_serial);
    if (!sequence || sequence->failures >= MAX_FAILURES || sequence->joined ||
        join->repeats[period - 1] < ((uint64_t)(JOIN_PERIODS - 1) * period) << sequence->failures)
        return;
    *sequence = (struct sequence){.first_plan = first->plan_serial,
                                  .n_calls = (uint32_t)n_calls,
                                  .drained = run_before(join, 1)->drained,
                                  .joined = true,
                                  .failures = sequence->failures};
}

/* Moves the last run to the past runs: it is known now whether a drain followed.  Adds a sequence
 * if the runs repeat. */
static void push_last_run(struct stream *stream)
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

/* After the run of a segment that was recorded as this sequence. */
static void note_joined(struct sequence *sequence, uint32_t n_calls, uint64_t plan)
{
    if (!sequence->joined || n_calls != sequence->n_calls)
        return;
    sequence->learnt = true;
    sequence->unbound = plan ? 0 : sequence->unbound + 1;
    if (sequence->unbound == MAX_UNBOUND)
        unjoin(sequence);
}

void join_note_run(struct stream *stream, const struct segment *segment, uint32_t n_calls,
                   uint64_t plan)
{
    struct plan_join *join = stream->plan_join;

    if (!replays_are_recorded(stream->device))
        return;
    if (!join)
        join = stream->plan_join = calloc(1, sizeof(*join));
    if (!join)
        return;
    push_last_run(stream);
    join->has_last = true;
    join->last = (struct past_run){
        .plan_serial = plan, .bound = segment->last_bound_plan, .n_calls = n_calls};
    if (segment->joined_sequence)
        note_joined(&join->sequences[segment->joined_sequence - 1], n_calls, plan);
}

void join_note_drain(struct stream *stream)
{
    struct plan_join *join = stream->plan_join;

    if (!join)
        return;
    join->last.drained = true;
    push_last_run(stream);
}

/* ---- recording over the ends of plans ---- */

/* A plan was found: joins the segment if a sequence begins with it. */
static enum join_step begin(struct stream *stream, const struct plan *plan)
{
    struct segment *segment = stream->segment;
    struct sequence *sequence = find_sequence(stream->plan_join, plan->serial);

    if (!sequence || !sequence->joined || segment->n_matched >= sequence->n_calls)
        return JOIN_NONE;
    sequence->n_first_matched = segment->n_matched;
    segment->joined_sequence = (uint32_t)(sequence - stream->plan_join->sequences) + 1;
    return JOIN_GO_ON;
}

/* The segment is inside a sequence.  Until that has run as one plan, any ops are accepted, and the
 * trie learns to go on there; afterwards an unknown node means that other ops came.  A sequence
 * that runs as one plan may be the first part of another. */
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
    if (sequence && segment->n_matched > sequence->n_first_matched)
        return go_on(stream, sequence, kind, plan);
    if (kind == LAZY_RUN || (sequence && segment->n_matched == sequence->n_first_matched))
        segment->joined_sequence = 0; /* set in the last recording; begin decides anew */
    return kind == LAZY_RUN ? begin(stream, plan) : JOIN_NONE;
}

void join_rematch(struct stream *stream)
{
    struct segment *segment = stream->segment;

    if (segment->joined_sequence)
        unjoin(&stream->plan_join->sequences[segment->joined_sequence - 1]);
    segment->joined_sequence = 0;
    for (uint32_t i = 0; i < segment->n_ops; i++)
        segment->ops[i]->search_continues = false;
    segment->n_matched = segment->n_confirmed = 0;
    segment->n_predicted = 0;
    segment->on_prediction = false;
    walker_restart(&stream->walker);
}
