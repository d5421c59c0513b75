/* SPDX-License-Identifier: Apache-2.0 */
/* A script is played with no plans known, again with its own plans known, with other sizes and
 * scalars, and with fewer deaths (the known plans almost fit); then comes the script of the next
 * seed, to which the known plans are foreign.
 *
 * With --shapes seeds are repeated in rounds, on devices that stay open and have the plans and code
 * of earlier rounds: each round draws new data and scalars, but sizes, layouts and deaths take only
 * a few different forms. */
#include "seeds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SHRINK_SECONDS = 60 };

static uint32_t form_of(const struct scripts *scripts)
{
    return scripts->round % (scripts->large ? SCRIPT_LARGE : SEED_FORMS);
}

/* The same ops, but about half of the takes and releases do not happen. */
static void lengthen_lives(struct scripts *scripts)
{
    struct script *longer = &scripts->longer;

    *longer = scripts->own;
    for (uint32_t i = 0; i < longer->n_actions; i++) {
        struct action *action = &longer->actions[i];
        struct chance chance = {(longer->seed + form_of(scripts)) ^ (uint64_t)i << 32};

        if (action->kind == ACT_RELEASE && chance_of(&chance, 50))
            action->off = true;
        for (uint32_t k = 0; k < action->n_in && action->kind == ACT_OP; k++)
            action->in[k].take &= chance_of(&chance, 50);
    }
    script_settle(longer, scripts->longer_left);
}

static void settle(struct scripts *scripts)
{
    script_settle(&scripts->own, scripts->own_left);
    lengthen_lives(scripts);
    script_settle(&scripts->foreign, scripts->foreign_left);
}

void scripts_generate(struct scripts *scripts)
{
    script_generate(&scripts->own, scripts->seed, scripts->well_conditioned);
    if (!scripts->repeated)
        script_generate(&scripts->foreign, scripts->seed + 1, scripts->well_conditioned);
    settle(scripts);
}

/* ---- sessions ---- */

/* Each play has a play of its own on the measure. */
static void measure_each(struct session *session)
{
    session->n_measures = session->n_plays;
    for (uint32_t k = 0; k < session->n_plays; k++) {
        session->measures[k] = session->plays[k];
        session->plays[k].measure = k;
    }
}

/* The script with fewer deaths reads everything that the script itself reads, and more.  So one
 * play of it on the measure serves both. */
static void measure_longer(struct session *session, uint32_t longer)
{
    for (uint32_t k = 0; k < session->n_plays; k++) {
        struct session_play *play = &session->plays[k];
        bool same = play->script->seed == session->plays[longer].script->seed &&
                    play->params.variant == session->plays[longer].params.variant;

        if (same) {
            play->measure = 0;
            continue;
        }
        play->measure = session->n_measures;
        session->measures[session->n_measures++] = *play;
    }
}

static void session_of_seed(const struct scripts *scripts, struct session *session)
{
    uint32_t first = scripts->large ? SCRIPT_VARIANTS : 0;
    uint32_t other =
        scripts->large ? first + 1 : 1 + (uint32_t)scripts->seed % (SCRIPT_VARIANTS - 1);
    const struct play_params params = {.variant = first}, sizes = {.variant = other};

    *session = (struct session){
        .plays = {{&scripts->own, scripts->own_left, params, "empty store", 0},
                  {&scripts->own, scripts->own_left, params, "filled store", 0},
                  {&scripts->own, scripts->own_left, sizes, "other sizes", 0},
                  {&scripts->longer, scripts->longer_left, params, "fewer deaths", 0},
                  {&scripts->foreign, scripts->foreign_left, params, "foreign store", 0}},
        .n_plays = 5};
}

static void session_of_round(const struct scripts *scripts, struct session *session)
{
    uint32_t form = form_of(scripts);
    const struct play_params params = {.variant = form + (scripts->large ? SCRIPT_VARIANTS : 0),
                                       .round = scripts->round,
                                       .layouts = true};

    *session = (struct session){
        .plays = {{&scripts->own, scripts->own_left, params, "all deaths", 0},
                  {&scripts->longer, scripts->longer_left, params, "fewer deaths", 0}},
        .n_plays = 2};
}

void scripts_session(const struct scripts *scripts, bool near, struct session *session)
{
    if (scripts->repeated)
        session_of_round(scripts, session);
    else
        session_of_seed(scripts, session);
    session->seed = 7 + scripts->round;
    if (!near) {
        measure_each(session);
        return;
    }
    for (uint32_t k = 0; k < session->n_plays; k++)
        if (session->plays[k].script == &scripts->longer) {
            session->measures[session->n_measures++] = session->plays[k];
            measure_longer(session, k);
            break;
        }
}

/* ---- shrinking ---- */

static bool still_differs(struct tester *tester, const struct session *session, uint32_t attempts)
{
    struct difference difference;

    for (uint32_t k = 0; k < attempts; k++)
        if (session_run(tester, session, &difference) && difference.play)
            return true;
    return false;
}

/* Turns off as many actions as it can without losing the difference, in shorter and shorter runs.
 */
static void shrink(struct tester *tester, const struct session *session, struct scripts *scripts,
                   struct script *script)
{
    struct script *before = malloc(sizeof(*before));
    time_t end = time(NULL) + SHRINK_SECONDS;

    for (uint32_t run = script->n_actions / 2; before && run >= 1; run /= 2)
        for (uint32_t at = 0; at < script->n_actions && time(NULL) < end; at += run) {
            uint32_t dropped = 0;

            *before = *script;
            for (uint32_t i = at; i < at + run && i < script->n_actions; i++) {
                dropped += !script->actions[i].off;
                script->actions[i].off = true;
            }
            if (dropped == 0)
                continue;
            settle(scripts);
            if (still_differs(tester, session, script->n_threads ? 5 : 1))
                continue;
            *script = *before;
            settle(scripts);
        }
    free(before);
}

void scripts_report(struct scripts *scripts, struct tester *tester, struct session *session)
{
    struct difference difference, last;

    session_run(tester, session, &difference);
    if (difference.script == &scripts->foreign)
        shrink(tester, session, scripts, &scripts->foreign);
    shrink(tester, session, scripts, &scripts->own);
    for (uint32_t k = 0; k < 20; k++) {
        session_run(tester, session, &last);
        if (last.play) {
            difference = last;
            break;
        }
    }
    printf("equiv: seed %llu differs in the play '%s': %s\n", (unsigned long long)scripts->own.seed,
           difference.play ? difference.play : "(it did not differ again)", difference.text);
    script_print(difference.script ? difference.script : &scripts->own, difference.variant);
}
