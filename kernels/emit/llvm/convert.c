/* SPDX-License-Identifier: Apache-2.0 */
/* Between types, and between values and memory.  Conversions of floats to integers saturate: what
 * is out of range is replaced before, and the result after. */
#include "emit/llvm/convert.h"

#include <math.h>

#include "emit/llvm/emit.h"
#include "emit/llvm/value.h"
#include "ir/half.h"

static bool is_real(uint32_t type)
{
    return type == KIR_F32 || type == KIR_F64;
}

static ll_type shape_of(const struct ll *l, uint32_t type)
{
    return ll_shape(l, l->types.of[type]);
}

/* ---- numbers ---- */

static ll_value saturate(struct ll *l, ll_value a, uint32_t from, uint32_t to, bool is_signed)
{
    uint32_t width = to == KIR_I32 ? 32 : 64;
    ll_type type = l->types.of[to];
    double most = is_signed ? (width == 32 ? 0x1p31 : 0x1p63) : (width == 32 ? 0x1p32 : 0x1p64);
    ll_value above = BUILD(l, FCmp, LL_OGE, a, ll_real(l, from, most));
    ll_value low = ll_real(l, from, is_signed ? -most : 0);
    ll_value in = BUILD(l, And, BUILD(l, FCmp, LL_OGE, a, low),
                        BUILD(l, FCmp, LL_OLT, a, ll_real(l, from, most)));
    ll_value safe = BUILD(l, Select, in, a, ll_real(l, from, 0)), out;
    uint64_t greatest = UINT64_MAX >> (64 - width);

    if (!is_signed) {
        out = BUILD(l, FPToUI, safe, shape_of(l, to));
        return BUILD(l, Select, above, ll_num(l, type, greatest), out);
    }
    out = BUILD(l, FPToSI, safe, shape_of(l, to));
    out = BUILD(l, Select, above, ll_num(l, type, greatest >> 1), out);
    return BUILD(l, Select, BUILD(l, FCmp, LL_OLT, a, low), ll_num(l, type, (greatest >> 1) + 1),
                 out);
}

static ll_value to_integer(struct ll *l, const struct kir_inst *inst, uint32_t from, ll_value a)
{
    bool is_signed = inst->op == KIR_i32 || inst->op == KIR_i64;

    if (is_real(from))
        return saturate(l, a, from, inst->type, is_signed);
    if (from == inst->type)
        return a;
    if (from == KIR_I64)
        return BUILD(l, Trunc, a, shape_of(l, inst->type));
    return from == KIR_B || !is_signed ? BUILD(l, ZExt, a, shape_of(l, inst->type))
                                       : BUILD(l, SExt, a, shape_of(l, inst->type));
}

static ll_value to_real(struct ll *l, const struct kir_inst *inst, uint32_t from, ll_value a)
{
    if (from == inst->type)
        return a;
    if (from == KIR_F32)
        return BUILD(l, FPExt, a, shape_of(l, inst->type));
    if (from == KIR_F64)
        return BUILD(l, FPTrunc, a, shape_of(l, inst->type));
    if (from == KIR_B)
        return BUILD(l, Select, a, ll_real(l, inst->type, 1), ll_real(l, inst->type, 0));
    return inst->op == KIR_uf32 || inst->op == KIR_uf64
               ? BUILD(l, UIToFP, a, shape_of(l, inst->type))
               : BUILD(l, SIToFP, a, shape_of(l, inst->type));
}

static ll_value wrap(struct ll *l, int64_t bits, ll_value a)
{
    ll_type narrow = ll_shape(l, bits == 8 || bits == -8 ? l->types.i8 : l->types.i16);
    ll_value low = BUILD(l, Trunc, a, narrow);

    return bits < 0 ? BUILD(l, ZExt, low, shape_of(l, KIR_I32))
                    : BUILD(l, SExt, low, shape_of(l, KIR_I32));
}

ll_value ll_convert(struct ll *l, const struct kir_inst *inst, uint32_t from, ll_value a)
{
    switch (inst->op) {
    case KIR_wrap:
        return wrap(l, (int64_t)inst->imm, a);
    case KIR_round:
        return ll_from_memory(l, (uint32_t)inst->imm, ll_to_memory(l, (uint32_t)inst->imm, a));
    case KIR_bits:
        return BUILD(l, BitCast, a, shape_of(l, inst->type));
    default:
        return is_real(inst->type) ? to_real(l, inst, from, a) : to_integer(l, inst, from, a);
    }
}

/* ---- floats of 16 bits, as rows.def has them ---- */

static ll_value bits_of(struct ll *l, ll_value a)
{
    return BUILD(l, BitCast, a, shape_of(l, KIR_I32));
}

static ll_value real_of(struct ll *l, ll_value a)
{
    return BUILD(l, BitCast, a, shape_of(l, KIR_F32));
}

static ll_value num32(const struct ll *l, uint32_t value)
{
    return ll_num(l, l->types.of[KIR_I32], value);
}

/* Those that are the upper half of an F32. */
static ll_value upper_from(struct ll *l, ll_value raw)
{
    return real_of(l, BUILD(l, Shl, BUILD(l, ZExt, raw, shape_of(l, KIR_I32)), num32(l, 16)));
}

static ll_value upper_to(struct ll *l, ll_value a)
{
    ll_value bits = bits_of(l, a), high = BUILD(l, LShr, bits, num32(l, 16));
    ll_value odd = BUILD(l, And, high, num32(l, 1));
    ll_value up = BUILD(l, Add, BUILD(l, Add, bits, num32(l, 0x7fff)), odd);
    ll_value nan = BUILD(l, FCmp, LL_UNO, a, a);
    ll_value out =
        BUILD(l, Select, nan, BUILD(l, Or, high, num32(l, 0x40)), BUILD(l, LShr, up, num32(l, 16)));

    return BUILD(l, Trunc, out, ll_shape(l, l->types.i16));
}

/* By arithmetic, where the machine has no conversion: the exponent is moved by a multiplication. */
static ll_value half_from_code(struct ll *l, struct half_layout half, ll_value raw)
{
    ll_value bits = BUILD(l, ZExt, raw, shape_of(l, KIR_I32));
    ll_value moved = BUILD(l, Shl, BUILD(l, And, bits, num32(l, 0x7fff)), num32(l, half.shift));
    ll_value sign = BUILD(l, Shl, BUILD(l, And, bits, num32(l, 0x8000)), num32(l, 16));
    ll_value power = ll_real(l, KIR_F32, ldexp(1, (int)half.rebias));
    ll_value finite = bits_of(l, BUILD(l, FMul, real_of(l, moved), power));
    ll_value special = BUILD(l, ICmp, LL_UGE, moved, num32(l, half.infinity << half.shift));
    ll_value out = BUILD(l, Select, special, BUILD(l, Or, moved, num32(l, 0x7f800000)), finite);

    return real_of(l, BUILD(l, Or, out, sign));
}

/* Subnormals are rounded by adding a power of two whose last bit is theirs. */
static ll_value half_to_code(struct ll *l, struct half_layout half, ll_value a)
{
    ll_value bits = bits_of(l, a), size = BUILD(l, And, bits, num32(l, 0x7fffffff));
    ll_value cut = BUILD(l, LShr, size, num32(l, half.shift));
    uint32_t up_by = (1u << (half.shift - 1)) - 1 - (half.rebias << 23);
    ll_value up =
        BUILD(l, Add, BUILD(l, Add, size, num32(l, up_by)), BUILD(l, And, cut, num32(l, 1)));
    ll_value sum =
        BUILD(l, FAdd, real_of(l, size), ll_real(l, KIR_F32, (double)half_real_of(half.aligner)));
    ll_value small = BUILD(l, Sub, bits_of(l, sum), num32(l, half.aligner)), out;

    out = BUILD(l, Select, BUILD(l, ICmp, LL_UGE, size, num32(l, half.overflow)),
                num32(l, half.infinity), BUILD(l, LShr, up, num32(l, half.shift)));
    out = BUILD(l, Select, BUILD(l, ICmp, LL_ULT, size, num32(l, half.normal)), small, out);
    out = BUILD(l, Select, BUILD(l, FCmp, LL_UNO, a, a), num32(l, half.infinity | half.quiet), out);
    out = BUILD(l, Or, out, BUILD(l, And, BUILD(l, LShr, bits, num32(l, 16)), num32(l, 0x8000)));
    return BUILD(l, Trunc, out, ll_shape(l, l->types.i16));
}

/* Whether the machine converts it: an IEEE binary16. */
static bool is_own(const struct ll *l, struct half_layout half)
{
    return half.fraction == 10 && l->cpu.isa >= LLVM_AVX2;
}

static ll_value half_from(struct ll *l, struct half_layout half, ll_value raw)
{
    if (!half.rebias)
        return upper_from(l, raw);
    if (!is_own(l, half))
        return half_from_code(l, half, raw);
    return BUILD(l, FPExt, BUILD(l, BitCast, raw, ll_shape(l, l->types.half)),
                 shape_of(l, KIR_F32));
}

static ll_value half_to(struct ll *l, struct half_layout half, ll_value a)
{
    if (!half.rebias)
        return upper_to(l, a);
    if (!is_own(l, half))
        return half_to_code(l, half, a);
    return BUILD(l, BitCast, BUILD(l, FPTrunc, a, ll_shape(l, l->types.half)),
                 ll_shape(l, l->types.i16));
}

/* ---- memory ---- */

ll_type ll_memory_type(const struct ll *l, uint32_t dtype)
{
    switch (frit_storage_bytes(dtype, 1)) {
    case 1:
        return l->types.i8;
    case 2:
        return l->types.i16;
    default:
        return l->types.of[kir_type_of(dtype)];
    }
}

ll_value ll_from_memory(struct ll *l, uint32_t dtype, ll_value raw)
{
    const frit_dtype_info info = frit_dtype_info_of(dtype);

    if (info.cls == FRIT_DTYPE_BOOL)
        return BUILD(l, ICmp, LL_NE, raw, ll_num(l, l->types.i8, 0));
    if (kir_is_16_bit_float(dtype))
        return half_from(l, half_layout(info.fraction), raw);
    if (info.cls == FRIT_DTYPE_INT && info.bits < 32)
        return BUILD(l, SExt, raw, shape_of(l, KIR_I32));
    if (info.cls == FRIT_DTYPE_UINT && info.bits < 32)
        return BUILD(l, ZExt, raw, shape_of(l, KIR_I32));
    return raw;
}

ll_value ll_to_memory(struct ll *l, uint32_t dtype, ll_value value)
{
    const frit_dtype_info info = frit_dtype_info_of(dtype);

    if (info.cls == FRIT_DTYPE_BOOL)
        return BUILD(l, ZExt, value, ll_shape(l, l->types.i8));
    if (kir_is_16_bit_float(dtype))
        return half_to(l, half_layout(info.fraction), value);
    if (kir_type_of(dtype) == KIR_I32 && info.bits < 32)
        return BUILD(l, Trunc, value, ll_shape(l, ll_memory_type(l, dtype)));
    return value;
}
