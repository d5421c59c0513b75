/* SPDX-License-Identifier: Apache-2.0 */
/* A collective engine inside the test: groups of one rank, whose all_reduce copies.  It logs its
 * calls, and the test sets which of them fail and how. */
#ifndef TESTS_RUN_ENGINE_H
#define TESTS_RUN_ENGINE_H

#include <stdbool.h>

#include <frit/frit.h>

#include "unit.h"

#include "run/rank.h"

struct engine {
    /* Set by the test. */
    uint64_t skip;            /* begin returns values that are larger than they should be by this */
    frit_status begin_status; /* that the next begin returns */
    frit_status wait_status;  /* that the next wait returns */
    void (*on_begin)(struct engine *engine);
    void (*on_wait)(struct engine *engine); /* both on the rank's thread */
    void *ctx;                              /* for them */
    /* Log. */
    float first_elements[64]; /* element 0 of the operand, per operation */
    uint32_t n_begun, n_waits, n_aborts;
    bool abort_seen;                   /* wait was called after an abort */
    char why[496];                     /* reason of the last abort */
    const void *last_from, *last_into; /* of the last operation */

    uint64_t issued;
    frit_collective_table table;
    struct frit_rank *rank;
};

/* Makes the calling thread's stream on the device a rank of group 0. */
void engine_join(struct engine *engine, frit_device *device);
/* Ends that.  Not needed before frit_device_close, which does the same. */
void engine_leave(struct engine *engine);

#endif
