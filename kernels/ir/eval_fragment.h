/* SPDX-License-Identifier: Apache-2.0 */
/* Fragments. */
#ifndef IR_EVAL_FRAGMENT_H
#define IR_EVAL_FRAGMENT_H

#include <frit/status.h>

struct eval;

/* Memory of the phase's fragments; then per group. */
frit_status eval_fragments_init(struct eval *e);
void eval_fragments_fini(struct eval *e);
void eval_fragments_reset(struct eval *e);
/* The instructions of fragments; done moves `inst`. */
frit_status eval_mfill(struct eval *e);
frit_status eval_mload(struct eval *e);
frit_status eval_mstore(struct eval *e);
frit_status eval_mma(struct eval *e);
frit_status eval_mlargest(struct eval *e);
frit_status eval_mtotal(struct eval *e);
frit_status eval_mnarrow(struct eval *e);
frit_status eval_mscale(struct eval *e);
frit_status eval_peer(struct eval *e);
frit_status eval_each(struct eval *e);
frit_status eval_row_of(struct eval *e);
frit_status eval_column_of(struct eval *e);
frit_status eval_done(struct eval *e);

#endif
