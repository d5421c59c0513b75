/* SPDX-License-Identifier: Apache-2.0 */
/* Making a case: values go into pools by type, from which later instructions take theirs; a loop or
 * branch that ends takes its values out of the pools again. */
#include "emit/random.h"

#include <assert.h>
#include <string.h>

#include "ir/verify.h"

#include "emit/random_gen.h"
#include "unit.h"

const struct random_target random_all = {.f64 = true,
                                         .i64 = true,
                                         .fma = true,
                                         .scale = true,
                                         .dot2 = true,
                                         .exact = true,
                                         .small = true,
                                         .atomic = true,
                                         .halves = true};

static void *must(void *memory)
{
    if (!memory)
        fail_msg("no memory for a random case");
    return memory;
}

/* ---- numbers ---- */

uint64_t gen_bits(struct gen *g)
{
    uint64_t x = g->state += 0x9e3779b97f4a7c15;

    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

uint32_t gen_below(struct gen *g, uint32_t n)
{
    assert(n > 0);
    return (uint32_t)(gen_bits(g) >> 32) % n;
}

bool gen_chance(struct gen *g, uint32_t percent)
{
    return gen_below(g, 100) < percent;
}

static double number_of(struct gen *g)
{
    static const double special[] = {0.0,   -0.0,    1.0,     -1.0,    0.5,       2.0,
                                     1e10,  -3.7e-5, 65519.0, 65520.0, -65536.0,  4294967296.0,
                                     1e300, 1e-300,  255.5,   6e-8,    -32768.25, 2147483648.0,
                                     1e-40, 0x1p63,  -0x1p63, 0x1p-14, 3.4e38,    9.2e18};
    double unit = (double)(gen_bits(g) >> 11) * 0x1p-53;

    if (gen_chance(g, 15)) {
        double pick = special[gen_below(g, sizeof(special) / sizeof(*special))];

        return g->target->exact || pick == 0 || (pick > 1e-30 || pick < -1e-30) ? pick : 1.0;
    }
    return (unit - 0.5) * (gen_chance(g, 30) ? 2000.0 : 8.0);
}

static uint64_t integer_of(struct gen *g)
{
    static const uint64_t special[] = {0,
                                       1,
                                       UINT64_MAX,
                                       2,
                                       7,
                                       31,
                                       63,
                                       0x80000000,
                                       0x7fffffff,
                                       0x8000000000000000,
                                       0x7fffffffffffffff,
                                       255,
                                       65535};

    if (gen_chance(g, 25))
        return special[gen_below(g, sizeof(special) / sizeof(*special))];
    return gen_chance(g, 50) ? gen_bits(g) : (uint64_t)gen_below(g, 200) - 100;
}

/* Bits of a value of a type, as constants and parameter words have them. */
uint64_t gen_value_bits(struct gen *g, uint32_t type)
{
    double real = number_of(g);
    float narrow = (float)real;
    uint32_t bits32;
    uint64_t bits;

    if (type == KIR_B)
        return gen_below(g, 2);
    if (type == KIR_I32 || type == KIR_I64)
        return type == KIR_I32 ? (uint32_t)integer_of(g) : integer_of(g);
    memcpy(&bits32, &narrow, sizeof(bits32));
    memcpy(&bits, &real, sizeof(bits));
    return type == KIR_F32 ? bits32 : bits;
}

/* ---- pools ---- */

void gen_push(struct gen *g, uint32_t value)
{
    uint32_t type = kir_type_at(g->module, value);

    if (g->n[type] < GEN_POOL)
        g->pool[type][g->n[type]++] = value;
}

/* Half of the time one of the newest. */
uint32_t gen_pick(struct gen *g, uint32_t type)
{
    uint32_t n = g->n[type], near = n < 4 ? n : 4;

    return gen_chance(g, 50) ? g->pool[type][n - 1 - gen_below(g, near)]
                             : g->pool[type][gen_below(g, n)];
}

uint32_t gen_const(struct gen *g, uint32_t type, uint64_t bits)
{
    return kir_emit_as(g->module, KIR_const, type, bits, KIR_NONE, KIR_NONE, KIR_NONE);
}

static uint32_t gen_param(struct gen *g, uint32_t type, uint64_t bits)
{
    if (type == KIR_B || type == KIR_I32 || type == KIR_F32) /* what is above is not looked at */
        bits |= gen_bits(g) << (type == KIR_B ? 1 : 32);
    g->c->words[g->module->n_params] = bits;
    return kir_param(g->module, (enum kir_type)type);
}

/* ---- a phase ---- */

static uint32_t op2(struct gen *g, enum kir_op op, uint32_t a, uint32_t b)
{
    return kir_emit(g->module, op, a, b, KIR_NONE);
}

/* A number as an offset. */
uint32_t gen_index(struct gen *g, int64_t value)
{
    return kir_const_i(g->module, g->index, value);
}

static uint32_t as_index(struct gen *g, uint32_t i32)
{
    return g->index == KIR_I64 ? kir_emit(g->module, KIR_i64, i32, KIR_NONE, KIR_NONE) : i32;
}

/* The number of the lane in the whole launch: uniform + lane. */
static void emit_base(struct gen *g, const uint32_t grid[3])
{
    struct kir_module *m = g->module;
    uint32_t group[3], n;

    for (uint32_t i = 0; i < 3; i++)
        group[i] = kir_emit_imm(m, KIR_group, i, KIR_NONE, KIR_NONE, KIR_NONE);
    n = op2(g, KIR_mul, group[2], kir_const_i(m, KIR_I32, grid[1]));
    n = op2(g, KIR_mul, op2(g, KIR_add, n, group[1]), kir_const_i(m, KIR_I32, grid[0]));
    n = op2(g, KIR_mul, op2(g, KIR_add, n, group[0]), kir_const_i(m, KIR_I32, g->lanes));
    g->lane = kir_emit(m, KIR_lane, KIR_NONE, KIR_NONE, KIR_NONE);
    g->first = as_index(g, n);
    g->base = op2(g, KIR_add, g->first, as_index(g, g->lane));
}

/* Values to start from, of every type. */
static void emit_seeds(struct gen *g)
{
    for (uint32_t type = KIR_B; type < KIR_TYPES; type++) {
        if (!(g->types & 1u << type))
            continue;
        gen_push(g, gen_const(g, type, gen_value_bits(g, type)));
        if (g->module->n_params < RANDOM_WORDS && gen_chance(g, 50))
            gen_push(g, gen_param(g, type, gen_value_bits(g, type)));
    }
    gen_push(g, g->lane);
    gen_push(g, g->base);
    gen_push(g, op2(g, KIR_lt, g->base, g->limit));
}

static void emit_tiles(struct gen *g)
{
    struct kir_module *m = g->module;

    g->n_tiles = gen_below(g, 4);
    for (uint32_t i = 0; i < g->n_tiles; i++) {
        uint32_t type = gen_type(g, g->types & ~(1u << KIR_B)), value = gen_pick(g, type);
        bool of_group = gen_chance(g, 60);
        uint32_t count = of_group ? g->lanes : 1 + gen_below(g, 4);

        g->tile[i] = (struct kir_tile){
            .space = of_group ? KIR_GROUP : KIR_LANE, .type = type, .count = count};
        if (of_group && type == KIR_F32 && g->target->halves && gen_chance(g, 50))
            kir_tile_of(m, KIR_GROUP, gen_chance(g, 50) ? FRIT_F16 : FRIT_BF16, count);
        else
            kir_tile(m, of_group ? KIR_GROUP : KIR_LANE, (enum kir_type)type, count);
        for (uint32_t k = 0; k < (of_group ? 1 : count); k++)
            kir_emit_imm(m, KIR_tstore, i, of_group ? g->lane : kir_const_i(m, KIR_I32, k), value,
                         KIR_NONE);
    }
}

static void make_phase(struct gen *g, uint32_t phase)
{
    memset(g->n, 0, sizeof(g->n));
    g->lanes = g->phase_lanes[phase];
    kir_phase(g->module, g->lanes);
    emit_base(g, g->c->grid[phase]);
    g->limit = g->module->n_params < RANDOM_WORDS ? gen_param(g, g->index, g->tight)
                                                  : gen_index(g, g->tight);
    emit_seeds(g);
    emit_tiles(g);
    gen_body(g, 10 + gen_below(g, 40), 0);
    if (g->target->products && gen_chance(g, 40))
        gen_product(g);
    gen_stores(g);
    gen_sum(g);
}

/* ---- the case ---- */

static void make_grid(struct gen *g, uint32_t phase)
{
    uint32_t *grid = g->c->grid[phase], most = g->target->max_lanes, lanes = 1u << gen_below(g, 9);

    for (uint32_t i = 0; i < 3; i++)
        grid[i] = 1 + gen_below(g, 2);
    g->phase_lanes[phase] = most && lanes > most ? most : lanes;
    lanes = g->phase_lanes[phase] * grid[0] * grid[1] * grid[2];
    if (g->total < lanes)
        g->total = lanes;
}

static uint32_t random_dtype(struct gen *g)
{
    static const uint8_t dtypes[] = {FRIT_F32,  FRIT_I32, FRIT_U32, FRIT_F32, FRIT_F16,
                                     FRIT_BF16, FRIT_I8,  FRIT_U8,  FRIT_I16, FRIT_U16,
                                     FRIT_BOOL, FRIT_F64, FRIT_I64, FRIT_U64};

    for (;;) {
        uint32_t dtype = dtypes[gen_below(g, sizeof(dtypes))];

        if (g->types & 1u << kir_type_of(dtype) &&
            (g->target->small || frit_dtype_bits(dtype) >= 32))
            return dtype;
    }
}

/* A value of the dtype as bytes. */
static void random_element(struct gen *g, uint32_t dtype, unsigned char *at)
{
    uint64_t bits = gen_value_bits(g, kir_type_of(dtype));
    uint32_t size = frit_dtype_bits(dtype) / 8;

    if (dtype == FRIT_F16) /* exponents around that of 1, mostly */
        bits = gen_chance(g, 90) ? (gen_bits(g) & 0x8fff) | 0x3000 : gen_bits(g) & 0xffff;
    if (dtype == FRIT_BF16)
        bits >>= 16;
    memcpy(at, &bits, size);
}

static void make_args(struct gen *g)
{
    uint32_t n = 5 + gen_below(g, RANDOM_ARGS - 4);

    for (uint32_t i = 0; i < n; i++) {
        struct random_arg *arg = &g->c->args[i];
        bool sums = g->target->atomic && i == n - 1;
        uint32_t dtype = sums || i == 3 ? FRIT_I32 : random_dtype(g);

        /* The first is read within the limit only; then one read, one in place, one for the sum of
         * all values, written ones. */
        g->access[i] = sums || i == 2 ? KIR_READ | KIR_WRITE : i < 2 ? KIR_READ : KIR_WRITE;
        arg->count = i == 0 || i == 2 ? g->tight : sums ? 8 : 2 * g->total + 1;
        arg->bytes = (uint64_t)arg->count * frit_dtype_bits(dtype) / 8;
        arg->initial = must(malloc(arg->bytes));
        for (uint32_t k = 0; k < arg->count; k++)
            random_element(g, dtype,
                           (unsigned char *)arg->initial + k * frit_dtype_bits(dtype) / 8);
        kir_arg(g->module, dtype, g->access[i]);
    }
    g->sums = g->target->atomic ? n - 1 : KIR_NONE;
}

void random_case_init(struct random_case *c, uint64_t number, const struct random_target *target)
{
    struct gen *g = must(calloc(1, sizeof(*g)));
    uint32_t phases;
    frit_err err = {.struct_size = sizeof(err)};

    *c = (struct random_case){0};
    *g = (struct gen){.c = c, .module = &c->module, .target = target, .state = number};
    g->types = 1u << KIR_B | 1u << KIR_I32 | 1u << KIR_F32 | (uint32_t)target->i64 << KIR_I64 |
               (uint32_t)target->f64 << KIR_F64;
    kir_init(&c->module, "random");
    c->module.wide = target->i64 && gen_chance(g, 30);
    g->index = c->module.wide ? KIR_I64 : KIR_I32;
    phases = 1 + gen_below(g, RANDOM_PHASES);
    for (uint32_t i = 0; i < phases; i++)
        make_grid(g, i);
    g->tight = 1 + gen_below(g, g->total);
    make_args(g);
    for (uint32_t i = 0; i < phases; i++)
        make_phase(g, i);
    if (kir_verify(&c->module, NULL, &err))
        fail_msg("random case %llu: %s", (unsigned long long)number, err.text);
    free(g);
}

void random_case_fini(struct random_case *c)
{
    for (uint32_t i = 0; i < RANDOM_ARGS; i++)
        free(c->args[i].initial);
    kir_fini(&c->module);
}
