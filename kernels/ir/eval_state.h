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

/* A copy that is not waited for. */
struct eval_copy {
    uint32_t tile, batch, lane;
    size_t at; /* of its values */
    uint64_t value;
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
    struct eval_copy *copies;
    uint32_t n_copies, copies_capacity, batch; /* batch: those that ended */
    uint64_t **fragments; /* per fragment: elements row by row, team after team */
    struct eval_each each;
    bool in_tile;                /* the side of a tcopy that eval_place is about */
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
    switch (kir_op_info(e->inst->op)->imm) {
    case KIR_IMM_PLACE:
        return kir_fragment_place_of(e->inst->imm).place;
    case KIR_IMM_COPY:
        return e->in_tile ? kir_copy_of(e->inst->imm).tile : kir_copy_of(e->inst->imm).arg;
    default:
        return (uint32_t)e->inst->imm;
    }
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
