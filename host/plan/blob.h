/* SPDX-License-Identifier: Apache-2.0 */
/* Serialised plans: relative ops, steps, and for each program its fuser and the state returned by
 * to_state.  The bytes end with a digest.  Thread-safe for different arguments. */
#ifndef PLAN_BLOB_H
#define PLAN_BLOB_H

#include "plan/store.h"

struct str;

/* Appends a plan.  FRIT_UNSUPPORTED for plans that cannot be saved: `passing` plans, programs
 * without to_state, custom ops without a name. */
frit_status blob_write(const struct plan *plan, const struct store_context *context,
                       struct str *out, frit_err *err);
/* FRIT_INCOMPATIBLE: the bytes are no plan, or a fuser is missing or rejects its bytes. */
frit_status blob_read(const void *bytes, size_t n_bytes, const struct store_context *context,
                      struct plan **out, frit_err *err);

#endif
