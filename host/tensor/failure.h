/* SPDX-License-Identifier: Apache-2.0 */
/* Why a tensor has no value.  Shared by every tensor that the failure reached.  Threads: any. */
#ifndef TENSOR_FAILURE_H
#define TENSOR_FAILURE_H

#include <stdatomic.h>

#include <frit/status.h>

struct failure {
    atomic_uint refs; /* 0: immortal */
    frit_status status;
    char text[496];
};

/* A copy of what `err` says, one reference; the immortal one of the status where memory is out. */
struct failure *failure_create(const frit_err *err);
/* The one of a status, for when nothing can be allocated. */
struct failure *failure_immortal(frit_status status);
struct failure *failure_ref(struct failure *failure);
void failure_unref(struct failure *failure); /* NULL does nothing */

#endif
