/* SPDX-License-Identifier: Apache-2.0 */
/* Plans as bytes: which ops form a step, and for each program its fuser and the state returned by
 * to_state; not the ops, which those know who look for the plan.  The bytes end with a digest.
 * Thread-safe for different arguments. */
#ifndef PLAN_BLOB_H
#define PLAN_BLOB_H

#include "plan/store.h"

struct relative;
struct str;

/* Appends a plan.  FRIT_UNSUPPORTED for plans that cannot be saved: `passing` plans, programs
 * without to_state. */
frit_status blob_write(const struct plan *plan, const struct store_context *context,
                       struct str *out, frit_err *err);
/* Makes a saved plan of the bytes: no plugin is called.  FRIT_INCOMPATIBLE: they are none, or a
 * fuser is missing. */
frit_status blob_load(const void *bytes, size_t n_bytes, const struct store_context *context,
                      struct plan **out, frit_err *err);
/* Makes the plan over the first `n_ops` ops that the bytes are of.  Nothing in them is believed:
 * the order must pass plan_create, programs are made by their fusers from these ops.
 * FRIT_INCOMPATIBLE or FRIT_INTERNAL: it is no plan for these ops. */
frit_status blob_rebuild(const struct plan *saved, const struct store_context *context,
                         const struct relative *relative, uint32_t n_ops, struct plan **out,
                         frit_err *err);

#endif
