/* SPDX-License-Identifier: Apache-2.0 */
/* One run of a module, between eval.c (order) and eval_memory.c (accesses). */
#ifndef KIR_EVAL_STATE_H
#define KIR_EVAL_STATE_H

#include "ir/eval.h"

/* Who touched an element of a group's tile since the last barrier: lane + 1, 0: none. */
struct eval_touch {
    uint32_t writer, reader;
};

struct eval_tile {
    uint64_t *values;         /* per element; of a lane's tile: lane after lane */
    struct eval_touch *touch; /* of a group's tile */
};

struct eval {
    const struct kir_module *module;
    const struct kir_phase *phase;
    const struct kir_inst *inst; /* the one that runs */
    const uint64_t *words;
    const struct eval_arg *args;
    uint32_t group[3];
    uint64_t *values;  /* of instruction i in lane k: values[i * lanes + k] */
    uint64_t *carried; /* what `next` moves at once: as many as the phase's values */
    struct eval_tile *tiles;
    frit_err *err;
};

static inline uint64_t *eval_value(const struct eval *e, uint32_t inst)
{
    return e->values + (size_t)inst * e->phase->lanes;
}

/* FRIT_INVALID with the place in front. */
frit_status eval_fail(const struct eval *e, const char *format, ...) FRIT_PRINTF(2, 3);

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
