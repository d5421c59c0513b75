/* SPDX-License-Identifier: Apache-2.0 */
/* Machine code for modules, compiled by LLVM or loaded from the host's cache.
 *
 * LLVM is opened when the first module has to be compiled; if the cache has all code, never.  The
 * key of cached code is the module, the instruction set, the level and the LLVM that made it.  The
 * host separates the entries of different builds of this plugin, so that the emitter's version need
 * not be in the key.  Cached code also runs where that LLVM is not installed any more.  Threads:
 * any. */
#ifndef CPU_JIT_H
#define CPU_JIT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "emit/llvm/llvm.h"
#include "emit/tile/tile.h"
#include "util/plug.h"

#include "maker.h"

struct object;

/* The option `tier`: "auto", "0", "1". */
enum jit_mode { JIT_AUTO, JIT_NEVER, JIT_ALWAYS, JIT_MODES };

struct jit {
    const struct plug *plug;
    const frit_host_cache *keep; /* NULL: nothing is kept */
    enum jit_mode mode;          /* option */
    struct llvm_cpu cpu;
    char path[MAKER_PATH];   /* option: the library; "": the usual names */
    pthread_mutex_t opening; /* the library; taken before `lock` */
    pthread_mutex_t lock;    /* of all below */
    struct llvm *llvm;       /* NULL: not opened */
    struct maker maker;      /* of `llvm`, or of the code in the cache; no text: unknown */
    bool has_read_maker;     /* from the cache */
    frit_status refused;     /* for `reason`; FRIT_OK: not tried */
    char reason[256];
    char compute[300];                     /* see jit_describe; "": not written yet */
    atomic_bool has_warned;                /* that kernels are interpreted */
    atomic_uint_least64_t compiled, found; /* modules */
};

/* Reads the options `tier` and `llvm`.  `level` is the instruction set of the tile interpreter;
 * machine code uses no larger one. */
frit_status jit_init(struct jit *jit, const struct plug *plug, enum tile_level level,
                     frit_err *err);
void jit_fini(struct jit *jit);

/* Opens the library, once.  FRIT_UNSUPPORTED: there is none, or the processor has not even the
 * least set; the same each time. */
frit_status jit_open(struct jit *jit, frit_err *err);

/* Describes what runs modules; opens the library unless an option says that they are interpreted.
 */
void jit_describe(struct jit *jit, frit_compute_info *out);

/* A module to be compiled, how well, and the name of its code. */
struct jit_job {
    const struct kir_module *module;
    const uint8_t *digest;
    enum llvm_level level;
};

/* Code from the cache; NULL: there is none, or it is damaged. */
struct object *jit_find(struct jit *jit, const struct jit_job *job);
/* Compiles, and adds the code to the cache. */
frit_status jit_compile(struct jit *jit, const struct jit_job *job, struct object **out,
                        frit_err *err);

#endif
