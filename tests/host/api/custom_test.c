/* SPDX-License-Identifier: Apache-2.0 */
/* Custom ops: native where a driver claims them, as rows elsewhere, by name with attributes by
 * name, in blocks of fusers, on other devices, in text. */
#include "api/custom_rig.h"

#include <frit/inspect.h>

/* ---- where they run ---- */

static void a_driver_that_knows_it_runs_it(void **state)
{
    struct plugin_rig rig = {0};
    frit_tensor *x, *y, *r;

    (void)state;
    custom_open(&rig, "custom:0", NULL);
    x = filled(rig.dev, 3), y = filled(rig.dev, 5);
    r = axpby(rig.dev, 2, x, 10, y);
    expect_filled(r, 56);
    assert_int_equal(rig_stats(&rig).decomposed, 0);
    assert_int_equal(rig_stats(&rig).launches, 1);
    frit_release(x);
    frit_release(y);
    rig_close(&rig);
}

static void elsewhere_it_runs_as_rows(void **state)
{
    static const char *const enabled[] = {"yes", "no"};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct plugin_rig rig = {0};
        frit_tensor *x, *y;

        rig_set(&rig, "fusion", "enabled", enabled[i]);
        custom_open(&rig, "reference:0", NULL);
        x = filled(rig.dev, 3), y = filled(rig.dev, 5);
        for (int k = 0; k < 4; k++)
            expect_filled(axpby(rig.dev, 2 + k, x, 10, y), (float)(2 + k) * 3 + 50);
        assert_true(rig_stats(&rig).decomposed > 0);
        assert_int_equal(rig_stats(&rig).launches, 12);
        frit_release(x);
        frit_release(y);
        rig_close(&rig);
    }
}

/* What it consists of may be nothing: its result is an operand. */
static void a_result_may_be_an_operand(void **state)
{
    static const char *const enabled[] = {"yes", "no"};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct plugin_rig rig = {0};
        float data[N] = {9, 9, 9, 9, 9, 9};
        frit_tensor *x, *y;

        rig_set(&rig, "fusion", "enabled", enabled[i]);
        custom_open(&rig, "reference:0", NULL);
        x = filled(rig.dev, 3);
        y = call_op(rig.dev, "org.frit.test.fold/1", x, NULL, NULL, 0);
        assert_int_equal(frit_sync(rig.dev, NULL), FRIT_OK);
        assert_int_equal(frit_write(x, data, sizeof(data), NULL), FRIT_OK);
        expect_filled(y, 3);
        expect_filled(x, 9);
        rig_close(&rig);
    }
}

/* The driver's programs want dense operands. */
static void a_program_that_refuses_gives_way_to_rows(void **state)
{
    struct plugin_rig rig = {0};
    frit_tensor *x, *flipped, *y, *r;
    float data[N] = {1, 2, 3, 4, 5, 6}, out[N];

    (void)state;
    rig_set(&rig, "frit", "fallback", "reference:0");
    custom_open(&rig, "custom:0", NULL);
    x = frit_from_host(rig.dev, FRIT_F32, FRIT_SHAPE(N), data, sizeof(data));
    y = filled(rig.dev, 1);
    flipped = frit_flip(x, .axes = FRIT_AXES(0));
    r = axpby(rig.dev, 1, flipped, 1, y);
    assert_int_equal(frit_read(r, out, sizeof(out), NULL), FRIT_OK);
    for (int i = 0; i < N; i++)
        assert_float_equal(out[i], data[N - 1 - i] + 1, 0);
    assert_true(rig_stats(&rig).fallbacks_decomposed > 0);
    frit_release(r);
    frit_release(flipped);
    frit_release(x);
    frit_release(y);
    rig_close(&rig);
}

static void without_rows_it_runs_on_another_device(void **state)
{
    struct plugin_rig rig = {0};
    static struct logged logged;

    (void)state;
    rig_set(&rig, "frit", "fallback", "custom:0");
    custom_open(&rig, "reference:0", &logged);
    expect_filled(tick(frit_take(filled(rig.dev, 4))), 4);
    assert_string_equal(logged.effects, "tick 4\n");
    assert_int_equal(rig_stats(&rig).fallbacks_device, 1);
    rig_close(&rig);
}

static void without_any_device_it_fails_by_name(void **state)
{
    struct plugin_rig rig = {0};
    frit_tensor *x, *y;

    (void)state;
    rig_set(&rig, "frit", "fallback", "none");
    custom_open(&rig, "reference:0", NULL);
    x = filled(rig.dev, 4);
    y = tick(x);
    assert_int_equal(frit_sync(rig.dev, NULL), FRIT_UNSUPPORTED);
    expect_error(y, FRIT_UNSUPPORTED, TICK ": the driver of reference:0 has no such op");
    frit_release(x);
    rig_close(&rig);
}

/* ---- in blocks ---- */

static void fusers_take_it(void **state)
{
    struct plugin_rig rig = {0};
    frit_inspection *seen;
    frit_tensor *x;
    char *text;

    (void)state;
    custom_open(&rig, "custom:0", NULL);
    x = filled(rig.dev, 2);
    assert_int_equal(frit_inspect_start(rig.dev, NULL), FRIT_OK);
    for (int i = 1; i <= 5; i++) {
        frit_scope scope = frit_scope_begin(rig.dev);
        frit_tensor *a = axpby(rig.dev, i, x, 1, x);
        frit_tensor *r = frit_keep(frit_neg(axpby(rig.dev, 3, a, i, x)));

        frit_scope_end(scope);
        expect_filled(r, -(float)(3 * (2 * i + 2) + 2 * i));
    }
    assert_int_equal(rig_stats(&rig).fused, 5);
    assert_int_equal(rig_stats(&rig).launches, 5);
    assert_int_equal(frit_inspect_stop(rig.dev, &seen, NULL), FRIT_OK);
    text = frit_inspection_text(seen);
    assert_non_null(strstr(text, "custom: " AXPBY " " AXPBY " neg"));
    assert_non_null(strstr(text, "= " AXPBY " %0, %0, alpha=1.0, beta=1.0"));
    frit_free(text);
    frit_inspection_free(seen);
    frit_release(x);
    rig_close(&rig);
}

static frit_tensor *scale(frit_tensor *x, double factor)
{
    const frit_input in[2] = {{.tensor = x}, {.scalar = frit_scalar_f(factor)}};
    const frit_named_call call = {
        .struct_size = sizeof(call), .name = "org.frit.test.scale/1", .in = in, .n_in = 2};
    frit_tensor *out = NULL;

    frit_op_named(NULL, &call, &out, 1);
    return out;
}

/* Scalars of operands and of attributes, alone, in a block and as rows; another one each time. */
static void scalars_reach_all(void **state)
{
    static const char *const devices[] = {"custom:0", "custom:0", "reference:0"};
    static const char *const enabled[] = {"yes", "no", "yes"};

    (void)state;
    for (int i = 0; i < 3; i++) {
        struct plugin_rig rig = {0};
        frit_tensor *x;

        rig_set(&rig, "fusion", "enabled", enabled[i]);
        custom_open(&rig, devices[i], NULL);
        x = filled(rig.dev, 2);
        for (int k = 1; k < 5; k++) {
            frit_scope scope = frit_scope_begin(rig.dev);
            frit_tensor *r = frit_keep(scale(axpby(rig.dev, k, scale(x, k + 0.5), 7, x), 10 * k));

            frit_scope_end(scope);
            expect_filled(r, ((float)k * ((float)k + 0.5f) * 2 + 14) * 10 * (float)k);
        }
        assert_int_equal(rig_stats(&rig).fused, i == 0 ? 4 : 0);
        frit_release(x);
        rig_close(&rig);
    }
}

/* Fusers of others: the chain around it is still fused. */
static void fusers_that_do_not_know_it_close(void **state)
{
    static const char *const devices[] = {"reference:0", "cpu:0"};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct plugin_rig rig = {0};
        static struct logged logged;
        frit_tensor *x, *r;
        frit_scope scope;

        logged = (struct logged){.effects = ""};
        rig_set(&rig, "frit", "fallback", "custom:0");
        rig_set(&rig, "fusion", "compile", "wait");
        rig_plugin(&rig, "plugin.org.frit.blocks", RIG_BLOCKS);
        custom_open(&rig, devices[i], &logged);
        x = filled(rig.dev, 2);
        scope = frit_scope_begin(rig.dev);
        r = frit_neg(frit_mul(x, x));
        r = tick(r);
        r = frit_keep(frit_neg(frit_add(r, x)));
        frit_scope_end(scope);
        expect_filled(r, 2);
        assert_string_equal(logged.effects, "tick -4\n");
        assert_int_equal(rig_stats(&rig).fused, 2);
        frit_release(x);
        rig_close(&rig);
    }
}

/* ---- calls that cannot be ---- */

static void wrong_calls_say_why(void **state)
{
    struct plugin_rig rig = {0};
    const frit_attr alpha = real_attr("alpha", 1);
    const frit_attr twice[] = {alpha, alpha};
    const frit_attr wrong = real_attr("gamma", 1);
    const frit_attr list = {.name = "alpha", .list = (const int64_t[]){1}, .n_list = 1};
    frit_tensor *x, *y, *z;

    (void)state;
    custom_open(&rig, "reference:0", NULL);
    x = filled(rig.dev, 1), y = filled(rig.dev, 1);
    z = frit_reshape(y, FRIT_SHAPE(2, 3));
    expect_error(call_op(rig.dev, AXPBY, x, z, &alpha, 1), FRIT_INVALID,
                 AXPBY ": x and y must have the same dims");
    expect_error(call_op(rig.dev, AXPBY, x, y, NULL, 0), FRIT_INVALID,
                 "the attribute alpha is missing: factor of x");
    expect_error(call_op(rig.dev, AXPBY, x, y, twice, 2), FRIT_INVALID, "alpha is given twice");
    expect_error(call_op(rig.dev, AXPBY, x, y, &wrong, 1), FRIT_INVALID,
                 "no attribute 'gamma'; it has alpha, beta");
    expect_error(call_op(rig.dev, AXPBY, x, y, &list, 1), FRIT_INVALID, "alpha is a number");
    expect_error(call_op(rig.dev, AXPBY, x, NULL, &alpha, 1), FRIT_INVALID,
                 "1 operand given, it takes 2");
    expect_error(call_op(rig.dev, AXPBY, x, frit_take(frit_cast(y, FRIT_I32)), &alpha, 1),
                 FRIT_INVALID, "it must be a float type");
    expect_error(call_op(rig.dev, "org.frit.test.axpbi/1", x, y, &alpha, 1), FRIT_INVALID,
                 "unknown op 'org.frit.test.axpbi/1': no plugin offers it; looked at: ");
    expect_error(call_op(rig.dev, "org.frit.test.axpby/2", x, y, &alpha, 1), FRIT_INVALID,
                 "did you mean '" AXPBY "'?");
    expect_error(call_op(rig.dev, "ad", x, y, NULL, 0), FRIT_INVALID, "did you mean 'add'?");
    frit_release(x);
    frit_release(y);
    frit_release(z);
    assert_int_equal(frit_sync(rig.dev, NULL), FRIT_INVALID);
    rig_close(&rig);
}

static void calls_without_a_call_say_why(void **state)
{
    struct plugin_rig rig = {0};
    const frit_named_call unsized = {.name = AXPBY}, nameless = {.struct_size = sizeof(nameless)};
    const frit_named_call bare = {.struct_size = sizeof(bare), .name = AXPBY, .n_in = 2};
    frit_tensor *out = NULL;

    (void)state;
    custom_open(&rig, "reference:0", NULL);
    frit_op_named(rig.dev, &unsized, &out, 1);
    expect_error(out, FRIT_INVALID, "struct_size is not set");
    frit_op_named(rig.dev, NULL, &out, 1);
    expect_error(out, FRIT_INVALID, "the call is NULL");
    frit_op_named(rig.dev, &nameless, &out, 1);
    expect_error(out, FRIT_INVALID, "the name is NULL");
    frit_op_named(rig.dev, &bare, &out, 1);
    expect_error(out, FRIT_INVALID, "2 operands at NULL");
    (void)frit_sync(rig.dev, NULL);
    rig_close(&rig);
}

/* A taken operand of a refused call is consumed: nothing is left over when the rig closes. */
static void refused_calls_take_their_operands(void **state)
{
    struct plugin_rig rig = {0};

    (void)state;
    custom_open(&rig, "reference:0", NULL);
    expect_error(tick(frit_take(frit_cast(frit_take(filled(rig.dev, 1)), FRIT_I32))), FRIT_INVALID,
                 TICK ": x is i32[6], it must be a float type");
    expect_error(
        call_op(rig.dev, "org.frit.test.none/1", frit_take(filled(rig.dev, 1)), NULL, NULL, 0),
        FRIT_INVALID, "no plugin offers it");
    (void)frit_sync(rig.dev, NULL);
    rig_close(&rig);
}

/* ---- hosts ---- */

/* y = axpby x, y, alpha=, [beta=] */
static void expect_slots(uint32_t op)
{
    frit_custom_slot_desc slot = {.struct_size = sizeof(slot)};
    frit_custom_attr_desc attr = {.struct_size = sizeof(attr)};

    assert_int_equal(frit_custom_slot_at(op, 0, &slot), FRIT_OK);
    assert_string_equal(slot.name, "x");
    assert_int_equal(slot.role, FRIT_ROLE_IN);
    assert_int_equal(slot.letter, FRIT_LETTER_F);
    assert_int_equal(frit_custom_slot_at(op, 2, &slot), FRIT_OK);
    assert_string_equal(slot.name, "y");
    assert_int_equal(slot.role, FRIT_ROLE_OUT);
    assert_int_equal(frit_custom_slot_at(op, 3, &slot), FRIT_INVALID);
    assert_int_equal(frit_custom_slot_at(FRIT_OP_add, 0, &slot), FRIT_INVALID);
    assert_int_equal(frit_custom_attr_at(op, 0, &attr), FRIT_OK);
    assert_string_equal(attr.name, "alpha");
    assert_string_equal(attr.meaning, "factor of x");
    assert_int_equal(attr.type, FRIT_ATTR_REAL);
    assert_int_equal(attr.place, FRIT_PLACE_POS);
    assert_int_equal(frit_custom_attr_at(op, 1, &attr), FRIT_OK);
    assert_int_equal(attr.place, FRIT_PLACE_NAMED);
    assert_int_equal(frit_custom_attr_at(op, 2, &attr), FRIT_INVALID);
    assert_int_equal(frit_custom_attr_at(FRIT_OP_add, 0, &attr), FRIT_INVALID);
}

static void ops_are_those_of_the_host(void **state)
{
    struct plugin_rig with = {0}, without = {0};
    frit_custom_desc desc = {.struct_size = sizeof(desc)};
    frit_tensor *x;

    (void)state;
    custom_open(&with, "reference:0", NULL);
    rig_open(&without, "reference:0");
    assert_int_equal(frit_custom_at(with.host, 0, &desc), FRIT_OK);
    assert_string_equal(desc.name, AXPBY);
    assert_string_equal(desc.plugin, "fake-custom");
    assert_int_equal(desc.n_in, 2);
    assert_int_equal(desc.n_attrs, 2);
    assert_int_equal(desc.decomposes, 1);
    assert_int_equal(frit_op_support(with.dev, desc.op), FRIT_SUPPORT_DECOMPOSED);
    expect_slots(desc.op);
    assert_int_equal(frit_custom_at(with.host, 7, &desc), FRIT_INVALID);
    assert_int_equal(frit_custom_at(without.host, 0, &desc), FRIT_INVALID);
    x = filled(without.dev, 1);
    expect_error(tick(x), FRIT_INVALID,
                 TICK ": no plugin of the host of reference:0 offers this op");
    frit_release(x);
    (void)frit_sync(without.dev, NULL);
    rig_close(&without);
    rig_close(&with);
}

static void a_name_is_its_first_plugins(void **state)
{
    struct plugin_rig rig = {0};
    static struct logged logged;
    char *why = NULL;

    (void)state;
    rig_plugin(&rig, "plugin.fake-ops", RIG_OPS);
    custom_open(&rig, "custom:0", &logged);
    assert_non_null(strstr(logged.load, "plugin fake-ops: op '" AXPBY "' is not used: the name is "
                                        "taken by an op of plugin 'fake-custom', rev 1"));
    assert_null(strstr(logged.load, "plugin fake-custom"));
    assert_int_equal(frit_why(rig.host, "fake-ops", &why, NULL), FRIT_OK);
    assert_non_null(strstr(why, "op " TICK ": refused: the name is taken"));
    frit_free(why);
    assert_int_equal(frit_why(rig.host, "fake-custom", &why, NULL), FRIT_OK);
    assert_non_null(strstr(why, "op " TICK ": usable\n"));
    frit_free(why);
    expect_filled(tick(frit_take(filled(rig.dev, 1))), 1);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_driver_that_knows_it_runs_it),
        cmocka_unit_test(elsewhere_it_runs_as_rows),
        cmocka_unit_test(a_result_may_be_an_operand),
        cmocka_unit_test(a_program_that_refuses_gives_way_to_rows),
        cmocka_unit_test(without_rows_it_runs_on_another_device),
        cmocka_unit_test(without_any_device_it_fails_by_name),
        cmocka_unit_test(fusers_take_it),
        cmocka_unit_test(scalars_reach_all),
        cmocka_unit_test(fusers_that_do_not_know_it_close),
        cmocka_unit_test(wrong_calls_say_why),
        cmocka_unit_test(calls_without_a_call_say_why),
        cmocka_unit_test(refused_calls_take_their_operands),
        cmocka_unit_test(ops_are_those_of_the_host),
        cmocka_unit_test(a_name_is_its_first_plugins),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
