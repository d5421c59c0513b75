/* SPDX-License-Identifier: Apache-2.0 */
/* The generated C functions: what each kind of them writes down for api_op, which stands here as a
 * recorder.
 *
 * Faults that show: swapped operands, a named attribute lost or read beyond an older caller's
 * struct, an output in the wrong place, a twin with the wrong kind of number, macros or overloads
 * that pass the wrong argument. */
#include "api/call.h"
#include "api/fast.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <frit/op_table.h>

#include "host/api/ops_cpp.h"

static struct {
    struct api_call call;
    frit_input in[8];
    uint64_t record[64];
} seen;

static char names[16]; /* their addresses serve as tensors that nobody looks into */

#define TENSOR(i) ((frit_tensor *)(void *)&names[i])
#define DEVICE    ((frit_device *)(void *)&names[15])

frit_scalar frit_scalar_f(double value)
{
    frit_scalar scalar = {.kind = FRIT_SCALAR_F64};

    memcpy(&scalar.bits, &value, sizeof(value));
    return scalar;
}

frit_scalar frit_scalar_i(int64_t value)
{
    return (frit_scalar){.kind = FRIT_SCALAR_I64, .bits = (uint64_t)value};
}

static void note(const struct api_call *call)
{
    uint64_t size;

    memset(&seen, 0, sizeof(seen));
    seen.call = *call;
    for (uint32_t i = 0; i < call->n_in; i++)
        seen.in[i] = call->in[i];
    if (call->attrs) {
        const frit_op_info *row = frit_op_info_at(call->op);
        size = frit_record_info_at(row->record)->size;
        assert_true(size <= sizeof(seen.record));
        memcpy(seen.record, call->attrs, size);
    }
}

frit_tensor *fast_op(const struct api_call *call)
{
    (void)call;
    return NULL;
}

frit_tensor *api_op_long(const struct api_call *call)
{
    note(call);
    return TENSOR(14);
}

_Thread_local const struct op_observer *op_observer; /* nobody follows the calls */

frit_tensor *api_op_observed(const struct api_call *call)
{
    (void)call;
    return NULL;
}

frit_status api_op_status(const struct api_call *call)
{
    note(call);
    return FRIT_BUSY;
}

static double real(uint32_t i)
{
    double value;

    assert_int_equal(seen.in[i].scalar.kind, FRIT_SCALAR_F64);
    memcpy(&value, &seen.in[i].scalar.bits, sizeof(value));
    return value;
}

static void expect_tensor(uint32_t i, uint32_t k)
{
    assert_ptr_equal(seen.in[i].tensor, TENSOR(k));
}

static void expect_axes(const frit_axes *axes, int64_t first, int64_t second)
{
    assert_int_equal(axes->count, 2);
    assert_int_equal(axes->axis[0], first);
    assert_int_equal(axes->axis[1], second);
}

static void test_operands(void **state)
{
    (void)state;
    assert_ptr_equal(frit_sub(TENSOR(0), TENSOR(1)), TENSOR(14));
    assert_int_equal(seen.call.op, FRIT_OP_sub);
    assert_int_equal(seen.call.n_in, 2);
    assert_null(seen.call.attrs);
    expect_tensor(0, 0);
    expect_tensor(1, 1);

    frit_conv(TENSOR(0), TENSOR(1), NULL);
    assert_int_equal(seen.call.n_in, 3);
    assert_null(seen.in[2].tensor);
    assert_int_equal(seen.in[2].scalar.kind, FRIT_SCALAR_NONE); /* may be absent */

    frit_conv(TENSOR(0), NULL, NULL);
    assert_int_equal(seen.in[1].scalar.kind, INPUT_NULL);
}

static void test_numbers(void **state)
{
    (void)state;
    frit_sub_f(TENSOR(0), 0.5);
    expect_tensor(0, 0);
    assert_true(real(1) == 0.5);

    frit_where_f(TENSOR(0), TENSOR(1), -1.0);
    expect_tensor(0, 0);
    expect_tensor(1, 1);
    assert_true(real(2) == -1.0);

    frit_mask_fill_f(TENSOR(0), TENSOR(1), 7.0);
    expect_tensor(1, 1);
    assert_true(real(2) == 7.0);

    frit_clamp_i(TENSOR(0), INT64_MIN, INT64_MAX);
    assert_int_equal(seen.in[1].scalar.kind, FRIT_SCALAR_I64);
    assert_true(seen.in[1].scalar.bits == (uint64_t)INT64_MIN);
    assert_true(seen.in[2].scalar.bits == (uint64_t)INT64_MAX);
}

static void test_many(void **state)
{
    frit_tensor *xs[] = {TENSOR(2), TENSOR(3), TENSOR(4)};
    const frit_attrs_axis *record = (const void *)seen.record;

    (void)state;
    frit_cat(xs, 3, -1);
    assert_int_equal(seen.call.op, FRIT_OP_cat);
    assert_int_equal(seen.call.n_in, 0);
    assert_ptr_equal(seen.call.many, xs);
    assert_int_equal(seen.call.n_many, 3);
    assert_int_equal(record->axis, -1);
}

static void test_device_rows(void **state)
{
    const frit_attrs_init *record = (const void *)seen.record;

    (void)state;
    frit_arange(DEVICE, FRIT_F16, FRIT_SHAPE(5), 1.0, 0.25);
    assert_ptr_equal(seen.call.device, DEVICE);
    assert_int_equal(record->struct_size, sizeof(*record));
    assert_int_equal(record->dtype, FRIT_F16);
    assert_int_equal(record->dims.rank, 1);
    assert_int_equal(record->dims.dim[0], 5);
    assert_true(real(0) == 1.0 && real(1) == 0.25);

    frit_full_i(DEVICE, FRIT_I64, FRIT_RANK0, INT64_MAX);
    assert_int_equal(record->dims.rank, 0);
    assert_true(seen.in[0].scalar.bits == (uint64_t)INT64_MAX);

    assert_int_equal(frit_sync_collective(DEVICE), FRIT_BUSY);
    assert_ptr_equal(seen.call.device, DEVICE);
    assert_int_equal(seen.call.n_in, 0);
}

static void test_outputs(void **state)
{
    frit_tensor *index = NULL, *dw = NULL, *dbias = NULL;
    const frit_attrs_max_pool *record = (const void *)seen.record;

    (void)state;
    frit_max_pool(TENSOR(0), &index, .kernel = {2, 3}, .ceil = 1);
    assert_ptr_equal(seen.call.more[0], &index);
    assert_null(seen.call.more[1]);
    assert_int_equal(record->kernel[0], 2);
    assert_int_equal(record->kernel[1], 3);
    assert_int_equal(record->kernel[2], 0);
    assert_int_equal(record->ceil, 1);

    frit_deform_conv_backward(TENSOR(0), TENSOR(1), TENSOR(2), NULL, NULL, TENSOR(3), NULL, &dw,
                              NULL, &dbias, .offset_groups = 2);
    assert_null(seen.call.more[0]);
    assert_ptr_equal(seen.call.more[1], &dw);
    assert_null(seen.call.more[2]);
    assert_ptr_equal(seen.call.more[3], &dbias);
    expect_tensor(5, 3);
}

static void test_named(void **state)
{
    const frit_attrs_reduce *sum = (const void *)seen.record;
    const frit_attrs_scatter *scatter = (const void *)seen.record;

    (void)state;
    frit_sum(TENSOR(0));
    assert_int_equal(sum->struct_size, sizeof(*sum));
    assert_int_equal(sum->axes.count, 0);
    assert_int_equal(sum->keep, 0);

    frit_sum(frit_sum(TENSOR(0), .axes = FRIT_AXES(3, 1)), .axes = FRIT_AXES(0, 2), .keep = 1);
    expect_tensor(0, 14);
    expect_axes(&sum->axes, 0, 2);
    assert_int_equal(sum->keep, 1);

    frit_scatter(TENSOR(0), TENSOR(1), TENSOR(2), -2, .update = FRIT_CHOICE_update_max);
    expect_tensor(2, 2);
    assert_int_equal(scatter->axis, -2);
    assert_int_equal(scatter->update, FRIT_CHOICE_update_max);
}

static void test_older_caller(void **state)
{
    frit_sum_attrs attrs = {.axes = FRIT_AXES(4, 5), .keep = 1};
    const frit_attrs_reduce *record = (const void *)seen.record;

    (void)state;
    frit_sum_with(TENSOR(0), NULL);
    assert_int_equal(record->struct_size, sizeof(*record));
    assert_int_equal(record->keep, 0);

    attrs.struct_size = FRIT_END_OF(frit_sum_attrs, axes);
    frit_sum_with(TENSOR(0), &attrs);
    assert_int_equal(record->struct_size, sizeof(*record));
    expect_axes(&record->axes, 4, 5);
    assert_int_equal(record->keep, 0);

    attrs.struct_size = sizeof(attrs) + 64; /* a newer caller */
    frit_sum_with(TENSOR(0), &attrs);
    assert_int_equal(record->keep, 1);

    attrs.struct_size = 0; /* forgotten: for api_op to refuse */
    frit_sum_with(TENSOR(0), &attrs);
    assert_int_equal(record->struct_size, 0);
}

static void test_cpp(void **state)
{
    const frit_attrs_conv *conv = (const void *)seen.record;
    const frit_attrs_reduce *sum = (const void *)seen.record;
    const frit_attrs_slice *slice = (const void *)seen.record;

    (void)state;
    cpp_conv(TENSOR(0), TENSOR(1), TENSOR(2));
    assert_int_equal(conv->struct_size, sizeof(*conv));
    expect_tensor(1, 1);
    assert_ptr_equal(seen.in[2].tensor, TENSOR(2));
    assert_int_equal(conv->stride[0], 2);
    assert_int_equal(conv->groups, 4);

    cpp_sum(TENSOR(0));
    expect_axes(&sum->axes, 0, 2);
    cpp_sum_all(TENSOR(0));
    assert_int_equal(sum->struct_size, sizeof(*sum));
    assert_int_equal(sum->axes.count, 0);

    cpp_slice(TENSOR(0));
    assert_int_equal(slice->slices.count, 2);
    assert_int_equal(slice->slices.dim[0].start, 1);
    assert_true(slice->slices.dim[0].stop == FRIT_SLICE_END);
    assert_int_equal(slice->slices.dim[0].step, 2);
    assert_int_equal(slice->slices.dim[1].step, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_operands),     cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_many),         cmocka_unit_test(test_device_rows),
        cmocka_unit_test(test_outputs),      cmocka_unit_test(test_named),
        cmocka_unit_test(test_older_caller), cmocka_unit_test(test_cpp),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
