/* SPDX-License-Identifier: Apache-2.0 */
/* Loops and branches.  The second operand of a loop's phis is patched into the
 * words already written when the loop ends. */
#include "emit/spirv/control.h"

#include "emit/spirv/tile.h"
#include "emit/spirv/value.h"

enum { PHI_WORDS = 7, PHI_SECOND = 5 };

/* Adds a phi of a loop, with the value that comes from before the loop; control_next sets the other
 * one. */
static uint32_t open_phi(struct emit *e, uint32_t type, uint32_t first, uint32_t before,
                         uint32_t resume)
{
    return EMIT(e, SPV_PHI, value_packed_type(e, type), first, before, 0, resume);
}

/* The number of different ids that a value can have. */
static uint32_t count_distinct_ids(const struct emit *e, uint32_t value)
{
    return emit_is_uniform(e, value) ? 1 : e->shape.per_thread;
}

/* The number of phis that follow the KIR_for at `at`. */
static uint32_t count_phis(const struct emit *e, uint32_t at)
{
    uint32_t n = 0;

    while (at + 1 + n < e->phase->n && e->phase->inst[at + 1 + n].op == KIR_phi)
        n++;
    return n;
}

/* On entry, the ids of a phi are those of its packed first values, which were computed before the
 * loop.  They are replaced by the ids of the SPIR-V phis, and these by the ids of the unpacked
 * values, since all phis of a block precede its other instructions. */
static void open_phis(struct emit *e, uint32_t at, uint32_t n, uint32_t before)
{
    const struct open_loop *loop = &e->loops[e->phase->inst[at].level];

    for (uint32_t i = at + 1; i <= at + n; i++) {
        for (uint32_t j = 0; j < count_distinct_ids(e, i); j++)
            emit_set_id(
                e, i, j,
                open_phi(e, e->phase->inst[i].type, emit_id(e, i, j), before, loop->resume));
    }
    for (uint32_t i = at + 1; i <= at + n; i++) {
        for (uint32_t j = 0; j < e->shape.per_thread; j++) {
            uint32_t id = emit_id(e, i, emit_is_uniform(e, i) ? 0 : j);

            if (j < count_distinct_ids(e, i))
                id = value_unpacked(e, e->phase->inst[i].type, id);
            emit_set_id(e, i, j, id);
        }
    }
}

/* Products in a loop are many instructions already: NVIDIA's compiler (580) took several times as
 * long for them in a loop as without one, as if it unrolled it. */
static uint32_t loop_control(const struct emit *e, uint32_t at)
{
    for (uint32_t i = at; i < e->phase->inst[at].pair; i++)
        if (e->phase->inst[i].op == KIR_mma)
            return SPV_LOOP_DONT_UNROLL;
    return 0;
}

void control_for(struct emit *e, uint32_t at)
{
    const struct kir_inst *inst = &e->phase->inst[at];
    struct open_loop *loop = &e->loops[inst->level];
    uint32_t begin = e->module->links[inst->a[0]], end = e->module->links[inst->a[0] + 1];
    uint32_t before = e->block, body = spv_id(&e->build), n = count_phis(e, at), test;

    tile_end_copies(e);
    *loop = (struct open_loop){spv_id(&e->build), spv_id(&e->build), spv_id(&e->build), 0, 0};
    for (uint32_t i = at + 1; i <= at + n; i++) {
        for (uint32_t j = 0; j < count_distinct_ids(e, i); j++)
            emit_set_id(
                e, i, j,
                value_packed(e, e->phase->inst[i].type, emit_id(e, e->phase->inst[i].a[0], j)));
    }
    EMIT_PUT(e, SPV_BRANCH, loop->head);
    emit_label(e, loop->head);
    loop->phis = e->build.section[SPV_IN_BODY].n;
    loop->counter = open_phi(e, inst->type, emit_id(e, begin, 0), before, loop->resume);
    emit_set_all(e, at, loop->counter);
    open_phis(e, at, n, before);
    test = EMIT(e, SPV_S_LESS_THAN, emit_bool_type(e), loop->counter, emit_id(e, end, 0));
    EMIT_PUT(e, SPV_LOOP_MERGE, loop->merge, loop->resume, loop_control(e, at));
    EMIT_PUT(e, SPV_BRANCH_CONDITIONAL, test, body, loop->merge);
    emit_label(e, body);
}

void control_phi(struct emit *e, uint32_t at)
{
    (void)e;
    (void)at;
}

void control_next(struct emit *e, uint32_t at)
{
    const struct kir_inst *inst = &e->phase->inst[at], *begin = &e->phase->inst[inst->pair];
    const struct open_loop *loop = &e->loops[begin->level];
    uint32_t where = loop->phis + PHI_SECOND;

    tile_end_copies(e);
    EMIT_PUT(e, SPV_BRANCH, loop->resume);
    emit_label(e, loop->resume);
    emit_patch(e, where,
               EMIT(e, SPV_I_ADD, emit_type(e, begin->type), loop->counter,
                    emit_const(e, begin->type, begin->imm)));
    for (uint32_t i = 0; i < inst->a[1]; i++) {
        uint32_t value = e->module->links[inst->a[0] + i];

        for (uint32_t j = 0; j < count_distinct_ids(e, inst->pair + 1 + i); j++)
            emit_patch(e, where += PHI_WORDS,
                       value_packed(e, emit_type_at(e, value), emit_id(e, value, j)));
    }
    EMIT_PUT(e, SPV_BRANCH, loop->head);
    emit_label(e, loop->merge);
}

void control_if(struct emit *e, uint32_t at)
{
    const struct kir_inst *inst = &e->phase->inst[at];

    tile_end_copies(e);
    e->ifs[inst->level] = emit_if(e, emit_id(e, inst->a[0], 0));
}

void control_end(struct emit *e, uint32_t at)
{
    tile_end_copies(e);
    emit_end_if(e, &e->ifs[e->phase->inst[e->phase->inst[at].pair].level]);
}
