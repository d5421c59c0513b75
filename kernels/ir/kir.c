/* SPDX-License-Identifier: Apache-2.0 */
/* The table of instructions and the builder.  Arrays grow with realloc; the arena holds texts. */
#include "ir/kir.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/fail.h"

enum { NONE, SAME, FREE, B, I32, I64, F32, F64 };

static const struct kir_op_info ops[KIR_OPS] = {
#define RESULT(TYPE)                    \
    ((TYPE) == NONE   ? KIR_RESULT_NONE \
     : (TYPE) == SAME ? KIR_RESULT_SAME \
     : (TYPE) == FREE ? KIR_RESULT_FREE \
                      : KIR_RESULT_TYPE)
#define KIR_OP(name_, TYPE, operands_, imm_, meaning_)                          \
    [KIR_##name_] = {#name_,                                                    \
                     operands_,                                                 \
                     meaning_,                                                  \
                     RESULT(TYPE),                                              \
                     (TYPE) < B ? KIR_VOID : (enum kir_type)((TYPE)-B + KIR_B), \
                     KIR_IMM_##imm_,                                            \
                     sizeof(operands_) - 1},
#include "ir/kir.def"
#undef KIR_OP
};

const struct kir_op_info *kir_op_info(uint32_t op)
{
    return &ops[op];
}

const char *kir_type_name(uint32_t type)
{
    static const char *const names[KIR_TYPES] = {"void", "b", "i32", "i64", "f32", "f64"};

    return names[type];
}

enum kir_type kir_type_of(uint32_t dtype)
{
    const frit_dtype_info info = frit_dtype_info_of(dtype);

    switch (info.cls) {
    case FRIT_DTYPE_BOOL:
        return KIR_B;
    case FRIT_DTYPE_INT:
    case FRIT_DTYPE_UINT:
        return info.bits == 64 ? KIR_I64 : KIR_I32;
    case FRIT_DTYPE_FLOAT:
        return info.compute == FRIT_F64 ? KIR_F64 : KIR_F32;
    default:
        return KIR_VOID;
    }
}

bool kir_is_16_bit_float(uint32_t dtype)
{
    return frit_storage_bytes(dtype, 1) == 2 && kir_type_of(dtype) == KIR_F32;
}

void kir_init(struct kir_module *module, const char *name)
{
    *module = (struct kir_module){0};
    module->name = arena_text(&module->arena, name, strlen(name));
    module->failed = !module->name;
}

void kir_fini(struct kir_module *module)
{
    for (uint32_t i = 0; i < module->n_phases; i++) {
        free(module->phases[i].inst);
        free(module->phases[i].tiles);
        free(module->phases[i].fragments);
    }
    free(module->phases);
    free(module->args);
    free(module->links);
    arena_fini(&module->arena);
    *module = (struct kir_module){0};
}

/* ---- building ---- */

uint32_t kir_arg(struct kir_module *module, uint32_t dtype, uint32_t access)
{
    if (module->failed || !array_grow(&module->args, &module->args_capacity, module->n_args, 1,
                                      sizeof(*module->args))) {
        module->failed = true;
        return 0;
    }
    module->args[module->n_args] = (struct kir_arg){dtype, access};
    return module->n_args++;
}

void kir_phase(struct kir_module *module, uint32_t lanes)
{
    if (module->failed || !array_grow(&module->phases, &module->phases_capacity, module->n_phases,
                                      1, sizeof(*module->phases))) {
        module->failed = true;
        return;
    }
    module->phases[module->n_phases++] = (struct kir_phase){.lanes = lanes};
}

static struct kir_phase *last_phase(const struct kir_module *module)
{
    return &module->phases[module->n_phases - 1];
}

static uint32_t add_tile(struct kir_module *module, const struct kir_tile *tile)
{
    struct kir_phase *phase;

    if (module->failed)
        return 0;
    phase = last_phase(module);
    if (!array_grow(&phase->tiles, &phase->tiles_capacity, phase->n_tiles, 1,
                    sizeof(*phase->tiles))) {
        module->failed = true;
        return 0;
    }
    phase->tiles[phase->n_tiles] = *tile;
    return phase->n_tiles++;
}

uint32_t kir_tile(struct kir_module *module, enum kir_space space, enum kir_type type,
                  uint32_t count)
{
    static const uint32_t dtypes[KIR_TYPES] = {
        [KIR_I32] = FRIT_I32, [KIR_I64] = FRIT_I64, [KIR_F32] = FRIT_F32, [KIR_F64] = FRIT_F64};

    return add_tile(module, &(struct kir_tile){space, type, count, dtypes[type]});
}

uint32_t kir_tile_of(struct kir_module *module, enum kir_space space, uint32_t dtype,
                     uint32_t count)
{
    return add_tile(module, &(struct kir_tile){space, kir_type_of(dtype), count, dtype});
}

uint32_t kir_tile_bytes(const struct kir_tile *tile)
{
    return (uint32_t)frit_storage_bytes(tile->dtype, 1);
}

uint32_t kir_fragment(struct kir_module *module, const struct kir_fragment *fragment)
{
    struct kir_phase *phase;

    if (module->failed)
        return 0;
    phase = last_phase(module);
    if (!array_grow(&phase->fragments, &phase->fragments_capacity, phase->n_fragments, 1,
                    sizeof(*phase->fragments))) {
        module->failed = true;
        return 0;
    }
    phase->fragments[phase->n_fragments] = *fragment;
    return phase->n_fragments++;
}

static bool has_copies(const struct kir_phase *phase)
{
    for (uint32_t i = 0; i < phase->n; i++)
        if (phase->inst[i].op == KIR_tcopy)
            return true;
    return false;
}

frit_status kir_refuse_fragments(const struct kir_module *module, frit_err *err)
{
    for (uint32_t i = 0; i < module->n_phases; i++)
        if (module->phases[i].n_fragments || has_copies(&module->phases[i]))
            return fail(err, FRIT_UNSUPPORTED, "kernel %s: there is no code for fragments",
                        module->name);
    return FRIT_OK;
}

enum { PLACE_SHIFT = 16, TILE_BIT = 48, COLUMNS_BIT = 49, BLOCKS_BIT = 50 };

int64_t kir_fragment_at(const struct kir_fragment_place *place, int64_t row, int64_t column,
                        int64_t first, int64_t stride)
{
    int64_t line = place->by_columns ? column : row, in_line = place->by_columns ? row : column;

    if (!place->in_blocks)
        return first + line * stride + in_line;
    return kir_swizzled(first + in_line / KIR_BLOCK * stride + line * KIR_BLOCK +
                        in_line % KIR_BLOCK);
}

uint64_t kir_fragment_imm(const struct kir_fragment_place *place)
{
    return (place->fragment & 0xffff) | (uint64_t)place->place << PLACE_SHIFT |
           (uint64_t)place->is_tile << TILE_BIT | (uint64_t)place->by_columns << COLUMNS_BIT |
           (uint64_t)place->in_blocks << BLOCKS_BIT;
}

struct kir_fragment_place kir_fragment_place_of(uint64_t imm)
{
    return (struct kir_fragment_place){.fragment = imm & 0xffff,
                                       .is_tile = imm >> TILE_BIT & 1,
                                       .place = (uint32_t)(imm >> PLACE_SHIFT),
                                       .by_columns = imm >> COLUMNS_BIT & 1,
                                       .in_blocks = imm >> BLOCKS_BIT & 1};
}

uint64_t kir_copy_imm(const struct kir_copy *copy)
{
    return copy->tile | (uint64_t)copy->arg << 32;
}

struct kir_copy kir_copy_of(uint64_t imm)
{
    return (struct kir_copy){(uint32_t)imm, (uint32_t)(imm >> 32)};
}

uint64_t kir_product(uint32_t sum, uint32_t left, uint32_t right)
{
    return (sum & 0xffff) | (uint64_t)(left & 0xffff) << 16 | (uint64_t)(right & 0xffff) << 32;
}

enum kir_type kir_type_at(const struct kir_module *module, uint32_t value)
{
    return module->failed || value == KIR_NONE ? KIR_VOID : last_phase(module)->inst[value].type;
}

bool kir_is_const(const struct kir_module *module, uint32_t value, uint64_t *bits)
{
    const struct kir_inst *inst;

    if (module->failed || value == KIR_NONE)
        return false;
    inst = &last_phase(module)->inst[value];
    *bits = inst->imm;
    return inst->op == KIR_const;
}

/* The level of what comes next: after what opens one deeper, after what closes one less. */
static uint8_t next_level(const struct kir_phase *phase)
{
    const struct kir_inst *last = phase->n ? &phase->inst[phase->n - 1] : NULL;

    if (!last)
        return 0;
    if (kir_opens(last->op))
        return (uint8_t)(last->level + 1);
    return kir_closes(last->op) ? (uint8_t)(last->level - 1) : last->level;
}

static uint32_t append(struct kir_module *module, const struct kir_inst *inst)
{
    struct kir_phase *phase;

    if (module->failed)
        return KIR_NONE;
    phase = last_phase(module);
    if (!array_grow(&phase->inst, &phase->capacity, phase->n, 1, sizeof(*phase->inst))) {
        module->failed = true;
        return KIR_NONE;
    }
    phase->inst[phase->n] = *inst;
    phase->inst[phase->n].level = next_level(phase);
    return phase->n++;
}

uint32_t kir_emit_as(struct kir_module *module, enum kir_op op, enum kir_type type, uint64_t imm,
                     uint32_t a, uint32_t b, uint32_t c)
{
    return append(module, &(struct kir_inst){.op = (uint16_t)op,
                                             .type = (uint8_t)type,
                                             .a = {a, b, c},
                                             .pair = KIR_NONE,
                                             .imm = imm});
}

uint32_t kir_emit_imm(struct kir_module *module, enum kir_op op, uint64_t imm, uint32_t a,
                      uint32_t b, uint32_t c)
{
    const struct kir_op_info *info = &ops[op];
    enum kir_type type = info->result == KIR_RESULT_SAME ? kir_type_at(module, a) : info->type;

    return kir_emit_as(module, op, type, imm, a, b, c);
}

uint32_t kir_emit(struct kir_module *module, enum kir_op op, uint32_t a, uint32_t b, uint32_t c)
{
    return kir_emit_imm(module, op, 0, a, b, c);
}

uint32_t kir_const_i(struct kir_module *module, enum kir_type type, int64_t value)
{
    uint64_t bits = type == KIR_I32 ? (uint32_t)value : (uint64_t)value;

    return kir_emit_as(module, KIR_const, type, bits, KIR_NONE, KIR_NONE, KIR_NONE);
}

uint32_t kir_const_f(struct kir_module *module, enum kir_type type, double value)
{
    float narrow = (float)value;
    uint32_t bits32;
    uint64_t bits;

    if (type == KIR_F32) {
        memcpy(&bits32, &narrow, sizeof(bits32));
        bits = bits32;
    } else {
        memcpy(&bits, &value, sizeof(bits));
    }
    return kir_emit_as(module, KIR_const, type, bits, KIR_NONE, KIR_NONE, KIR_NONE);
}

uint32_t kir_const_b(struct kir_module *module, bool value)
{
    return kir_emit_as(module, KIR_const, KIR_B, value, KIR_NONE, KIR_NONE, KIR_NONE);
}

uint32_t kir_param(struct kir_module *module, enum kir_type type)
{
    return kir_emit_as(module, KIR_param, type, module->n_params++, KIR_NONE, KIR_NONE, KIR_NONE);
}

/* ---- control ---- */

static uint32_t add_links(struct kir_module *module, const uint32_t *values, uint32_t n)
{
    if (module->failed ||
        !array_grow(&module->links, &module->links_capacity, module->n_links, n, sizeof(*values))) {
        module->failed = true;
        return 0;
    }
    if (n)
        memcpy(module->links + module->n_links, values, n * sizeof(*values));
    module->n_links += n;
    return module->n_links - n;
}

uint32_t kir_for(struct kir_module *module, uint32_t begin, uint32_t end, uint32_t step)
{
    uint32_t first = add_links(module, (const uint32_t[]){begin, end}, 2);

    return append(module, &(struct kir_inst){.op = KIR_for,
                                             .type = (uint8_t)kir_type_at(module, begin),
                                             .a = {first, 2, KIR_NONE},
                                             .pair = KIR_NONE,
                                             .imm = step});
}

uint32_t kir_phi(struct kir_module *module, uint32_t first)
{
    const struct kir_inst *last;
    uint64_t number;

    if (module->failed)
        return KIR_NONE;
    last = &last_phase(module)->inst[last_phase(module)->n - 1];
    number = last->op == KIR_phi ? last->imm + 1 : 0;
    return kir_emit_as(module, KIR_phi, kir_type_at(module, first), number, first, KIR_NONE,
                       KIR_NONE);
}

/* Closes the innermost open `op`. */
static void close(struct kir_module *module, enum kir_op op, struct kir_inst *with)
{
    struct kir_phase *phase;
    uint32_t at;

    if (module->failed)
        return;
    phase = last_phase(module);
    at = phase->n;
    while (at-- > 0 && !(phase->inst[at].op == op && phase->inst[at].pair == KIR_NONE))
        ;
    with->pair = at;
    at = append(module, with);
    if (at != KIR_NONE)
        last_phase(module)->inst[with->pair].pair = at;
}

void kir_next(struct kir_module *module, const uint32_t *values, uint32_t n)
{
    close(module, KIR_for,
          &(struct kir_inst){.op = KIR_next, .a = {add_links(module, values, n), n, KIR_NONE}});
}

void kir_if(struct kir_module *module, uint32_t condition)
{
    kir_emit(module, KIR_if, condition, KIR_NONE, KIR_NONE);
}

void kir_end(struct kir_module *module)
{
    close(module, KIR_if, &(struct kir_inst){.op = KIR_end, .a = {KIR_NONE, KIR_NONE, KIR_NONE}});
}

uint32_t kir_each(struct kir_module *module, uint32_t fragment)
{
    const struct kir_phase *phase = module->failed ? NULL : last_phase(module);

    if (!phase || fragment >= phase->n_fragments)
        return KIR_NONE;
    return kir_emit_as(module, KIR_each, kir_type_of(phase->fragments[fragment].dtype), fragment,
                       KIR_NONE, KIR_NONE, KIR_NONE);
}

void kir_done(struct kir_module *module, uint32_t value)
{
    close(module, KIR_each, &(struct kir_inst){.op = KIR_done, .a = {value, KIR_NONE, KIR_NONE}});
}
