/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic and comparisons of one lane.  Most are one instruction, named in the table per type;
 * the rest are made of several, because SPIR-V leaves open what the IR says: divisions by 0, NaN in
 * min and max, signs. */
#include "emit/spirv/value.h"

#include "emit/spirv/convert.h"
#include "emit/spirv/emit.h"

/* Whatever rounds is kept from being contracted. */
uint32_t value_round(struct emit *e, uint32_t op, uint32_t kir_type, uint32_t a, uint32_t b)
{
    uint32_t id = EMIT(e, (enum spv_op)op, emit_type(e, kir_type), a, b);

    spv_put(&e->build, SPV_IN_DECORATIONS, SPV_DECORATE, SPV(id, SPV_DEC_NO_CONTRACTION));
    return id;
}

static uint32_t select_of(struct emit *e, uint32_t type, uint32_t test, uint32_t a, uint32_t b)
{
    return EMIT(e, SPV_SELECT, emit_type(e, type), test, a, b);
}

static bool is_float(uint32_t type)
{
    return type == KIR_F32 || type == KIR_F64;
}

static uint32_t int_of(uint32_t type)
{
    return type == KIR_F32 ? KIR_I32 : KIR_I64;
}

uint32_t value_bits(struct emit *e, uint32_t kir_type, uint32_t id)
{
    return EMIT(e, SPV_BITCAST, emit_type(e, int_of(kir_type)), id);
}

static uint32_t sign_of(struct emit *e, uint32_t type)
{
    return emit_const(e, int_of(type), type == KIR_F32 ? 1ull << 31 : 1ull << 63);
}

static uint32_t without_sign(struct emit *e, uint32_t type, uint32_t id)
{
    uint64_t mask = type == KIR_F32 ? INT32_MAX : INT64_MAX;

    return EMIT(e, SPV_BITWISE_AND, emit_type(e, int_of(type)), value_bits(e, type, id),
                emit_const(e, int_of(type), mask));
}

uint32_t value_is_nan(struct emit *e, uint32_t kir_type, uint32_t id)
{
    uint64_t infinity = kir_type == KIR_F32 ? 0x7f800000 : 0x7ff0000000000000;

    return EMIT(e, SPV_U_GREATER_THAN, emit_bool_type(e), without_sign(e, kir_type, id),
                emit_const(e, int_of(kir_type), infinity));
}

uint32_t value_packed_type(struct emit *e, uint32_t kir_type)
{
    return emit_type(e, kir_type == KIR_B ? KIR_I32 : kir_type);
}

uint32_t value_packed(struct emit *e, uint32_t kir_type, uint32_t id)
{
    if (kir_type != KIR_B)
        return id;
    return EMIT(e, SPV_SELECT, emit_int_type(e, 32), id, emit_u32(e, 1), emit_u32(e, 0));
}

uint32_t value_unpacked(struct emit *e, uint32_t kir_type, uint32_t id)
{
    return kir_type == KIR_B ? EMIT(e, SPV_I_NOT_EQUAL, emit_bool_type(e), id, emit_u32(e, 0)) : id;
}

/* ---- made of several ---- */

static uint32_t negate(struct emit *e, const struct kir_inst *inst, const uint32_t *v)
{
    uint32_t bits;

    if (!is_float(inst->type))
        return EMIT(e, SPV_S_NEGATE, emit_type(e, inst->type), v[0]);
    bits = EMIT(e, SPV_BITWISE_XOR, emit_type(e, int_of(inst->type)),
                value_bits(e, inst->type, v[0]), sign_of(e, inst->type));
    return EMIT(e, SPV_BITCAST, emit_type(e, inst->type), bits);
}

static uint32_t absolute(struct emit *e, const struct kir_inst *inst, const uint32_t *v)
{
    uint32_t type = emit_type(e, inst->type), test;

    if (is_float(inst->type))
        return EMIT(e, SPV_BITCAST, type, without_sign(e, inst->type, v[0]));
    test = EMIT(e, SPV_S_LESS_THAN, emit_bool_type(e), v[0], emit_const(e, inst->type, 0));
    return select_of(e, inst->type, test, EMIT(e, SPV_S_NEGATE, type, v[0]), v[0]);
}

/* The magnitude of one with the sign of the other. */
static uint32_t with_sign64(struct emit *e, uint32_t id, uint32_t of)
{
    uint32_t bits = emit_type(e, KIR_I64), sign;

    sign = EMIT(e, SPV_BITWISE_AND, bits, value_bits(e, KIR_F64, of), sign_of(e, KIR_F64));
    id = EMIT(e, SPV_BITWISE_OR, bits, without_sign(e, KIR_F64, id), sign);
    return EMIT(e, SPV_BITCAST, emit_type(e, KIR_F64), id);
}

static uint32_t glsl(struct emit *e, const struct kir_inst *inst, uint32_t op, uint32_t x)
{
    return EMIT(e, SPV_EXT_INST, emit_type(e, inst->type), e->glsl, op, x);
}

/* A software device goes from f64 by way of integers, which have no -0. */
static uint32_t toward_zero(struct emit *e, const struct kir_inst *inst, const uint32_t *v)
{
    uint32_t id = glsl(e, inst, GLSL_TRUNC, v[0]);

    return inst->type == KIR_F64 ? with_sign64(e, id, v[0]) : id;
}

/* And does not round f64 to even: adding 2^52 does, below which there are fractions. */
static uint32_t round_even(struct emit *e, const struct kir_inst *inst, const uint32_t *v)
{
    const uint64_t two_52 = 0x4330000000000000;
    uint32_t size, id, test;

    if (inst->type != KIR_F64)
        return glsl(e, inst, GLSL_ROUND_EVEN, v[0]);
    size = EMIT(e, SPV_BITCAST, emit_type(e, KIR_F64), without_sign(e, KIR_F64, v[0]));
    id = value_round(e, SPV_F_ADD, KIR_F64, size, emit_const(e, KIR_F64, two_52));
    id = value_round(e, SPV_F_SUB, KIR_F64, id, emit_const(e, KIR_F64, two_52));
    test = EMIT(e, SPV_F_ORD_LESS_THAN, emit_bool_type(e), size, emit_const(e, KIR_F64, two_52));
    return select_of(e, KIR_F64, test, with_sign64(e, id, v[0]), v[0]);
}

/* Its own Ldexp may lose denormals. */
static uint32_t scale(struct emit *e, const struct kir_inst *inst, const uint32_t *v)
{
    (void)inst;
    emit_refuse(e, "scaling by a power of 2");
    return v[0];
}

/* A number that divides without ado. */
static bool divides(const struct emit *e, const struct kir_inst *inst)
{
    const struct kir_inst *b = &e->phase->inst[inst->a[1]];
    uint64_t minus = inst->type == KIR_I32 ? UINT32_MAX : UINT64_MAX;

    return b->op == KIR_const && b->imm != 0 && b->imm != minus;
}

static uint32_t udiv(struct emit *e, const struct kir_inst *inst, const uint32_t *v)
{
    uint32_t type = emit_type(e, inst->type), zero = emit_const(e, inst->type, 0), test, q;

    if (divides(e, inst))
        return EMIT(e, SPV_U_DIV, type, v[0], v[1]);
    test = EMIT(e, SPV_I_EQUAL, emit_bool_type(e), v[1], zero);
    q = EMIT(e, SPV_U_DIV, type, v[0],
             select_of(e, inst->type, test, emit_const(e, inst->type, 1), v[1]));
    return select_of(e, inst->type, test, zero, q);
}

/* By -1 too is apart: the least integer has no quotient there that SPIR-V knows. */
static uint32_t sdiv(struct emit *e, const struct kir_inst *inst, const uint32_t *v)
{
    uint32_t type = emit_type(e, inst->type), zero = emit_const(e, inst->type, 0);
    uint32_t one = emit_const(e, inst->type, 1), is_zero, is_minus, either, q;

    if (divides(e, inst))
        return EMIT(e, SPV_S_DIV, type, v[0], v[1]);
    is_zero = EMIT(e, SPV_I_EQUAL, emit_bool_type(e), v[1], zero);
    is_minus = EMIT(e, SPV_I_EQUAL, emit_bool_type(e), v[1], emit_const(e, inst->type, UINT64_MAX));
    either = EMIT(e, SPV_LOGICAL_OR, emit_bool_type(e), is_zero, is_minus);
    q = EMIT(e, SPV_S_DIV, type, v[0], select_of(e, inst->type, either, one, v[1]));
    q = select_of(e, inst->type, is_minus, EMIT(e, SPV_S_NEGATE, type, v[0]), q);
    return select_of(e, inst->type, is_zero, zero, q);
}

static uint32_t rest_of(struct emit *e, const struct kir_inst *inst, const uint32_t *v, uint32_t q)
{
    uint32_t type = emit_type(e, inst->type);

    return EMIT(e, SPV_I_SUB, type, v[0], EMIT(e, SPV_I_MUL, type, v[1], q));
}

static uint32_t srem(struct emit *e, const struct kir_inst *inst, const uint32_t *v)
{
    return rest_of(e, inst, v, sdiv(e, inst, v));
}

static uint32_t urem(struct emit *e, const struct kir_inst *inst, const uint32_t *v)
{
    return rest_of(e, inst, v, udiv(e, inst, v));
}

static uint32_t mulhi(struct emit *e, const struct kir_inst *inst, const uint32_t *v)
{
    uint32_t word = emit_type(e, inst->type), pair;

    pair = spv_type(&e->build, SPV_TYPE_STRUCT, SPV(word, word));
    return EMIT(e, SPV_COMPOSITE_EXTRACT, word, EMIT(e, SPV_U_MUL_EXTENDED, pair, v[0], v[1]), 1);
}

static uint32_t choose(struct emit *e, const struct kir_inst *inst, const uint32_t *v,
                       enum spv_op op)
{
    return select_of(e, inst->type, EMIT(e, op, emit_bool_type(e), v[0], v[1]), v[0], v[1]);
}

static uint32_t smin(struct emit *e, const struct kir_inst *inst, const uint32_t *v)
{
    return choose(e, inst, v, SPV_S_LESS_THAN);
}

static uint32_t smax(struct emit *e, const struct kir_inst *inst, const uint32_t *v)
{
    return choose(e, inst, v, SPV_S_GREATER_THAN);
}

static uint32_t umin(struct emit *e, const struct kir_inst *inst, const uint32_t *v)
{
    return choose(e, inst, v, SPV_U_LESS_THAN);
}

static uint32_t umax(struct emit *e, const struct kir_inst *inst, const uint32_t *v)
{
    return choose(e, inst, v, SPV_U_GREATER_THAN);
}

static bool is_number(const struct emit *e, uint32_t value, uint32_t type)
{
    const struct kir_inst *inst = &e->phase->inst[value];
    uint64_t sign = type == KIR_F32 ? 1ull << 31 : 1ull << 63;
    uint64_t infinity = type == KIR_F32 ? 0x7f800000 : 0x7ff0000000000000;

    return inst->op == KIR_const && (inst->imm & ~sign) <= infinity;
}

/* a where it comes before b or is NaN, else b: where b is NaN no ordered comparison is true, and an
 * unordered one is, so that it alone will do where b is a number. */
static uint32_t choose_float(struct emit *e, const struct kir_inst *inst, const uint32_t *v,
                             enum spv_op ordered, enum spv_op unordered)
{
    uint32_t test;

    if (is_number(e, inst->a[1], inst->type))
        return choose(e, inst, v, unordered);
    test = EMIT(e, ordered, emit_bool_type(e), v[0], v[1]);
    if (!is_number(e, inst->a[0], inst->type))
        test = EMIT(e, SPV_LOGICAL_OR, emit_bool_type(e),
                    EMIT(e, SPV_F_UNORD_NOT_EQUAL, emit_bool_type(e), v[0], v[0]), test);
    return select_of(e, inst->type, test, v[0], v[1]);
}

static uint32_t fmin_of(struct emit *e, const struct kir_inst *inst, const uint32_t *v)
{
    return choose_float(e, inst, v, SPV_F_ORD_LESS_THAN, SPV_F_UNORD_LESS_THAN);
}

static uint32_t fmax_of(struct emit *e, const struct kir_inst *inst, const uint32_t *v)
{
    return choose_float(e, inst, v, SPV_F_ORD_GREATER_THAN, SPV_F_UNORD_GREATER_THAN);
}

static uint32_t select_one(struct emit *e, const struct kir_inst *inst, const uint32_t *v)
{
    return select_of(e, inst->type, v[2], v[0], v[1]);
}

static uint32_t constant(struct emit *e, const struct kir_inst *inst, const uint32_t *v)
{
    uint64_t sign = inst->type == KIR_F32 ? 1ull << 31 : 1ull << 63;

    (void)v;
    if (is_float(inst->type) && !(inst->imm & ~sign))
        return emit_zero(e, inst->type, inst->imm != 0);
    return emit_const(e, inst->type, inst->imm);
}

static uint32_t param(struct emit *e, const struct kir_inst *inst, const uint32_t *v)
{
    uint32_t word = emit_launch_word(e, e->module->n_args + (uint32_t)inst->imm), low;

    (void)v;
    if (inst->type == KIR_I64)
        return word;
    if (inst->type == KIR_F64)
        return EMIT(e, SPV_BITCAST, emit_type(e, KIR_F64), word);
    low = EMIT(e, SPV_U_CONVERT, emit_type(e, KIR_I32), word);
    if (inst->type == KIR_B)
        return EMIT(e, SPV_I_NOT_EQUAL, emit_bool_type(e),
                    EMIT(e, SPV_BITWISE_AND, emit_type(e, KIR_I32), low, emit_u32(e, 1)),
                    emit_u32(e, 0));
    return inst->type == KIR_F32 ? EMIT(e, SPV_BITCAST, emit_type(e, KIR_F32), low) : low;
}

static uint32_t group(struct emit *e, const struct kir_inst *inst, const uint32_t *v)
{
    (void)v;
    return emit_group(e, (uint32_t)inst->imm);
}

static uint32_t convert(struct emit *e, const struct kir_inst *inst, const uint32_t *v)
{
    return convert_emit(e, inst, v[0]);
}

static uint32_t wrap(struct emit *e, const struct kir_inst *inst, const uint32_t *v)
{
    return convert_wrap(e, inst, v[0]);
}

static uint32_t round_half(struct emit *e, const struct kir_inst *inst, const uint32_t *v)
{
    return convert_half(e, inst, v[0]);
}

/* ---- the table ---- */

typedef uint32_t (*value_fn)(struct emit *e, const struct kir_inst *inst, const uint32_t *v);

/* `i`, `f`, `b`: the instruction for operands of that type, GLSL ones plus GLSL; else `make`. */
struct value_row {
    uint16_t i, f, b;
    value_fn make;
};

static uint32_t refuse_dot2(struct emit *e, const struct kir_inst *inst, const uint32_t *v)
{
    (void)inst;
    emit_refuse(e, "sums of two products of bf16");
    return v[2];
}

enum { GLSL = 0x8000 };

#define ONE(i, f, b)  \
    {                 \
        i, f, b, NULL \
    }
#define MADE(make)    \
    {                 \
        0, 0, 0, make \
    }

static const struct value_row rows[KIR_OPS] = {
    [KIR_const] = MADE(constant),
    [KIR_param] = MADE(param),
    [KIR_group] = MADE(group),
    [KIR_add] = ONE(SPV_I_ADD, SPV_F_ADD, 0),
    [KIR_sub] = ONE(SPV_I_SUB, SPV_F_SUB, 0),
    [KIR_mul] = ONE(SPV_I_MUL, SPV_F_MUL, 0),
    [KIR_div] = ONE(0, SPV_F_DIV, 0),
    [KIR_fma] = ONE(0, GLSL | GLSL_FMA, 0),
    [KIR_sqrt] = ONE(0, GLSL | GLSL_SQRT, 0),
    [KIR_floor] = ONE(0, GLSL | GLSL_FLOOR, 0),
    [KIR_ceil] = ONE(0, GLSL | GLSL_CEIL, 0),
    [KIR_trunc] = MADE(toward_zero),
    [KIR_rint] = MADE(round_even),
    [KIR_scale] = MADE(scale),
    [KIR_exp2] = ONE(0, GLSL | GLSL_EXP2, 0),
    [KIR_dot2] = MADE(refuse_dot2),
    [KIR_neg] = MADE(negate),
    [KIR_abs] = MADE(absolute),
    [KIR_sdiv] = MADE(sdiv),
    [KIR_udiv] = MADE(udiv),
    [KIR_srem] = MADE(srem),
    [KIR_urem] = MADE(urem),
    [KIR_mulhi] = MADE(mulhi),
    [KIR_and] = ONE(SPV_BITWISE_AND, 0, SPV_LOGICAL_AND),
    [KIR_or] = ONE(SPV_BITWISE_OR, 0, SPV_LOGICAL_OR),
    [KIR_xor] = ONE(SPV_BITWISE_XOR, 0, SPV_LOGICAL_NOT_EQUAL),
    [KIR_not] = ONE(SPV_NOT, 0, SPV_LOGICAL_NOT),
    [KIR_shl] = ONE(SPV_SHIFT_LEFT_LOGICAL, 0, 0),
    [KIR_shr] = ONE(SPV_SHIFT_RIGHT_LOGICAL, 0, 0),
    [KIR_sar] = ONE(SPV_SHIFT_RIGHT_ARITHMETIC, 0, 0),
    [KIR_smin] = MADE(smin),
    [KIR_smax] = MADE(smax),
    [KIR_umin] = MADE(umin),
    [KIR_umax] = MADE(umax),
    [KIR_fmin] = MADE(fmin_of),
    [KIR_fmax] = MADE(fmax_of),
    [KIR_eq] = ONE(SPV_I_EQUAL, SPV_F_ORD_EQUAL, SPV_LOGICAL_EQUAL),
    [KIR_ne] = ONE(SPV_I_NOT_EQUAL, SPV_F_UNORD_NOT_EQUAL, SPV_LOGICAL_NOT_EQUAL),
    [KIR_lt] = ONE(SPV_S_LESS_THAN, SPV_F_ORD_LESS_THAN, 0),
    [KIR_le] = ONE(SPV_S_LESS_THAN_EQUAL, SPV_F_ORD_LESS_THAN_EQUAL, 0),
    [KIR_ult] = ONE(SPV_U_LESS_THAN, 0, 0),
    [KIR_ule] = ONE(SPV_U_LESS_THAN_EQUAL, 0, 0),
    [KIR_select] = MADE(select_one),
    [KIR_wrap] = MADE(wrap),
    [KIR_round] = MADE(round_half),
    [KIR_i32] = MADE(convert),
    [KIR_i64] = MADE(convert),
    [KIR_u64] = MADE(convert),
    [KIR_u32] = MADE(convert),
    [KIR_f32] = MADE(convert),
    [KIR_f64] = MADE(convert),
    [KIR_uf32] = MADE(convert),
    [KIR_uf64] = MADE(convert),
    [KIR_bits] = MADE(convert),
};

/* fma has its one rounding by itself; what is no arithmetic has none. */
static bool rounds(uint32_t op)
{
    return op == SPV_F_ADD || op == SPV_F_SUB || op == SPV_F_MUL || op == SPV_F_DIV;
}

uint32_t value_emit(struct emit *e, const struct kir_inst *inst, const uint32_t *v)
{
    const struct value_row *row = &rows[inst->op];
    uint32_t n = kir_op_info(inst->op)->n, type, from, op, words[5];

    if (row->make)
        return row->make(e, inst, v);
    from = emit_type_at(e, inst->a[0]);
    op = is_float(from) ? row->f : from == KIR_B ? row->b : row->i;
    type = emit_type(e, inst->type);
    if (rounds(op))
        return value_round(e, op, inst->type, v[0], v[1]);
    if (!(op & GLSL))
        return spv_make(&e->build, SPV_IN_BODY, (enum spv_op)op, type, v, n);
    words[0] = e->glsl;
    words[1] = op & ~(uint32_t)GLSL;
    for (uint32_t i = 0; i < n; i++)
        words[2 + i] = v[i];
    return spv_make(&e->build, SPV_IN_BODY, SPV_EXT_INST, type, words, n + 2);
}
