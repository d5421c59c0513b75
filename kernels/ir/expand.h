/* SPDX-License-Identifier: Apache-2.0 */
/* Fragments as values of lanes, for targets that multiply no matrices: the scalar register tile.
 *
 * Columns lie along the lanes of a team: lane i has columns i, i + team and so on of each row.  A
 * left fragment is loaded by every lane whole, a right one and sums by columns. */
#ifndef KIR_EXPAND_H
#define KIR_EXPAND_H

#include <stdbool.h>

#include <frit/status.h>

#include "ir/kir.h"

/* *out: a module that computes what `module`, which keeps the rules of verify.h, does, and has no
 * fragments.  `fma`: products of floats are added by fma.  FRIT_UNSUPPORTED: a fragment changes
 * within an `if`, or has columns of which not each lane of a team has as many. */
frit_status kir_expand(const struct kir_module *module, bool fma, struct kir_module *out,
                       frit_err *err);

#endif
