/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Memory for what the launch specs of a program point to, until the host releases them.
 *
 * Part of the program, which inits it before the first prepare and finis it when it is destroyed.
 * `driver[3]` of its specs says whose the memory is.  Threads: any, for all between. */
#ifndef UTIL_SPECS_H
#define UTIL_SPECS_H

#include <pthread.h>

#include <frit/program.h>

#include "util/plug.h"

struct specs {
    const struct plug *plug;
    pthread_mutex_t lock; /* of the rest */
    struct spec_piece *first;
    uint64_t n_specs; /* that ever had memory */
};

void specs_init(struct specs *specs, const struct plug *plug);
/* Releases all. */
void specs_fini(struct specs *specs);

/* Zeroed memory that lives until `spec` is released.  NULL: there is none. */
void *specs_alloc(struct specs *specs, frit_launch_spec *spec, uint64_t bytes);
/* The slot spec_release. */
void specs_release(struct specs *specs, const frit_launch_spec *spec);

/* Lets each output of `spec` that is dense take the memory of any input that lies one for one where
 * it does: for a program that writes an element after the last read of its place.
 * FRIT_NO_HOST_MEMORY with a text. */
frit_status specs_alias(struct specs *specs, const frit_signature *sig, frit_launch_spec *spec,
                        frit_err *err);

#endif
