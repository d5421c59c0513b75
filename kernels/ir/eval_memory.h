/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments and tiles. */
#ifndef IR_EVAL_MEMORY_H
#define IR_EVAL_MEMORY_H

#include <stdint.h>

#include <frit/status.h>

struct eval;

/* Memory of the phase's tiles; then per group. */
frit_status eval_tiles_init(struct eval *e);
void eval_tiles_fini(struct eval *e);
void eval_tiles_reset(struct eval *e);
void eval_tiles_barrier(struct eval *e);
/* A lane reads or writes one element of the instruction's argument, or of its tile. */
frit_status eval_read(struct eval *e, uint32_t lane, int64_t at, uint64_t *out);
frit_status eval_write(struct eval *e, uint32_t lane, int64_t at, uint64_t value);
frit_status eval_tread(struct eval *e, uint32_t lane, int64_t offset, uint64_t *out);
frit_status eval_twrite(struct eval *e, uint32_t lane, int64_t offset, uint64_t value);
/* The instructions of memory. */
frit_status eval_load(struct eval *e);
frit_status eval_store(struct eval *e);
frit_status eval_atomic_add(struct eval *e);
frit_status eval_tload(struct eval *e);
frit_status eval_tstore(struct eval *e);
frit_status eval_tcopy(struct eval *e);
frit_status eval_tbatch(struct eval *e);
frit_status eval_twait(struct eval *e);

#endif
