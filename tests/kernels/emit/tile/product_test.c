/* SPDX-License-Identifier: Apache-2.0 */
/* Product loops, which the interpreter runs as one step: as by eval, at all levels, for types of
 * sums and of memory, sizes, strides, masks and forms of the loop. */
#include <stdio.h>
#include <string.h>

#include "emit/tile/code.h"
#include "ir/eval.h"
#include "ir/half.h"
#include "ir/text.h"

#include "unit.h"

enum {
    DOWN,
    ACROSS,
    OUT,
    ARGS,
    SPAN = 8192,
    MOST_LANES = 256,
    TILE_COUNT = 2048,
    LANE_COUNT = 192
};

struct shape {
    enum kir_type type;
    uint32_t dtypes[ARGS];
    uint32_t lanes, rows, columns, sums, step, run; /* run: of lanes that are neighbours */
    bool dots, pairs, spread, fused, masked, nested, by_const, in_tile, in_lanes, again;
    int64_t words[6]; /* strides: of rows, of both sides along k; lanes that load; begin, end */
};

enum { ROW_STRIDE, DOWN_STRIDE, ACROSS_STRIDE, LOADED, BEGIN, END, WORDS };

static uint32_t random_below(uint64_t *seed, uint32_t n)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*seed >> 33) % n;
}

static struct shape shape_of(uint64_t number)
{
    static const uint32_t reals[] = {FRIT_F32, FRIT_F32, FRIT_F16, FRIT_BF16};
    static const uint32_t ints[] = {FRIT_I32, FRIT_I8, FRIT_U8, FRIT_I16};
    static const enum kir_type types[] = {KIR_F32, KIR_F32, KIR_F64, KIR_I32};
    uint64_t seed = number + 1;
    struct shape s = {.type = types[number % 4]};

    for (uint32_t i = DOWN; i <= ACROSS; i++)
        s.dtypes[i] = s.type == KIR_F32   ? reals[random_below(&seed, 4)]
                      : s.type == KIR_F64 ? FRIT_F64
                                          : ints[random_below(&seed, 4)];
    s.dtypes[OUT] = s.type == KIR_F32 ? FRIT_F32 : s.type == KIR_F64 ? FRIT_F64 : FRIT_I32;
    s.lanes = 16u << random_below(&seed, 5);
    s.rows = 1 + random_below(&seed, TILE_SUMS);
    s.columns = 1;
    s.dots = random_below(&seed, 3) == 0;
    if (s.dots) {
        s.columns = 1 + random_below(&seed, TILE_SUMS);
        s.rows = 1 + random_below(&seed, TILE_SUMS / s.columns);
    }
    s.sums = s.rows * s.columns;
    s.spread = !s.dots && random_below(&seed, 3) == 0;
    s.run = 1u << random_below(&seed, 9);
    s.step = 1 + random_below(&seed, 2);
    s.fused = s.type != KIR_I32 && random_below(&seed, 2);
    s.pairs = s.type == KIR_F32 && random_below(&seed, 3) == 0;
    if (s.pairs)
        s.dtypes[DOWN] = s.dtypes[ACROSS] = FRIT_F32;
    s.masked = random_below(&seed, 2);
    s.nested = random_below(&seed, 2);
    s.by_const = random_below(&seed, 2);
    s.in_tile = random_below(&seed, 4) == 0;
    s.again = random_below(&seed, 3) == 0;
    s.in_lanes = random_below(&seed, 4) == 0; /* `across` */
    s.words[ROW_STRIDE] = random_below(&seed, 40);
    s.words[DOWN_STRIDE] = (int64_t)random_below(&seed, 7) - 3;
    s.words[ACROSS_STRIDE] = (int64_t)random_below(&seed, 25) - 12;
    s.words[LOADED] = random_below(&seed, s.lanes + 2);
    s.words[BEGIN] = random_below(&seed, 9);
    s.words[END] = s.words[BEGIN] + random_below(&seed, 4) * random_below(&seed, 50);
    return s;
}

/* ---- the module ---- */

static uint32_t op(struct kir_module *m, enum kir_op name, uint32_t a, uint32_t b)
{
    return kir_emit(m, name, a, b, KIR_NONE);
}

static uint32_t index_of(struct kir_module *m, int64_t value)
{
    return kir_const_i(m, KIR_I32, value);
}

struct body {
    const struct shape *s;
    struct kir_module *m;
    uint32_t lane, spread, mask, zero, tile, lane_tile, words[WORDS];
};

/* k times a stride, from the middle of the memory on. */
static uint32_t along_k(const struct body *b, uint32_t k, uint32_t word)
{
    uint32_t stride = b->s->by_const ? index_of(b->m, b->s->words[word]) : b->words[word];

    return op(b->m, KIR_add, op(b->m, KIR_mul, stride, k), index_of(b->m, SPAN / 2));
}

static uint32_t across_of(const struct body *b, uint32_t k, uint32_t column)
{
    uint32_t at = op(b->m, KIR_add, along_k(b, k, ACROSS_STRIDE), b->lane);

    if (b->s->in_lanes)
        return kir_emit_as(b->m, KIR_tload, b->s->type, b->lane_tile,
                           op(b->m, KIR_add, k, index_of(b->m, column)), KIR_NONE, KIR_NONE);
    if (b->s->spread)
        at = op(b->m, KIR_add, b->spread, along_k(b, k, ACROSS_STRIDE));
    if (b->s->columns > 1)
        at = op(b->m, KIR_add, at, index_of(b->m, 3 * (int64_t)column));

    return b->s->masked ? kir_emit_as(b->m, KIR_load_if, b->s->type, ACROSS, at, b->mask, b->zero)
                        : kir_emit_as(b->m, KIR_load, b->s->type, ACROSS, at, KIR_NONE, KIR_NONE);
}

static uint32_t down_of(const struct body *b, uint32_t k, uint32_t row)
{
    uint32_t start = op(b->m, KIR_mul, b->words[ROW_STRIDE], index_of(b->m, row));
    uint32_t at = op(b->m, row % 2 ? KIR_add : KIR_sub, along_k(b, k, DOWN_STRIDE), start);

    if (b->s->in_tile)
        at = op(b->m, KIR_add, start, k);
    if (b->s->dots)
        at = op(b->m, KIR_add, at, b->lane);
    return b->s->in_tile ? kir_emit_as(b->m, KIR_tload, b->s->type, b->tile, at, KIR_NONE, KIR_NONE)
                         : kir_emit_as(b->m, KIR_load, b->s->type, DOWN, at, KIR_NONE, KIR_NONE);
}

static void sum(const struct body *b, uint32_t begin, uint32_t end, uint32_t *sums)
{
    uint32_t k = kir_for(b->m, begin, end, b->s->step), n = b->s->columns;
    uint32_t next[TILE_SUMS], across[TILE_SUMS], down = 0;

    for (uint32_t i = 0; i < b->s->sums; i++)
        sums[i] = kir_phi(b->m, sums[i]);
    for (uint32_t i = 0; i < n; i++)
        across[i] = across_of(b, k, i);
    for (uint32_t i = 0; i < b->s->sums; i++) {
        uint32_t x, y;

        if (i % n == 0)
            down = down_of(b, k, i / n);
        x = i % 3 ? down : across[i % n];
        y = i % 3 ? across[i % n] : down;
        next[i] = b->s->pairs   ? kir_emit(b->m, KIR_dot2, x, y, sums[i])
                  : b->s->fused ? kir_emit(b->m, KIR_fma, x, y, sums[i])
                  : i % 2       ? op(b->m, KIR_add, op(b->m, KIR_mul, x, y), sums[i])
                                : op(b->m, KIR_add, sums[i], op(b->m, KIR_mul, x, y));
    }
    kir_next(b->m, next, b->s->sums);
}

/* Sums of parts of the loop, added up. */
static void sum_parts(const struct body *b, uint32_t *sums)
{
    uint32_t part = kir_for(b->m, b->words[BEGIN], b->words[END], 20), next[TILE_SUMS];

    for (uint32_t i = 0; i < b->s->sums; i++) {
        sums[i] = kir_phi(b->m, sums[i]);
        next[i] = b->zero;
    }
    sum(b, part, op(b->m, KIR_smin, op(b->m, KIR_add, part, index_of(b->m, 20)), b->words[END]),
        next);
    for (uint32_t i = 0; i < b->s->sums; i++)
        next[i] = op(b->m, KIR_add, sums[i], next[i]);
    kir_next(b->m, next, b->s->sums);
}

/* Twice, each loop going on with the sums of the one around it. */
static void sum_again(const struct body *b, uint32_t *sums)
{
    uint32_t next[TILE_SUMS];

    kir_for(b->m, index_of(b->m, 0), index_of(b->m, 2), 1);
    for (uint32_t i = 0; i < b->s->sums; i++)
        next[i] = sums[i] = kir_phi(b->m, sums[i]);
    if (b->s->nested)
        sum_parts(b, next);
    else
        sum(b, b->words[BEGIN], b->words[END], next);
    kir_next(b->m, next, b->s->sums);
}

static void fill_tile(struct body *b)
{
    uint32_t i, at, value;

    b->tile = kir_tile(b->m, KIR_GROUP, b->s->type, TILE_COUNT);
    i = kir_for(b->m, index_of(b->m, 0), index_of(b->m, TILE_COUNT), b->s->lanes);
    at = op(b->m, KIR_add, i, b->lane);
    value = kir_emit_as(b->m, KIR_load, b->s->type, DOWN, at, KIR_NONE, KIR_NONE);
    kir_emit_imm(b->m, KIR_tstore, b->tile, at, value, KIR_NONE);
    kir_next(b->m, NULL, 0);
    kir_emit(b->m, KIR_barrier, KIR_NONE, KIR_NONE, KIR_NONE);
}

/* Runs of lanes, three times as far from each other as neighbours. */
static uint32_t spread_of(const struct body *b)
{
    uint32_t low = op(b->m, KIR_and, b->lane, index_of(b->m, (int64_t)b->s->run - 1));
    uint32_t high = op(b->m, KIR_sub, b->lane, low);

    return op(b->m, KIR_add, op(b->m, KIR_mul, high, index_of(b->m, 3)), low);
}

/* Each lane's own, of what rounds and columns read. */
static void fill_lane_tile(struct body *b)
{
    uint32_t i, at, value;

    b->lane_tile = kir_tile(b->m, KIR_LANE, b->s->type, LANE_COUNT);
    i = kir_for(b->m, index_of(b->m, 0), index_of(b->m, LANE_COUNT), 1);
    at = op(b->m, KIR_add, i, b->lane);
    value = kir_emit_as(b->m, KIR_load, b->s->type, ACROSS, at, KIR_NONE, KIR_NONE);
    kir_emit_imm(b->m, KIR_tstore, b->lane_tile, i, value, KIR_NONE);
    kir_next(b->m, NULL, 0);
}

static void build(struct kir_module *m, const struct shape *s)
{
    struct body b = {s, m, .mask = KIR_NONE};
    uint32_t sums[TILE_SUMS];

    kir_init(m, "product");
    for (uint32_t i = 0; i < ARGS; i++)
        kir_arg(m, s->dtypes[i], i == OUT ? KIR_WRITE : KIR_READ);
    kir_phase(m, s->lanes);
    for (uint32_t i = 0; i < WORDS; i++)
        b.words[i] = kir_param(m, KIR_I32);
    b.lane = kir_emit(m, KIR_lane, KIR_NONE, KIR_NONE, KIR_NONE);
    b.zero = s->type == KIR_I32 ? kir_const_i(m, s->type, 0) : kir_const_f(m, s->type, 0);
    if (s->in_tile)
        fill_tile(&b);
    if (s->in_lanes)
        fill_lane_tile(&b);
    b.mask = op(m, KIR_lt, b.lane, b.words[LOADED]);
    b.spread = spread_of(&b);
    for (uint32_t i = 0; i < s->sums; i++)
        sums[i] = i % 2                ? b.zero
                  : s->type == KIR_I32 ? kir_const_i(m, s->type, i)
                                       : kir_const_f(m, s->type, i);
    if (s->again)
        sum_again(&b, sums);
    else if (s->nested)
        sum_parts(&b, sums);
    else
        sum(&b, b.words[BEGIN], b.words[END], sums);
    for (uint32_t i = 0; i < s->sums; i++)
        kir_emit_imm(m, KIR_store, OUT, op(m, KIR_add, b.lane, index_of(m, (int64_t)i * s->lanes)),
                     sums[i], KIR_NONE);
}

/* ---- memory ---- */

static const double specials[] = {0.0, -0.0, 1e30, -1e30, __builtin_inf(), -__builtin_inf()};

static void fill(void *memory, uint32_t dtype, bool pairs, uint64_t seed)
{
    for (uint32_t i = 0; i < SPAN; i++) {
        double real = (double)random_below(&seed, 4001) / 1000 - 2;

        if (random_below(&seed, 1000) < 6)
            real = specials[random_below(&seed, 6)];
        if (pairs) /* of numbers: the bits of others are not said */
            ((uint32_t *)memory)[i] =
                (half_store((float)real, 7) | (uint32_t)half_store((float)i / 64, 7) << 16) &
                0xfeffffff;
        else if (dtype == FRIT_F32)
            ((float *)memory)[i] = (float)real;
        else if (dtype == FRIT_F64)
            ((double *)memory)[i] = real;
        else if (dtype == FRIT_F16 || dtype == FRIT_BF16)
            ((uint16_t *)memory)[i] = half_store((float)real, dtype == FRIT_F16 ? 10 : 7);
        else
            memset((char *)memory + i * frit_storage_bytes(dtype, 1), (int)random_below(&seed, 256),
                   (size_t)frit_storage_bytes(dtype, 1));
    }
}

static bool same(const struct shape *s, const void *a, const void *b, uint32_t i)
{
    if (s->type == KIR_F64) {
        double x = ((const double *)a)[i], y = ((const double *)b)[i];

        return (x != x && y != y) || memcmp(&x, &y, sizeof(x)) == 0;
    }
    if (s->type == KIR_F32) {
        float x = ((const float *)a)[i], y = ((const float *)b)[i];

        return (x != x && y != y) || memcmp(&x, &y, sizeof(x)) == 0;
    }
    return ((const uint32_t *)a)[i] == ((const uint32_t *)b)[i];
}

static bool is_found(const struct shape *s, int level)
{
    if (s->pairs)
        return level == TILE_AVX512 && tile_has_dot2();
    return s->type == KIR_I32 || s->fused == (level >= TILE_AVX2);
}

/* Runs a case at a level, and within bounds of its arguments too, which goes step by step. */
static void check_level(const struct shape *s, const struct kir_module *m, int level,
                        uint64_t number, void *const *args, const void *expected)
{
    const uint64_t bytes = TILE_SUMS * MOST_LANES * sizeof(double);
    struct tile_bounds bounds[ARGS];
    struct tile_code *code;
    uint64_t words[WORDS];
    void *scratch;

    for (uint32_t i = 0; i < ARGS; i++)
        bounds[i] = (struct tile_bounds){0, (int64_t)(SPAN * sizeof(double))};
    bounds[OUT].end = (int64_t)bytes;
    memcpy(words, s->words, sizeof(words));
    assert_int_equal(tile_compile(m, 0, (enum tile_level)level, &code, NULL), FRIT_OK);
    assert_int_equal(code->n_products, is_found(s, level));
    scratch = aligned_alloc(TILE_ALIGN, tile_scratch(code));
    assert_non_null(scratch);
    for (int within = 0; within < 2; within++) {
        memset(args[OUT], 0xaa, bytes);
        if (within)
            assert_int_equal(tile_run_within(code, words, args, bounds, (uint32_t[3]){0}, scratch),
                             0);
        else
            tile_run(code, words, args, (uint32_t[3]){0}, scratch);
        for (uint32_t i = 0; i < s->sums * s->lanes; i++)
            if (!same(s, args[OUT], expected, i))
                fail_msg("case %llu, level %d, within %d: sum %u of lane %u differs",
                         (unsigned long long)number, level, within, i / s->lanes, i % s->lanes);
    }
    free(scratch);
    tile_destroy(code);
}

static void check_case(uint64_t number)
{
    const uint64_t bytes = TILE_SUMS * MOST_LANES * sizeof(double);
    const struct shape s = shape_of(number);
    frit_err err = {.struct_size = sizeof(err)};
    struct eval_arg eval_args[ARGS];
    void *args[ARGS], *expected = calloc(1, bytes);
    struct kir_module m;
    uint64_t words[WORDS];

    build(&m, &s);
    memcpy(words, s.words, sizeof(words));
    for (uint32_t i = 0; i < ARGS; i++) {
        args[i] = calloc(1, i == OUT ? bytes : SPAN * sizeof(double));
        assert_non_null(args[i]);
        if (i != OUT)
            fill(args[i], s.dtypes[i], s.pairs, number + i);
        eval_args[i] = (struct eval_arg){i == OUT ? expected : args[i], 0,
                                         i == OUT ? bytes : SPAN * sizeof(double)};
    }
    if (eval_run(&m, words, eval_args, (const uint32_t[][3]){{1, 1, 1}}, &err))
        fail_msg("case %llu: %s", (unsigned long long)number, err.text);
    for (int level = 0; level <= (int)tile_level_best(); level++)
        check_level(&s, &m, level, number, args, expected);
    for (uint32_t i = 0; i < ARGS; i++)
        free(args[i]);
    free(expected);
    kir_fini(&m);
}

static void products_run_as_by_eval(void **state)
{
    const char *first = getenv("FRIT_TEST_CASE"), *many = getenv("FRIT_TEST_CASES");
    uint64_t from = first ? strtoull(first, NULL, 10) : 0;
    uint64_t n = many ? strtoull(many, NULL, 10) : first ? 1 : 400;

    (void)state;
    for (uint64_t i = 0; i < n; i++)
        check_case(from + i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_run_as_by_eval),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
