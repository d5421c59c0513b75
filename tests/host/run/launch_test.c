/* SPDX-License-Identifier: Apache-2.0 */
/* Specs that a driver may return from prepare, and failures in submit and after it. */
#include "run/driver.h"

#include <string.h>

#include <frit/frit.h>

#include "device/device.h"
#include "device/programs.h"
#include "memory/memory.h"
#include "plan/program.h"

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

    assert_int_equal(frit_read(frit_take(tensor), out, sizeof(out), NULL), FRIT_OK);
    assert_memory_equal(out, ((float[]){-1, -4, -2, -5, -3, -6}), sizeof(out));
}

static void test_prepare_is_called_once_per_signature(void **state)
{
    struct driver driver = {0};
    frit_device *device = driver_device(&driver, 100);
    float out[6];

    (void)state;
    for (int i = 0; i < 3; i++)
        assert_int_equal(
            frit_read(frit_take(frit_neg(frit_take(make(device)))), out, sizeof(out), NULL),
            FRIT_OK);
    assert_int_equal(driver.prepares, 1);
    assert_int_equal(driver.launches, 3);
    expect_neg_transposed(neg_transposed(device));
    assert_int_equal(driver.prepares, 2);
    assert_int_equal(driver.programs_alive, 1); /* the same relative op */
    device_close(device);
    assert_int_equal(driver.programs_alive, 0);
}

static void test_compile_when_requested(void **state)
{
    struct driver driver = {.needs_compile = true};
    frit_device *device = driver_device(&driver, 100);

    (void)state;
    expect_neg_transposed(neg_transposed(device));
    expect_neg_transposed(neg_transposed(device));
    assert_int_equal(driver.compiles, 1);
    device_close(device);
}

static void test_relayout_copies_the_operand(void **state)
{
    struct driver driver = {.wants_dense = true};
    frit_device *device = driver_device(&driver, 100);

    (void)state;
    expect_neg_transposed(neg_transposed(device));
    assert_int_equal(driver.launches, 2);
    device_close(device);
}

static void test_workspace_is_zeroed(void **state)
{
    struct driver driver = {.workspace = 1000};
    frit_device *device = driver_device(&driver, 100);

    (void)state;
    expect_neg_transposed(neg_transposed(device));
    assert_true(driver.workspace_was_zero);
    device_close(device);
}

static void test_derived_memory_is_filled(void **state)
{
    struct driver driver = {.derived = 64};
    frit_device *device = driver_device(&driver, 100);

    (void)state;
    expect_neg_transposed(neg_transposed(device));
    assert_int_equal(driver.derived_fills, 1);
    device_close(device);
}

static void test_a_driver_may_choose_the_layout(void **state)
{
    int64_t strides[2] = {1, 4}; /* column-major with a gap */
    struct driver driver = {.out_strides = strides};
    frit_device *device = driver_device(&driver, 100);
    frit_tensor *y = neg_transposed(device);
    frit_dims got;

    (void)state;
    assert_int_equal(frit_tensor_strides(y, &got, NULL), FRIT_OK);
    assert_int_equal(got.dim[1], 4);
    expect_neg_transposed(y);
    device_close(device);
}

static void test_an_op_nobody_has_fails_with_its_name(void **state)
{
    struct driver driver = {.refuse_neg = true};
    frit_device *device = driver_device(&driver, 100);
    frit_tensor *y = frit_neg(frit_take(make(device)));
    float out[6];

    (void)state;
    assert_int_equal(frit_read(y, out, sizeof(out), NULL), FRIT_UNSUPPORTED);
    assert_string_equal(frit_tensor_error(y),
                        "neg: the driver of scripted:0 has no such op for these types");
    frit_release(y);
    device_close(device);
}

/* Of a core op: there is no other way. */
static void test_a_refusal_at_prepare_is_reported(void **state)
{
    struct driver driver = {.refuse_prepare = FRIT_OP_neg};
    frit_device *device = driver_device(&driver, 100);
    frit_tensor *y = frit_neg(frit_take(make(device)));
    float out[6];

    (void)state;
    assert_int_equal(frit_read(y, out, sizeof(out), NULL), FRIT_UNSUPPORTED);
    assert_string_equal(frit_tensor_error(y), "neg: not this shape");
    frit_release(y);
    device_close(device);
}

/* ceil is neg(floor(neg)); values this small are given back when the batch is submitted. */
static void expect_three_launches(struct driver *driver)
{
    frit_device *device = driver_device(driver, 100);
    frit_tensor *x = make(device);
    struct memory_stats stats;
    float out[6];

    frit_persistent_begin(device);
    frit_tensor *y = frit_ceil(x);
    frit_persistent_end(device);

    assert_int_equal(frit_read(frit_take(y), out, sizeof(out), NULL), FRIT_OK);
    assert_memory_equal(out, six, sizeof(six));
    assert_int_equal(driver->launches, 3);
    memory_stats(device->memory, &stats);
    assert_int_equal(stats.bytes_peak, 4 * 64);
    assert_int_equal(stats.driver_allocs, 2); /* a pool block, and one for what is persistent */
    frit_release(x);
    device_close(device);
}

static void test_a_refused_composite_runs_as_core_ops(void **state)
{
    struct driver driver = {.refuse_prepare = FRIT_OP_ceil};

    (void)state;
    expect_three_launches(&driver);
}

static void test_composites_run_as_core_ops_on_request(void **state)
{
    struct driver driver = {.decompose = true};

    (void)state;
    expect_three_launches(&driver);
}

static void test_a_table_with_holes_is_refused(void **state)
{
    struct driver driver = {.bad_table = true};
    frit_device *device = driver_device(&driver, 100);
    frit_tensor *y = frit_neg(frit_take(make(device)));
    float out[6];

    (void)state;
    assert_int_equal(frit_read(y, out, sizeof(out), NULL), FRIT_INTERNAL);
    assert_non_null(strstr(frit_tensor_error(y), "lacks required slots"));
    frit_release(y);
    device_close(device);
}

/* ---- signatures ---- */

static void run_add(frit_device *device, double scalar)
{
    float out[6];

    assert_int_equal(
        frit_read(frit_take(frit_add_f(frit_take(make(device)), scalar)), out, sizeof(out), NULL),
        FRIT_OK);
}

static void test_scalars_are_known_by_class(void **state)
{
    static const struct {
        double value;
        uint8_t cls;
    } cases[] = {{0, FRIT_SCALAR_CLASS_ZERO},    {-0.0, FRIT_SCALAR_CLASS_OTHER},
                 {1, FRIT_SCALAR_CLASS_ONE},     {-1, FRIT_SCALAR_CLASS_MINUS_ONE},
                 {2, FRIT_SCALAR_CLASS_TWO},     {0.5, FRIT_SCALAR_CLASS_HALF},
                 {3, FRIT_SCALAR_CLASS_INTEGER}, {0.25, FRIT_SCALAR_CLASS_OTHER}};
    struct driver driver = {0};
    frit_device *device = driver_device(&driver, 100);

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        run_add(device, cases[i].value);
        /* -0 and 0.25 are of one class: prepare is not called for the last. */
        if (i != 7)
            assert_int_equal(driver.last_class, cases[i].cls);
    }
    assert_int_equal(driver.prepares, 7);
    device_close(device);
}

/* Bounds likewise: prepare is called again where the class of one is another. */
static void test_bounds_are_known_by_class(void **state)
{
    static const struct {
        int64_t low;
        uint8_t cls;
    } cases[] = {{0, FRIT_SCALAR_CLASS_ZERO},       {1, FRIT_SCALAR_CLASS_ONE},
                 {-1, FRIT_SCALAR_CLASS_MINUS_ONE}, {2, FRIT_SCALAR_CLASS_TWO},
                 {3, FRIT_SCALAR_CLASS_INTEGER},    {-3, FRIT_SCALAR_CLASS_INTEGER}};
    struct driver driver = {0};
    frit_device *device = driver_device(&driver, 100);

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        frit_tensor *y = frit_pad(frit_take(make(device)), 0, .low = {2, {cases[i].low, 0}},
                                  .high = {2, {9 - cases[i].low, 0}});
        float out[33];

        assert_int_equal(frit_read(frit_take(y), out, sizeof(out), NULL), FRIT_OK);
        assert_int_equal(driver.last_bound_class, cases[i].cls);
    }
    assert_int_equal(driver.prepares, 5);
    device_close(device);
}

static void test_the_tail_is_of_the_last_bytes(void **state)
{
    struct driver driver = {.info.tail_bytes = 256};
    frit_device *device = driver_device(&driver, 100);
    frit_tensor *x = make(device);
    float out[3];

    (void)state;
    for (int64_t row = 0; row < 2; row++) {
        frit_tensor *part = frit_slice(x, FRIT_SLICES({row, row + 1, 1}));

        assert_int_equal(frit_read(frit_take(frit_neg(frit_take(part))), out, sizeof(out), NULL),
                         FRIT_OK);
        assert_int_equal(driver.last_in.tail, row == 1 ? 256 : 0);
    }
    frit_release(x);
    device_close(device);
}

static void test_a_program_may_want_more_bytes(void **state)
{
    struct driver driver = {.out_bytes = 4096};
    frit_device *device = driver_device(&driver, 100);
    frit_tensor *y = frit_neg(frit_take(make(device)));
    struct memory_stats stats;

    (void)state;
    assert_int_equal(frit_sync(device, NULL), FRIT_OK);
    memory_stats(device->memory, &stats);
    assert_int_equal(stats.bytes_now, 4096);
    frit_release(y);
    device_close(device);
}

/* Many shapes do not fill the memory: the oldest results are dropped, and prepared again. */
static void test_old_signatures_are_forgotten(void **state)
{
    static const float zeros[302] = {0};
    struct driver driver = {0};
    frit_device *device = driver_device(&driver, 100);

    (void)state;
    for (int i = 0; i < 600; i++) {
        int64_t n = 2 + i % 300;
        frit_tensor *y = frit_neg(frit_take(
            frit_from_host(device, FRIT_F32, FRIT_SHAPE(n), zeros, (uint64_t)n * sizeof(float))));

        assert_int_equal(frit_flush(device, NULL), FRIT_OK);
        frit_release(y);
    }
    assert_true(driver.prepares > 300);
    device_close(device);
}

/* What is given at launch only is not in the op that programs are made for. */
static void test_an_op_form_has_no_launch_fields(void **state)
{
    const frit_attrs_pad attrs = {
        .struct_size = sizeof(attrs), .low = {1, {3}}, .high = {1, {3}}, .inner = {1, {3}}};
    struct op_input in = {.kind = FRIT_OPERAND_TENSOR,
                          .type = {.dtype = FRIT_F32, .rank = 3, .dims = {1, 4, 0}}};
    struct op_type out = {.dtype = FRIT_F32, .rank = 1, .dims = {4}};
    struct program_call call = {
        .op = FRIT_OP_pad, .n_in = 1, .n_out = 1, .attrs = &attrs, .in = &in, .out = &out};
    struct op_form form;
    frit_attrs_pad seen;

    (void)state;
    assert_int_equal(op_form_init(&call, &form, NULL), FRIT_OK);
    memcpy(&seen, form.desc.attrs, sizeof(seen));
    assert_int_equal(seen.low.dim[0], 0);
    assert_int_equal(seen.inner.rank, 0);
    assert_int_equal(form.operands[0].extent[0], 1);
    assert_int_equal(form.operands[0].extent[1], 2);
    assert_int_equal(form.operands[0].extent[2], 0);
    assert_int_equal(form.operands[1].extent[0], 2);
    op_form_fini(&form);
}

/* One relative op for each of 8^7 numbers: dims that are equal or not to those before. */
static struct op_type some_type(uint32_t number)
{
    struct op_type type = {.dtype = FRIT_F32, .rank = 8, .dims = {2}};

    for (uint32_t d = 1; d < type.rank; d++, number /= 8)
        type.dims[d] = 2 + number % 8;
    return type;
}

/* Programs of ops leave as others come, and end when what they launched has run. */
static void test_programs_of_ops_leave(void **state)
{
    enum { OPS = 3000, FIT = (1 << 20) / 2 / 1024 };
    struct driver driver = {0};
    frit_device *device = driver_device(&driver, 100);
    frit_tensor *x = make(device), *y = frit_neg(x);
    uint32_t most = 0;

    (void)state;
    assert_int_equal(frit_flush(device, NULL), FRIT_OK);
    for (uint32_t i = 0; i < OPS; i++) {
        struct op_type type = some_type(i * 699);
        const struct op_input in = {.kind = FRIT_OPERAND_TENSOR, .type = type};
        struct program_call call = {
            .op = FRIT_OP_neg, .n_in = 1, .n_out = 1, .in = &in, .out = &type};
        struct program *program;

        assert_int_equal(programs_get(device, &call, &program, NULL), FRIT_OK);
        assert_int_equal(program->fuser, PROGRAM_OF_OP);
        program_unref(program);
        most = driver.programs_alive > most ? driver.programs_alive : most;
    }
    assert_true(most > FIT / 4 && most < FIT);
    assert_int_equal(driver.waits, 0);
    expect_neg_transposed(neg_transposed(device)); /* its own left */
    frit_release(x), frit_release(y);
    device_close(device);
}

/* ---- failures ---- */

static void test_a_refused_submit_spoils_only_its_op(void **state)
{
    struct driver driver = {.submit_status = FRIT_BUSY};
    frit_device *device = driver_device(&driver, 100);
    frit_tensor *x = make(device), *bad = frit_neg(x), *after = frit_neg(bad), *good = frit_neg(x);
    float out[6];

    (void)state;
    assert_int_equal(frit_read(after, out, sizeof(out), NULL), FRIT_BUSY);
    assert_string_equal(frit_tensor_error(after), "neg: submit refused");
    assert_int_equal(frit_read(good, out, sizeof(out), NULL), FRIT_OK);
    assert_true(out[1] == -2);
    assert_int_equal(frit_tensor_status(bad), FRIT_BUSY);
    frit_release(x);
    frit_release(bad);
    frit_release(after);
    frit_release(good);
    device_close(device);
}

static void test_a_refusal_without_a_reason_is_an_error_too(void **state)
{
    struct driver driver = {.submit_status = FRIT_BUSY, .silent = true};
    frit_device *device = driver_device(&driver, 100);
    frit_tensor *y = frit_neg(frit_take(make(device)));
    float out[6];

    (void)state;
    assert_int_equal(frit_read(y, out, sizeof(out), NULL), FRIT_BUSY);
    assert_string_equal(frit_tensor_error(y), "neg: submit failed and gave no reason (busy)");
    frit_release(y);
    device_close(device);
}

static void test_no_alignment_beyond_what_was_declared(void **state)
{
    struct driver driver = {.out_align = 4096};
    frit_device *device = driver_device(&driver, 100);
    frit_tensor *y = frit_neg(frit_take(make(device)));
    float out[6];

    (void)state;
    assert_int_equal(frit_read(y, out, sizeof(out), NULL), FRIT_INTERNAL);
    assert_non_null(strstr(frit_tensor_error(y), "requires alignment 4096"));
    frit_release(y);
    device_close(device);
}

/* Different extents have different numbers, however many operands there are. */
static void test_a_long_op_form_distinguishes_extents(void **state)
{
    struct op_input in[100] = {0};
    struct op_type out = {.dtype = FRIT_F32, .rank = 1, .dims = {5000}};
    struct program_call call = {.op = FRIT_OP_cat, .n_in = 100, .n_out = 1, .in = in, .out = &out};
    struct op_form form;

    (void)state;
    for (int i = 0; i < 100; i++) {
        in[i].kind = FRIT_OPERAND_TENSOR;
        in[i].type = (struct op_type){.dtype = FRIT_F32, .rank = 1, .dims = {i + 2}};
    }
    assert_int_equal(op_form_init(&call, &form, NULL), FRIT_OK);
    for (uint32_t i = 0; i < 101; i++)
        assert_int_equal(form.operands[i].extent[0], i + 2);
    op_form_fini(&form);
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
    assert_int_equal(frit_flush(device, NULL), FRIT_OK);
    assert_int_equal(frit_tensor_status(bad), FRIT_OK); /* nobody knows yet */
    assert_int_equal(frit_read(bad, out, sizeof(out), NULL), FRIT_TIMEOUT);
    assert_string_equal(frit_tensor_error(bad), "neg failed on scripted:0: smoke came out");
    frit_tensor *after = frit_neg(bad);
    assert_int_equal(frit_read(after, out, sizeof(out), NULL), FRIT_TIMEOUT);
    assert_int_equal(driver.launches, 0);
    frit_tensor *good = frit_neg(x);
    assert_int_equal(frit_read(good, out, sizeof(out), NULL), FRIT_OK);
    frit_release(x);
    frit_release(bad);
    frit_release(after);
    frit_release(good);
    device_close(device);
}

/* Both are queued before anybody knows; then a third after. */
static void test_a_late_failure_reaches_what_was_submitted(void **state)
{
    struct driver driver = {.complete_status = FRIT_TIMEOUT};
    frit_device *device = driver_device(&driver, 100);
    frit_tensor *bad = frit_neg(frit_take(make(device))), *next = frit_neg(bad), *last;
    float out[6];

    (void)state;
    assert_int_equal(frit_sync(device, NULL), FRIT_TIMEOUT);
    assert_int_equal(driver.launches, 1);
    last = frit_neg(next);
    assert_int_equal(frit_read(last, out, sizeof(out), NULL), FRIT_TIMEOUT);
    assert_int_equal(driver.launches, 1); /* known: not even tried */
    assert_int_equal(frit_read(next, out, sizeof(out), NULL), FRIT_TIMEOUT);
    frit_release(bad);
    frit_release(next);
    frit_release(last);
    device_close(device);
}

static void test_a_failed_write_spoils_the_tensor(void **state)
{
    struct driver driver = {.fail_writes = true};
    frit_device *device = driver_device(&driver, 100);
    frit_tensor *x = make(device);
    float out[6];

    (void)state;
    assert_int_equal(frit_read(x, out, sizeof(out), NULL), FRIT_TIMEOUT);
    assert_string_equal(frit_tensor_error(x), "a command failed on scripted:0: smoke came out");
    frit_release(x);
    device_close(device);
}

static void test_a_failure_inside_submit_is_known_at_once(void **state)
{
    struct driver driver = {.complete_status = FRIT_TIMEOUT, .inline_queue = true};
    frit_device *device = driver_device(&driver, 100);
    frit_tensor *bad = frit_neg(frit_take(make(device)));

    (void)state;
    assert_int_equal(frit_flush(device, NULL), FRIT_OK);
    assert_int_equal(frit_tensor_status(bad), FRIT_TIMEOUT);
    assert_string_equal(frit_tensor_error(bad), "neg failed on scripted:0: smoke came out");
    frit_release(bad);
    device_close(device);
}

static void expect_internal(struct driver *driver, const char *text)
{
    frit_device *device = driver_device(driver, 100);
    frit_tensor *y = neg_transposed(device);
    float out[6];

    assert_int_equal(frit_read(y, out, sizeof(out), NULL), FRIT_INTERNAL);
    assert_string_equal(frit_tensor_error(y), text);
    assert_int_equal(driver->launches, 0);
    frit_release(y);
    device_close(device);
}

static void test_senseless_answers_are_refused(void **state)
{
    int64_t strides[2] = {-1, 4};
    struct driver negative = {.out_strides = strides};
    struct driver absent = {.derived = 64, .derived_arg = 7};
    struct driver unknown = {.odd_answer = 77};

    (void)state;
    expect_internal(&negative, "neg: scripted:0: prepare gives output 0 a negative stride");
    expect_internal(&absent, "neg: scripted:0: prepare derives memory from no operand");
    expect_internal(&unknown, "neg: prepare returned 77, which is not a status");
}

static void expect_neg(struct driver *driver)
{
    frit_device *device = driver_device(driver, 100);

    expect_neg_transposed(neg_transposed(device));
    device_close(device);
}

/* A spec beyond the limits that the device declared is an error of the driver. */
static void test_grids_and_groups_have_limits(void **state)
{
    struct driver lanes = {.phase = {{1, 1, 1}, {32, 3, 1}}, .max_group = 95};
    struct driver most = {.phase = {{1, 8, 1}, {32, 3, 1}}, .max_group = 96, .max_grid = 8};
    struct driver groups = {.phase = {{1, 9, 1}, {1, 1, 1}}, .max_group = 96, .max_grid = 8};
    struct driver one = {.phase = {{1, 1, 1}, {2, 1, 1}}};
    struct driver huge = {.phase = {{1, 1, 1}, {UINT32_MAX, UINT32_MAX, UINT32_MAX}},
                          .max_group = 1024};

    (void)state;
    expect_internal(&lanes, "neg: scripted:0: prepare requests a group of 96 lanes, the device "
                            "declared 95");
    expect_internal(&groups, "neg: scripted:0: prepare requests a grid of 9 groups, the device "
                             "declared 8");
    expect_internal(&one, "neg: scripted:0: prepare requests a group of 2 lanes, the device "
                          "declared 1");
    expect_internal(&huge, "neg: scripted:0: prepare requests a group of 18446744073709551615 "
                           "lanes, the device declared 1024");
    expect_neg(&most);
}

static void expect_unsupported(struct driver *driver, const char *text)
{
    frit_device *device = driver_device(driver, 100);
    frit_tensor *x = make(device), *y = frit_add(x, x);
    float out[6];

    assert_int_equal(frit_read(y, out, sizeof(out), NULL), FRIT_UNSUPPORTED);
    assert_non_null(strstr(frit_tensor_error(y), text));
    assert_int_equal(driver->launches, 0);
    assert_int_equal(driver->prepares, 0);
    frit_release(x);
    frit_release(y);
    device_close(device);
}

/* prepare is not called for a launch that exceeds the limits of the device. */
static void test_arguments_have_limits(void **state)
{
    struct driver few = {.max_bindings = 2}, small = {.max_binding = 23};
    struct driver enough = {.max_bindings = 2, .max_binding = 24};

    (void)state;
    expect_unsupported(&few, "3 arguments, 2 are the most of a launch");
    expect_unsupported(&small, "an argument spans more than 23 bytes");
    expect_neg(&enough);
}

static void test_support_is_reported_per_row(void **state)
{
    struct driver driver = {0};
    frit_device *device = driver_device(&driver, 100);

    (void)state;
    assert_int_equal(frit_op_support(device, FRIT_OP_neg), FRIT_SUPPORT_NATIVE);
    assert_int_equal(frit_op_support(device, FRIT_OP_gelu), FRIT_SUPPORT_DECOMPOSED);
    assert_int_equal(frit_op_support(device, FRIT_OP_reshape), FRIT_SUPPORT_HOST);
    assert_int_equal(frit_op_support(device, FRIT_OP_sort), FRIT_SUPPORT_NONE);
    assert_int_equal(frit_op_support(device, 9999), FRIT_SUPPORT_NONE);
    device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_senseless_answers_are_refused),
        cmocka_unit_test(test_grids_and_groups_have_limits),
        cmocka_unit_test(test_arguments_have_limits),
        cmocka_unit_test(test_support_is_reported_per_row),
        cmocka_unit_test(test_prepare_is_called_once_per_signature),
        cmocka_unit_test(test_compile_when_requested),
        cmocka_unit_test(test_relayout_copies_the_operand),
        cmocka_unit_test(test_workspace_is_zeroed),
        cmocka_unit_test(test_derived_memory_is_filled),
        cmocka_unit_test(test_a_driver_may_choose_the_layout),
        cmocka_unit_test(test_an_op_nobody_has_fails_with_its_name),
        cmocka_unit_test(test_a_refusal_at_prepare_is_reported),
        cmocka_unit_test(test_a_refused_submit_spoils_only_its_op),
        cmocka_unit_test(test_a_refusal_without_a_reason_is_an_error_too),
        cmocka_unit_test(test_no_alignment_beyond_what_was_declared),
        cmocka_unit_test(test_a_long_op_form_distinguishes_extents),
        cmocka_unit_test(test_a_refused_composite_runs_as_core_ops),
        cmocka_unit_test(test_composites_run_as_core_ops_on_request),
        cmocka_unit_test(test_a_table_with_holes_is_refused),
        cmocka_unit_test(test_scalars_are_known_by_class),
        cmocka_unit_test(test_bounds_are_known_by_class),
        cmocka_unit_test(test_the_tail_is_of_the_last_bytes),
        cmocka_unit_test(test_a_program_may_want_more_bytes),
        cmocka_unit_test(test_old_signatures_are_forgotten),
        cmocka_unit_test(test_an_op_form_has_no_launch_fields),
        cmocka_unit_test(test_programs_of_ops_leave),
        cmocka_unit_test(test_a_late_failure_reaches_dependents),
        cmocka_unit_test(test_a_late_failure_reaches_what_was_submitted),
        cmocka_unit_test(test_a_failed_write_spoils_the_tensor),
        cmocka_unit_test(test_a_failure_inside_submit_is_known_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
