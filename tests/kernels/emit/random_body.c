/* SPDX-License-Identifier: Apache-2.0 */
/* The body of a random phase. */
#include "emit/random_gen.h"

#include <string.h>

static uint32_t op1(struct gen *g, enum kir_op op, uint32_t a)
{
    return kir_emit(g->module, op, a, KIR_NONE, KIR_NONE);
}

static uint32_t op2(struct gen *g, enum kir_op op, uint32_t a, uint32_t b)
{
    return kir_emit(g->module, op, a, b, KIR_NONE);
}

static uint32_t number_i32(struct gen *g, uint32_t value)
{
    return gen_const(g, KIR_I32, value);
}

/* ---- elementwise ---- */

static uint32_t types_of(char letter)
{
    const uint32_t b = 1u << KIR_B, n = 1u << KIR_I32 | 1u << KIR_I64,
                   f = 1u << KIR_F32 | 1u << KIR_F64;

    switch (letter) {
    case 'b':
        return b;
    case 'n':
        return n;
    case 'f':
        return f;
    case 'l':
        return b | n;
    case 'a':
        return n | f;
    default:
        return b | n | f;
    }
}

static bool is_elementwise(const struct gen *g, uint32_t op)
{
    const struct kir_op_info *info = kir_op_info(op);

    if (!info->n || info->result == KIR_RESULT_NONE || info->result == KIR_RESULT_FREE ||
        op == KIR_for)
        return false;
    if (info->imm != KIR_IMM_NONE && info->imm != KIR_IMM_NARROW)
        return false;
    if (info->result == KIR_RESULT_TYPE && !(g->types & 1u << info->type))
        return false;
    return !(op == KIR_exp2 || (op == KIR_fma && !g->target->fma) ||
             (op == KIR_scale && !g->target->scale) || (op == KIR_dot2 && !g->target->dot2) ||
             ((op == KIR_div || op == KIR_sqrt) && !g->target->exact) ||
             (op == KIR_round && !g->target->small));
}

static uint32_t other_type(uint32_t type)
{
    static const uint8_t others[KIR_TYPES] = {
        [KIR_I32] = KIR_F32, [KIR_F32] = KIR_I32, [KIR_I64] = KIR_F64, [KIR_F64] = KIR_I64};

    return others[type];
}

/* A NaN has no bits that one could count on. */
static void emit_bits(struct gen *g)
{
    const uint64_t normal = 0x00800000, wide_normal = 0x0010000000000000;
    uint32_t type = gen_type(g, g->types & ~(1u << KIR_B)), from = gen_pick(g, type);

    if (!(g->types & 1u << other_type(type)))
        return;
    if (type == KIR_F32 || type == KIR_F64)
        from = kir_emit(g->module, KIR_select, from, gen_const(g, type, 0),
                        op2(g, KIR_eq, from, from));
    else if (!g->target->exact) /* a denormal, as small integers are, may be 0 */
        from = op2(g, KIR_or, from, gen_const(g, type, type == KIR_I32 ? normal : wide_normal));
    gen_push(g, kir_emit_as(g->module, KIR_bits, (enum kir_type)other_type(type), 0, from, KIR_NONE,
                            KIR_NONE));
}

/* Of zeros of both signs fmin and fmax give any: adding 0 makes one of them. */
static void push_result(struct gen *g, uint32_t op, uint32_t value)
{
    if (op == KIR_fmin || op == KIR_fmax)
        value = op2(g, KIR_add, value, gen_const(g, kir_type_at(g->module, value), 0));
    gen_push(g, value);
}

static uint32_t within(struct gen *g, uint32_t value, float limit)
{
    struct kir_module *m = g->module;

    value = op2(g, KIR_fmin, value, kir_const_f(m, KIR_F32, (double)limit));
    return op2(g, KIR_fmax, value, kir_const_f(m, KIR_F32, (double)-limit));
}

static void emit_elementwise(struct gen *g)
{
    static const int64_t wraps[] = {8, 16, -8, -16};
    const struct kir_op_info *info;
    uint32_t op, types, type, operand[3] = {KIR_NONE, KIR_NONE, KIR_NONE};
    uint64_t imm = 0;

    do
        op = gen_below(g, KIR_OPS);
    while (!is_elementwise(g, op));
    info = kir_op_info(op);
    types = info->operands[0] == 'v' ? 1u << info->type : types_of(info->operands[0]);
    if (info->result == KIR_RESULT_TYPE && info->operands[0] != 'v' && info->n == 1)
        types &= ~(1u << info->type); /* conversions change the type */
    if (!(types & g->types))
        return;
    type = gen_type(g, types & g->types);
    for (uint32_t k = 0; k < info->n; k++)
        operand[k] = gen_pick(g, info->operands[k] == 'b' ? KIR_B : type);
    if (op == KIR_shl || op == KIR_shr || op == KIR_sar)
        operand[1] = op2(g, KIR_and, operand[1], gen_const(g, type, type == KIR_I32 ? 31 : 63));
    if (op == KIR_dot2) /* what is no number has any bits */
        for (uint32_t k = 0; k < 2; k++)
            operand[k] = kir_emit(g->module, KIR_select, operand[k], gen_const(g, type, 0),
                                  op2(g, KIR_eq, operand[k], operand[k]));
    if (op == KIR_scale) /* by whole numbers */
        operand[1] = within(g, op1(g, KIR_rint, operand[1]), 300);
    if (op == KIR_wrap)
        imm = (uint64_t)wraps[gen_below(g, 4)];
    if (op == KIR_round)
        imm = gen_chance(g, 50) ? FRIT_F16 : FRIT_BF16;
    push_result(g, op,
                kir_emit_imm(g->module, (enum kir_op)op, imm, operand[0], operand[1], operand[2]));
}

/* ---- memory ---- */

static uint32_t emit_mask(struct gen *g)
{
    static const enum kir_op orders[] = {KIR_lt, KIR_le, KIR_ult, KIR_ule, KIR_eq, KIR_ne};
    uint32_t a = g->lane, b = number_i32(g, gen_below(g, g->lanes + 1)), mask;

    if (gen_chance(g, 30))
        return gen_pick(g, KIR_B);
    if (gen_chance(g, 20))
        b = number_i32(g, (uint32_t)gen_value_bits(g, KIR_I32));
    if (gen_chance(g, 30))
        a = op2(g, KIR_sub, number_i32(g, gen_below(g, 2 * g->lanes)),
                op2(g, KIR_mul, a, number_i32(g, 1 + gen_below(g, 3))));
    if (gen_chance(g, 10))
        a = op2(g, KIR_mul, a, number_i32(g, (uint32_t)gen_value_bits(g, KIR_I32)));
    mask = gen_chance(g, 50) ? op2(g, orders[gen_below(g, 6)], a, b)
                             : op2(g, orders[gen_below(g, 6)], b, a);
    if (gen_chance(g, 30))
        mask = op2(g, KIR_and, mask, gen_pick(g, KIR_B));
    gen_push(g, mask);
    return mask;
}

/* base < tight, maybe less. */
static uint32_t within_limit(struct gen *g)
{
    uint32_t mask = gen_chance(g, 70) ? op2(g, KIR_lt, g->base, g->limit)
                                      : op2(g, KIR_le, g->base, gen_index(g, g->tight - 1));

    return gen_chance(g, 30) ? op2(g, KIR_and, emit_mask(g), mask) : mask;
}

/* A number below `count`, of any lane. */
static uint32_t any_below(struct gen *g, uint32_t type, uint32_t count)
{
    return op2(g, KIR_urem, gen_pick(g, type), kir_const_i(g->module, (enum kir_type)type, count));
}

static uint32_t read_offset(struct gen *g)
{
    uint32_t count = 2 * g->total;

    switch (gen_below(g, 6)) {
    case 0:
        return g->base;
    case 1: /* strided */
        return op2(g, KIR_add, op2(g, KIR_mul, g->base, gen_index(g, 2)), gen_index(g, 1));
    case 2: /* backwards */
        return op2(g, KIR_sub, gen_index(g, count), g->base);
    case 3: /* the same in all lanes */
        return gen_chance(g, 50) ? g->first : gen_index(g, gen_below(g, count));
    case 4:
        return op2(g, KIR_add, gen_index(g, gen_below(g, g->total)), g->base);
    default:
        return any_below(g, g->index, count);
    }
}

static uint32_t load_from(struct gen *g, uint32_t arg, uint32_t offset, uint32_t mask)
{
    enum kir_type type = kir_type_of(g->module->args[arg].dtype);

    if (mask == KIR_NONE)
        return kir_emit_as(g->module, KIR_load, type, arg, offset, KIR_NONE, KIR_NONE);
    return kir_emit_as(g->module, KIR_load_if, type, arg, offset, mask, gen_pick(g, type));
}

static void emit_load(struct gen *g)
{
    switch (gen_below(g, 4)) {
    case 0:
        gen_push(g, load_from(g, 0, g->base, within_limit(g)));
        break;
    case 1: /* in place */
        gen_push(g, load_from(g, 2, g->base, within_limit(g)));
        break;
    default:
        gen_push(g, load_from(g, 1, read_offset(g), gen_chance(g, 50) ? emit_mask(g) : KIR_NONE));
    }
}

/* Offsets that no two lanes share. */
static uint32_t write_offset(struct gen *g)
{
    uint32_t lane;

    switch (gen_below(g, 5)) {
    case 0:
    case 1:
        return g->base;
    case 2:
        return op2(g, KIR_mul, g->base, gen_index(g, 2));
    case 3:
        return op2(g, KIR_sub, gen_index(g, g->total), g->base);
    default:
        lane = op2(g, KIR_xor, g->lane, number_i32(g, gen_below(g, g->lanes)));
        return op2(g, KIR_add, g->first, g->index == KIR_I64 ? op1(g, KIR_i64, lane) : lane);
    }
}

static void emit_store(struct gen *g, uint32_t arg)
{
    uint32_t value = gen_pick(g, kir_type_of(g->module->args[arg].dtype));
    uint32_t mask = arg == 2 ? within_limit(g) : gen_chance(g, 50) ? emit_mask(g) : KIR_NONE;
    uint32_t offset = arg == 2 ? g->base : write_offset(g);

    if (mask == KIR_NONE)
        kir_emit_imm(g->module, KIR_store, arg, offset, value, KIR_NONE);
    else
        kir_emit_imm(g->module, KIR_store_if, arg, offset, value, mask);
    g->stored[arg] = true;
}

void gen_stores(struct gen *g)
{
    for (uint32_t i = 2; i < g->module->n_args; i++) {
        if (g->access[i] & KIR_WRITE && i != 3 && i != g->sums && !g->stored[i])
            emit_store(g, i);
        g->stored[i] = false;
    }
}

static void emit_sum(struct gen *g)
{
    if (g->sums != KIR_NONE)
        kir_emit_imm(g->module, KIR_atomic_add, g->sums,
                     gen_chance(g, 50) ? any_below(g, g->index, 8) : gen_index(g, 3),
                     gen_pick(g, KIR_I32), emit_mask(g));
}

/* ---- tiles and lanes ---- */

static uint32_t tile_load(struct gen *g, uint32_t i, uint32_t at)
{
    return kir_emit_as(g->module, KIR_tload, (enum kir_type)g->tile[i].type, i, at, KIR_NONE,
                       KIR_NONE);
}

static void tile_store(struct gen *g, uint32_t i, uint32_t at)
{
    uint32_t value = gen_pick(g, g->tile[i].type);

    if (gen_chance(g, 70))
        kir_emit_imm(g->module, KIR_tstore, i, at, value, KIR_NONE);
    else
        kir_emit_imm(g->module, KIR_tstore_if, i, at, value, emit_mask(g));
}

static uint32_t own_place(struct gen *g, uint32_t i)
{
    if (g->lanes <= g->tile[i].count && gen_chance(g, 50)) /* linear */
        return g->lane;
    return gen_chance(g, 50) ? number_i32(g, gen_below(g, g->tile[i].count))
                             : any_below(g, KIR_I32, g->tile[i].count);
}

static void emit_tile(struct gen *g)
{
    uint32_t i = gen_below(g, g->n_tiles), n = g->lanes;

    if (g->tile[i].space == KIR_LANE) {
        if (gen_chance(g, 50))
            tile_store(g, i, own_place(g, i));
        gen_push(g, tile_load(g, i, own_place(g, i)));
        return;
    }
    op1(g, KIR_barrier, KIR_NONE);
    if (gen_chance(g, 50))
        tile_store(g, i, op2(g, KIR_xor, g->lane, number_i32(g, gen_below(g, n))));
    else
        tile_store(g, i, op2(g, KIR_sub, number_i32(g, n - 1), g->lane));
    op1(g, KIR_barrier, KIR_NONE);
    gen_push(g, tile_load(g, i, gen_chance(g, 50) ? any_below(g, KIR_I32, n) : g->lane));
    if (gen_chance(g, 30))
        gen_push(g, tile_load(g, i, number_i32(g, gen_below(g, n))));
}

static uint32_t across(struct gen *g, uint32_t from)
{
    uint32_t bits = (uint32_t)__builtin_ctz(g->lanes);

    if (!bits || gen_chance(g, 20))
        return op1(g, KIR_first, from);
    return kir_emit_imm(g->module, gen_chance(g, 60) ? KIR_exchange : KIR_shift,
                        1u << gen_below(g, bits), from, KIR_NONE, KIR_NONE);
}

/* ---- mixing: what makes a wrong value show ---- */

static uint32_t low_and_high(struct gen *g, uint32_t wide)
{
    uint32_t high = op2(g, KIR_shr, wide, gen_const(g, KIR_I64, 32));

    return op2(g, KIR_xor, op1(g, KIR_i32, wide), op1(g, KIR_i32, high));
}

/* A value as I32, such that most of its bits count; any NaN gives the same. */
static uint32_t as_i32(struct gen *g, uint32_t value)
{
    enum kir_type type = kir_type_at(g->module, value), integer = (enum kir_type)other_type(type);

    if (type == KIR_F32 || type == KIR_F64) {
        if (!(g->types & 1u << integer) || !g->target->exact) /* denormals may be 0 */
            return op1(g, KIR_i32, value);
        value = kir_emit(g->module, KIR_select, value, gen_const(g, type, 0),
                         op2(g, KIR_eq, value, value));
        value = kir_emit_as(g->module, KIR_bits, integer, 0, value, KIR_NONE, KIR_NONE);
        type = integer;
    }
    if (type == KIR_I64)
        return low_and_high(g, value);
    return type == KIR_B ? op1(g, KIR_i32, value) : value;
}

/* The sum so far with the newest values of every type, from those that are there on. */
static uint32_t mix(struct gen *g, uint32_t sum, const uint32_t *from, uint32_t most)
{
    for (uint32_t type = 0; type < KIR_TYPES; type++) {
        uint32_t n = g->n[type], first = n > most + from[type] ? n - most : from[type];

        for (uint32_t i = first; i < n; i++) {
            sum = op2(g, KIR_mul, sum, number_i32(g, 0x01000193));
            sum = op2(g, KIR_xor, sum, as_i32(g, g->pool[type][i]));
        }
    }
    return sum;
}

/* Into argument 3, which has an I32 for every lane. */
void gen_sum(struct gen *g)
{
    static const uint32_t from[KIR_TYPES] = {0};
    uint32_t sum = mix(g, gen_pick(g, KIR_I32), from, 12);

    kir_emit_imm(g->module, KIR_store, 3, g->base, sum, KIR_NONE);
}

/* ---- control ---- */

uint32_t gen_type(struct gen *g, uint32_t types)
{
    uint32_t type;

    do
        type = gen_below(g, KIR_TYPES);
    while (!(types & 1u << type));
    return type;
}

/* The last phi mixes what the body makes. */
static void emit_for(struct gen *g, uint32_t depth)
{
    uint32_t n_phis = 1 + gen_below(g, 4), n[KIR_TYPES], phi[4] = {0}, next[4] = {0}, loop;
    uint32_t type = gen_chance(g, 50) ? g->index : KIR_I32;
    int64_t begin = (int64_t)gen_below(g, 3) - 1;

    for (uint32_t i = 0; i < n_phis; i++)
        phi[i] = gen_pick(g, i == n_phis - 1 ? KIR_I32 : gen_type(g, g->types));
    loop = kir_for(g->module, kir_const_i(g->module, (enum kir_type)type, begin),
                   kir_const_i(g->module, (enum kir_type)type, begin + gen_below(g, 5)),
                   1 + gen_below(g, 2));
    for (uint32_t i = 0; i < n_phis; i++)
        phi[i] = kir_phi(g->module, phi[i]);
    memcpy(n, g->n, sizeof(n));
    gen_push(g, loop);
    for (uint32_t i = 0; i < n_phis; i++)
        gen_push(g, phi[i]);
    gen_body(g, 2 + gen_below(g, 12), depth + 1);
    for (uint32_t i = 0; i < n_phis - 1; i++)
        next[i] =
            gen_chance(g, 20) ? across(g, phi[i]) : gen_pick(g, kir_type_at(g->module, phi[i]));
    next[n_phis - 1] = mix(g, phi[n_phis - 1], n, 4);
    kir_next(g->module, next, n_phis);
    memcpy(g->n, n, sizeof(n));
    for (uint32_t i = 0; i < n_phis; i++)
        gen_push(g, phi[i]);
}

static void emit_if(struct gen *g, uint32_t depth)
{
    uint32_t n[KIR_TYPES];
    uint32_t bit = op2(g, KIR_and, op1(g, KIR_first, gen_pick(g, KIR_I32)), number_i32(g, 1));

    kir_if(g->module, op2(g, KIR_eq, bit, number_i32(g, gen_below(g, 2))));
    memcpy(n, g->n, sizeof(n));
    gen_body(g, 2 + gen_below(g, 8), depth + 1);
    memcpy(g->n, n, sizeof(n));
    kir_end(g->module);
}

void gen_body(struct gen *g, uint32_t n, uint32_t depth)
{
    while (n-- > 0) {
        uint32_t kind = gen_below(g, 100);

        if (kind < 18)
            emit_load(g);
        else if (kind < 24 && g->n_tiles)
            emit_tile(g);
        else if (kind < 30)
            gen_push(g, across(g, gen_pick(g, gen_type(g, g->types))));
        else if (kind < 33)
            emit_sum(g);
        else if (kind < 36)
            emit_bits(g);
        else if (kind < 41 && depth < 3)
            emit_for(g, depth);
        else if (kind < 44 && depth < 3)
            emit_if(g, depth);
        else
            emit_elementwise(g);
    }
}
