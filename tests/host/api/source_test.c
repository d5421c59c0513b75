/* SPDX-License-Identifier: Apache-2.0 */
/* Elements that the program hands over: any byte but 0 is true, and sizes that overflow are
 * refused even where there is no element. */
#include "api/rig.h"

#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

enum { N = 100 }; /* bools; not a multiple of a word */

static const unsigned char marks[N] = {[0] = 1, [3] = 2, [50] = 0xff, [98] = 0x80, [99] = 0x10};

static bool is_true(int i)
{
    return marks[i] != 0;
}

/* What ops make of it, and what is read back. */
static void expect_bools(frit_tensor *x)
{
    unsigned char out[N], same[N], no[N];
    frit_tensor *sum = frit_sum(frit_cast(x, FRIT_I32));
    int32_t count = 0, n_true = 0;

    assert_int_equal(frit_read(frit_take(frit_not(x)), no, N, NULL), FRIT_OK);
    assert_int_equal(frit_read(frit_take(frit_eq(x, frit_not(frit_not(x)))), same, N, NULL),
                     FRIT_OK);
    assert_int_equal(frit_read(frit_take(sum), &count, sizeof(count), NULL), FRIT_OK);
    assert_int_equal(frit_read(x, out, N, NULL), FRIT_OK);
    for (int i = 0; i < N; i++) {
        assert_int_equal(out[i], is_true(i));
        assert_int_equal(no[i], !is_true(i));
        assert_int_equal(same[i], 1);
        n_true += is_true(i);
    }
    assert_int_equal(count, n_true);
}

static void count_release(void *ctx)
{
    ++*(int *)ctx;
}

static void test_bools_are_0_or_1(void **state)
{
    static _Alignas(4096) unsigned char lent[N], clean[N];
    const unsigned char no[N] = {0};
    int released = 0;
    struct rig rig;
    frit_scope scope;

    (void)state;
    rig_open(&rig, NULL, 0);
    scope = frit_scope_begin(rig.dev);
    expect_bools(frit_from_host(rig.dev, FRIT_BOOL, FRIT_SHAPE(N), marks, N));

    memcpy(lent, marks, N);
    expect_bools(
        frit_wrap_host(rig.dev, FRIT_BOOL, FRIT_SHAPE(N), lent, N, count_release, &released));
    assert_int_equal(released, 1); /* it was copied, and is as it was */
    assert_memory_equal(lent, marks, N);
    for (int i = 0; i < N; i++)
        clean[i] = is_true(i);
    expect_bools(
        frit_wrap_host(rig.dev, FRIT_BOOL, FRIT_SHAPE(N), clean, N, count_release, &released));

    frit_tensor *x = frit_from_host(rig.dev, FRIT_BOOL, FRIT_SHAPE(N), no, N), *y = frit_copy(x);
    assert_int_equal(frit_write(x, marks, N, NULL), FRIT_OK);
    expect_bools(x);
    assert_int_equal(frit_write(x, no, N, NULL), FRIT_OK);
    frit_write_item items[] = {{.tensor = x, .data = marks, .bytes = N},
                               {.tensor = x, .data = marks, .bytes = N - 1},
                               {.tensor = y, .data = marks, .bytes = N}};
    assert_int_equal(frit_write_many(items, 3, NULL), FRIT_INVALID);
    assert_int_equal(items[1].status, FRIT_INVALID);
    expect_bools(x);
    expect_bools(y);
    frit_scope_end(scope);
    rig_close(&rig);
    assert_int_equal(released, 2);
}

/* NumPy writes only 0 and 1, but others write its files too. */
static void test_bools_of_files(void **state)
{
    static const char head[] = "{'descr': '|b1', 'fortran_order': False, 'shape': (100,), }";
    char path[64];
    struct rig rig;
    frit_tensor *x;
    frit_scope scope;
    FILE *file;

    (void)state;
    snprintf(path, sizeof(path), "/tmp/frit-source-%ld.npy", (long)getpid());
    file = fopen(path, "wb");
    assert_non_null(file);
    fprintf(file, "\x93NUMPY%c%c%c%c%-117s\n", 1, 0, 118, 0, head);
    fwrite(marks, 1, N, file);
    fclose(file);
    rig_open(&rig, NULL, 0);
    scope = frit_scope_begin(rig.dev);
    x = frit_load_npy(rig.dev, path);
    remove(path);
    expect_bools(x);
    frit_scope_end(scope);
    rig_close(&rig);
}

static void expect_overflow(frit_tensor *tensor, const char *call)
{
    if (frit_tensor_status(tensor) != FRIT_INVALID ||
        !strstr(frit_tensor_error(tensor), "shape overflow"))
        fail_msg("%s: %d %s", call, frit_tensor_status(tensor), frit_tensor_error(tensor));
    frit_release(tensor);
}

/* Of any dims but the empty one: strides are products of the others. */
static void test_sizes_that_overflow(void **state)
{
    const frit_dims dims[] = {
        FRIT_SHAPE(0, INT64_C(1) << 40, INT64_C(1) << 40),
        FRIT_SHAPE(INT64_C(1) << 40, 0, INT64_C(1) << 40),
        FRIT_SHAPE(INT64_C(1) << 40, INT64_C(1) << 40, 0),
        FRIT_SHAPE(0, INT64_MAX),
        FRIT_SHAPE(INT64_MAX, INT64_MAX),
    };
    struct rig rig;
    frit_tensor *empty;

    (void)state;
    rig_open(&rig, NULL, 0);
    empty = frit_from_host(rig.dev, FRIT_F32, FRIT_SHAPE(0), NULL, 0);
    assert_int_equal(frit_tensor_status(empty), FRIT_OK);
    for (size_t i = 0; i < sizeof(dims) / sizeof(dims[0]); i++) {
        expect_overflow(frit_from_host(rig.dev, FRIT_F32, dims[i], "", 0), "from_host");
        expect_overflow(frit_wrap_host(rig.dev, FRIT_F32, dims[i], "", 0, NULL, NULL), "wrap_host");
        expect_overflow(frit_empty(rig.dev, FRIT_F32, dims[i]), "empty");
        expect_overflow(frit_full(rig.dev, FRIT_F32, dims[i], 1), "full");
        expect_overflow(frit_random_uniform(rig.dev, FRIT_F32, dims[i], 0, 1), "random_uniform");
        if (i < 4)
            expect_overflow(frit_reshape(empty, dims[i]), "reshape");
    }
    frit_release(empty);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bools_are_0_or_1),
        cmocka_unit_test(test_bools_of_files),
        cmocka_unit_test(test_sizes_that_overflow),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
