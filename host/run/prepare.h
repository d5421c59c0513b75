/* SPDX-License-Identifier: Apache-2.0 */
/* What a program says of a signature, from its cache or by its prepare. */
#ifndef RUN_PREPARE_H
#define RUN_PREPARE_H

#include <stdbool.h>

#include <frit/status.h>

struct launch;

/* The first candidate that takes the signature says how it wants to be launched; operands that it
 * wants under other strides are copied.  FRIT_BUSY: none does yet. */
frit_status launch_prepare(struct launch *l, frit_err *err);
/* Requests the program of a launch to come: FRIT_OK or FRIT_PREPARE_RELAYOUT if it can be launched
 * now, FRIT_BUSY if it has to be compiled, which `queue` has done. */
frit_status launch_prepare_ahead(struct launch *l, bool queue);

#endif
