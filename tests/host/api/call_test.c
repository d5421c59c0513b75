/* SPDX-License-Identifier: Apache-2.0 */
/* Op calls from outside: what wrong ones say, who owns what afterwards, when things run. */
#include "api/rig.h"

#include <math.h>
#include <stdbool.h>

#include <frit/backend.h>
#include <frit/inspect.h>

static const float six[6] = {1, 2, 3, 4, 5, 6};

static void test_a_chain_computes(void **state)
{
    struct rig rig;
    float out[6];

    (void)state;
    rig_open(&rig, NULL, 0);
    frit_tensor *x = rig_f32(&rig, FRIT_SHAPE(2, 3), six);
    frit_tensor *y = frit_add_f(frit_take(frit_mul(x, frit_take(frit_neg(x)))), 1);

    assert_int_equal(rig_stats(&rig).queued_now, 1); /* nobody knows yet what dies with it */
    assert_int_equal(frit_read(y, out, sizeof(out), NULL), FRIT_OK);
    for (int i = 0; i < 6; i++)
        assert_true(out[i] == 1 - six[i] * six[i]);
    assert_int_equal(rig_stats(&rig).launches, 3);
    frit_release(x);
    frit_release(y);
    rig_close(&rig);
}

static void test_wrong_operands_are_named(void **state)
{
    struct rig rig;
    int local = 0;
    int32_t ints[6] = {0};

    (void)state;
    rig_open(&rig, NULL, 0);
    frit_tensor *x = rig_f32(&rig, FRIT_SHAPE(2, 3), six);
    frit_tensor *narrow = rig_f32(&rig, FRIT_SHAPE(2), six);
    frit_tensor *i = frit_from_host(rig.dev, FRIT_I32, FRIT_SHAPE(2, 3), ints, sizeof(ints));
    frit_tensor *gone = frit_neg(x);

    frit_release(gone);
    rig_expect_error(frit_add(x, NULL), FRIT_INVALID, "add: b (operand 1): is NULL");
    rig_expect_error(frit_add(gone, x), FRIT_INVALID,
                     "add: a (operand 0): is a stale tensor: it was released or taken before");
    {
        frit_tensor *bad = frit_neg((frit_tensor *)&local);

        assert_int_equal(frit_tensor_status(bad), FRIT_INVALID);
        assert_non_null(strstr(frit_tensor_error(bad), "neg: x (operand 0): is not a tensor"));
        frit_release(bad);
    }
    {
        frit_tensor *bad = frit_add(x, narrow);

        assert_int_equal(frit_tensor_status(bad), FRIT_INVALID);
        assert_non_null(strstr(frit_tensor_error(bad), "add"));
        assert_non_null(strstr(frit_tensor_error(bad), "f32[2, 3]"));
        assert_non_null(strstr(frit_tensor_error(bad), "f32[2]"));
        frit_release(bad);
    }
    {
        frit_tensor *bad = frit_add(x, i);

        assert_int_equal(frit_tensor_status(bad), FRIT_INVALID);
        assert_non_null(strstr(frit_tensor_error(bad), "i32"));
        frit_release(bad);
    }
    {
        frit_tensor *bad = frit_full(NULL, FRIT_F32, FRIT_SHAPE(2), 1);

        rig_expect_error(bad, FRIT_INVALID, "full: the device is NULL");
    }
    rig_expect_error(frit_cat(NULL, 0, 0), FRIT_INVALID, "cat: there are no operands");
    rig_expect_error(frit_cat(NULL, 2, 0), FRIT_INVALID, "cat: 2 operands at NULL");
    frit_release(x);
    frit_release(narrow);
    frit_release(i);
    rig_close(&rig);
}

static void test_errors_travel_with_their_origin(void **state)
{
    frit_err err = {.struct_size = sizeof(err)};
    struct rig rig;
    float out[6];
    char origin[496];

    (void)state;
    rig_open(&rig, NULL, 0);
    frit_tensor *x = rig_f32(&rig, FRIT_SHAPE(2, 3), six);
    frit_tensor *bad = frit_reshape(x, FRIT_SHAPE(5));
    frit_tensor *later = frit_exp(frit_take(frit_add(bad, x)));
    frit_stats before = rig_stats(&rig);

    strcpy(origin, frit_tensor_error(bad));
    assert_non_null(strstr(origin, "reshape"));
    assert_string_equal(frit_tensor_error(later), origin);
    assert_int_equal(frit_tensor_dtype(later), FRIT_NO_DTYPE);
    assert_int_equal(frit_read(later, out, sizeof(out), &err), FRIT_INVALID);
    assert_string_equal(err.text, origin);
    assert_int_equal(rig_stats(&rig).launches, before.launches);

    /* The first error since the last sync, once; then the mark is clear, the tensors keep theirs.
     */
    assert_int_equal(frit_sync(rig.dev, &err), FRIT_INVALID);
    assert_string_equal(err.text, origin);
    assert_int_equal(frit_sync(rig.dev, &err), FRIT_OK);
    assert_int_equal(frit_tensor_status(later), FRIT_INVALID);
    frit_release(x);
    frit_release(bad);
    frit_release(later);
    rig_close(&rig);
}

static void test_takes_are_consumed_once_also_on_failure(void **state)
{
    struct rig rig;
    float out[6];

    (void)state;
    rig_open(&rig, NULL, 0);
    frit_tensor *x = rig_f32(&rig, FRIT_SHAPE(2, 3), six);
    frit_tensor *taken = frit_take(x);
    frit_tensor *y = frit_mul(taken, taken);

    assert_int_equal(frit_tensor_status(x), FRIT_INVALID); /* stale */
    assert_int_equal(frit_read(frit_take(y), out, sizeof(out), NULL), FRIT_OK);
    assert_true(out[5] == 36);
    assert_int_equal(frit_tensor_status(y), FRIT_INVALID);

    x = rig_f32(&rig, FRIT_SHAPE(2, 3), six);
    y = frit_reshape(frit_take(x), FRIT_SHAPE(4));
    assert_int_equal(frit_tensor_status(x), FRIT_INVALID);
    frit_release(y);

    x = frit_ref(rig_f32(&rig, FRIT_SHAPE(2, 3), six)); /* two owners */
    frit_release(frit_mul(frit_take(x), frit_take(x)));
    assert_int_equal(frit_tensor_status(x), FRIT_OK);
    frit_ref(x);
    frit_release(frit_div(frit_take(x), frit_take(x))); /* as it goes the first time */
    assert_int_equal(frit_tensor_status(x), FRIT_OK);
    frit_ref(x);
    frit_read_item items[2] = {{.tensor = frit_take(x), .data = out, .bytes = sizeof(out)},
                               {.tensor = frit_take(x), .data = out, .bytes = sizeof(out)}};
    assert_int_equal(frit_read_many(items, 2, NULL), FRIT_OK);
    assert_int_equal(frit_tensor_status(x), FRIT_OK);
    frit_release(x);
    assert_int_equal(frit_tensor_status(x), FRIT_INVALID);
    rig_close(&rig);
}

/* Of two owners one is left, whatever comes of the call. */
static void expect_one_left(frit_tensor *tensor)
{
    assert_int_equal(frit_tensor_status(tensor), FRIT_OK);
    frit_release(tensor);
    assert_int_equal(frit_tensor_status(tensor), FRIT_INVALID);
}

static void test_reads_and_writes_consume_takes_once(void **state)
{
    frit_err err = {.struct_size = sizeof(err)};
    struct rig rig;
    float out[6];
    uint64_t none = 0;

    (void)state;
    rig_open(&rig, NULL, 0);
#define TWO_OWNERS() frit_ref(rig_f32(&rig, FRIT_SHAPE(2, 3), six))
    frit_tensor *x = TWO_OWNERS();

    assert_int_equal(frit_read(frit_take(x), out, 1, &err), FRIT_INVALID);
    assert_non_null(strstr(err.text, "1 bytes given"));
    expect_one_left(x);
    x = TWO_OWNERS();
    assert_int_equal(frit_write(frit_take(x), six, sizeof(six), &err), FRIT_OK);
    expect_one_left(x);
    x = TWO_OWNERS();
    assert_int_equal(frit_save_npy(frit_take(x), NULL, &err), FRIT_INVALID);
    expect_one_left(x);
    x = TWO_OWNERS();
    assert_int_equal(frit_save_npy(frit_take(x), "/nowhere/at/all.npy", &err), FRIT_IO);
    expect_one_left(x);
    x = TWO_OWNERS();
    {
        const frit_input in = {.tensor = frit_take(x)};
        const frit_call call = {
            .struct_size = sizeof(call), .op = FRIT_OP_sum, .n_in = 1, .in = &in, .attrs = &none};
        frit_tensor *sum;

        frit_op(rig.dev, &call, &sum, 1);
        assert_non_null(strstr(frit_tensor_error(sum), "struct_size"));
        frit_release(sum);
    }
    expect_one_left(x);
    x = frit_reshape(frit_take(rig_f32(&rig, FRIT_SHAPE(2, 3), six)), FRIT_SHAPE(4));
    assert_int_equal(frit_write(frit_take(x), six, sizeof(six), &err),
                     FRIT_INVALID); /* a failed one */
#undef TWO_OWNERS
    rig_close(&rig);
}

static void test_scopes_release_and_keep(void **state)
{
    struct rig rig;
    float out[6];

    (void)state;
    rig_open(&rig, NULL, 0);
    frit_scope outer = frit_scope_begin(rig.dev);
    frit_tensor *x = rig_f32(&rig, FRIT_SHAPE(2, 3), six);
    frit_scope inner = frit_scope_begin(rig.dev);
    frit_tensor *a = frit_neg(x), *b = frit_keep(frit_neg(a)),
                *c = frit_keep(frit_keep(frit_exp(x)));

    frit_scope_end(inner);
    assert_int_equal(frit_tensor_status(a), FRIT_INVALID);
    assert_int_equal(frit_read(b, out, sizeof(out), NULL), FRIT_OK);
    assert_true(out[2] == 3);
    frit_scope_end(outer);
    assert_int_equal(frit_tensor_status(x), FRIT_INVALID);
    assert_int_equal(frit_tensor_status(b), FRIT_INVALID);
    assert_int_equal(frit_read(c, out, sizeof(out), NULL), FRIT_OK);
    assert_true(fabsf(out[0] - expf(1)) < 1e-6f);
    frit_release(c);
    rig_close(&rig);
}

/* Ending an outer scope ends the inner one; a release inside a scope is the scope's. */
static void test_scopes_end_together(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, NULL, 0);
    frit_scope outer = frit_scope_begin(rig.dev);
    frit_tensor *x = rig_f32(&rig, FRIT_SHAPE(2, 3), six);

    frit_release(x);
    frit_scope_begin(rig.dev);
    frit_neg(rig_f32(&rig, FRIT_SHAPE(2, 3), six));
    frit_add(NULL, NULL); /* an error without a device belongs to the innermost scope */
    frit_scope_end(outer);
    assert_int_equal(rig_stats(&rig).tensors_now, 0);
    rig_close(&rig);
}

static void test_what_nobody_sees_does_not_run(void **state)
{
    struct rig rig;
    frit_scope scope;

    (void)state;
    rig_open(&rig, NULL, 0);
    frit_tensor *x = rig_f32(&rig, FRIT_SHAPE(2, 3), six);
    frit_tensor *y = x;

    scope = frit_scope_begin(rig.dev);
    for (int i = 0; i < 10; i++)
        y = frit_exp(y);
    frit_scope_end(scope);
    assert_int_equal(frit_sync(rig.dev, NULL), FRIT_OK);
    assert_int_equal(rig_stats(&rig).launches, 0);
    assert_int_equal(rig_stats(&rig).ops, 10);
    frit_release(frit_exp(x)); /* known to be dead before it is known what comes next */
    assert_int_equal(frit_sync(rig.dev, NULL), FRIT_OK);
    assert_int_equal(rig_stats(&rig).launches, 0);
    frit_release(x);
    rig_close(&rig);
}

static void test_views_share_memory(void **state)
{
    struct rig rig;
    float out[6];
    frit_dims strides;

    (void)state;
    rig_open(&rig, NULL, 0);
    frit_tensor *x = rig_f32(&rig, FRIT_SHAPE(2, 3), six);
    frit_tensor *t = frit_permute(x, FRIT_AXES(1, 0));
    frit_tensor *s = frit_slice(t, FRIT_SLICES({2, FRIT_SLICE_END, -1}, {0}));

    assert_int_equal(frit_tensor_strides(s, &strides, NULL), FRIT_OK);
    assert_int_equal(strides.dim[0], -1);
    assert_int_equal(strides.dim[1], 3);
    assert_int_equal(rig_stats(&rig).buffers_now, 1);
    assert_int_equal(rig_stats(&rig).launches, 0);
    frit_release(x);
    frit_release(t);
    assert_int_equal(frit_read(s, out, sizeof(out), NULL), FRIT_OK);
    assert_memory_equal(out, ((float[]){3, 6, 2, 5, 1, 4}), sizeof(out));
    frit_release(s);
    rig_close(&rig);
}

static void test_reads_name_their_bytes(void **state)
{
    frit_err err = {.struct_size = sizeof(err)};
    struct rig rig;
    float out[6];

    (void)state;
    rig_open(&rig, NULL, 0);
    frit_tensor *x = rig_f32(&rig, FRIT_SHAPE(2, 3), six);

    assert_int_equal(frit_tensor_bytes(x), 24);
    assert_int_equal(frit_read(x, out, 20, &err), FRIT_INVALID);
    assert_string_equal(err.text, "read: 20 bytes given, f32[2, 3] has 24");
    assert_int_equal(frit_read(x, NULL, 24, &err), FRIT_INVALID);
    assert_int_equal(frit_read(NULL, out, 24, &err), FRIT_INVALID);
    assert_int_equal(frit_tensor_status(x), FRIT_OK); /* a wrong call spoils nothing */
    frit_read_item items[] = {{.tensor = x, .data = out, .bytes = 24},
                              {.tensor = x, .data = out, .bytes = 1}};
    assert_int_equal(frit_read_many(items, 2, &err), FRIT_INVALID);
    assert_int_equal(items[0].status, FRIT_OK);
    assert_int_equal(items[1].status, FRIT_INVALID);
    rig_expect_error(frit_from_host(rig.dev, FRIT_F32, FRIT_SHAPE(2, 3), six, 20), FRIT_INVALID,
                     "from_host: 20 bytes given, f32[2, 3] has 24");
    rig_expect_error(frit_from_host(rig.dev, 77, FRIT_SHAPE(2), six, 8), FRIT_INVALID,
                     "from_host: 77 is not an element type that tensors can be made of");
    rig_expect_error(frit_from_host(rig.dev, FRIT_F32, FRIT_SHAPE(-1), six, 8), FRIT_INVALID,
                     "from_host: dim 0 has the negative extent -1");
    rig_expect_error(
        frit_from_host(rig.dev, FRIT_F32, FRIT_SHAPE(1ll << 40, 1ll << 40), six, 8), FRIT_INVALID,
        "from_host: shape overflow: f32[1099511627776, 1099511627776] has more bytes than 63 bits "
        "count");
    frit_release(x);
    rig_close(&rig);
}

static void test_writes_leave_earlier_results_alone(void **state)
{
    static const float zeros[6] = {0};
    struct rig rig;
    float out[6];

    (void)state;
    rig_open(&rig, NULL, 0);
    frit_tensor *x = rig_f32(&rig, FRIT_SHAPE(2, 3), six);
    frit_tensor *view = frit_reshape(x, FRIT_SHAPE(6));

    assert_int_equal(frit_flush(rig.dev, NULL), FRIT_OK);
    assert_int_equal(frit_write(x, zeros, sizeof(zeros), NULL), FRIT_OK);
    assert_int_equal(frit_read(view, out, sizeof(out), NULL), FRIT_OK);
    assert_true(out[5] == 6);
    assert_int_equal(frit_read(x, out, sizeof(out), NULL), FRIT_OK);
    assert_true(out[5] == 0);
    assert_int_equal(frit_write(x, zeros, 4, NULL), FRIT_INVALID);
    frit_release(x);
    frit_release(view);
    rig_close(&rig);
}

static void mark(void *ctx)
{
    ++*(int *)ctx;
}

static void test_lent_memory_comes_back_once(void **state)
{
    struct rig rig;
    int released = 0;

    (void)state;
    rig_open(&rig, NULL, 0);
    frit_release(
        frit_wrap_host(rig.dev, FRIT_F32, FRIT_SHAPE(6), six, sizeof(six), mark, &released));
    assert_int_equal(released, 1);
    frit_release(frit_wrap_host(rig.dev, FRIT_F32, FRIT_SHAPE(6), six, 1, mark, &released));
    assert_int_equal(released, 2);
    rig_close(&rig);
}

static void test_devices_do_not_mix(void **state)
{
    struct rig one, two;
    float out[6];

    (void)state;
    rig_open(&one, NULL, 0);
    rig_open(&two, NULL, 0);
    frit_tensor *a = rig_f32(&one, FRIT_SHAPE(6), six), *b = rig_f32(&two, FRIT_SHAPE(6), six);

    rig_expect_error(frit_add(a, b), FRIT_INVALID,
                     "add: b (operand 1): lives on reference:0, not on reference:0; move it with "
                     "frit_to_device");
    frit_tensor *moved = frit_to_device(frit_take(a), two.dev);
    frit_tensor *sum = frit_add(frit_take(moved), frit_take(b));

    assert_ptr_equal(frit_tensor_device(sum), two.dev);
    assert_int_equal(frit_read(frit_take(sum), out, sizeof(out), NULL), FRIT_OK);
    assert_true(out[3] == 8);
    rig_close(&one);
    rig_close(&two);
}

static void test_same_seed_same_numbers(void **state)
{
    struct rig rig;
    float first[2][64], again[2][64];

    (void)state;
    rig_open(&rig, NULL, 0);
    for (int round = 0; round < 2; round++) {
        frit_seed(rig.host, 42);
        for (int k = 0; k < 2; k++) {
            frit_tensor *r = frit_random_uniform(rig.dev, FRIT_F32, FRIT_SHAPE(64), 0, 1);

            assert_int_equal(
                frit_read(frit_take(r), (round ? again : first)[k], sizeof(first[0]), NULL),
                FRIT_OK);
        }
    }
    assert_memory_equal(first, again, sizeof(first));
    assert_memory_not_equal(first[0], first[1], sizeof(first[0]));
    frit_seed(rig.host, 43);
    assert_int_equal(
        frit_read(frit_take(frit_random_uniform(rig.dev, FRIT_F32, FRIT_SHAPE(64), 0, 1)), again[0],
                  sizeof(again[0]), NULL),
        FRIT_OK);
    assert_memory_not_equal(first[0], again[0], sizeof(first[0]));
    rig_close(&rig);
}

static void draw(frit_device *device, float out[64])
{
    frit_tensor *r = frit_random_uniform(device, FRIT_F32, FRIT_SHAPE(64), 0, 1);

    assert_int_equal(frit_read(frit_take(r), out, 64 * sizeof(*out), NULL), FRIT_OK);
}

/* A seed of one device is not one of the other; that of the host is one of both, and of those to
 * come. */
static void test_devices_have_seeds_of_their_own(void **state)
{
    const frit_setting setting = {"frit", "seed", "7"};
    struct rig rig;
    frit_device *other;
    float first[64], second[64], again[64];

    (void)state;
    rig_open(&rig, &setting, 1);
    draw(rig.dev, first);
    assert_int_equal(frit_device_open(rig.host, "cpu:0", &other, NULL), FRIT_OK);
    draw(other, again);
    assert_memory_equal(first, again, sizeof(first));
    frit_device_seed(other, 8);
    draw(rig.dev, second);
    draw(other, again);
    assert_memory_not_equal(first, again, sizeof(first));
    frit_device_seed(other, 7);
    draw(other, again);
    assert_memory_equal(first, again, sizeof(first));
    draw(other, again);
    assert_memory_equal(second, again, sizeof(second));
    frit_seed(rig.host, 7);
    draw(rig.dev, again);
    assert_memory_equal(first, again, sizeof(first));
    draw(other, again);
    assert_memory_equal(first, again, sizeof(first));
    frit_device_close(other);
    frit_device_seed(NULL, 1);
    rig_close(&rig);
}

static void test_a_device_says_what_it_does_with_types(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, NULL, 0);
    assert_int_equal(frit_device_dtype_use(rig.dev, FRIT_F32),
                     FRIT_DTYPE_STORAGE | FRIT_DTYPE_ARITHMETIC);
    assert_int_equal(frit_device_dtype_use(rig.dev, FRIT_NO_DTYPE), 0);
    assert_int_equal(frit_device_dtype_use(rig.dev, 7), 0);
    assert_int_equal(frit_device_dtype_use(rig.dev, UINT32_MAX), 0);
    assert_int_equal(frit_device_dtype_use(NULL, FRIT_F32), 0);
    rig_close(&rig);
}

static void test_a_full_queue_runs(void **state)
{
    const frit_setting setting = {"stream", "max_ops", "4"};
    struct rig rig;
    frit_scope scope;

    (void)state;
    rig_open(&rig, &setting, 1);
    frit_tensor *x = rig_f32(&rig, FRIT_SHAPE(6), six), *y = x;

    scope = frit_scope_begin(rig.dev);
    for (int i = 0; i < 10; i++)
        y = frit_exp(y);
    assert_int_equal(rig_stats(&rig).drains_full, 2);
    assert_int_equal(rig_stats(&rig).queued_now, 2);
    frit_scope_end(scope);
    assert_int_equal(rig_stats(&rig).queued_now, 0);
    frit_release(x);
    rig_close(&rig);
}

static void test_each_open_wants_its_close(void **state)
{
    struct rig rig;
    frit_device *again;

    (void)state;
    rig_open(&rig, NULL, 0);
    assert_int_equal(frit_device_open(rig.host, "reference:0", &again, NULL), FRIT_OK);
    assert_ptr_equal(again, rig.dev);
    frit_tensor *x = rig_f32(&rig, FRIT_SHAPE(6), six);
    frit_device_close(again);
    assert_int_equal(frit_tensor_status(x), FRIT_OK);
    frit_release(x);
    rig_close(&rig);
}

static void test_closing_makes_handles_stale(void **state)
{
    struct rig rig;
    float out[6];

    (void)state;
    rig_open(&rig, NULL, 0);
    frit_tensor *x = rig_f32(&rig, FRIT_SHAPE(6), six), *y = frit_exp(x);

    frit_host_close(rig.host);
    assert_int_equal(frit_tensor_status(x), FRIT_INVALID);
    assert_int_equal(frit_read(y, out, sizeof(out), NULL), FRIT_INVALID);
    frit_release(x);
    rig_open(&rig, NULL, 0); /* the thread finds no trace of the old device */
    frit_release(rig_f32(&rig, FRIT_SHAPE(6), six));
    rig_close(&rig);
}

static void test_generic_calls(void **state)
{
    struct rig rig;
    int64_t index;

    (void)state;
    rig_open(&rig, NULL, 0);
    frit_tensor *x = rig_f32(&rig, FRIT_SHAPE(6), six), *out[2] = {0};
    frit_input in[2] = {{.tensor = x}, {.scalar = frit_scalar_i(2)}};
    frit_call call = {.struct_size = sizeof(call), .op = FRIT_OP_argmax, .n_in = 1, .in = in};

    frit_op(NULL, &call, out, 1);
    assert_int_equal(frit_read(frit_take(out[0]), &index, sizeof(index), NULL), FRIT_OK);
    assert_int_equal(index, 5);
    call.op = 9999;
    frit_op(rig.dev, &call, out, 1);
    rig_expect_error(out[0], FRIT_INVALID, "frit_op: there is no op 9999");
    call.op = FRIT_OP_add;
    frit_op(rig.dev, &call, out, 2); /* one operand too few; room for more outputs than there are */
    assert_int_equal(frit_tensor_status(out[0]), FRIT_INVALID);
    assert_int_equal(frit_tensor_status(out[1]), FRIT_INVALID);
    frit_release(out[0]);
    frit_release(out[1]);
    frit_release(x);
    rig_close(&rig);
}

/* One round of the loop below; sorted: 1, 2, 3 with the last two elements, `fill` and a random one,
 * cut off. */
static void sort_round(struct rig *rig, frit_tensor *x, double fill, bool with_index, float *drawn)
{
    frit_scope scope = frit_scope_begin(rig->dev);
    frit_tensor *filled = frit_full(rig->dev, FRIT_F32, FRIT_SHAPE(1), fill);
    frit_tensor *random = frit_random_uniform(rig->dev, FRIT_F32, FRIT_SHAPE(1), 50, 60);
    frit_tensor *all = frit_cat((frit_tensor *[]){x, filled, random}, 3, 0), *index = NULL;
    frit_tensor *y = frit_keep(frit_sort(all, 0, with_index ? &index : NULL, .descending = 1));
    int64_t places[5] = {-1, -1, -1, -1, -1};
    float out[5];

    if (with_index)
        frit_keep(index);
    frit_scope_end(scope);
    assert_int_equal(frit_read(y, out, sizeof(out), NULL), FRIT_OK);
    assert_true(out[0] >= 50 && out[0] < 60 && out[0] != *drawn && out[1] == (float)fill);
    assert_true(out[2] == 3 && out[3] == 2 && out[4] == 1);
    *drawn = out[0];
    frit_release(y);
    if (!with_index)
        return;
    assert_int_equal(frit_read(index, places, sizeof(places), NULL), FRIT_OK);
    assert_true(places[0] == 4 && places[1] == 3 && places[2] == 2 && places[4] == 0);
    frit_release(index);
}

/* Ops that make tensors of nothing, join some, draw numbers or have outputs that are not always
 * wanted, in a loop in which they are predicted, rightly or not. */
static void test_loops_of_unusual_ops(void **state)
{
    struct rig rig;
    float drawn = 0;

    (void)state;
    rig_open(&rig, NULL, 0);
    frit_tensor *x = rig_f32(&rig, FRIT_SHAPE(3), six);

    for (int round = 0; round < 24; round++)
        sort_round(&rig, x, 10 + round / 6, round / 4 % 2 == 1, &drawn);
    frit_release(x);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_chain_computes),
        cmocka_unit_test(test_wrong_operands_are_named),
        cmocka_unit_test(test_errors_travel_with_their_origin),
        cmocka_unit_test(test_takes_are_consumed_once_also_on_failure),
        cmocka_unit_test(test_reads_and_writes_consume_takes_once),
        cmocka_unit_test(test_scopes_release_and_keep),
        cmocka_unit_test(test_scopes_end_together),
        cmocka_unit_test(test_what_nobody_sees_does_not_run),
        cmocka_unit_test(test_views_share_memory),
        cmocka_unit_test(test_reads_name_their_bytes),
        cmocka_unit_test(test_writes_leave_earlier_results_alone),
        cmocka_unit_test(test_lent_memory_comes_back_once),
        cmocka_unit_test(test_devices_do_not_mix),
        cmocka_unit_test(test_same_seed_same_numbers),
        cmocka_unit_test(test_devices_have_seeds_of_their_own),
        cmocka_unit_test(test_a_device_says_what_it_does_with_types),
        cmocka_unit_test(test_a_full_queue_runs),
        cmocka_unit_test(test_each_open_wants_its_close),
        cmocka_unit_test(test_closing_makes_handles_stale),
        cmocka_unit_test(test_generic_calls),
        cmocka_unit_test(test_loops_of_unusual_ops),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
