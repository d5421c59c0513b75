/* SPDX-License-Identifier: Apache-2.0 */
/* Words of a launch, division by a number of the launch, and what a mark forgets. */
#include <string.h>

#include "base/fail.h"
#include "ir/eval.h"
#include "ir/verify.h"
#include "kernels/lower/rig.h"
#include "lower/expr/expr.h"
#include "unit.h"

static void run(const struct kir_module *m, const struct sched_numbers *numbers,
                const struct eval_arg *args)
{
    static const uint32_t grid[1][3] = {{1, 1, 1}};
    frit_err err = ERR_INIT;

    if (kir_verify(m, NULL, &err) || eval_run(m, numbers->words, args, grid, &err))
        fail_msg("%s", err.text);
}

static struct eval_arg memory(void *base, uint64_t bytes)
{
    return (struct eval_arg){base, 0, bytes};
}

/* ---- division ---- */

enum { NUMBERS = 64 };

static void divide(int64_t by, bool wide, const int64_t *x, int64_t *y)
{
    struct kir_module m;
    struct sched_numbers numbers = {0};
    struct sched s = {.module = &m, .numbers = &numbers};
    struct sched_divisor divisor;
    uint32_t lane, value;

    kir_init(&m, "divide");
    m.wide = wide;
    kir_arg(&m, FRIT_I64, KIR_READ);
    kir_arg(&m, FRIT_I64, KIR_WRITE);
    kir_phase(&m, NUMBERS);
    divisor = sched_add_divisor(&s, by);
    lane = sched_wide(&s, kir_emit(&m, KIR_lane, KIR_NONE, KIR_NONE, KIR_NONE));
    value = kir_emit_as(&m, KIR_load, KIR_I64, 0, lane, KIR_NONE, KIR_NONE);
    if (!wide)
        value = kir_emit(&m, KIR_i32, value, KIR_NONE, KIR_NONE);
    value = sched_divide(&s, &divisor, value);
    if (!wide)
        value = kir_emit(&m, KIR_i64, value, KIR_NONE, KIR_NONE);
    kir_emit_imm(&m, KIR_store, 1, lane, value, KIR_NONE);
    run(&m, &numbers,
        (struct eval_arg[]){memory((void *)(uintptr_t)x, NUMBERS * sizeof(*x)),
                            memory(y, NUMBERS * sizeof(*y))});
    kir_fini(&m);
    arena_fini(&numbers.arena);
}

/* Near multiples of the divisor, up to the largest index. */
static void test_divide(void **state)
{
    uint64_t chance = 3;

    (void)state;
    for (uint32_t round = 0; round < 600; round++) {
        bool wide = round % 4 == 0;
        int64_t most = wide ? INT64_MAX : INT32_MAX, x[NUMBERS], y[NUMBERS], by;

        by = (most >> rig_random(&chance, wide ? 62 : 30)) - rig_random(&chance, 3);
        by = round < 40 ? 2 + round : by < 2 ? 2 : by;
        for (uint32_t i = 0; i < NUMBERS; i++) {
            int64_t multiple = (most / by - rig_random(&chance, 2)) * by;

            x[i] = multiple <= 0 ? i : multiple - rig_random(&chance, 2);
            x[i] = i == 0 ? most : i == 1 ? by - 1 : x[i];
        }
        divide(by, wide, x, y);
        for (uint32_t i = 0; i < NUMBERS; i++)
            if (y[i] != x[i] / by)
                fail_msg("%lld / %lld = %lld", (long long)x[i], (long long)by, (long long)y[i]);
    }
}

/* ---- words ---- */

static void test_words(void **state)
{
    struct kir_module m;
    struct sched_numbers numbers = {0};
    struct sched s = {.module = &m, .numbers = &numbers};
    uint32_t value;

    (void)state;
    kir_init(&m, "words");
    kir_phase(&m, 16);
    for (uint32_t i = 0; i < 100; i++) {
        m.wide = i % 2;
        value = sched_add_index(&s, i);
        assert_int_equal(kir_type_at(&m, value), i % 2 ? KIR_I64 : KIR_I32);
        value = sched_add_scalar(&s, 1000 + i, KIR_F32);
        assert_int_equal(kir_type_at(&m, value), KIR_F32);
    }
    assert_int_equal(m.n_params, 200);
    assert_int_equal(numbers.n_words, 200);
    assert_int_equal(numbers.n_late, 100);
    for (uint32_t i = 0; i < 100; i++) {
        assert_int_equal(numbers.words[2 * i], i);
        assert_int_equal(numbers.words[2 * i + 1], 0);
        assert_int_equal(numbers.late[i].word, 2 * i + 1);
        assert_int_equal(numbers.late[i].number, 1000 + i);
    }
    kir_fini(&m);
    arena_fini(&numbers.arena);
}

/* ---- marks ---- */

/* y = x + transpose(x), each row in a loop over its columns: what is made in the loop is made anew
 * in the next, what is hoisted is not. */
static void emit_loops(struct expr *e, uint32_t store)
{
    struct kir_module *m = e->s->module;
    uint32_t zero, end, lane, mark;

    kir_phase(m, 16);
    expr_phase(e);
    lane = kir_emit(m, KIR_lane, KIR_NONE, KIR_NONE, KIR_NONE);
    expr_set(e, 0, lane);
    expr_mask(e, kir_emit(m, KIR_lt, lane, sched_add_index(e->s, e->space.extent[0]), KIR_NONE));
    expr_hoist(e);
    for (int half = 0; half < 2; half++) {
        zero = sched_add_index(e->s, half ? 3 : 0);
        end = sched_add_index(e->s, half ? e->space.extent[1] : 3);
        mark = expr_mark(e);
        expr_set(e, 1, kir_for(m, zero, end, 1));
        expr_emit_store(e, store);
        kir_next(m, NULL, 0);
        expr_release(e, mark);
    }
}

/* Multiplications in loops: of the transposed offset alone, the other's is outside. */
static uint32_t products_inside(const struct kir_module *m)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < m->phases[0].n; i++)
        n += m->phases[0].inst[i].op == KIR_mul && m->phases[0].inst[i].level > 0;
    return n;
}

static void test_marks(void **state)
{
    static const int64_t dims[] = {10, 10};
    const frit_attrs_order order = {.struct_size = sizeof(order), .order = {2, {1, 0}}};
    struct space_map map = {.rank = 2};
    struct kir_module m;
    struct sched_numbers numbers = {0};
    struct rig rig;
    struct sched s = {&rig.block, &rig.sig, &rig.target, rig.extents, &m, &numbers, false};
    struct expr e;
    uint32_t x, t, y, store;

    (void)state;
    rig_init(&rig);
    x = rig_input(&rig, FRIT_F32, 2, dims);
    for (int64_t i = 0; i < 100; i++)
        rig_set_real(&rig, x, i, (double)(i * i % 37));
    t = rig_op(&rig, FRIT_OP_permute, 1, (struct rig_in[]){rig_value(x)}, &order, FRIT_F32, 2,
               dims);
    y = rig_op(&rig, FRIT_OP_add, 2, (struct rig_in[]){rig_value(x), rig_value(t)}, NULL, FRIT_F32,
               2, dims);
    rig_run(&rig, &sched_map);
    memset(rig.values[y].data, 0, 100 * sizeof(float));
    kir_init(&m, "marks");
    expr_args(&s);
    expr_init(&e, &s);
    map.at[0] = space_dim(&e.space, 10, 1);
    map.at[1] = space_dim(&e.space, 10, 2);
    store = expr_store(&e, rig.block.outputs[0], &map);
    expr_settle(&e);
    emit_loops(&e, store);
    assert_int_equal(expr_status(&e, NULL), FRIT_OK);
    assert_int_equal(products_inside(&m), 2);
    run(&m, &numbers,
        (struct eval_arg[]){memory(rig.values[x].data, 100 * sizeof(float)),
                            memory(rig.values[y].data, 100 * sizeof(float))});
    for (int64_t i = 0; i < 100; i++)
        assert_true(rig_get_real(&rig, y, i) ==
                    rig_get_real(&rig, x, i) + rig_get_real(&rig, x, i % 10 * 10 + i / 10));
    expr_fini(&e);
    kir_fini(&m);
    arena_fini(&numbers.arena);
    rig_fini(&rig);
}

/* ---- rounds ---- */

static void test_rounds(void **state)
{
    struct kir_module m = {.name = "long"};
    struct kir_target target = {0};
    const struct sched s = {.module = &m, .target = &target};
    frit_err err = ERR_INIT;

    (void)state;
    assert_int_equal(sched_check_rounds(&s, INT64_MAX, &err), FRIT_OK);
    target.max_rounds = 100;
    assert_int_equal(sched_check_rounds(&s, 100, &err), FRIT_OK);
    assert_int_equal(sched_check_rounds(&s, 101, &err), FRIT_UNSUPPORTED);
    assert_non_null(strstr(err.text, "long has longer loops"));
}

/* Running sums of `rows` rows of 96. */
static frit_status try_sums(int64_t rows, uint32_t max_rounds)
{
    const frit_attrs_axis axis = {.struct_size = sizeof(axis), .axis = 1};
    const int64_t dims[] = {rows, 96};
    frit_status status;
    struct rig rig;
    uint32_t x;

    rig_init(&rig);
    rig.target.max_rounds = max_rounds;
    x = rig_input(&rig, FRIT_F32, 2, dims);
    (void)rig_op(&rig, FRIT_OP_cumsum, 1, (struct rig_in[]){rig_value(x)}, &axis, FRIT_F32, 2,
                 dims);
    status = rig_try(&rig, &sched_scan);
    rig_fini(&rig);
    return status;
}

/* ---- tuning ---- */

/* Phases of the kernel that sums the elements of each row of 4 x 9000. */
static uint32_t phases_of_sum(uint32_t chunk)
{
    const frit_attrs_reduce attrs = {
        .struct_size = sizeof(attrs), .axes = {.count = 1, .axis = {1}}, .keep = 1};
    struct rig rig;
    uint32_t x, n;

    rig_init(&rig);
    rig.target.rereads_are_cached = true;
    rig.target.tuning.row_group_chunk = chunk;
    x = rig_input(&rig, FRIT_F32, 2, (const int64_t[]){4, 9000});
    (void)rig_op(&rig, FRIT_OP_sum, 1, (struct rig_in[]){rig_value(x)}, &attrs, FRIT_F32, 2,
                 (const int64_t[]){4, 1});
    assert_int_equal(rig_try(&rig, &sched_row), FRIT_OK);
    n = rig.module.n_phases;
    rig_fini(&rig);
    return n;
}

/* A threshold that the driver sets takes the place of the default, which depends on the target. */
static void test_tuning(void **state)
{
    const struct kir_tuning zeros = {0}, set = {.scan_enough = 7};

    (void)state;
    assert_int_equal(kir_tuning_filled(&zeros, false).scan_enough, 512);
    assert_int_equal(kir_tuning_filled(&zeros, true).scan_enough, 64);
    assert_int_equal(kir_tuning_filled(&set, true).scan_enough, 7);
    assert_int_equal(kir_tuning_filled(&set, true).short_row, 32);
    assert_int_equal(phases_of_sum(0), 1);
    assert_int_equal(phases_of_sum(1000), 2);
}

static void test_long_loops(void **state)
{
    (void)state;
    assert_int_equal(try_sums(2, 8), FRIT_OK); /* lanes share a row */
    assert_int_equal(try_sums(2, 4), FRIT_UNSUPPORTED);
    assert_int_equal(try_sums(2, 0), FRIT_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_divide),     cmocka_unit_test(test_words),
        cmocka_unit_test(test_marks),      cmocka_unit_test(test_rounds),
        cmocka_unit_test(test_long_loops), cmocka_unit_test(test_tuning),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
