/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What the files of the kit share. */
#ifndef KIT_INSIDE_H
#define KIT_INSIDE_H

#include <pthread.h>

#include "kit/kit.h"
#include "util/specs.h"

/* Code of a program, newest first; only grows.  Threads: any. */
struct codes {
    pthread_mutex_t lock; /* of the list */
    struct code *first;
};

/* One way to run a program. */
struct choice {
    struct kit_program pub; /* what the driver sees; the first member */
    struct program *program;
    frit_candidate described;
    frit_status (*run)(const struct kit_call *call, frit_err *err);
    uint32_t flags; /* KIT_INPLACE, KIT_DENSE, KIT_COMPILED */
    struct codes codes;
};

/* A program of the kit.  Constant once made, but for `codes` and `specs`. */
struct program {
    const struct kit_device *device;
    const struct kit_fuser *fuser; /* NULL: it is of one op */
    const char *name;
    uint32_t n_scalars; /* of a launch */
    uint32_t n_bounds;
    uint32_t flags; /* of any choice */
    struct specs specs;
    struct kit_block block;
    uint32_t n_choices;
    struct choice choices[]; /* that of the row or fuser first */
};

/* What the queue does with a launch. */
extern const struct hosted_driver launch_slots;

extern const frit_fuser_table fuser_slots;

#endif
