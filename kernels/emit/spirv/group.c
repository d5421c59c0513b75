/* SPDX-License-Identifier: Apache-2.0 */
/* What lanes of a group do together: barriers, values of other lanes.
 *
 * A value comes from another lane of the same thread for nothing; from another thread by a shuffle
 * where one subgroup has both for certain; else through workgroup memory, a place per lane,
 * between two barriers: one before reading, one before others write there again. */
#include "emit/spirv/group.h"

#include "emit/spirv/emit.h"
#include "emit/spirv/value.h"

static void barrier(struct emit *e)
{
    uint32_t scope = emit_u32(e, SPV_SCOPE_WORKGROUP);
    uint32_t semantics = SPV_SEMANTICS_TILES | (e->phase->n_fragments ? SPV_SEMANTICS_CHAINS : 0);

    if (e->shape.threads > 1)
        EMIT_PUT(e, SPV_CONTROL_BARRIER, scope, scope, emit_u32(e, semantics));
}

void group_barrier(struct emit *e, uint32_t at)
{
    (void)at;
    barrier(e);
}

/* ---- values of other threads ---- */

static bool has_subgroups(struct emit *e, uint32_t span, enum spv_capability capability)
{
    uint32_t subgroup = e->target->subgroup;

    if (!subgroup || e->shape.threads % subgroup || span > subgroup)
        return false;
    spv_capability(&e->build, SPV_CAP_GROUP);
    spv_capability(&e->build, capability);
    e->code->subgroups = true;
    return true;
}

/* A place in the memory for exchanges, which has words of the type's width. */
static uint32_t place(struct emit *e, uint32_t type, uint32_t index)
{
    bool wide = type == KIR_I64 || type == KIR_F64;
    uint32_t word = emit_int_type(e, wide ? 64 : 32), bytes = wide ? 8 : 4;

    if (!e->scratch[wide]) {
        e->scratch[wide] = emit_shared(e, word, bytes, e->phase->lanes, e->code->shared_bytes);
        e->code->shared_bytes += e->phase->lanes * bytes;
    }
    return emit_shared_pointer(e, word, e->scratch[wide], index);
}

static void put_place(struct emit *e, uint32_t type, uint32_t index, uint32_t id)
{
    id = value_packed(e, type, id);
    if (type == KIR_F32 || type == KIR_F64)
        id = value_bits(e, type, id);
    emit_store(e, place(e, type, index), id, 0);
}

static uint32_t get_place(struct emit *e, uint32_t type, uint32_t index)
{
    uint32_t word = emit_int_type(e, type == KIR_I64 || type == KIR_F64 ? 64 : 32);
    uint32_t id = emit_load(e, word, place(e, type, index), 0);

    if (type == KIR_F32 || type == KIR_F64)
        return EMIT(e, SPV_BITCAST, emit_type(e, type), id);
    return value_unpacked(e, type, id);
}

/* The place of lane j of thread `thread`: neighbours among threads are neighbours there. */
static uint32_t index_of(struct emit *e, uint32_t thread, uint32_t j)
{
    uint32_t word = emit_int_type(e, 32);

    return j ? EMIT(e, SPV_I_ADD, word, thread, emit_u32(e, j * e->shape.threads)) : thread;
}

static void put_all(struct emit *e, uint32_t value)
{
    for (uint32_t j = 0; j < e->shape.per_thread; j += emit_run_length(e, value))
        put_place(e, emit_type_at(e, value), index_of(e, emit_thread(e), j), emit_id(e, value, j));
    barrier(e);
}

/* ---- exchange ---- */

static void exchange_threads(struct emit *e, uint32_t at, uint32_t mask)
{
    const struct kir_inst *inst = &e->phase->inst[at];
    uint32_t value = inst->a[0], other, id;

    if (has_subgroups(e, 2 * mask, SPV_CAP_GROUP_SHUFFLE)) {
        for (uint32_t j = 0; j < e->shape.per_thread; j += emit_run_length(e, at)) {
            id = EMIT(e, SPV_GROUP_SHUFFLE_XOR, value_packed_type(e, inst->type),
                      emit_u32(e, SPV_SCOPE_SUBGROUP),
                      value_packed(e, inst->type, emit_id(e, value, j)), emit_u32(e, mask));
            emit_set_run(e, at, j, value_unpacked(e, inst->type, id));
        }
        return;
    }
    put_all(e, value);
    other = EMIT(e, SPV_BITWISE_XOR, emit_int_type(e, 32), emit_thread(e), emit_u32(e, mask));
    for (uint32_t j = 0; j < e->shape.per_thread; j += emit_run_length(e, at))
        emit_set_run(e, at, j, get_place(e, inst->type, index_of(e, other, j)));
    barrier(e);
}

void group_exchange(struct emit *e, uint32_t at)
{
    const struct kir_inst *inst = &e->phase->inst[at];
    uint32_t lanes = (uint32_t)inst->imm, near = e->shape.striped ? e->shape.threads : 1;
    bool inside = e->shape.striped ? lanes >= near : lanes < e->shape.per_thread;

    if (lanes < e->facts.of[inst->a[0]].same) {
        for (uint32_t j = 0; j < e->shape.per_thread; j++)
            emit_set_id(e, at, j, emit_id(e, inst->a[0], j));
        return;
    }
    if (!inside) {
        exchange_threads(e, at, e->shape.striped ? lanes : lanes / e->shape.per_thread);
        return;
    }
    for (uint32_t j = 0; j < e->shape.per_thread; j++)
        emit_set_id(e, at, j, emit_id(e, inst->a[0], j ^ lanes / near));
}

/* ---- shift ---- */

/* Lane j's value from `by` lanes before; `own` where there are none. */
static uint32_t shifted(struct emit *e, const struct kir_inst *inst, uint32_t by, uint32_t j)
{
    uint32_t per_thread = e->shape.per_thread, from = j, threads = by, word = emit_int_type(e, 32);
    uint32_t own = emit_id(e, inst->a[0], j), run = emit_run_length(e, inst->a[0]);
    uint32_t lane, other, inside, got;

    if (e->shape.striped) {
        lane = emit_lane(e, j);
        inside = EMIT(e, SPV_U_GREATER_THAN_EQUAL, emit_bool_type(e), lane, emit_u32(e, by));
        other = EMIT(e, SPV_I_SUB, word, lane, emit_u32(e, by));
    } else {
        from = (j + per_thread - by % per_thread) % per_thread;
        threads = by / per_thread + (by % per_thread > j);
        if (!threads)
            return emit_id(e, inst->a[0], from);
        inside = EMIT(e, SPV_U_GREATER_THAN_EQUAL, emit_bool_type(e), emit_thread(e),
                      emit_u32(e, threads));
        other = EMIT(e, SPV_I_SUB, word, emit_thread(e), emit_u32(e, threads));
    }
    other = EMIT(e, SPV_SELECT, word, inside, other, emit_thread(e));
    got =
        get_place(e, inst->type, e->shape.striped ? other : index_of(e, other, from - from % run));
    return EMIT(e, SPV_SELECT, emit_type(e, inst->type), inside, got, own);
}

/* The same by shuffles, where one subgroup is the whole group.  By number, not up: LLVM 15 below a
 * software device crashes where 64-bit values go up. */
static uint32_t shuffled(struct emit *e, const struct kir_inst *inst, uint32_t by, uint32_t j)
{
    uint32_t per_thread = e->shape.per_thread,
             from = (j + per_thread - by % per_thread) % per_thread, inside, id;
    uint32_t threads = by / per_thread + (by % per_thread > j), own = emit_id(e, inst->a[0], j);
    uint32_t word = emit_int_type(e, 32), other;

    id = emit_id(e, inst->a[0], from);
    if (!threads)
        return id;
    inside =
        EMIT(e, SPV_U_GREATER_THAN_EQUAL, emit_bool_type(e), emit_thread(e), emit_u32(e, threads));
    other = EMIT(e, SPV_I_SUB, word, emit_thread(e), emit_u32(e, threads));
    other = EMIT(e, SPV_SELECT, word, inside, other, emit_thread(e));
    id = EMIT(e, SPV_GROUP_SHUFFLE, value_packed_type(e, inst->type),
              emit_u32(e, SPV_SCOPE_SUBGROUP), value_packed(e, inst->type, id), other);
    return EMIT(e, SPV_SELECT, emit_type(e, inst->type), inside, value_unpacked(e, inst->type, id),
                own);
}

void group_shift(struct emit *e, uint32_t at)
{
    const struct kir_inst *inst = &e->phase->inst[at];
    uint32_t by = (uint32_t)inst->imm;

    if (e->facts.of[inst->a[0]].same == e->phase->lanes) {
        emit_set_all(e, at, emit_id(e, inst->a[0], 0));
        return;
    }
    if (!e->shape.striped && has_subgroups(e, e->shape.threads, SPV_CAP_GROUP_SHUFFLE)) {
        for (uint32_t j = 0; j < e->shape.per_thread; j++)
            emit_set_id(e, at, j, shuffled(e, inst, by, j));
        return;
    }
    put_all(e, inst->a[0]);
    for (uint32_t j = 0; j < e->shape.per_thread; j++)
        emit_set_id(e, at, j, shifted(e, inst, by, j));
    barrier(e);
}

/* ---- first ---- */

void group_first(struct emit *e, uint32_t at)
{
    const struct kir_inst *inst = &e->phase->inst[at];
    uint32_t id = emit_id(e, inst->a[0], 0);
    struct region region;

    if (e->shape.threads == 1 || e->facts.of[inst->a[0]].same == e->phase->lanes) {
        emit_set_all(e, at, id);
        return;
    }
    if (has_subgroups(e, e->shape.threads, SPV_CAP_GROUP_BALLOT)) {
        id = EMIT(e, SPV_GROUP_BROADCAST_FIRST, value_packed_type(e, inst->type),
                  emit_u32(e, SPV_SCOPE_SUBGROUP), value_packed(e, inst->type, id));
        emit_set_all(e, at, value_unpacked(e, inst->type, id));
        return;
    }
    region = emit_if(e, EMIT(e, SPV_I_EQUAL, emit_bool_type(e), emit_thread(e), emit_u32(e, 0)));
    put_place(e, inst->type, emit_u32(e, 0), id);
    emit_end_if(e, &region);
    barrier(e);
    emit_set_all(e, at, get_place(e, inst->type, emit_u32(e, 0)));
    barrier(e);
}
