/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions whose lanes are independent: the same for scalars and vectors.  Numbers agree with
 * ir/eval.def; nothing may be undefined that is defined there, so that divisors are made harmless
 * first and shifts taken by the width. */
#include "emit/llvm/rows.h"

#include "emit/llvm/convert.h"
#include "emit/llvm/emit.h"
#include "emit/llvm/value.h"

struct instruction_row {
    struct ll *l;
    const struct kir_inst *inst;
    uint32_t from; /* type of a */
    ll_value a, b, c;
};

typedef ll_value (*row_fn)(const struct instruction_row *r);

static bool is_real(const struct instruction_row *r)
{
    return r->from == KIR_F32 || r->from == KIR_F64;
}

static ll_value number(const struct instruction_row *r, uint64_t value)
{
    return ll_num(r->l, r->l->types.of[r->from], value);
}

static ll_value icmp(const struct instruction_row *r, int order, ll_value a, ll_value b)
{
    return BUILD(r->l, ICmp, order, a, b);
}

/* ---- arithmetic ---- */

#define ROW_BOTH(op, INTEGER, REAL)                                                           \
    static ll_value op##_row(const struct instruction_row *r)                                 \
    {                                                                                         \
        return is_real(r) ? BUILD(r->l, REAL, r->a, r->b) : BUILD(r->l, INTEGER, r->a, r->b); \
    }
ROW_BOTH(add, Add, FAdd)
ROW_BOTH(sub, Sub, FSub)
ROW_BOTH(mul, Mul, FMul)
#undef ROW_BOTH

#define ROW_PLAIN(op, WHICH)                                  \
    static ll_value op##_row(const struct instruction_row *r) \
    {                                                         \
        return BUILD(r->l, WHICH, r->a, r->b);                \
    }
ROW_PLAIN(div, FDiv)
ROW_PLAIN(and, And)
ROW_PLAIN(or, Or)
ROW_PLAIN(xor, Xor)
#undef ROW_PLAIN

static ll_value call_real(const struct instruction_row *r, const char *name, uint32_t n)
{
    ll_type type = ll_shape(r->l, r->l->types.of[r->from]);
    ll_value args[3] = {r->a, r->b, r->c};

    return ll_call(r->l, name, &type, 1, args, n);
}

#define ROW_CALL(op, name)                                    \
    static ll_value op##_row(const struct instruction_row *r) \
    {                                                         \
        return call_real(r, "llvm." name, 1);                 \
    }
ROW_CALL(sqrt, "sqrt")
ROW_CALL(floor, "floor")
ROW_CALL(ceil, "ceil")
ROW_CALL(trunc, "trunc")
ROW_CALL(rint, "nearbyint")
#undef ROW_CALL

static ll_value exp2_row(const struct instruction_row *r)
{
    r->l->lacks = "powers of 2";
    return r->a;
}

static ll_value fma_row(const struct instruction_row *r)
{
    if (r->l->cpu.isa < LLVM_AVX2)
        r->l->lacks = "fma";
    return call_real(r, "llvm.fma", 3);
}

/* In doubles, which hold every product of an F32 with what is left of the power. */
static ll_value scale_wide(struct ll *l, ll_value a, ll_value b)
{
    ll_type i64 = ll_shape(l, l->types.i64), f64 = ll_shape(l, l->types.of[KIR_F64]);
    ll_value most = ll_real(l, KIR_F32, 400), least = ll_real(l, KIR_F32, -400), n, power;

    n = BUILD(l, Select, BUILD(l, FCmp, LL_OGT, b, least), b, least);
    n = BUILD(l, Select, BUILD(l, FCmp, LL_OLT, n, most), n, most);
    n = BUILD(l, FPToSI, n, ll_shape(l, l->types.of[KIR_I32]));
    n = BUILD(l, Add, BUILD(l, SExt, n, i64), ll_num(l, l->types.i64, 1023));
    power = BUILD(l, BitCast, BUILD(l, Shl, n, ll_num(l, l->types.i64, 52)), f64);
    power = BUILD(l, FMul, BUILD(l, FPExt, a, f64), power);
    power = BUILD(l, FPTrunc, power, ll_shape(l, l->types.of[KIR_F32]));
    return BUILD(l, Select, BUILD(l, FCmp, LL_UNO, b, b), b, power);
}

static ll_value scale_row(const struct instruction_row *r)
{
    enum { AS_MODE_SAYS = 4 };
    struct ll *l = r->l;
    ll_type i32 = l->types.of[KIR_I32];
    ll_value args[5] = {r->a, r->b, r->a, ll_int(l, l->types.i16, UINT16_MAX),
                        ll_int(l, i32, AS_MODE_SAYS)};

    if (!l->wide || l->width != 16)
        return scale_wide(l, r->a, r->b);
    return ll_call(l, "llvm.x86.avx512.mask.scalef.ps.512", NULL, 0, args, 5);
}

/* ---- dot2 ---- */

/* Denormals become 0. */
static ll_value flush(struct ll *l, ll_value bits)
{
    ll_type i32 = l->types.of[KIR_I32];
    ll_value size = BUILD(l, And, bits, ll_num(l, i32, 0x7f800000));
    ll_value sign = BUILD(l, And, bits, ll_num(l, i32, 0x80000000));

    return BUILD(l, Select, BUILD(l, ICmp, LL_EQ, size, ll_num(l, i32, 0)), sign, bits);
}

/* Adds a product; all are bits of F32s. */
static ll_value add_flushed(struct ll *l, ll_value a, ll_value b, ll_value sum)
{
    ll_type i32 = ll_shape(l, l->types.of[KIR_I32]), f32 = ll_shape(l, l->types.of[KIR_F32]);
    ll_value args[3] = {BUILD(l, BitCast, flush(l, a), f32), BUILD(l, BitCast, flush(l, b), f32),
                        BUILD(l, BitCast, flush(l, sum), f32)};

    return flush(l, BUILD(l, BitCast, ll_call(l, "llvm.fma", &f32, 1, args, 3), i32));
}

static ll_value dot2_by_fma(struct ll *l, ll_value a, ll_value b, ll_value c)
{
    ll_type word = l->types.of[KIR_I32], i32 = ll_shape(l, word);
    ll_value half = ll_num(l, word, 16), upper = ll_num(l, word, 0xffff0000);

    a = BUILD(l, BitCast, a, i32);
    b = BUILD(l, BitCast, b, i32);
    c = BUILD(l, BitCast, c, i32);
    c = add_flushed(l, BUILD(l, And, a, upper), BUILD(l, And, b, upper), c);
    c = add_flushed(l, BUILD(l, Shl, a, half), BUILD(l, Shl, b, half), c);
    return BUILD(l, BitCast, c, ll_shape(l, l->types.of[KIR_F32]));
}

static ll_value dot2_row(const struct instruction_row *r)
{
    struct ll *l = r->l;

    if (l->cpu.isa < LLVM_AVX2)
        l->lacks = "fma";
    if (!ll_has_dot2(l) || !l->wide || l->width != 16)
        return dot2_by_fma(l, r->a, r->b, r->c);
    return ll_call_bits(l, "llvm.x86.avx512bf16.dpbf16ps.512", (ll_value[]){r->c, r->a, r->b}, 3);
}

static ll_value neg_row(const struct instruction_row *r)
{
    return is_real(r) ? BUILD(r->l, FNeg, r->a) : BUILD(r->l, Sub, number(r, 0), r->a);
}

static ll_value abs_row(const struct instruction_row *r)
{
    if (is_real(r))
        return call_real(r, "llvm.fabs", 1);
    return BUILD(r->l, Select, icmp(r, LL_SLT, r->a, number(r, 0)),
                 BUILD(r->l, Sub, number(r, 0), r->a), r->a);
}

/* By 0: 0; by -1: the negative. */
static ll_value sdiv_row(const struct instruction_row *r)
{
    ll_value odd = icmp(r, LL_ULE, BUILD(r->l, Add, r->b, number(r, 1)), number(r, 1));
    ll_value by = BUILD(r->l, Select, odd, number(r, 1), r->b);
    ll_value negative = BUILD(r->l, Sub, number(r, 0), BUILD(r->l, And, r->a, r->b));

    return BUILD(r->l, Select, odd, negative, BUILD(r->l, SDiv, r->a, by));
}

static ll_value udiv_row(const struct instruction_row *r)
{
    ll_value none = icmp(r, LL_EQ, r->b, number(r, 0));
    ll_value by = BUILD(r->l, Select, none, number(r, 1), r->b);

    return BUILD(r->l, Select, none, number(r, 0), BUILD(r->l, UDiv, r->a, by));
}

static ll_value srem_row(const struct instruction_row *r)
{
    return BUILD(r->l, Sub, r->a, BUILD(r->l, Mul, r->b, sdiv_row(r)));
}

static ll_value urem_row(const struct instruction_row *r)
{
    return BUILD(r->l, Sub, r->a, BUILD(r->l, Mul, r->b, udiv_row(r)));
}

static ll_value mulhi_row(const struct instruction_row *r)
{
    struct ll *l = r->l;
    ll_type wide = ll_shape(l, l->types.i64), narrow = ll_shape(l, l->types.of[KIR_I32]);
    ll_value product = BUILD(l, Mul, BUILD(l, ZExt, r->a, wide), BUILD(l, ZExt, r->b, wide));

    return BUILD(l, Trunc, BUILD(l, LShr, product, ll_num(l, l->types.i64, 32)), narrow);
}

static ll_value not_row(const struct instruction_row *r)
{
    return BUILD(r->l, Xor, r->a, number(r, UINT64_MAX));
}

static ll_value by_width(const struct instruction_row *r)
{
    return BUILD(r->l, And, r->b, number(r, r->from == KIR_I32 ? 31 : 63));
}

static ll_value shl_row(const struct instruction_row *r)
{
    return BUILD(r->l, Shl, r->a, by_width(r));
}

static ll_value shr_row(const struct instruction_row *r)
{
    return BUILD(r->l, LShr, r->a, by_width(r));
}

static ll_value sar_row(const struct instruction_row *r)
{
    return BUILD(r->l, AShr, r->a, by_width(r));
}

#define ROW_PICK(op, order)                                                 \
    static ll_value op##_row(const struct instruction_row *r)               \
    {                                                                       \
        return BUILD(r->l, Select, icmp(r, order, r->a, r->b), r->a, r->b); \
    }
ROW_PICK(smin, LL_SLT)
ROW_PICK(smax, LL_SGT)
ROW_PICK(umin, LL_ULT)
ROW_PICK(umax, LL_UGT)
#undef ROW_PICK

/* Whether the second operand is a constant that equals nothing but itself. */
static bool by_constant(const struct instruction_row *r)
{
    const struct kir_inst *b = &r->l->phase->inst[r->inst->a[1]];
    uint64_t magnitude = b->imm << (r->from == KIR_F32 ? 33 : 1);
    uint64_t infinite = r->from == KIR_F32 ? 0x7f800000ull << 33 : 0x7ff0000000000000ull << 1;

    return b->op == KIR_const && magnitude != 0 && magnitude <= infinite;
}

/* The operand behind is what a machine's instruction gives where one is not a number: with a
 * constant in front nothing else is needed, and else a comparison under whose mask it picks. */
static ll_value pick_real(const struct instruction_row *r, int order)
{
    ll_value picked, number;

    if (by_constant(r))
        return BUILD(r->l, Select, BUILD(r->l, FCmp, order, r->b, r->a), r->b, r->a);
    number = BUILD(r->l, FCmp, LL_ORD, r->a, r->a);
    picked = BUILD(r->l, Select, BUILD(r->l, FCmp, order, r->a, r->b), r->a, r->b);
    return BUILD(r->l, Select, number, picked, r->a);
}

static ll_value fmin_row(const struct instruction_row *r)
{
    return pick_real(r, LL_OLT);
}

static ll_value fmax_row(const struct instruction_row *r)
{
    return pick_real(r, LL_OGT);
}

/* ---- comparisons ---- */

#define ROW_ORDER(op, INTEGER, REAL)                                \
    static ll_value op##_row(const struct instruction_row *r)       \
    {                                                               \
        return is_real(r) ? BUILD(r->l, FCmp, REAL, r->a, r->b)     \
                          : BUILD(r->l, ICmp, INTEGER, r->a, r->b); \
    }
ROW_ORDER(eq, LL_EQ, LL_OEQ)
ROW_ORDER(ne, LL_NE, LL_UNE)
ROW_ORDER(lt, LL_SLT, LL_OLT)
ROW_ORDER(le, LL_SLE, LL_OLE)
ROW_ORDER(ult, LL_ULT, LL_OLT)
ROW_ORDER(ule, LL_ULE, LL_OLE)
#undef ROW_ORDER

static ll_value select_row(const struct instruction_row *r)
{
    return BUILD(r->l, Select, r->c, r->a, r->b);
}

static ll_value convert_row(const struct instruction_row *r)
{
    return ll_convert(r->l, r->inst, r->from, r->a);
}

static const row_fn rows[KIR_OPS] = {
    [KIR_add] = add_row,       [KIR_sub] = sub_row,      [KIR_mul] = mul_row,
    [KIR_div] = div_row,       [KIR_fma] = fma_row,      [KIR_sqrt] = sqrt_row,
    [KIR_floor] = floor_row,   [KIR_ceil] = ceil_row,    [KIR_trunc] = trunc_row,
    [KIR_rint] = rint_row,     [KIR_neg] = neg_row,      [KIR_abs] = abs_row,
    [KIR_exp2] = exp2_row,     [KIR_dot2] = dot2_row,    [KIR_scale] = scale_row,
    [KIR_sdiv] = sdiv_row,     [KIR_udiv] = udiv_row,    [KIR_srem] = srem_row,
    [KIR_urem] = urem_row,     [KIR_mulhi] = mulhi_row,  [KIR_and] = and_row,
    [KIR_or] = or_row,         [KIR_xor] = xor_row,      [KIR_not] = not_row,
    [KIR_shl] = shl_row,       [KIR_shr] = shr_row,      [KIR_sar] = sar_row,
    [KIR_smin] = smin_row,     [KIR_smax] = smax_row,    [KIR_umin] = umin_row,
    [KIR_umax] = umax_row,     [KIR_fmin] = fmin_row,    [KIR_fmax] = fmax_row,
    [KIR_eq] = eq_row,         [KIR_ne] = ne_row,        [KIR_lt] = lt_row,
    [KIR_le] = le_row,         [KIR_ult] = ult_row,      [KIR_ule] = ule_row,
    [KIR_select] = select_row, [KIR_wrap] = convert_row, [KIR_round] = convert_row,
    [KIR_i32] = convert_row,   [KIR_i64] = convert_row,  [KIR_u64] = convert_row,
    [KIR_u32] = convert_row,   [KIR_f32] = convert_row,  [KIR_f64] = convert_row,
    [KIR_uf32] = convert_row,  [KIR_uf64] = convert_row, [KIR_bits] = convert_row,
};

bool ll_has_row(uint32_t op)
{
    return rows[op];
}

ll_value ll_row(struct ll *l, const struct kir_inst *inst, const ll_value *a)
{
    const struct instruction_row row = {l, inst, l->phase->inst[inst->a[0]].type, a[0], a[1], a[2]};

    return rows[inst->op](&row);
}
