/* SPDX-License-Identifier: Apache-2.0 */
/* The plays of a seed, and the search for the shortest script that shows a difference. */
#ifndef EQUIV_SEEDS_H
#define EQUIV_SEEDS_H

#include "session.h"

/* How many assignments of extents, layouts of inputs and deaths the rounds of a script have. */
enum { SEED_FORMS = SCRIPT_VARIANTS };

struct scripts {
    uint64_t seed;
    uint32_t round;        /* how often the seed was played before */
    bool repeated, large;  /* seeds are played in rounds; tensors are large */
    bool well_conditioned; /* see script_generate */
    struct script own, longer, foreign;
    uint8_t own_left[SCRIPT_VARS], longer_left[SCRIPT_VARS], foreign_left[SCRIPT_VARS];
};

/* Makes the scripts of `scripts->seed`. */
void scripts_generate(struct scripts *scripts);
/* How they are played. */
void scripts_session(const struct scripts *scripts, bool near, struct session *session);
/* Reports that a session of these scripts differs: shrinks the scripts as far as the difference
 * stays, and prints it with the shrunk script. */
void scripts_report(struct scripts *scripts, struct tester *tester, struct session *session);

#endif
