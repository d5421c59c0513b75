/* SPDX-License-Identifier: Apache-2.0 */
/* The disk form of an automaton: one SQLite file for all devices, rows under a namespace that names
 * everything a plan depends on (the host's build, contract version, driver and its build, device
 * fingerprint, fusers with versions).  What does not fit is ignored with one debug line; a damaged
 * file is set aside as NAME.damaged and begun anew; a file of another program or of a newer Frit is
 * left alone.  Several processes may use one file at once: what one saves is added to what is
 * there.
 *
 * Threads: any; a load and a save of one automaton may overlap with its walkers. */
#ifndef PLAN_STORE_H
#define PLAN_STORE_H

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
    const char *path;  /* of the file; its folder is made */
    const char *space; /* namespace, exact text */
    const struct store_fuser *fusers;
    uint32_t n_fusers;
};

struct store_loaded {
    uint32_t n_plans;    /* answers that came */
    int64_t days_unused; /* since somebody saved in this namespace */
};

/* Adds every path and answer that can be rebuilt, up to half of the automaton's bytes: a plan whose
 * programs cannot all be is left out.  FRIT_OK also where there was nothing; only memory fails. */
frit_status store_load(const struct store_context *context, struct automaton *automaton,
                       struct store_loaded *out, frit_err *err);
struct store_saved {
    uint64_t n_nodes; /* whose answers were written down, whether or not the file had them */
    uint64_t n_rows;  /* written */
};

/* Adds the answers that came since the last save, with the ways to them, in one transaction; all of
 * the newest generation where the file has nothing of the namespace.  A namespace that takes more
 * than four times the automaton's bytes is emptied first; others are deleted only once nobody has
 * used them for 90 days.  A file that cannot be written is no failure, and what is new stays so;
 * only memory fails. */
frit_status store_save(const struct store_context *context, struct automaton *automaton,
                       struct store_saved *out, frit_err *err);

#endif
