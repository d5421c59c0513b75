/* SPDX-License-Identifier: Apache-2.0 */
/* One run of a module, between eval.c (order), eval_memory.c (accesses) and eval_shadow.c (who
 * touched what). */
#ifndef KIR_EVAL_STATE_H
#define KIR_EVAL_STATE_H

#include "base/fail.h"
#include "ir/eval.h"

/* Who touched an element: of a group's tile since the last barrier, lane + 1; of an argument in the
 * phase, see eval_shadow.c.  0: none. */
struct eval_touch {
    uint32_t writer, reader;
};

/* Memory of arguments that overlap. */
struct eval_region {
    uintptr_t low, high;
    uint64_t granule;         /* bytes */
    struct eval_touch *touch; /* per granule */
};

struct eval_tile {
    uint64_t *values;         /* per element; of a lane's tile: lane after lane */
    struct eval_touch *touch; /* of a group's tile */
};

/* The round of an each: lane i of a team has element round * team + i. */
struct eval_each {
    const struct kir_inst *inst; /* NULL: there is none around what runs */
    uint32_t round;
};

struct eval {
    const struct kir_module *module;
    const struct kir_phase *phase;
    const struct kir_inst *inst; /* the one that runs */
    const uint64_t *words;
    const struct eval_arg *args;
    uint32_t group[3];
    uint64_t group_number; /* in the phase */
    uint64_t *values;      /* of instruction i in lane k: values[i * lanes + k] */
    uint64_t *carried;     /* what `next` moves at once: as many as the phase's values */
    struct eval_tile *tiles;
    uint64_t **fragments; /* per fragment: elements row by row, team after team */
    struct eval_each each;
    struct eval_region *regions; /* as many as arguments, some unused */
    uint32_t *region_of;         /* per argument */
    frit_err *err;
};

static inline uint64_t *eval_value(const struct eval *e, uint32_t inst)
{
    return e->values + (size_t)inst * e->phase->lanes;
}

/* Number of the instruction's argument or tile. */
static inline uint32_t eval_place(const struct eval *e)
{
    return kir_op_info(e->inst->op)->imm == KIR_IMM_PLACE
               ? kir_fragment_place_of(e->inst->imm).place
               : (uint32_t)e->inst->imm;
}

static inline uint32_t eval_elements(const struct eval *e, uint32_t fragment)
{
    return e->phase->fragments[fragment].rows * e->phase->fragments[fragment].columns;
}

/* Whether the lane has no element in this round of an each. */
static inline bool eval_is_idle(const struct eval *e, uint32_t lane)
{
    return e->each.inst && e->each.round * e->phase->team + lane % e->phase->team >=
                               eval_elements(e, (uint32_t)e->each.inst->imm);
}

/* Puts the place in front of the reason. */
static inline frit_status eval_at(const struct eval *e, frit_status status)
{
    if (e->err)
        fail_context(e->err, "phase %u, group (%u, %u, %u), %%%u %s",
                     (uint32_t)(e->phase - e->module->phases), e->group[0], e->group[1],
                     e->group[2], (uint32_t)(e->inst - e->phase->inst),
                     kir_op_info(e->inst->op)->name);
    return status;
}

#define eval_fail(e, ...) eval_at(e, fail((e)->err, FRIT_INVALID, __VA_ARGS__))

#endif
