/* SPDX-License-Identifier: Apache-2.0 */
/* Saves and loads automata: one SQLite file for all devices.  Rows have a namespace, which names
 * everything that a plan depends on (build of the host, contract version, driver and its build,
 * device fingerprint, fusers with versions).  Incompatible rows are ignored with one debug line; a
 * damaged file is renamed to NAME.damaged and replaced; files of other programs or newer versions
 * of Frit are not touched.  Several processes may use one file: each save adds to the file's
 * contents.
 *
 * Thread-safe; a load and a save of one automaton may run concurrently with its walkers. */
#ifndef PLAN_STORE_H
#define PLAN_STORE_H

#include <stdatomic.h>

#include <frit/fuser.h>

#include "plan/automaton.h"

struct store_fuser {
    const char *plugin; /* id */
    const char *name;
    uint32_t version;
    const frit_fuser_table *table;
    void *instance;
    const frit_fuser_device *device;
};

struct store_context {
    const char *path;  /* of the file; its folder is created */
    const char *space; /* namespace, exact text */
    const struct store_fuser *fusers;
    uint32_t n_fusers;
    uint32_t wait_ms;          /* of a program in all, computing not counted: one load, a background
                                  save that its end meets, one save */
    const atomic_bool *ending; /* see patience.h, of saves; NULL: somebody waits for them */
};

struct store_loaded {
    uint32_t n_plans;    /* answers loaded */
    int64_t days_unused; /* since the last save in this namespace */
};

/* Loads paths and answers, up to half of the automaton's bytes, with saved plans (blob.h), of which
 * those are made that ops lead to; plans of unknown fusers are skipped.  FRIT_OK also if there was
 * nothing to load; fails only if out of memory. */
frit_status store_load(const struct store_context *context, struct automaton *automaton,
                       struct store_loaded *out, frit_err *err);
struct store_saved {
    uint64_t n_nodes; /* nodes whose answers were written, even if the file had them already */
    uint64_t n_rows;  /* rows written */
};

/* Saves the answers since the last save, with the paths to them, in one transaction; if the file
 * has no rows of the namespace, all answers of the newest generation.  A namespace larger than four
 * times the automaton's bytes is cleared first; other namespaces are deleted only after 90 days
 * without use.  A file that cannot be written is not a failure; its answers are saved next time.
 * Fails only if out of memory. */
frit_status store_save(const struct store_context *context, struct automaton *automaton,
                       struct store_saved *out, frit_err *err);

#endif
