/* SPDX-License-Identifier: Apache-2.0 */
/* What lanes do together, and control, on a device against eval. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/emit/spirv/rig.h"
#include "unit.h"

enum { MOST = 512, GROUPS = 3 };

static struct vulkan_rig *rig;

struct build {
    struct kir_module m;
    uint32_t lanes, lane, n;
    bool far; /* the offset's alignment does not show: lanes lie apart */
};

static uint32_t i32(struct build *b, int64_t value)
{
    return kir_const_i(&b->m, KIR_I32, value);
}

static uint32_t op2(struct build *b, enum kir_op op, uint32_t x, uint32_t y)
{
    return kir_emit(&b->m, op, x, y, KIR_NONE);
}

/* Argument 0 is read, 1 is written; word 0 is 0. */
static void begin(struct build *b, const char *name, uint32_t lanes, uint32_t in, uint32_t out,
                  bool far)
{
    uint32_t group, first;

    kir_init(&b->m, name);
    kir_arg(&b->m, in, KIR_READ);
    kir_arg(&b->m, out, KIR_READ | KIR_WRITE);
    kir_phase(&b->m, lanes);
    b->lanes = lanes;
    b->lane = kir_emit(&b->m, KIR_lane, KIR_NONE, KIR_NONE, KIR_NONE);
    group = kir_emit_imm(&b->m, KIR_group, 0, KIR_NONE, KIR_NONE, KIR_NONE);
    first = op2(b, KIR_mul, group, i32(b, lanes));
    if (far)
        first = op2(b, KIR_add, first, kir_param(&b->m, KIR_I32));
    b->n = op2(b, KIR_add, first, b->lane);
}

static uint32_t load(struct build *b)
{
    return kir_emit_as(&b->m, KIR_load, kir_type_of(b->m.args[0].dtype), 0, b->n, KIR_NONE,
                       KIR_NONE);
}

static void store(struct build *b, uint32_t value)
{
    kir_emit_imm(&b->m, KIR_store, 1, b->n, value, KIR_NONE);
}

static void check(struct build *b)
{
    static uint64_t in[MOST * GROUPS], out[MOST * GROUPS];
    const uint64_t words[1] = {0};
    const uint32_t grid[1][3] = {{GROUPS, 1, 1}};
    struct spirv_rig_arg args[2];

    for (uint32_t i = 0; i < MOST * GROUPS; i++)
        in[i] = i * 0x9e3779b97f4a7c15u;
    if (b->m.args[0].dtype == FRIT_BOOL) {
        for (uint32_t i = 0; i < MOST * GROUPS; i++)
            ((uint8_t *)in)[i] = i * 37 >> 3 & 1;
    }
    if (b->m.args[0].dtype == FRIT_F32) {
        for (uint32_t i = 0; i < MOST * GROUPS; i++)
            ((float *)in)[i] = (float)(i * 7919 % 1000) - 500;
    }
    if (b->m.args[0].dtype == FRIT_F64) {
        for (uint32_t i = 0; i < MOST * GROUPS; i++)
            ((double *)in)[i] = (double)(i * 7919 % 1000) - 500;
    }
    for (uint32_t i = 0; i < 2; i++)
        args[i] = (struct spirv_rig_arg){i ? out : in, b->lanes * GROUPS *
                                                           frit_dtype_bits(b->m.args[i].dtype) / 8};
    assert_false(b->m.failed);
    spirv_rig_check(
        rig, &(struct spirv_rig_run){.module = &b->m, .words = words, .args = args, .grid = grid});
    kir_fini(&b->m);
}

static const uint32_t sizes[] = {1, 2, 8, 32, 64, 256, 512};
static const uint32_t dtypes[] = {FRIT_BOOL, FRIT_I32, FRIT_I64, FRIT_F32, FRIT_F64};

#define SIZE(array) (sizeof(array) / sizeof(*(array)))

/* Of the two largest sizes each has half of the types, unless FRIT_TEST_LONG=1: drivers compile
 * them for long. */
static bool is_left_out(uint32_t size, uint32_t dtype)
{
    return sizes[size] >= 256 && (size + dtype) % 2 == 0 && !getenv("FRIT_TEST_LONG");
}

/* Every other lane that a value can come from. */
static void check_moves(enum kir_op op, uint32_t lanes, uint32_t dtype, bool far)
{
    struct build b;
    char name[64];
    uint32_t value, out;

    snprintf(name, sizeof(name), "%s.%u.%u.%d", kir_op_info((uint32_t)op)->name, lanes, dtype,
             (int)far);
    begin(&b, name, lanes, dtype, dtype, far);
    out = value = load(&b);
    for (uint32_t by = 1; by < lanes; by *= 2) {
        uint32_t test = op2(&b, KIR_ult, b.lane, i32(&b, by + by / 2));

        value = kir_emit_imm(&b.m, op, by, value, KIR_NONE, KIR_NONE);
        out = kir_emit(&b.m, KIR_select, value, out, test);
    }
    store(&b, value);
    kir_emit_imm(&b.m, KIR_store_if, 1, b.n, out,
                 op2(&b, KIR_eq, op2(&b, KIR_and, b.lane, i32(&b, 1)), i32(&b, 0)));
    check(&b);
}

static void test_exchange(void **state)
{
    (void)state;
    for (uint32_t s = 0; s < SIZE(sizes); s++) {
        for (uint32_t d = 0; d < SIZE(dtypes); d++)
            if (!is_left_out(s, d))
                check_moves(KIR_exchange, sizes[s], dtypes[d], (s + d) % 2);
        check_moves(KIR_exchange, sizes[s], FRIT_F32, s % 2);
    }
}

static void test_shift(void **state)
{
    (void)state;
    for (uint32_t s = 0; s < SIZE(sizes); s++) {
        for (uint32_t d = 0; d < SIZE(dtypes); d++)
            if (!is_left_out(s, d))
                check_moves(KIR_shift, sizes[s], dtypes[d], (s + d) % 2);
        check_moves(KIR_shift, sizes[s], FRIT_F32, s % 2);
    }
}

/* Shifts by numbers that are not a multiple of a thread's lanes. */
static void test_shift_odd(void **state)
{
    static const uint32_t by[] = {1, 3, 5, 6, 7, 63, 64, 65, 127};

    (void)state;
    for (uint32_t i = 0; i < SIZE(by); i++) {
        struct build b;

        begin(&b, "shift", 128, FRIT_I32, FRIT_I32, i % 2);
        store(&b, kir_emit_imm(&b.m, KIR_shift, by[i], load(&b), KIR_NONE, KIR_NONE));
        check(&b);
    }
}

static void test_first(void **state)
{
    (void)state;
    for (uint32_t s = 0; s < SIZE(sizes); s++) {
        for (uint32_t d = 0; d < SIZE(dtypes); d++) {
            struct build b;

            if (is_left_out(s, d))
                continue;
            begin(&b, "first", sizes[s], dtypes[d], dtypes[d], d % 2);
            store(&b, kir_emit(&b.m, KIR_first, load(&b), KIR_NONE, KIR_NONE));
            check(&b);
        }
    }
}

/* Sums in a loop, by butterflies: each round uses the memory for exchanges again. */
static void test_sums(void **state)
{
    (void)state;
    for (uint32_t s = 0; s < SIZE(sizes); s++) {
        struct build b;
        uint32_t value, counter, sum, next;

        begin(&b, "sums", sizes[s], FRIT_F32, FRIT_F32, s % 2);
        value = load(&b);
        counter = kir_for(&b.m, i32(&b, 0), i32(&b, 3), 1);
        sum = kir_phi(&b.m, value);
        next = kir_emit(&b.m, KIR_add, sum, kir_emit(&b.m, KIR_f32, counter, KIR_NONE, KIR_NONE),
                        KIR_NONE);
        for (uint32_t by = 1; by < sizes[s]; by *= 2)
            next = op2(&b, KIR_add, next,
                       kir_emit_imm(&b.m, KIR_exchange, by, next, KIR_NONE, KIR_NONE));
        kir_next(&b.m, &next, 1);
        store(&b, op2(&b, KIR_sub, sum, value));
        check(&b);
    }
}

/* Reverses a group through a tile, twice, and counts in a tile of each lane. */
static void test_tiles(void **state)
{
    (void)state;
    for (uint32_t s = 0; s < SIZE(sizes); s++) {
        for (uint32_t d = 1; d < SIZE(dtypes); d++) {
            enum kir_type type = kir_type_of(dtypes[d]);
            uint32_t group, own, back, value, even;
            struct build b;

            if (is_left_out(s, d))
                continue;
            begin(&b, "tiles", sizes[s], dtypes[d], dtypes[d], (s + d) % 2);
            group = kir_tile(&b.m, KIR_GROUP, type, sizes[s]);
            own = kir_tile(&b.m, KIR_LANE, type, 3);
            value = load(&b);
            back = op2(&b, KIR_sub, i32(&b, sizes[s] - 1), b.lane);
            kir_emit_imm(&b.m, KIR_tstore, group, b.lane, value, KIR_NONE);
            kir_emit_imm(&b.m, KIR_tstore, own, i32(&b, 2), value, KIR_NONE);
            kir_emit(&b.m, KIR_barrier, KIR_NONE, KIR_NONE, KIR_NONE);
            value = kir_emit_as(&b.m, KIR_tload, type, group, back, KIR_NONE, KIR_NONE);
            kir_emit(&b.m, KIR_barrier, KIR_NONE, KIR_NONE, KIR_NONE);
            even = op2(&b, KIR_eq, op2(&b, KIR_and, b.lane, i32(&b, 1)), i32(&b, 0));
            kir_emit_imm(&b.m, KIR_tstore, own, i32(&b, 1), value, KIR_NONE);
            kir_emit_imm(&b.m, KIR_tstore_if, own, i32(&b, 1),
                         kir_emit_as(&b.m, KIR_tload, type, own, i32(&b, 2), KIR_NONE, KIR_NONE),
                         even);
            value = kir_emit_as(&b.m, KIR_tload, type, own, i32(&b, 1), KIR_NONE, KIR_NONE);
            kir_emit_imm(&b.m, KIR_tstore_if, group, b.lane, value, even);
            kir_emit(&b.m, KIR_barrier, KIR_NONE, KIR_NONE, KIR_NONE);
            store(&b, kir_emit_as(&b.m, KIR_tload, type, group, i32(&b, 0), KIR_NONE, KIR_NONE));
            kir_emit_imm(&b.m, KIR_store_if, 1, b.n, value, even);
            check(&b);
        }
    }
}

/* Loops in loops with bounds of both types, steps, no rounds, and carried values that swap. */
static void test_loops(void **state)
{
    struct build b;
    uint32_t outer, inner, first, one, x, y, x2, y2, end, sum;

    (void)state;
    begin(&b, "loops", 64, FRIT_I32, FRIT_I32, false);
    first = load(&b);
    one = i32(&b, 1);
    outer = kir_for(&b.m, kir_const_i(&b.m, KIR_I64, -3), kir_const_i(&b.m, KIR_I64, 5), 2);
    x = kir_phi(&b.m, first);
    y = kir_phi(&b.m, one);
    end = kir_emit(&b.m, KIR_i32, outer, KIR_NONE, KIR_NONE);
    inner = kir_for(&b.m, one, end, 1);
    x2 = kir_phi(&b.m, y);
    y2 = kir_phi(&b.m, x);
    sum = op2(&b, KIR_add, x2, inner);
    kir_next(&b.m, (const uint32_t[]){y2, sum}, 2);
    kir_next(&b.m, (const uint32_t[]){op2(&b, KIR_mul, x2, i32(&b, 3)), y2}, 2);
    store(&b, op2(&b, KIR_xor, x, y));
    check(&b);
}

static void test_ifs(void **state)
{
    struct build b;
    uint32_t group, value;

    (void)state;
    begin(&b, "ifs", 64, FRIT_I32, FRIT_I32, false);
    group = kir_emit_imm(&b.m, KIR_group, 0, KIR_NONE, KIR_NONE, KIR_NONE);
    value = load(&b);
    kir_if(&b.m, op2(&b, KIR_ne, group, i32(&b, 1)));
    store(&b, value);
    kir_if(&b.m, op2(&b, KIR_eq, group, i32(&b, 2)));
    store(&b, op2(&b, KIR_add, kir_emit_imm(&b.m, KIR_exchange, 32, value, KIR_NONE, KIR_NONE),
                  i32(&b, 5)));
    kir_end(&b.m);
    kir_end(&b.m);
    check(&b);
}

/* Sums that are exact in any order. */
static void check_atomic(uint32_t dtype, bool masked)
{
    struct build b;
    uint32_t at, value, test;

    begin(&b, "atomic", 64, dtype, dtype, false);
    at = op2(&b, KIR_and, b.lane, i32(&b, 7));
    value = load(&b);
    test = masked ? op2(&b, KIR_ult, b.lane, i32(&b, 29)) : kir_const_b(&b.m, true);
    kir_emit_imm(&b.m, KIR_atomic_add, 1, at, value, test);
    check(&b);
}

static void test_atomics(void **state)
{
    (void)state;
    for (uint32_t masked = 0; masked < 2; masked++) {
        check_atomic(FRIT_I32, masked);
        check_atomic(FRIT_F32, masked);
        if (vulkan_target(rig)->atomic_i64)
            check_atomic(FRIT_I64, masked);
    }
}

static uint32_t tile_load(struct build *b, uint32_t tile, uint32_t at)
{
    return kir_emit_as(&b->m, KIR_tload, KIR_F32, tile, at, KIR_NONE, KIR_NONE);
}

static void tile_store(struct build *b, uint32_t tile, uint32_t at, uint32_t value)
{
    kir_emit_imm(&b->m, KIR_tstore, tile, at, value, KIR_NONE);
}

/* A tile of the group most accesses to which are of neighbouring lanes, or of neighbouring
 * instructions that all lanes of a thread share; others are of single elements. */
static void test_tile_vectors(void **state)
{
    static const uint32_t lanes[] = {8, 128, 512};

    (void)state;
    for (uint32_t s = 0; s < SIZE(lanes); s++) {
        uint32_t n = lanes[s], tile, value, sum, row, at[8], loaded[8];
        struct build b;

        begin(&b, "vectors", n, FRIT_F32, FRIT_F32, s == 1);
        tile = kir_tile(&b.m, KIR_GROUP, KIR_F32, 2 * n);
        value = load(&b);
        tile_store(&b, tile, b.lane, value);
        tile_store(&b, tile, op2(&b, KIR_add, op2(&b, KIR_xor, b.lane, i32(&b, 5)), i32(&b, n)),
                   value);
        kir_emit_imm(&b.m, KIR_tstore_if, tile, op2(&b, KIR_add, b.lane, i32(&b, n)), value,
                     kir_const_b(&b.m, false));
        kir_emit(&b.m, KIR_barrier, KIR_NONE, KIR_NONE, KIR_NONE);
        row = op2(&b, KIR_mul, op2(&b, KIR_shr, b.lane, i32(&b, 3)), i32(&b, 8));
        for (uint32_t i = 0; i < 8; i++)
            at[i] = op2(&b, KIR_add, row, i32(&b, i));
        for (uint32_t i = 0; i < 8; i++)
            loaded[i] = tile_load(&b, tile, at[i]);
        sum = tile_load(&b, tile, op2(&b, KIR_sub, i32(&b, 2 * n - 1), b.lane));
        for (uint32_t i = 0; i < 8; i++)
            sum = op2(&b, KIR_add, sum, loaded[i]);
        store(&b, op2(&b, KIR_sub, sum, tile_load(&b, tile, b.lane)));
        check(&b);
    }
}

/* Tiles of lanes: one that all access alike, and one that they do not. */
static void test_lane_tiles(void **state)
{
    (void)state;
    for (uint32_t alike = 0; alike < 2; alike++) {
        uint32_t tile, value, at, sum;
        struct build b;

        begin(&b, "lanes", 128, FRIT_F32, FRIT_F32, false);
        tile = kir_tile(&b.m, KIR_LANE, KIR_F32, 4);
        value = load(&b);
        at = alike ? i32(&b, 2) : op2(&b, KIR_and, b.lane, i32(&b, 3));
        for (uint32_t i = 0; i < 4; i++)
            tile_store(&b, tile, i32(&b, i),
                       op2(&b, KIR_mul, value, kir_const_f(&b.m, KIR_F32, i + 1)));
        sum = tile_load(&b, tile, at);
        tile_store(&b, tile, at, value);
        for (uint32_t i = 0; i < 4; i++)
            sum = op2(&b, KIR_add, sum, tile_load(&b, tile, i32(&b, i)));
        store(&b, sum);
        check(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tile_vectors), cmocka_unit_test(test_lane_tiles),
        cmocka_unit_test(test_exchange),     cmocka_unit_test(test_shift),
        cmocka_unit_test(test_shift_odd),    cmocka_unit_test(test_first),
        cmocka_unit_test(test_sums),         cmocka_unit_test(test_tiles),
        cmocka_unit_test(test_loops),        cmocka_unit_test(test_ifs),
        cmocka_unit_test(test_atomics)};
    int result;

    rig = vulkan_open();
    if (!rig)
        return 1;
    result = cmocka_run_group_tests(tests, NULL, NULL);
    vulkan_close(rig);
    return result;
}
