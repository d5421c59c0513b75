/* SPDX-License-Identifier: Apache-2.0 */
/* What the prepare of a program answered for one candidate and signature, checked: a program is not
 * trusted.  Threads: any. */
#ifndef DEVICE_PREPARED_H
#define DEVICE_PREPARED_H

#include <stdatomic.h>

#include "device/device.h"

/* One answer.  Counted; constant once it is compiled. */
struct prepared {
    atomic_uint refs;
    frit_status status; /* FRIT_OK, FRIT_PREPARE_RELAYOUT or why not */
    bool passing;       /* it may be another one next time */
    frit_launch_spec spec;
    frit_variant variant;
    char text[160]; /* of a refusal */
};
void prepared_ref(struct prepared *prepared);
void prepared_unref(struct prepared *prepared); /* NULL does nothing */

/* What to ask: the signature, and exact bytes that stand for candidate and signature. */
struct prepare_query {
    uint32_t candidate;
    const frit_signature *signature;
    const void *key;
    size_t key_bytes;
    uint32_t n_ops; /* that the program covers: each is a launch of its own meanwhile */
    bool wait;      /* for a compile */
    bool peek;      /* no compile is begun */
};

/* Asks.  *compile: the answer holds once it is compiled.  NULL without memory. */
struct prepared *prepared_create(frit_device *device, const frit_program *program,
                                 const struct prepare_query *asked, bool *compile);
/* An answer FRIT_BUSY: it is being compiled. */
frit_status prepared_busy(struct prepared **out, frit_err *err);
/* Compiles what an answer asks for, which is a refusal where that fails. */
void prepared_compile(frit_device *device, const frit_program *program, uint32_t candidate,
                      struct prepared *p, const frit_cancel *cancel);

#endif
