/* SPDX-License-Identifier: Apache-2.0 */
/* Many numbers by one divisor, where a machine divides slowly: a product with the reciprocal,
 * corrected by what is left (P. W. Markstein, IBM J. Res. Dev. 34(1), 1990).
 *
 * y = 1 / b and q = a y are rounded.  q is off by less than 1.5 of its last place, and a - b q,
 * rounded, by at most one of its own.  So q + y (a - b q), rounded once, is a / b rounded, unless
 * that lies next to a tie: with significands A and B of 24 bits, M odd of 25 and k 24 or 25, where
 * |A 2^k - M B| <= 8.  There are 46517418 such pairs of A and B; it holds for all of them.  Within
 * the bounds here no step leaves the normal numbers; chunks with anything else are divided. */
#include "emit/llvm/divide.h"

#include "emit/llvm/emit.h"
#include "emit/llvm/value.h"

enum { BIAS = 127, MAN = 23, MAX_A = 64, MAX_B = 32 /* powers of 2; least ones: negative */ };

bool ll_shares_divisor(const struct ll *l, uint32_t at)
{
    const struct kir_inst *inst = &l->phase->inst[at];

    return l->cpu.slow_div && l->cpu.isa >= LLVM_AVX2 && inst->op == KIR_div &&
           inst->type == KIR_F32 && ll_is(l, at, FACT_VARYING) &&
           ll_is(l, inst->a[1], FACT_UNIFORM);
}

/* How far the bits of the magnitude are above those of 2^-most; below, they wrap around. */
static ll_value above(struct ll *l, ll_value x, uint32_t most)
{
    ll_type i32 = l->types.of[KIR_I32];
    ll_value bits = BUILD(l, BitCast, x, ll_shape(l, i32));

    bits = BUILD(l, And, bits, ll_num(l, i32, INT32_MAX));
    return BUILD(l, Sub, bits, ll_num(l, i32, (uint64_t)(BIAS - most) << MAN));
}

static ll_value exceeds(struct ll *l, ll_value above, uint32_t most)
{
    return BUILD(l, ICmp, LL_UGT, above,
                 ll_num(l, l->types.of[KIR_I32], (uint64_t)(2 * most) << MAN));
}

static ll_value any_of(struct ll *l, ll_value lanes)
{
    ll_type bits = l->api->IntTypeInContext(l->context, l->width);

    return BUILD(l, ICmp, LL_NE, BUILD(l, BitCast, lanes, bits), ll_int(l, bits, 0));
}

/* Whether the divisor or a number of any lane is out of bounds. */
static ll_value any_exceeds(struct ll *l, const ll_value *a, ll_value b)
{
    ll_value most, by;

    l->wide = false;
    by = exceeds(l, above(l, b, MAX_B), MAX_B);
    l->wide = true;
    most = above(l, a[0], MAX_A);
    for (uint32_t u = 1; u < l->units; u++) {
        ll_value next = above(l, a[u], MAX_A);

        most = BUILD(l, Select, BUILD(l, ICmp, LL_UGT, most, next), most, next);
    }
    return BUILD(l, Or, by, any_of(l, exceeds(l, most, MAX_A)));
}

static ll_value fma_of(struct ll *l, ll_value a, ll_value b, ll_value c)
{
    ll_type type = ll_vector_of(l, l->types.of[KIR_F32]);
    ll_value args[3] = {a, b, c};

    return ll_call(l, "llvm.fma", &type, 1, args, 3);
}

static ll_value corrected(struct ll *l, ll_value a, ll_value b, ll_value y)
{
    ll_value q = BUILD(l, FMul, a, y), left = fma_of(l, BUILD(l, FNeg, b), q, a);

    return fma_of(l, left, y, q);
}

void ll_divide(struct ll *l, uint32_t at)
{
    const struct kir_inst *inst = &l->phase->inst[at];
    ll_type type = l->types.of[KIR_F32];
    ll_block from[2] = {ll_new_block(l), ll_new_block(l)}, after = ll_new_block(l);
    ll_value a[LL_MAX_UNITS] = {0}, out[2][LL_MAX_UNITS], b = l->scalar[inst->a[1]], all_b, y, slow;

    for (uint32_t u = 0; u < l->units; u++)
        a[u] = ll_at(l, inst->a[0], u);
    slow = any_exceeds(l, a, b);
    l->wide = false;
    y = BUILD(l, FDiv, ll_real(l, KIR_F32, 1), b);
    l->wide = true;
    all_b = ll_splat(l, b, type);
    y = ll_splat(l, y, type);
    l->api->BuildCondBr(l->builder, slow, from[1], from[0]);
    for (uint32_t way = 0; way < 2; way++) {
        l->api->PositionBuilderAtEnd(l->builder, from[way]);
        for (uint32_t u = 0; u < l->units; u++)
            out[way][u] = way ? BUILD(l, FDiv, a[u], all_b) : corrected(l, a[u], all_b, y);
        l->api->BuildBr(l->builder, after);
    }
    l->api->PositionBuilderAtEnd(l->builder, after);
    for (uint32_t u = 0; u < l->units; u++) {
        ll_value phi = BUILD(l, Phi, ll_vector_of(l, type)), ways[2] = {out[0][u], out[1][u]};

        l->api->AddIncoming(phi, ways, from, 2);
        l->vector[(size_t)at * l->units + u] = phi;
    }
}
