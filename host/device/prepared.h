/* SPDX-License-Identifier: Apache-2.0 */
/* What prepare of a program returned for one candidate and signature.  It is checked, since
 * programs are not trusted.  Threads: any. */
#ifndef DEVICE_PREPARED_H
#define DEVICE_PREPARED_H

#include <stdatomic.h>
#include <stdbool.h>

#include <frit/frit.h>
#include <frit/program.h>

#include "device/retired.h"

struct program;

/* One result.  Counted; constant once it is compiled.  The spec is released when the last reference
 * is gone and nothing that was launched with it is pending. */
struct prepared {
    atomic_uint refs;
    struct program *program; /* held; NULL: there is no spec */
    frit_device *device;
    struct retired_entry retired;
    uint64_t generation; /* of candidate and variant, read before prepare was called */
    frit_status status;  /* FRIT_OK, FRIT_PREPARE_RELAYOUT or why not */
    bool passing;        /* a refusal that may not come next time: not cached */
    uint32_t candidate;
    uint32_t has_spec; /* prepare filled it */
    frit_launch_spec spec;
    frit_variant variant;
    char text[160]; /* of a refusal */
};
void prepared_ref(struct prepared *prepared);
void prepared_unref(struct prepared *prepared); /* NULL does nothing */

/* The arguments of prepare, and bytes that are equal for equal candidate and signature only. */
struct prepare_query {
    uint32_t candidate;
    const frit_signature *signature;
    const void *key;
    size_t key_bytes;
    uint32_t n_ops; /* that the program covers: each is a launch of its own meanwhile */
    bool wait;      /* for a compile */
    bool peek;      /* no compile is begun */
};

/* What the spec says of an output. */
const frit_output_spec *prepared_output(const struct prepared *prepared, uint32_t output);
bool prepared_may_alias(const frit_output_spec *output, uint32_t input);
const frit_derived_spec *prepared_derived(const struct prepared *prepared, uint32_t index);
/* Whether the program would answer better now. */
bool prepared_is_outdated(const struct prepared *prepared);

/* Calls prepare.  `*compile`: the result has to be compiled before it is used.  NULL if out of
 * memory. */
struct prepared *prepared_create(frit_device *device, struct program *program,
                                 const struct prepare_query *query, bool *compile);
/* A result with the status FRIT_BUSY: it is being compiled. */
frit_status prepared_busy(struct prepared **out, frit_err *err);
/* Compiles; if that fails, `p` becomes a refusal. */
void prepared_compile(struct prepared *p, const frit_cancel *cancel);

#endif
