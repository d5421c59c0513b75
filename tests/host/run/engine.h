/* SPDX-License-Identifier: Apache-2.0 */
/* A collective engine inside the test: groups of one rank, whose all_reduce copies; it writes down
 * what it was given, and a script says what goes wrong. */
#ifndef TESTS_RUN_ENGINE_H
#define TESTS_RUN_ENGINE_H

#include <stdbool.h>

#include <frit/frit.h>

#include "unit.h"

#include "run/rank.h"

struct engine {
    /* Script. */
    uint64_t skip;      /* values that begin leaves out */
    frit_status begins; /* of the next begin */
    frit_status waits;  /* of the next wait */
    void (*on_begin)(struct engine *engine);
    void *ctx; /* for on_begin */
    /* What happened. */
    float effects[64]; /* element 0 of each operand */
    uint32_t n_effects, n_waits, n_aborts;
    bool has_let_go;       /* a wait has returned FRIT_ABORTED */
    char why[496];         /* of the last abort */
    const void *last_from; /* of the last operation */

    uint64_t issued;
    frit_collective_table table;
    struct frit_rank *rank;
};

/* Makes the calling thread's stream on the device a rank of group 0. */
void engine_join(struct engine *engine, frit_device *device);
/* frit_device_close does, too. */
void engine_leave(struct engine *engine);

#endif
