/* SPDX-License-Identifier: Apache-2.0 */
/* What a driver may ask for at prepare, and what may fail at submit and after it. */
#include "stream/driver.h"

#include <string.h>

#include <frit/frit.h>

#include "stream/program.h"

static const float six[6] = {1, 2, 3, 4, 5, 6};

static frit_tensor *make(frit_device *device)
{
    return frit_from_host(device, FRIT_F32, FRIT_SHAPE(2, 3), six, sizeof(six));
}

/* neg of the transposed operand: [3, 2]. */
static frit_tensor *neg_transposed(frit_device *device)
{
    return frit_neg(frit_take(frit_permute(frit_take(make(device)), FRIT_AXES(1, 0))));
}

static void expect_neg_transposed(frit_tensor *tensor)
{
    float out[6];

    assert_int_equal(frit_read(frit_take(tensor), out, sizeof(out)), FRIT_OK);
    assert_memory_equal(out, ((float[]){-1, -4, -2, -5, -3, -6}), sizeof(out));
}

static void test_prepare_is_asked_once_per_signature(void **state)
{
    struct driver driver = {0};
    frit_device *device = driver_device(&driver, 100);
    float out[6];

    (void)state;
    for (int i = 0; i < 3; i++)
        assert_int_equal(frit_read(frit_take(frit_neg(frit_take(make(device)))), out, sizeof(out)),
                         FRIT_OK);
    assert_int_equal(driver.prepares, 1);
    assert_int_equal(driver.launches, 3);
    expect_neg_transposed(neg_transposed(device));
    assert_int_equal(driver.prepares, 2);
    assert_int_equal(driver.programs_alive, 1); /* the same relative op */
    device_destroy(device);
    assert_int_equal(driver.programs_alive, 0);
}

static void test_compile_when_asked(void **state)
{
    struct driver driver = {.needs_compile = true};
    frit_device *device = driver_device(&driver, 100);

    (void)state;
    expect_neg_transposed(neg_transposed(device));
    expect_neg_transposed(neg_transposed(device));
    assert_int_equal(driver.compiles, 1);
    device_destroy(device);
}

static void test_relayout_copies_the_operand(void **state)
{
    struct driver driver = {.wants_dense = true};
    frit_device *device = driver_device(&driver, 100);

    (void)state;
    expect_neg_transposed(neg_transposed(device));
    assert_int_equal(driver.launches, 2);
    device_destroy(device);
}

static void test_workspace_is_zeroed(void **state)
{
    struct driver driver = {.workspace = 1000};
    frit_device *device = driver_device(&driver, 100);

    (void)state;
    expect_neg_transposed(neg_transposed(device));
    assert_true(driver.workspace_was_zero);
    device_destroy(device);
}

static void test_derived_memory_is_filled(void **state)
{
    struct driver driver = {.derived = 64};
    frit_device *device = driver_device(&driver, 100);

    (void)state;
    expect_neg_transposed(neg_transposed(device));
    assert_int_equal(driver.derived_fills, 1);
    device_destroy(device);
}

static void test_a_driver_may_choose_the_layout(void **state)
{
    int64_t strides[2] = {1, 4}; /* column-major with a gap */
    struct driver driver = {.out_strides = strides};
    frit_device *device = driver_device(&driver, 100);
    frit_tensor *y = neg_transposed(device);
    frit_dims got;

    (void)state;
    assert_int_equal(frit_strides_of(y, &got), FRIT_OK);
    assert_int_equal(got.dim[1], 4);
    expect_neg_transposed(y);
    device_destroy(device);
}

static void test_an_op_nobody_has_fails_with_its_name(void **state)
{
    struct driver driver = {.refuse_neg = true};
    frit_device *device = driver_device(&driver, 100);
    frit_tensor *y = frit_neg(frit_take(make(device)));
    float out[6];

    (void)state;
    assert_int_equal(frit_read(y, out, sizeof(out)), FRIT_UNSUPPORTED);
    assert_string_equal(frit_tensor_error(y),
                        "neg: the driver of scripted:0 has no such op for these types");
    frit_release(y);
    device_destroy(device);
}

/* A composite op whose native program is refused at prepare runs as core ops: here it has none
 * either. */
static void test_a_refusal_at_prepare_is_told(void **state)
{
    struct driver driver = {.refuse_prepare = true};
    frit_device *device = driver_device(&driver, 100);
    frit_tensor *y = frit_neg(frit_take(make(device)));
    float out[6];

    (void)state;
    assert_int_equal(frit_read(y, out, sizeof(out)), FRIT_UNSUPPORTED);
    assert_string_equal(frit_tensor_error(y), "neg: not this shape");
    frit_release(y);
    device_destroy(device);
}

static void test_a_refused_submit_spoils_only_its_op(void **state)
{
    struct driver driver = {.submit_status = FRIT_BUSY};
    frit_device *device = driver_device(&driver, 100);
    frit_tensor *x = make(device), *bad = frit_neg(x), *after = frit_neg(bad), *good = frit_neg(x);
    float out[6];

    (void)state;
    assert_int_equal(frit_read(after, out, sizeof(out)), FRIT_BUSY);
    assert_string_equal(frit_tensor_error(after), "neg: submit refused");
    assert_int_equal(frit_read(good, out, sizeof(out)), FRIT_OK);
    assert_true(out[1] == -2);
    assert_int_equal(frit_tensor_status(bad), FRIT_BUSY);
    frit_release(x);
    frit_release(bad);
    frit_release(after);
    frit_release(good);
    device_destroy(device);
}

static void test_a_refusal_without_a_reason_is_an_error_too(void **state)
{
    struct driver driver = {.submit_status = FRIT_BUSY, .silent = true};
    frit_device *device = driver_device(&driver, 100);
    frit_tensor *y = frit_neg(frit_take(make(device)));
    float out[6];

    (void)state;
    assert_int_equal(frit_read(y, out, sizeof(out)), FRIT_BUSY);
    assert_string_equal(frit_tensor_error(y), "neg: submit failed and gave no reason (busy)");
    frit_release(y);
    device_destroy(device);
}

static void test_no_alignment_beyond_what_was_declared(void **state)
{
    struct driver driver = {.out_align = 4096};
    frit_device *device = driver_device(&driver, 100);
    frit_tensor *y = frit_neg(frit_take(make(device)));
    float out[6];

    (void)state;
    assert_int_equal(frit_read(y, out, sizeof(out)), FRIT_INTERNAL);
    assert_non_null(strstr(frit_tensor_error(y), "asks for alignment 4096"));
    frit_release(y);
    device_destroy(device);
}

/* Different extents have different numbers, however many operands there are. */
static void test_a_long_relative_op_tells_extents_apart(void **state)
{
    struct exec_input in[100] = {0};
    struct value out = {.type = {.dtype = FRIT_F32, .rank = 1, .dims = {5000}}};
    struct exec_call call = {.op = FRIT_OP_cat, .n_in = 100, .n_out = 1, .in = in, .out = &out};
    struct relative_op relative;

    (void)state;
    for (int i = 0; i < 100; i++) {
        in[i].kind = FRIT_OPERAND_TENSOR;
        in[i].value.type = (struct op_type){.dtype = FRIT_F32, .rank = 1, .dims = {i + 2}};
    }
    assert_int_equal(relative_init(&call, &relative, NULL), FRIT_OK);
    for (uint32_t i = 0; i < 101; i++)
        assert_int_equal(relative.operands[i].extent[0], i + 2);
    relative_fini(&relative);
}

/* The command fails after submit returned: what it wrote is spoiled, and what was made from that.
 */
static void test_a_late_failure_reaches_dependents(void **state)
{
    struct driver driver = {.complete_status = FRIT_TIMEOUT};
    frit_device *device = driver_device(&driver, 100);
    frit_tensor *x = make(device), *bad = frit_neg(x);
    float out[6];

    (void)state;
    assert_int_equal(frit_flush(device), FRIT_OK);
    assert_int_equal(frit_tensor_status(bad), FRIT_OK); /* nobody knows yet */
    assert_int_equal(frit_read(bad, out, sizeof(out)), FRIT_TIMEOUT);
    assert_string_equal(frit_tensor_error(bad), "neg failed on scripted:0: smoke came out");
    frit_tensor *after = frit_neg(bad);
    assert_int_equal(frit_read(after, out, sizeof(out)), FRIT_TIMEOUT);
    frit_tensor *good = frit_neg(x);
    assert_int_equal(frit_read(good, out, sizeof(out)), FRIT_OK);
    frit_release(x);
    frit_release(bad);
    frit_release(after);
    frit_release(good);
    device_destroy(device);
}

static void test_a_failure_inside_submit_is_known_at_once(void **state)
{
    struct driver driver = {.complete_status = FRIT_TIMEOUT, .inline_queue = true};
    frit_device *device = driver_device(&driver, 100);
    frit_tensor *bad = frit_neg(frit_take(make(device)));

    (void)state;
    assert_int_equal(frit_flush(device), FRIT_OK);
    assert_int_equal(frit_tensor_status(bad), FRIT_TIMEOUT);
    assert_string_equal(frit_tensor_error(bad), "neg: neg failed on scripted:0: smoke came out");
    frit_release(bad);
    device_destroy(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prepare_is_asked_once_per_signature),
        cmocka_unit_test(test_compile_when_asked),
        cmocka_unit_test(test_relayout_copies_the_operand),
        cmocka_unit_test(test_workspace_is_zeroed),
        cmocka_unit_test(test_derived_memory_is_filled),
        cmocka_unit_test(test_a_driver_may_choose_the_layout),
        cmocka_unit_test(test_an_op_nobody_has_fails_with_its_name),
        cmocka_unit_test(test_a_refusal_at_prepare_is_told),
        cmocka_unit_test(test_a_refused_submit_spoils_only_its_op),
        cmocka_unit_test(test_a_refusal_without_a_reason_is_an_error_too),
        cmocka_unit_test(test_no_alignment_beyond_what_was_declared),
        cmocka_unit_test(test_a_long_relative_op_tells_extents_apart),
        cmocka_unit_test(test_a_late_failure_reaches_dependents),
        cmocka_unit_test(test_a_failure_inside_submit_is_known_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
