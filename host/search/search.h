/* SPDX-License-Identifier: Apache-2.0 */
/* The search for new plans: which ops run together, and in which order.
 *
 * Ops of a relative segment are grouped into blocks that share values and pushed to clones of the
 * device's fusers; the best fuser of each block makes its program.  The result is a pure function
 * of the ops and their deaths: it depends on no size, time or address.  Since plugins are called,
 * the caller must hold no lock.  One thread at a time per search. */
#ifndef SEARCH_SEARCH_H
#define SEARCH_SEARCH_H

#include <stdatomic.h>
#include <stdbool.h>

#include <frit/fuser.h>

#include "plan/plan.h"

/* A plugin's fuser for one device. */
struct fuser {
    const frit_fuser_table *table;
    void *prototype;
    char name[48];   /* "map" */
    char plugin[48]; /* id */
    uint32_t version;
    void *instance;
    const frit_fuser_device *device; /* the device as the plugin sees it */
    atomic_bool warned;              /* a fault was logged */
};

struct search_config {
    struct fuser *fusers; /* in order of preference */
    uint32_t n_fusers;
    uint32_t max_blocks; /* fusion.max_blocks */
};

struct search;

frit_status search_create(const struct search_config *config, struct search **out, frit_err *err);
void search_destroy(struct search *search);
/* Removes all ops, keeping the memory. */
void search_reset(struct search *search);

/* Takes the new ops of `relative` in order, until the pass stops.  Deaths that were added to
 * earlier ops are considered.  Until reset `relative` must live and may only grow.  After a
 * failure, and after search_finish, only reset and destroy are allowed. */
frit_status search_push(struct search *search, const struct relative *relative, frit_err *err);
/* Whether more ops could change the result for the first ones; false: finish now. */
bool search_open(const struct search *search);

/* Returns the blocks in a valid order; takes ops that were not pushed yet.  Without `all` they
 * cover the first *n_ops ops (at least 1), and the rest is left to the next search; with `all` they
 * cover every op of `relative`, which is searched range by range.  `relative` must have an op.  The
 * array and the lists live until reset or destroy; the caller gets a reference to each program, to
 * be released after plan_create, which takes its own.  After a failure there are no blocks. */
frit_status search_finish(struct search *search, const struct relative *relative, bool all,
                          const struct plan_block **blocks, uint32_t *n_blocks, uint32_t *n_ops,
                          frit_err *err);

struct search_stats {
    uint64_t pushes;   /* ops pushed to fusers */
    uint64_t merges;   /* merged blocks */
    uint64_t holes;    /* ops that a block's program did not cover and that were searched again */
    uint64_t repairs;  /* programs split because of cyclic dependencies */
    uint64_t in_order; /* segments run in program order, because the simulation found a fault */
    uint64_t dropped;  /* fusers dropped for violating their contract, once per block */
};
void search_stats(const struct search *search, struct search_stats *out);
/* Whether a fuser was dropped since the last reset: another search over the same ops may find more.
 */
bool search_is_flawed(const struct search *search);

#endif
