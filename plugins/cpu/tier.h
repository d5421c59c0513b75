/* SPDX-License-Identifier: Apache-2.0 */
/* Tier 1: machine code for modules, from LLVM or from the host's cache.
 *
 * The library is opened when the first module must be compiled, and never where the cache has all.
 * What is kept is named by the module, the instruction set and the level; the host keeps it apart
 * for each build of this plugin, so that the emitter's version is in it.  LLVM's is not: code is
 * right whichever made it, and it is found where no LLVM is installed.  Threads: any. */
#ifndef CPU_TIER_H
#define CPU_TIER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "emit/llvm/llvm.h"
#include "emit/tile/tile.h"
#include "util/plug.h"

struct object;

enum tier_mode { TIER_AUTO, TIER_0, TIER_1, TIER_MODES };

enum { TIER_PATH = 1024 };

struct tier {
    const struct plug *plug;
    const frit_host_cache *keep; /* NULL: nothing is kept */
    enum tier_mode mode;         /* option */
    struct llvm_cpu cpu;
    char path[TIER_PATH]; /* option: the library; "": the usual names */
    pthread_mutex_t lock; /* of all below */
    struct llvm *llvm;    /* NULL: not opened */
    frit_status refused;  /* for `reason`; FRIT_OK: not tried */
    char reason[256];
    char compute[300];                     /* see tier_describe */
    atomic_bool has_warned;                /* that kernels are interpreted */
    atomic_uint_least64_t compiled, found; /* modules */
};

/* Reads the options `tier` and `llvm`; `level` is the instruction set of tier 0, of which tier 1
 * has no more. */
frit_status tier_init(struct tier *tier, const struct plug *plug, enum tile_level level,
                      frit_err *err);
void tier_fini(struct tier *tier);

/* Opens the library, once.  FRIT_UNSUPPORTED: there is none, or the processor has not even the
 * least set; the same each time. */
frit_status tier_open(struct tier *tier, frit_err *err);

/* Fills in what modules are run by; opens the library unless an option asks for interpretation. */
void tier_describe(struct tier *tier, frit_compute_info *out);

/* A module to be compiled, how well, and the name of its code. */
struct tier_job {
    const struct kir_module *module;
    const uint8_t *digest;
    enum llvm_level level;
};

/* Code that was kept, NULL where there is none that is whole. */
struct object *tier_find(struct tier *tier, const struct tier_job *job);
/* Compiles and keeps. */
frit_status tier_make(struct tier *tier, const struct tier_job *job, struct object **out,
                      frit_err *err);

#endif
