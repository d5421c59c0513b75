/* SPDX-License-Identifier: Apache-2.0 */
/* What is played of a seed, and the shortest script that shows a difference. */
#ifndef EQUIV_SEEDS_H
#define EQUIV_SEEDS_H

#include "session.h"

/* Assignments of extents, inputs' layouts and deaths in which a script comes again. */
enum { SEED_FORMS = SCRIPT_VARIANTS };

struct scripts {
    uint64_t seed;
    uint32_t round;        /* how often the seed came before */
    bool again, large;     /* seeds come again; large tensors */
    bool well_conditioned; /* see script_generate */
    struct script own, longer, foreign;
    uint8_t own_left[SCRIPT_VARS], longer_left[SCRIPT_VARS], foreign_left[SCRIPT_VARS];
};

/* Makes the scripts of `scripts->seed`. */
void scripts_generate(struct scripts *scripts);
/* How they are played. */
void scripts_session(const struct scripts *scripts, bool near, struct session *session);
/* A session of these scripts differs: prints it with a script of which nothing can be left out. */
void scripts_report(struct scripts *scripts, struct tester *tester, struct session *session);

#endif
