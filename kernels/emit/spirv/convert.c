/* SPDX-License-Identifier: Apache-2.0 */
/* Conversions of one lane: between the types of the IR, and to and from what memory has.  Floats of
 * 16 bits are converted bit for bit as ir/half.h does: by integer code, where the device does not
 * promise that its own conversion does so. */
#include "emit/spirv/convert.h"

#include "emit/spirv/emit.h"
#include "emit/spirv/value.h"
#include "ir/half.h"

static uint32_t op_u32(struct emit *e, enum spv_op op, uint32_t a, uint32_t b)
{
    return EMIT(e, op, emit_type(e, KIR_I32), a, b);
}

static uint32_t with(struct emit *e, enum spv_op op, uint32_t a, uint32_t number)
{
    return op_u32(e, op, a, emit_u32(e, number));
}

static uint32_t choose(struct emit *e, uint32_t test, uint32_t a, uint32_t b)
{
    return EMIT(e, SPV_SELECT, emit_type(e, KIR_I32), test, a, b);
}

static uint32_t above(struct emit *e, uint32_t a, uint32_t number)
{
    return EMIT(e, SPV_U_GREATER_THAN, emit_bool_type(e), a, emit_u32(e, number));
}

static uint32_t real_of(struct emit *e, uint32_t bits)
{
    return EMIT(e, SPV_BITCAST, emit_type(e, KIR_F32), bits);
}

/* ---- floats of 16 bits ---- */

/* A pair of the device's own. */
static uint32_t pair_type(struct emit *e)
{
    uint32_t half = spv_type(&e->build, SPV_TYPE_FLOAT, SPV(16));

    e->has_f16 = true;
    spv_capability(&e->build, SPV_CAP_FLOAT16);
    return spv_type(&e->build, SPV_TYPE_VECTOR, SPV(half, 2));
}

static uint32_t load_own(struct emit *e, uint32_t raw)
{
    uint32_t pair = pair_type(e), half = spv_type(&e->build, SPV_TYPE_FLOAT, SPV(16));

    half = EMIT(e, SPV_COMPOSITE_EXTRACT, half, EMIT(e, SPV_BITCAST, pair, raw), 0);
    return EMIT(e, SPV_F_CONVERT, emit_type(e, KIR_F32), half);
}

/* `high`: 0: none, and 0 there. */
static uint32_t store_own(struct emit *e, uint32_t low, uint32_t high)
{
    uint32_t pair = pair_type(e), half = spv_type(&e->build, SPV_TYPE_FLOAT, SPV(16));

    low = EMIT(e, SPV_F_CONVERT, half, low);
    high = high ? EMIT(e, SPV_F_CONVERT, half, high)
                : spv_constant(&e->build, SPV_CONSTANT, half, SPV(0));
    pair = EMIT(e, SPV_COMPOSITE_CONSTRUCT, pair, low, high);
    return EMIT(e, SPV_BITCAST, emit_type(e, KIR_I32), pair);
}

/* Of the low 16 bits; whatever is above does not matter.  A subnormal becomes a fraction under an
 * exponent that subtracting takes away again. */
static uint32_t half_load_code(struct emit *e, struct half_layout half, uint32_t raw)
{
    uint32_t sign = with(e, SPV_SHIFT_LEFT_LOGICAL, with(e, SPV_BITWISE_AND, raw, 0x8000), 16);
    uint32_t rest =
        with(e, SPV_SHIFT_LEFT_LOGICAL, with(e, SPV_BITWISE_AND, raw, 0x7fff), half.shift);
    uint32_t normal = with(e, SPV_I_ADD, rest, half.rebias << 23);
    uint32_t special = with(e, SPV_I_ADD, rest, half.rebias << 24);
    uint32_t small = with(e, SPV_I_ADD, rest, half.normal), bits;

    small =
        value_round(e, SPV_F_SUB, KIR_F32, real_of(e, small), emit_const(e, KIR_F32, half.normal));
    small = value_bits(e, KIR_F32, small);
    bits = choose(e, above(e, rest, (1u << 23) - 1), normal, small);
    bits = choose(e, above(e, rest, (half.infinity << half.shift) - 1), special, bits);
    return real_of(e, op_u32(e, SPV_BITWISE_OR, bits, sign));
}

static uint32_t half_store_code(struct emit *e, struct half_layout half, uint32_t id)
{
    uint32_t bits = value_bits(e, KIR_F32, id), sign, rest, odd, normal, small, nan, out;
    uint32_t up_by = (1u << (half.shift - 1)) - 1 - (half.rebias << 23);

    sign = with(e, SPV_BITWISE_AND, with(e, SPV_SHIFT_RIGHT_LOGICAL, bits, 16), 0x8000);
    rest = with(e, SPV_BITWISE_AND, bits, 0x7fffffff);
    odd = with(e, SPV_BITWISE_AND, with(e, SPV_SHIFT_RIGHT_LOGICAL, rest, half.shift), 1);
    normal = op_u32(e, SPV_I_ADD, with(e, SPV_I_ADD, rest, up_by), odd);
    normal = with(e, SPV_SHIFT_RIGHT_LOGICAL, normal, half.shift);
    small =
        value_round(e, SPV_F_ADD, KIR_F32, real_of(e, rest), emit_const(e, KIR_F32, half.aligner));
    small = with(e, SPV_I_SUB, value_bits(e, KIR_F32, small), half.aligner);
    nan = with(e, SPV_BITWISE_AND, with(e, SPV_SHIFT_RIGHT_LOGICAL, rest, half.shift),
               (1u << half.fraction) - 1);
    nan = with(e, SPV_BITWISE_OR, nan, half.infinity | half.quiet);
    out = choose(e, above(e, rest, half.normal - 1), normal, small);
    out = choose(e, above(e, rest, half.overflow - 1), emit_u32(e, half.infinity), out);
    out = choose(e, above(e, rest, 0x7f800000), nan, out);
    return op_u32(e, SPV_BITWISE_OR, out, sign);
}

/* Those that are the upper half of an F32: there, under it any bits.  By code, since conversions to
 * bfloat16 may round toward zero, as NVIDIA's driver does (580). */
static uint32_t upper_rounded(struct emit *e, uint32_t id)
{
    uint32_t bits = value_bits(e, KIR_F32, id), odd, near;

    odd = with(e, SPV_BITWISE_AND, with(e, SPV_SHIFT_RIGHT_LOGICAL, bits, 16), 1);
    near = op_u32(e, SPV_I_ADD, with(e, SPV_I_ADD, bits, 0x7fff), odd);
    return choose(e, value_is_nan(e, KIR_F32, id), with(e, SPV_BITWISE_OR, bits, 0x40 << 16), near);
}

static uint32_t upper_store(struct emit *e, uint32_t id)
{
    return with(e, SPV_SHIFT_RIGHT_LOGICAL, upper_rounded(e, id), 16);
}

static uint32_t upper_load(struct emit *e, uint32_t raw)
{
    return real_of(e, with(e, SPV_SHIFT_LEFT_LOGICAL, raw, 16));
}

/* Whether the device converts it: an IEEE binary16. */
static bool is_own(const struct emit *e, struct half_layout half)
{
    return half.fraction == 10 && e->target->float16;
}

static uint32_t half_from(struct emit *e, uint32_t dtype, uint32_t raw)
{
    const struct half_layout half = half_layout(frit_dtype_info_of(dtype).fraction);

    if (!half.rebias)
        return upper_load(e, raw);
    return is_own(e, half) ? load_own(e, raw) : half_load_code(e, half, raw);
}

static uint32_t half_to(struct emit *e, uint32_t dtype, uint32_t id)
{
    const struct half_layout half = half_layout(frit_dtype_info_of(dtype).fraction);

    if (!half.rebias)
        return upper_store(e, id);
    return is_own(e, half) ? store_own(e, id, 0) : half_store_code(e, half, id);
}

/* There and back in sight of each other, some compilers of drivers leave both away, and with them
 * the rounding.  Of the upper half of an F32 the load clears what is above. */
uint32_t convert_half(struct emit *e, const struct kir_inst *inst, uint32_t id)
{
    uint32_t dtype = (uint32_t)inst->imm, raw = half_to(e, dtype, id);

    if (half_layout(frit_dtype_info_of(dtype).fraction).rebias)
        raw = with(e, SPV_BITWISE_AND, raw, 0xffff);
    return half_from(e, dtype, raw);
}

/* ---- narrow integers ---- */

static uint32_t narrow(struct emit *e, uint32_t id, uint32_t bits, bool is_signed)
{
    if (!is_signed)
        return with(e, SPV_BITWISE_AND, id, (1u << bits) - 1);
    return with(e, SPV_SHIFT_RIGHT_ARITHMETIC, with(e, SPV_SHIFT_LEFT_LOGICAL, id, 32 - bits),
                32 - bits);
}

uint32_t convert_wrap(struct emit *e, const struct kir_inst *inst, uint32_t id)
{
    int64_t bits = (int64_t)inst->imm;

    return narrow(e, id, (uint32_t)(bits < 0 ? -bits : bits), bits > 0);
}

/* ---- memory ---- */

uint32_t convert_load(struct emit *e, uint32_t dtype, uint32_t raw)
{
    const frit_dtype_info info = frit_dtype_info_of(dtype);

    if (info.cls == FRIT_DTYPE_BOOL)
        return EMIT(e, SPV_I_NOT_EQUAL, emit_bool_type(e), with(e, SPV_BITWISE_AND, raw, 0xff),
                    emit_u32(e, 0));
    if (kir_is_16_bit_float(dtype))
        return half_from(e, dtype, raw);
    if (info.cls == FRIT_DTYPE_FLOAT)
        return EMIT(e, SPV_BITCAST, emit_type(e, kir_type_of(dtype)), raw);
    return info.bits < 32 ? narrow(e, raw, info.bits, info.cls == FRIT_DTYPE_INT) : raw;
}

uint32_t convert_store(struct emit *e, uint32_t dtype, uint32_t id)
{
    const frit_dtype_info info = frit_dtype_info_of(dtype);

    if (info.cls == FRIT_DTYPE_BOOL)
        return choose(e, id, emit_u32(e, 1), emit_u32(e, 0));
    if (kir_is_16_bit_float(dtype))
        return half_to(e, dtype, id);
    if (info.cls == FRIT_DTYPE_FLOAT)
        return value_bits(e, kir_type_of(dtype), id);
    return info.bits < 32 ? narrow(e, id, info.bits, false) : id;
}

uint32_t convert_pair(struct emit *e, uint32_t dtype, uint32_t low, uint32_t high)
{
    const struct half_layout half = half_layout(frit_dtype_info_of(dtype).fraction);

    if (is_own(e, half))
        return store_own(e, low, high);
    if (!half.rebias) {
        high = with(e, SPV_BITWISE_AND, upper_rounded(e, high), 0xffff0000);
        return op_u32(e, SPV_BITWISE_OR, upper_store(e, low), high);
    }
    low = with(e, SPV_BITWISE_AND, half_to(e, dtype, low), 0xffff);
    high = with(e, SPV_SHIFT_LEFT_LOGICAL, half_to(e, dtype, high), 16);
    return op_u32(e, SPV_BITWISE_OR, low, high);
}

/* ---- between types ---- */

static bool is_float(uint32_t type)
{
    return type == KIR_F32 || type == KIR_F64;
}

/* 2 to `power` as the type. */
static uint32_t power_of(struct emit *e, uint32_t type, uint32_t power, bool minus)
{
    uint64_t bits =
        type == KIR_F32 ? (uint64_t)(127 + power) << 23 : (uint64_t)(1023 + power) << 52;
    uint64_t sign = type == KIR_F32 ? 1ull << 31 : 1ull << 63;

    return emit_const(e, type, minus ? bits | sign : bits);
}

static uint32_t pick(struct emit *e, uint32_t type, uint32_t test, uint32_t a, uint32_t b)
{
    return EMIT(e, SPV_SELECT, emit_type(e, type), test, a, b);
}

/* A float toward 0; only numbers that have a result reach the conversion. */
static uint32_t saturate(struct emit *e, uint32_t from, uint32_t to, bool is_signed, uint32_t id)
{
    uint32_t width = to == KIR_I32 ? 32 : 64, flag = emit_bool_type(e), fits, least, most, out;
    uint64_t highest = UINT64_MAX >> (64 - width + is_signed);

    least = is_signed ? power_of(e, from, width - 1, true) : emit_const(e, from, 0);
    most = power_of(e, from, width - is_signed, false);
    fits = EMIT(e, SPV_LOGICAL_AND, flag, EMIT(e, SPV_F_ORD_GREATER_THAN_EQUAL, flag, id, least),
                EMIT(e, SPV_F_ORD_LESS_THAN, flag, id, most));
    out = EMIT(e, is_signed ? SPV_CONVERT_F_TO_S : SPV_CONVERT_F_TO_U, emit_type(e, to),
               pick(e, from, fits, id, emit_const(e, from, 0)));
    out = pick(e, to, EMIT(e, SPV_F_ORD_GREATER_THAN_EQUAL, flag, id, most),
               emit_const(e, to, highest), out);
    if (!is_signed)
        return out;
    return pick(e, to, EMIT(e, SPV_F_ORD_LESS_THAN, flag, id, least),
                emit_const(e, to, highest + 1), out);
}

/* With its sign, in two words: compilers that see a sign extension compare it wrongly with
 * constants (Mesa 22.3). */
static uint32_t extend(struct emit *e, uint32_t id)
{
    uint32_t pair = spv_type(&e->build, SPV_TYPE_VECTOR, SPV(emit_int_type(e, 32), 2));
    uint32_t high = with(e, SPV_SHIFT_RIGHT_ARITHMETIC, id, 31);

    return EMIT(e, SPV_BITCAST, emit_int_type(e, 64),
                EMIT(e, SPV_COMPOSITE_CONSTRUCT, pair, id, high));
}

uint32_t convert_emit(struct emit *e, const struct kir_inst *inst, uint32_t id)
{
    uint32_t from = emit_type_at(e, inst->a[0]), to = inst->type, type = emit_type(e, to);
    bool is_signed =
        inst->op != KIR_u64 && inst->op != KIR_u32 && inst->op != KIR_uf32 && inst->op != KIR_uf64;
    uint64_t one = to == KIR_F32 ? 0x3f800000 : to == KIR_F64 ? 0x3ff0000000000000 : 1;

    if (inst->op == KIR_bits)
        return EMIT(e, SPV_BITCAST, type, id);
    if (from == to)
        return id;
    if (from == KIR_B)
        return pick(e, to, id, emit_const(e, to, one), emit_const(e, to, 0));
    if (is_float(from))
        return is_float(to) ? EMIT(e, SPV_F_CONVERT, type, id)
                            : saturate(e, from, to, is_signed, id);
    if (is_float(to))
        return EMIT(e, is_signed ? SPV_CONVERT_S_TO_F : SPV_CONVERT_U_TO_F, type, id);
    return is_signed && to == KIR_I64 ? extend(e, id) : EMIT(e, SPV_U_CONVERT, type, id);
}
