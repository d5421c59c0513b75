/* SPDX-License-Identifier: Apache-2.0 */
/* Near sessions play the measure (the device of --near) no more often than needed: a reading within
 * 3 units in the last place of the one in its own type passes without the others, and each further
 * play can only widen the tolerance (play_compare_near).  So the plays of the measure, in the own
 * type, in f64, in f64 with errors and with more errors, stop as soon as no side differs. */
#include "session.h"

#include <stdio.h>
#include <stdlib.h>

#include <frit/inspect.h>

/* How far a measured play has gone, as the number of its plays. */
enum { IN_OWN = 1, IN_F64 = 2, WITH_ERRORS = 3, WITH_MORE = 2 + PLAY_ERRORS };

struct outcome {
    struct play sides[MAX_SIDES][SESSION_PLAYS];
    struct play measured[SESSION_PLAYS][WITH_MORE];
    uint32_t n_measured[SESSION_PLAYS];
};

/* ---- plays ---- */

static bool open_side(struct side *side)
{
    frit_err err = {.struct_size = sizeof(err)};
    if (side->opened || frit_device_open(side->host, side->device, &side->opened, &err) == FRIT_OK)
        return true;
    fprintf(stderr, "equiv: %s\n", err.text);
    return false;
}

static void close_side(struct side *side)
{
    frit_device_close(side->opened);
    side->opened = NULL;
}

/* What a device counted while `side` played. */
static void count(struct side *side, const frit_stats *before)
{
    frit_stats now = {.struct_size = sizeof(now)};

    frit_stats_get(side->opened, &now);
    side->launches += now.launches - before->launches;
    side->explorations += now.explorations - before->explorations;
}

/* Near plays draw the same numbers wherever they stand in a session. */
static void seed_play(const struct tester *tester, const struct session *session, frit_host *host,
                      uint32_t measure)
{
    if (tester->near)
        frit_seed(host, session->seed + measure);
}

static bool run_side(struct tester *tester, uint32_t number, const struct session *session,
                     struct outcome *outcome)
{
    struct side *side = &tester->sides[number];
    frit_stats before = {.struct_size = sizeof(before)};

    if (!open_side(side))
        return false;
    frit_stats_get(side->opened, &before);
    frit_seed(side->host, session->seed);
    for (uint32_t k = 0; k < session->n_plays; k++) {
        const struct session_play *play = &session->plays[k];

        seed_play(tester, session, side->host, play->measure);
        play_script(&outcome->sides[number][k], side->opened, play->script, &play->params,
                    play->left);
    }
    tester->plays += session->n_plays;
    count(side, &before);
    if (!side->stays)
        close_side(side);
    return true;
}

/* Plays measure `m` once more, in the next of its types. */
static void measure_next(struct tester *tester, const struct session *session, uint32_t m,
                         struct outcome *outcome)
{
    static const enum play_precision precisions[] = {PLAY_OWN, PLAY_WIDE, PLAY_DISTURBED};
    const struct session_play *play = &session->measures[m];
    uint32_t number = outcome->n_measured[m]++;
    struct play_params params = play->params;
    frit_stats before = {.struct_size = sizeof(before)};
    struct side *side = &tester->measure;

    params.precision = precisions[number < 2 ? number : 2];
    params.errors = number < 2 ? 0 : number - 2;
    frit_stats_get(side->opened, &before);
    seed_play(tester, session, side->host, m);
    play_script(&outcome->measured[m][number], side->opened, play->script, &params, play->left);
    if (number == 0)
        count(side, &before);
}

static bool run_measure(struct tester *tester, const struct session *session,
                        struct outcome *outcome)
{
    if (!open_side(&tester->measure))
        return false;
    frit_seed(tester->measure.host, session->seed);
    for (uint32_t m = 0; m < session->n_measures; m++)
        measure_next(tester, session, m, outcome);
    if (!tester->measure.stays)
        close_side(&tester->measure);
    return true;
}

static void end_outcome(const struct session *session, struct outcome *outcome)
{
    for (uint32_t k = 0; k < session->n_plays; k++)
        for (uint32_t side = 0; side < MAX_SIDES; side++)
            play_fini(&outcome->sides[side][k], session->plays[k].script);
    for (uint32_t m = 0; m < session->n_measures; m++)
        for (uint32_t i = 0; i < outcome->n_measured[m]; i++)
            play_fini(&outcome->measured[m][i], session->measures[m].script);
    free(outcome);
}

/* ---- comparison ---- */

static void set_difference(struct difference *difference, const char *side, const char *other,
                           const char *what)
{
    difference->play = "";
    snprintf(difference->text, sizeof(difference->text), "%s%s%s: %s", side,
             other ? " beside " : "", other ? other : "", what);
}

/* Something went wrong beside the values. */
static bool compare_faults(const struct tester *tester, const struct session *session,
                           const struct outcome *outcome, uint32_t k, struct difference *difference)
{
    uint32_t m = session->plays[k].measure;

    if (outcome->measured[m][0].fault)
        set_difference(difference, tester->measure.name, NULL, outcome->measured[m][0].text);
    for (uint32_t side = 0; side < tester->n_sides && !difference->play; side++)
        if (outcome->sides[side][k].fault)
            set_difference(difference, tester->sides[side].name, NULL,
                           outcome->sides[side][k].text);
    return !difference->play;
}

static bool is_near(struct tester *tester, const struct session *session,
                    const struct outcome *outcome, uint32_t k, char *text, size_t size)
{
    const struct session_play *play = &session->plays[k];
    const struct play *measured = outcome->measured[play->measure];
    uint32_t n = outcome->n_measured[play->measure];
    struct play_near near = {.own = &measured[0],
                             .wide = n > 1 ? &measured[1] : NULL,
                             .n_disturbed = n > 2 ? n - 2 : 0,
                             .other = &outcome->sides[0][k]};
    struct play_seen seen = tester->seen;

    for (uint32_t i = 0; i < n; i++)
        if (measured[i].fault) {
            snprintf(text, size, "%s", measured[i].text);
            return false;
        }
    for (uint32_t e = 0; e < near.n_disturbed; e++)
        near.disturbed[e] = &measured[2 + e];
    if (!play_compare_near(play->script, play->params.variant, &near, &seen, text, size))
        return false;
    tester->seen = seen;
    return true;
}

/* The first side beside the measure. */
static void compare_near(struct tester *tester, const struct session *session,
                         struct outcome *outcome, uint32_t k, struct difference *difference)
{
    static const uint32_t next[] = {IN_OWN, IN_F64, WITH_ERRORS};
    uint32_t m = session->plays[k].measure, least = tester->all_types ? WITH_ERRORS : IN_OWN;
    char text[700];

    while (outcome->n_measured[m] < least)
        measure_next(tester, session, m, outcome);
    while (!is_near(tester, session, outcome, k, text, sizeof(text))) {
        uint32_t n = outcome->n_measured[m], to = n < WITH_ERRORS ? next[n] : WITH_MORE;

        if (n == WITH_MORE) {
            set_difference(difference, tester->sides[0].name, tester->measure.name, text);
            return;
        }
        tester->again += to == WITH_MORE;
        while (outcome->n_measured[m] < to)
            measure_next(tester, session, m, outcome);
    }
}

/* A side beside what it must be bit for bit. */
static void compare_bits(const struct tester *tester, const struct session *session,
                         const struct outcome *outcome, uint32_t side, uint32_t k,
                         struct difference *difference)
{
    const struct session_play *play = &session->plays[k];
    const struct play *like =
        tester->near ? &outcome->sides[0][k] : &outcome->measured[play->measure][0];
    char text[700];

    if (!play_compare(play->script, play->params.variant, like, &outcome->sides[side][k], text,
                      sizeof(text)))
        set_difference(difference, tester->sides[side].name,
                       tester->near ? tester->sides[0].name : tester->measure.name, text);
}

static void compare_session(struct tester *tester, const struct session *session,
                            struct outcome *outcome, struct difference *difference)
{
    *difference = (struct difference){.play = NULL};
    for (uint32_t k = 0; k < session->n_plays; k++) {
        bool good = compare_faults(tester, session, outcome, k, difference);

        if (good && tester->near)
            compare_near(tester, session, outcome, k, difference);
        for (uint32_t side = tester->near; good && side < tester->n_sides; side++)
            if (!difference->play)
                compare_bits(tester, session, outcome, side, k, difference);
        if (!difference->play)
            continue;
        difference->play = session->plays[k].name;
        difference->variant = session->plays[k].params.variant;
        difference->script = session->plays[k].script;
        return;
    }
}

bool session_run(struct tester *tester, const struct session *session,
                 struct difference *difference)
{
    struct outcome *outcome = calloc(1, sizeof(*outcome));
    bool ran = outcome && run_measure(tester, session, outcome);

    *difference = (struct difference){.play = NULL};
    for (uint32_t side = 0; side < tester->n_sides && ran; side++)
        ran = run_side(tester, side, session, outcome);
    if (ran)
        compare_session(tester, session, outcome, difference);
    if (outcome)
        end_outcome(session, outcome);
    return ran;
}

void session_close(struct tester *tester)
{
    close_side(&tester->measure);
    for (uint32_t side = 0; side < tester->n_sides; side++)
        close_side(&tester->sides[side]);
}
