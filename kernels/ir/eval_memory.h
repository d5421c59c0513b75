/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments and tiles. */
#ifndef IR_EVAL_MEMORY_H
#define IR_EVAL_MEMORY_H

#include <frit/status.h>

struct eval;

/* Memory of the phase's tiles; then per group. */
frit_status eval_tiles_init(struct eval *e);
void eval_tiles_fini(struct eval *e);
void eval_tiles_reset(struct eval *e);
void eval_tiles_barrier(struct eval *e);
/* The instructions of memory. */
frit_status eval_load(struct eval *e);
frit_status eval_store(struct eval *e);
frit_status eval_atomic_add(struct eval *e);
frit_status eval_tload(struct eval *e);
frit_status eval_tstore(struct eval *e);

#endif
