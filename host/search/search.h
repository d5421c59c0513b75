/* SPDX-License-Identifier: Apache-2.0 */
/* The search for new plans: which ops run together, in which order.
 *
 * Ops of a relative segment are put into blocks that share values; blocks are fed to clones of the
 * device's fusers; the best fuser of each block makes its program.  A pure function of the op
 * sequence with its deaths: no size, no time, no address enters.  Plugin code is called, so no lock
 * of the host is held.  Threads: one at a time per search. */
#ifndef SEARCH_SEARCH_H
#define SEARCH_SEARCH_H

#include <stdatomic.h>

#include <frit/fuser.h>

#include "plan/plan.h"

/* A fuser of a plugin for one device. */
struct fuser {
    const frit_fuser_table *table;
    void *prototype;
    char name[48];   /* "map" */
    char plugin[48]; /* id */
    uint32_t version;
    void *instance;
    const frit_fuser_device *device; /* what the plugin was told of it */
    atomic_bool warned;              /* of what is wrong with it */
};

struct search_config {
    struct fuser *fusers; /* in order of preference over all plugins */
    uint32_t n_fusers;
    uint32_t max_blocks; /* fusion.max_blocks */
};

struct search;

frit_status search_create(const struct search_config *config, struct search **out, frit_err *err);
void search_destroy(struct search *search);
/* Forgets all ops, keeps the memory. */
void search_reset(struct search *search);

/* Takes the ops of `relative` that it has not seen yet, in order, until it stops.  Deaths that came
 * later for ops already seen are looked at again.  `relative` only grows between calls and lives
 * until reset.  After a failure, and after finish, only reset and destroy are left. */
frit_status search_push(struct search *search, const struct relative *relative, frit_err *err);
/* Whether more ops could change what finish finds for the first ones: false = run what is there. */
bool search_open(const struct search *search);

/* The blocks in a valid order.  Without `all`: over the first *n_ops ops, as many as the search
 * covers (at least 1); the rest stays for the next search.  With `all`: over every op of
 * `relative`, searching again over what is left as often as needed.  The array and the op lists
 * live until reset or destroy; programs hold one reference each for the caller, who gives them back
 * when plan_create has taken its own.  `relative` has at least one op; its ops that were not pushed
 * yet are now.  On failure there are no blocks. */
frit_status search_finish(struct search *search, const struct relative *relative, bool all,
                          const struct plan_block **blocks, uint32_t *n_blocks, uint32_t *n_ops,
                          frit_err *err);

struct search_stats {
    uint64_t pushes;   /* ops given to fusers */
    uint64_t merges;   /* blocks merged */
    uint64_t holes;    /* ops given up by a block and searched again */
    uint64_t repairs;  /* fusions given up because they depended on each other */
    uint64_t in_order; /* segments left in program order, since the simulation found a fault */
    uint64_t dropped;  /* fusers that broke their contract, once per block */
};
void search_stats(const struct search *search, struct search_stats *out);
/* Whether a fuser was left out since the last reset because it failed: another search over the same
 * ops may find more. */
bool search_is_flawed(const struct search *search);

#endif
