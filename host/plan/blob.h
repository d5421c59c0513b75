/* SPDX-License-Identifier: Apache-2.0 */
/* A plan as bytes: its relative ops, its steps, and of each program which fuser made it and what
 * to_state gave.  The bytes end with their digest.  Threads: any, with different arguments. */
#ifndef PLAN_BLOB_H
#define PLAN_BLOB_H

#include "plan/store.h"

/* Appends.  FRIT_UNSUPPORTED for a plan that cannot be saved: a passing one, a program without
 * to_state, a custom op. */
frit_status blob_write(const struct plan *plan, const struct store_context *context,
                       struct str *out, frit_err *err);
/* FRIT_INCOMPATIBLE for bytes that are no plan, or one of a fuser that is not there or does not
 * take its bytes. */
frit_status blob_read(const void *bytes, size_t n_bytes, const struct store_context *context,
                      struct plan **out, frit_err *err);

#endif
