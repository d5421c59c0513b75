/* SPDX-License-Identifier: Apache-2.0 */
/* A fragment is a variable of the function, of a cooperative matrix type whose scope is a subgroup,
 * or the workgroup where the team is the whole group of more than one subgroup.
 *
 * `each` is a loop over the components that an invocation has; which elements these are is not
 * known, so `row` and `column` are refused.  Matrices are loaded and stored with the elements that
 * memory has; sums are not narrowed by a store, because devices list no sums of 16 bits that they
 * would be converted to. */
#include "emit/spirv/fragment.h"

#include "emit/spirv/tile.h"

enum { MATRIX_ALIGN = 16 /* bytes, at least where a row or column has so many */ };

/* ---- types ---- */

static uint32_t half_type(struct emit *e, uint32_t dtype)
{
    if (dtype == FRIT_BF16 ? !e->target->matrices_bf16 : !e->target->matrices_f16)
        emit_refuse(e, "matrices of such floats of 16 bits");
    if (dtype != FRIT_BF16) {
        spv_capability(&e->build, SPV_CAP_FLOAT16);
        return spv_type(&e->build, SPV_TYPE_FLOAT, SPV(16));
    }
    spv_capability(&e->build, SPV_CAP_BFLOAT16);
    spv_capability(&e->build, SPV_CAP_BFLOAT16_MATRIX);
    spv_extension(&e->build, "SPV_KHR_bfloat16");
    return spv_type(&e->build, SPV_TYPE_FLOAT, SPV(16, SPV_ENCODING_BFLOAT16));
}

uint32_t fragment_element_type(struct emit *e, uint32_t dtype)
{
    if (dtype == FRIT_F16 || dtype == FRIT_BF16)
        return half_type(e, dtype);
    if (dtype != FRIT_F32 && dtype != FRIT_I32 && dtype != FRIT_F64)
        emit_refuse(e, "matrices of such elements");
    return emit_type(e, kir_type_of(dtype));
}

static uint32_t matrix_type(struct emit *e, uint32_t fragment)
{
    static const uint32_t uses[] = {[KIR_LEFT] = 0, [KIR_RIGHT] = 1, [KIR_SUM] = 2};
    const struct kir_fragment *f = &e->phase->fragments[fragment];

    return spv_type(&e->build, SPV_TYPE_MATRIX,
                    SPV(fragment_element_type(e, f->dtype), emit_u32(e, SPV_SCOPE_SUBGROUP),
                        emit_u32(e, f->rows), emit_u32(e, f->columns), emit_u32(e, uses[f->use])));
}

void fragment_declare(struct emit *e)
{
    uint32_t threads = e->phase->team / e->stride;

    if (!e->phase->n_fragments)
        return;
    if (!e->target->matrices)
        emit_refuse(e, "matrices");
    if (threads != e->target->subgroup)
        emit_refuse(e, "matrices of such teams");
    e->code->subgroups = true;
    spv_capability(&e->build, SPV_CAP_VULKAN_MEMORY_MODEL);
    spv_capability(&e->build, SPV_CAP_MATRIX);
    spv_extension(&e->build, "SPV_KHR_cooperative_matrix");
    for (uint32_t i = 0; i < e->phase->n_fragments; i++)
        e->fragments[i] = emit_variable(e, SPV_CLASS_FUNCTION, matrix_type(e, i));
}

/* ---- memory ---- */

/* A pointer into an array of elements, to the one at an offset. */
static uint32_t arg_pointer(struct emit *e, uint32_t arg, uint32_t offset)
{
    uint32_t dtype = e->module->args[arg].dtype, element = fragment_element_type(e, dtype), id;
    uint32_t bytes = (uint32_t)frit_storage_bytes(dtype, 1), wide = emit_int_type(e, 64);

    if (bytes == 2 && !e->target->store16)
        emit_refuse(e, "access to single elements of 16 bits");
    if (bytes == 2)
        spv_capability(&e->build, SPV_CAP_STORE_16);
    id = emit_id(e, offset, 0);
    if (emit_type_at(e, offset) == KIR_I32)
        id = EMIT(e, SPV_S_CONVERT, wide, id);
    id = EMIT(e, SPV_I_MUL, wide, id, emit_u64(e, bytes));
    id = EMIT(e, SPV_I_ADD, wide, id, emit_launch_word(e, arg));
    id = EMIT(e, SPV_CONVERT_U_TO_PTR,
              emit_pointer_type(e, SPV_CLASS_PHYSICAL, emit_block_type(e, element, bytes)), id);
    return EMIT(e, SPV_ACCESS_CHAIN, emit_pointer_type(e, SPV_CLASS_PHYSICAL, element), id,
                emit_u32(e, 0), emit_u32(e, 0));
}

/* Bytes that the device wants a matrix to be aligned to. */
static uint32_t alignment(const struct kir_fragment *f, const struct kir_fragment_place *place)
{
    uint32_t near = place->by_columns ? f->rows : f->columns;
    uint64_t bytes = frit_storage_bytes(f->dtype, near);

    return bytes < MATRIX_ALIGN ? (uint32_t)bytes : MATRIX_ALIGN;
}

/* Where a matrix is in memory: a pointer, its layout, its stride and memory operands. */
struct matrix_place {
    uint32_t pointer, layout, stride;
    uint32_t n, operands[2];
};

static void place_in_memory(struct emit *e, const struct kir_fragment_place *place, uint32_t offset,
                            struct matrix_place *out)
{
    const struct kir_fragment *f = &e->phase->fragments[place->fragment];

    if (!e->aligned)
        emit_refuse(e, "matrices at any address");
    if (e->module->args[place->place].dtype != f->dtype)
        emit_refuse(e, "matrices that a store narrows");
    out->pointer = arg_pointer(e, place->place, offset);
    out->n = emit_memory_operands(e, alignment(f, place), out->operands);
}

static struct matrix_place place_of(struct emit *e, const struct kir_inst *inst)
{
    const struct kir_fragment_place place = kir_fragment_place_of(inst->imm);
    struct matrix_place out = {.layout = emit_u32(e, place.by_columns),
                               .stride = emit_id(e, inst->a[1], 0)};

    if (place.is_tile) {
        out.pointer = tile_pointer(e, place.place, inst->a[0], 0);
        out.stride = tile_units(e, place.place, inst->a[1], 0);
        out.n = emit_memory_operands(e, 0, out.operands);
    } else {
        place_in_memory(e, &place, inst->a[0], &out);
    }
    if (emit_type_at(e, inst->a[1]) == KIR_I64)
        out.stride = EMIT(e, SPV_U_CONVERT, emit_int_type(e, 32), out.stride);
    return out;
}
void fragment_load(struct emit *e, uint32_t at)
{
    const struct kir_inst *inst = &e->phase->inst[at];
    const uint32_t fragment = kir_fragment_place_of(inst->imm).fragment;
    const struct matrix_place p = place_of(e, inst);
    uint32_t id = spv_make(
        &e->build, SPV_IN_BODY, SPV_MATRIX_LOAD, matrix_type(e, fragment),
        (uint32_t[]){p.pointer, p.layout, p.stride, p.operands[0], p.operands[1]}, 3 + p.n);

    EMIT_PUT(e, SPV_STORE, e->fragments[fragment], id);
}

void fragment_store(struct emit *e, uint32_t at)
{
    const struct kir_inst *inst = &e->phase->inst[at];
    const uint32_t fragment = kir_fragment_place_of(inst->imm).fragment;
    const struct matrix_place p = place_of(e, inst);
    uint32_t id = EMIT(e, SPV_LOAD, matrix_type(e, fragment), e->fragments[fragment]);

    spv_put(&e->build, SPV_IN_BODY, SPV_MATRIX_STORE,
            (uint32_t[]){p.pointer, id, p.layout, p.stride, p.operands[0], p.operands[1]}, 4 + p.n);
}

/* ---- arithmetic ---- */

void fragment_fill(struct emit *e, uint32_t at)
{
    const struct kir_inst *inst = &e->phase->inst[at];
    const uint32_t fragment = (uint32_t)inst->imm;

    EMIT_PUT(e, SPV_STORE, e->fragments[fragment],
             EMIT(e, SPV_COMPOSITE_CONSTRUCT, matrix_type(e, fragment), emit_id(e, inst->a[0], 0)));
}

void fragment_multiply(struct emit *e, uint32_t at)
{
    const uint64_t imm = e->phase->inst[at].imm;
    uint32_t ids[3];

    for (uint32_t i = 0; i < 3; i++)
        ids[i] =
            EMIT(e, SPV_LOAD, matrix_type(e, kir_factor(imm, i)), e->fragments[kir_factor(imm, i)]);
    EMIT_PUT(
        e, SPV_STORE, e->fragments[kir_factor(imm, 0)],
        EMIT(e, SPV_MATRIX_MUL_ADD, matrix_type(e, kir_factor(imm, 0)), ids[1], ids[2], ids[0]));
}

/* Elements of two matrices of one type are at the same places. */
void fragment_scale(struct emit *e, uint32_t at)
{
    const uint64_t imm = e->phase->inst[at].imm;
    const uint32_t to = kir_factor(imm, 0), type = matrix_type(e, to);
    const bool is_real = e->phase->fragments[to].dtype != FRIT_I32;

    EMIT_PUT(e, SPV_STORE, e->fragments[to],
             EMIT(e, is_real ? SPV_F_MUL : SPV_I_MUL, type,
                  EMIT(e, SPV_LOAD, type, e->fragments[to]),
                  EMIT(e, SPV_LOAD, type, e->fragments[kir_factor(imm, 1)])));
}

/* ---- elements ---- */

void fragment_each(struct emit *e, uint32_t at)
{
    const struct kir_inst *inst = &e->phase->inst[at];
    const uint32_t fragment = (uint32_t)inst->imm, type = emit_type(e, inst->type);
    uint32_t word = emit_int_type(e, 32), before = e->block, head = spv_id(&e->build), counter,
             length;
    struct open_each *each = &e->each;

    *each = (struct open_each){.head = head,
                               .resume = spv_id(&e->build),
                               .merge = spv_id(&e->build),
                               .next = spv_id(&e->build)};
    length = EMIT(e, SPV_MATRIX_LENGTH, word, matrix_type(e, fragment));
    EMIT_PUT(e, SPV_BRANCH, head);
    emit_label(e, head);
    counter = EMIT(e, SPV_PHI, word, emit_u32(e, 0), before, each->next, each->resume);
    length = EMIT(e, SPV_U_LESS_THAN, emit_bool_type(e), counter, length);
    EMIT_PUT(e, SPV_LOOP_MERGE, each->merge, each->resume, SPV_LOOP_UNROLL);
    head = spv_id(&e->build);
    EMIT_PUT(e, SPV_BRANCH_CONDITIONAL, length, head, each->merge);
    emit_label(e, head);
    each->counter = counter;
    each->element = EMIT(e, SPV_ACCESS_CHAIN, emit_pointer_type(e, SPV_CLASS_FUNCTION, type),
                         e->fragments[fragment], counter);
    e->shape.per_thread = 1;
    emit_set_all(e, at, EMIT(e, SPV_LOAD, type, each->element));
}

void fragment_done(struct emit *e, uint32_t at)
{
    const struct open_each *each = &e->each;

    EMIT_PUT(e, SPV_STORE, each->element, emit_id(e, e->phase->inst[at].a[0], 0));
    e->shape.per_thread = e->stride;
    EMIT_PUT(e, SPV_BRANCH, each->resume);
    emit_label(e, each->resume);
    EMIT_PUT(e, SPV_I_ADD, emit_int_type(e, 32), each->next, each->counter, emit_u32(e, 1));
    EMIT_PUT(e, SPV_BRANCH, each->head);
    emit_label(e, each->merge);
}

void fragment_coordinate(struct emit *e, uint32_t at)
{
    (void)at;
    emit_refuse(e, "coordinates of a matrix's elements");
}
