/* SPDX-License-Identifier: Apache-2.0 */
/* Packed values from the program's own bytes: memory, NumPy and safetensors files.
 * Argument `_staging`: of vulkan, without pointers to device memory. */
#include "device/rig.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const uint32_t types[] = {FRIT_F8E4M3, FRIT_F8E5M2, FRIT_F4E2M1, FRIT_Q8, FRIT_Q4, FRIT_Q2};
enum { N_TYPES = sizeof(types) / sizeof(types[0]) };

enum { ROWS = 3, COLUMNS = 37, MAX_BYTES = ROWS * COLUMNS };

static bool staging;

static void open_device(struct rig *rig)
{
    frit_err err = {.struct_size = sizeof(err)};
    const frit_setting settings[] = {{"fusion", "compile", "wait"},
                                     {"fusion", "store", "none"},
                                     {"frit", "fallback", "none"},
                                     {"plugin.vulkan", "option.staging", "force"}};
    const frit_host_params params = {
        .struct_size = sizeof(params), .settings = settings, .n_settings = staging ? 4 : 3};
    const char *name = getenv("FRIT_TEST_DEVICE");

    if (frit_host_open(&params, &rig->host, &err) ||
        frit_device_open(rig->host, name ? name : "cpu:0", &rig->dev, &err))
        fail_msg("%s", err.text);
}

static uint64_t bytes_of(uint32_t dtype)
{
    return frit_storage_bytes(dtype, (int64_t)ROWS * COLUMNS);
}

static void fill(unsigned char *bytes)
{
    for (int i = 0; i < MAX_BYTES; i++)
        bytes[i] = (unsigned char)(i * 37 + 11);
}

/* Element i, as the headers describe the layout. */
static double element(uint32_t dtype, const unsigned char *bytes, int i)
{
    const frit_dtype_info info = frit_dtype_info_of(dtype);
    const int at = i * info.bits, ones = (1 << info.bits) - 1;
    const int bits = bytes[at / 8] >> at % 8 & ones, sign = bits >> (info.bits - 1);
    const int size = bits & (ones >> 1), exponent = size >> info.fraction;
    const int bias = (1 << (info.exponent - 1)) - 1, fraction = size & ((1 << info.fraction) - 1);
    double value;

    if (!info.exponent)
        return bits - (sign << info.bits);
    if (info.specials == FRIT_SPECIALS_NAN && size == ones >> 1)
        return (double)NAN;
    if (info.specials == FRIT_SPECIALS_IEEE && exponent == (1 << info.exponent) - 1)
        return fraction ? (double)NAN : (double)(sign ? -INFINITY : INFINITY);
    value = ldexp(fraction, (exponent ? exponent : 1) - bias - info.fraction) +
            (exponent ? ldexp(1, exponent - bias) : 0);
    return sign ? -value : value;
}

/* Reads back the same bytes, and dequantizes to the elements. */
static void expect(struct rig *rig, frit_tensor *packed, uint32_t dtype, const unsigned char *bytes)
{
    static const float one = 1;
    unsigned char out[MAX_BYTES];
    float *values;

    if (frit_tensor_status(packed))
        fail_msg("%s", frit_tensor_error(packed));
    assert_int_equal(frit_tensor_dtype(packed), dtype);
    assert_int_equal(frit_tensor_dims(packed).dim[1], COLUMNS);
    assert_int_equal(frit_read(packed, out, bytes_of(dtype), NULL), FRIT_OK);
    assert_memory_equal(out, bytes, bytes_of(dtype));
    values = rig_read(
        frit_dequantize(frit_take(packed), frit_take(rig_tensor(rig, FRIT_RANK0, &one)), NULL));
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        const double want = element(dtype, bytes, i);

        if (isnan(want) ? !isnan(values[i]) : (double)values[i] != want)
            fail_msg("%s: element %d is %g, not %g", frit_dtype_name(dtype), i, (double)values[i],
                     want);
    }
    free(values);
}

static void test_memory(void **unused)
{
    static _Alignas(64) unsigned char bytes[MAX_BYTES + 1];
    const frit_dims dims = FRIT_SHAPE(ROWS, COLUMNS);
    struct rig rig;

    (void)unused;
    open_device(&rig);
    fill(bytes);
    for (int t = 0; t < N_TYPES; t++) {
        const int64_t n = (int64_t)bytes_of(types[t]);
        frit_tensor *x = frit_from_host(rig.dev, types[t], dims, bytes, (uint64_t)n), *u, *column;

        expect(&rig, x, types[t], bytes);
        x = frit_from_host(rig.dev, types[t], dims, bytes, (uint64_t)n);
        assert_int_equal(frit_write(x, bytes + 1, (uint64_t)n, NULL), FRIT_OK);
        expect(&rig, x, types[t], bytes + 1);
        expect(&rig, frit_wrap_host(rig.dev, types[t], dims, bytes, (uint64_t)n, NULL, NULL),
               types[t], bytes);
        /* bytes; signed; with an offset; not dense; not computed yet */
        u = frit_from_host(rig.dev, FRIT_U8, FRIT_SHAPE(n), bytes, (uint64_t)n);
        expect(&rig, frit_as_packed(u, types[t], dims), types[t], bytes);
        expect(&rig, frit_as_packed(frit_take(frit_cast(frit_take(u), FRIT_I8)), types[t], dims),
               types[t], bytes);
        u = frit_from_host(rig.dev, FRIT_U8, FRIT_SHAPE(n + 1), bytes, (uint64_t)n + 1);
        expect(&rig,
               frit_as_packed(frit_take(frit_slice(frit_take(u), FRIT_SLICES({1, n + 1, 1}))),
                              types[t], dims),
               types[t], bytes + 1);
        u = frit_from_host(rig.dev, FRIT_U8, FRIT_SHAPE(n), bytes, (uint64_t)n);
        column = frit_stack((frit_tensor *[]){u, u}, 2, 1);
        frit_release(u);
        column = frit_slice(frit_take(column), FRIT_SLICES({0, n, 1}, {1, 2, 1}));
        expect(&rig, frit_as_packed(frit_take(column), types[t], dims), types[t], bytes);
    }
    rig_close(&rig);
}

static void test_files(void **unused)
{
    const frit_dims dims = FRIT_SHAPE(ROWS, COLUMNS);
    unsigned char bytes[MAX_BYTES];
    frit_err err = {.struct_size = sizeof(err)};
    char npy[64], safe[64];
    struct rig rig;

    (void)unused;
    open_device(&rig);
    fill(bytes);
    snprintf(npy, sizeof(npy), "/tmp/frit-packed-%ld.npy", (long)getpid());
    snprintf(safe, sizeof(safe), "/tmp/frit-packed-%ld.safetensors", (long)getpid());
    for (int t = 0; t < N_TYPES; t++) {
        frit_tensor *x = frit_from_host(rig.dev, types[t], dims, bytes, bytes_of(types[t])), *y;
        frit_safetensors *file;

        if (frit_save_npy(x, npy, &err) ||
            frit_save_safetensors(&(frit_named_tensor){frit_take(x), "x"}, 1, NULL, 0, safe, &err))
            fail_msg("%s", err.text);
        y = frit_load_npy(rig.dev, npy);
        assert_int_equal(frit_tensor_dtype(y), FRIT_U8);
        expect(&rig, frit_as_packed(frit_take(y), types[t], dims), types[t], bytes);
        assert_int_equal(frit_load_safetensors(safe, &file, &err), FRIT_OK);
        y = frit_safetensors_tensor(file, rig.dev, "x");
        if (frit_tensor_dtype(y) == FRIT_U8)
            y = frit_as_packed(frit_take(y), types[t], dims);
        expect(&rig, y, types[t], bytes);
        frit_safetensors_free(file);
    }
    unlink(npy);
    unlink(safe);
    rig_close(&rig);
}

static void expect_error(frit_tensor *tensor, const char *text)
{
    assert_int_equal(frit_tensor_status(tensor), FRIT_INVALID);
    assert_string_equal(frit_tensor_error(tensor), text);
    frit_release(tensor);
}

static void test_errors(void **unused)
{
    static const unsigned char bytes[64];
    struct rig rig;
    frit_tensor *u;

    (void)unused;
    open_device(&rig);
    expect_error(frit_from_host(rig.dev, FRIT_Q4, FRIT_SHAPE(3, 5), bytes, 9),
                 "from_host: 9 bytes given, q4[3, 5] has 8");
    u = frit_from_host(rig.dev, FRIT_U8, FRIT_SHAPE(9), bytes, 9);
    expect_error(frit_as_packed(u, FRIT_Q4, FRIT_SHAPE(3, 5)),
                 "as_packed: the tensor has 9 bytes, q4[3, 5] has 8");
    expect_error(frit_as_packed(u, FRIT_I8, FRIT_SHAPE(9)), "as_packed: i8 is not a packed type");
    expect_error(frit_as_packed(u, 99, FRIT_SHAPE(9)),
                 "as_packed: 99 is not an element type that tensors can be made of");
    expect_error(frit_as_packed(u, FRIT_Q8, FRIT_SHAPE(-9)),
                 "as_packed: dim 0 has the negative extent -9");
    expect_error(
        frit_as_packed(frit_take(frit_cast(frit_take(u), FRIT_I16)), FRIT_Q4, FRIT_SHAPE(6, 6)),
        "as_packed: the elements have type i16, it must be one of 8 bits");
    u = frit_as_packed(
        frit_take(
            frit_reshape(frit_take(rig_tensor(&rig, FRIT_SHAPE(1), (float[]){1})), FRIT_SHAPE(7))),
        FRIT_Q4, FRIT_SHAPE(2));
    assert_int_equal(frit_tensor_status(u), FRIT_INVALID);
    frit_release(u);
    frit_sync(rig.dev, NULL);
    rig_close(&rig);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_errors),
    };

    staging = argc > 1 && strcmp(argv[1], "_staging") == 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
