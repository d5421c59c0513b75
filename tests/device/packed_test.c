/* SPDX-License-Identifier: Apache-2.0 */
/* Packed values from the program's own bytes: memory, NumPy and safetensors files.
 * Argument `_staging`: of vulkan, without pointers to device memory. */
#include "device/rig.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const uint32_t types[] = {FRIT_F8E4M3, FRIT_F8E5M2, FRIT_F8E4M3FNUZ, FRIT_F8E5M2FNUZ,
                                 FRIT_F4E2M1, FRIT_Q8,     FRIT_Q4,         FRIT_Q2};
enum { N_TYPES = sizeof(types) / sizeof(types[0]) };

enum { ODD = 8 };
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

/* Odd sizes, and many rows on a GPU, ODD of the products at most, are not computed with packed
 * weights: their ops run one by one.
 */
static void close_device(struct rig *rig)
{
    frit_err err = {.struct_size = sizeof(err)};
    frit_stats stats;

    if (frit_sync_all(rig->dev, &err))
        fail_msg("%s", err.text);
    stats = rig_stats(rig);
    assert_int_equal(stats.fallbacks_device, 0);
    assert_in_range(stats.fallbacks_ops, 0, ODD);
    assert_int_equal(stats.buffers_now, 0);
    frit_device_close(rig->dev);
    frit_host_close(rig->host);
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
    const int bias = frit_dtype_bias(info), fraction = size & ((1 << info.fraction) - 1);
    double value;

    if (!info.exponent)
        return bits - (sign << info.bits);
    if (info.specials == FRIT_SPECIALS_FNUZ && sign && !size)
        return (double)NAN;
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

/* Bytes that are not dense, read as a type of 8 bits, and back. */
static void test_bits(void **unused)
{
    const frit_dims dims = FRIT_SHAPE(ROWS, COLUMNS);
    unsigned char bytes[MAX_BYTES], out[MAX_BYTES];
    struct rig rig;

    (void)unused;
    open_device(&rig);
    fill(bytes);
    for (int t = 0; t < N_TYPES; t++) {
        frit_tensor *u, *pair, *packed;

        if (frit_dtype_bits(types[t]) != 8)
            continue;
        u = frit_from_host(rig.dev, FRIT_U8, dims, bytes, sizeof(bytes));
        pair = frit_stack((frit_tensor *[]){u, u}, 2, 2);
        frit_release(u);
        pair = frit_slice(frit_take(pair), FRIT_SLICES({0}, {0}, {1, 2, 1}));
        packed = frit_bitcast(frit_take(frit_squeeze(frit_take(pair))), types[t]);
        u = frit_bitcast(packed, FRIT_U8);
        assert_int_equal(frit_read(frit_take(u), out, sizeof(out), NULL), FRIT_OK);
        assert_memory_equal(out, bytes, sizeof(out));
        expect(&rig, packed, types[t], bytes);
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

/* ---- products ---- */

/* x [m, k] times w: [k, n], or `turned` [n, k]; blocks of w's dims; rank 0: one scale. */
struct product {
    int64_t m, n, k;
    bool turned;
    int64_t block[2];
};

static const struct product products[] = {
    {1, 64, 128, false, {32, 1}},  {1, 64, 128, true, {1, 32}},  {3, 40, 96, false, {32, 1}},
    {5, 40, 96, true, {1, 32}},    {9, 24, 64, false, {1, 8}},   {2, 24, 64, true, {8, 64}},
    {33, 48, 64, false, {16, 16}}, {33, 48, 64, true, {16, 16}}, {4, 32, 640, false, {640, 1}},
    {4, 32, 640, true, {1, 640}},  {2, 20, 320, true, {0, 0}},   {2, 20, 320, false, {0, 0}},
    {3, 7, 45, false, {32, 1}},    {3, 7, 45, true, {1, 32}},    {1, 9, 33, true, {4, 7}},
    {7, 1, 64, false, {32, 1}},    {7, 1, 64, true, {1, 32}},    {1, 4, 2048, true, {1, 128}}};
enum { N_PRODUCTS = sizeof(products) / sizeof(products[0]) };

struct packed_weights {
    unsigned char *bytes;
    float *scales;
    int64_t dims[2], blocks[2];
};

static void make_weights(const struct product *p, uint32_t dtype, struct packed_weights *out)
{
    int64_t bytes, n;

    *out = (struct packed_weights){.dims = {p->turned ? p->n : p->k, p->turned ? p->k : p->n}};
    for (int d = 0; d < 2; d++)
        out->blocks[d] = p->block[d] ? (out->dims[d] + p->block[d] - 1) / p->block[d] : 1;
    bytes = (int64_t)frit_storage_bytes(dtype, out->dims[0] * out->dims[1]);
    out->bytes = malloc((size_t)bytes);
    assert_non_null(out->bytes);
    for (int64_t i = 0; i < bytes; i++) { /* no NaN among those of 8 bits */
        out->bytes[i] = (unsigned char)(i * 37 + i / 11 * 5 + p->m) & 0xbb;
        out->bytes[i] |= out->bytes[i] == 0x80;
    }
    n = out->blocks[0] * out->blocks[1];
    out->scales = malloc((size_t)n * sizeof(float));
    assert_non_null(out->scales);
    for (int64_t i = 0; i < n; i++)
        out->scales[i] = (float)(i % 7 + 1) / 16;
}

static double weight(const struct product *p, const struct packed_weights *w, uint32_t dtype,
                     int64_t k, int64_t n)
{
    const int64_t row = p->turned ? n : k, column = p->turned ? k : n;
    const int64_t block = p->block[0] ? row / p->block[0] * w->blocks[1] + column / p->block[1] : 0;

    return element(dtype, w->bytes, (int)(row * w->dims[1] + column)) * (double)w->scales[block];
}

static frit_tensor *multiply(struct rig *rig, const struct product *p, uint32_t dtype,
                             const struct packed_weights *w, frit_tensor *x, frit_tensor *bias)
{
    const bool is_one = !p->block[0];
    const frit_dims dims = FRIT_SHAPE(w->dims[0], w->dims[1]);
    const frit_dims blocks = is_one ? FRIT_RANK0 : FRIT_SHAPE(w->blocks[0], w->blocks[1]);
    const frit_dims block = is_one ? FRIT_RANK0 : FRIT_SHAPE(p->block[0], p->block[1]);
    frit_tensor *packed = frit_from_host(rig->dev, dtype, dims, w->bytes,
                                         frit_storage_bytes(dtype, w->dims[0] * w->dims[1]));
    frit_tensor *scales = rig_tensor(rig, blocks, w->scales), *y;

    y = frit_dequantize(frit_take(packed), frit_take(scales), NULL, .block = block);
    if (p->turned)
        y = frit_transpose(frit_take(y), 0, 1);
    y = frit_matmul(x, frit_take(y));
    return frit_relu(frit_take(frit_add(frit_take(y), bias)));
}

static void check_product(struct rig *rig, const struct product *p, uint32_t dtype)
{
    struct packed_weights w;
    float *x = rig_numbers((uint64_t)(p->m * p->k)), *bias = rig_numbers((uint64_t)p->n), *y;
    frit_tensor *tx = rig_tensor(rig, FRIT_SHAPE(p->m, p->k), x);
    frit_tensor *tb = rig_tensor(rig, FRIT_SHAPE(p->n), bias);

    make_weights(p, dtype, &w);
    y = rig_read(multiply(rig, p, dtype, &w, tx, tb));
    for (int64_t i = 0; i < p->m * p->n; i++) {
        double sum = 0, size = 0;

        for (int64_t k = 0; k < p->k; k++) {
            const double product =
                (double)x[i / p->n * p->k + k] * weight(p, &w, dtype, k, i % p->n);

            sum += product;
            size += fabs(product);
        }
        sum += (double)bias[i % p->n];
        if (!rig_near((double)y[i], sum > 0 ? sum : 0, size, 16))
            fail_msg("%s, product %d: element %lld is %g, not %g", frit_dtype_name(dtype),
                     (int)(p - products), (long long)i, (double)y[i], sum);
    }
    frit_release(tx);
    frit_release(tb);
    free(w.bytes);
    free(w.scales);
    free(x);
    free(bias);
    free(y);
}

/* Weights whose lines are read backwards: products take packed operands as they lie in memory. */
static void test_bits_of_flipped_weights(void **unused)
{
    enum { K = 64, N = 128 };
    static unsigned char there[K * N], back[K * N];
    const frit_dims dims = FRIT_SHAPE(K, N);
    float *x = rig_numbers(K), *y[2] = {NULL};
    struct rig rig;

    (void)unused;
    open_device(&rig);
    for (int i = 0; i < K * N; i++)
        there[i] = back[i / N * N + N - 1 - i % N] = (unsigned char)(i * 37) & 0x3b;
    for (int turn = 0; turn < 8; turn++) { /* each several times, until a plan is there */
        const float one = 1;
        const int k = turn % 2;
        frit_tensor *w = frit_from_host(rig.dev, FRIT_U8, dims, k ? back : there, sizeof(there));

        if (k)
            w = frit_flip(frit_take(w), .axes = FRIT_AXES(1));
        w = frit_bitcast(frit_take(w), FRIT_F8E4M3);
        w = frit_dequantize(frit_take(w), frit_take(rig_tensor(&rig, FRIT_RANK0, &one)), NULL);
        free(y[k]);
        y[k] =
            rig_read(frit_matmul(frit_take(rig_tensor(&rig, FRIT_SHAPE(1, K), x)), frit_take(w)));
    }
    for (int i = 0; i < N; i++)
        assert_true(fabsf(y[0][i] - y[1][i]) <= 1e-4F);
    free(x);
    free(y[0]);
    free(y[1]);
    rig_close(&rig);
}

/* Sizes in both orders, each in a device of its own; of a device that compiles slowly, some, of q4.
 */
static void test_products(void **unused)
{
    const bool is_slow = getenv("FRIT_TEST_DEVICE") != NULL && !getenv("FRIT_TEST_LONG");
    const int step = is_slow ? 8 : rig_is_short() ? 4 : 1;

    (void)unused;
    for (int t = 0; t < N_TYPES && !staging; t++)
        for (int order = 0; order < (types[t] == FRIT_Q4 ? 2 : 1); order++) {
            struct rig rig;

            if (is_slow && types[t] != FRIT_Q4)
                continue;
            open_device(&rig);
            for (int i = 0; i < N_PRODUCTS; i += step)
                check_product(&rig, &products[order ? N_PRODUCTS - 1 - i : i], types[t]);
            close_device(&rig);
        }
}

/* ---- errors ---- */

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
        cmocka_unit_test(test_bits),
        cmocka_unit_test(test_bits_of_flipped_weights),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_products),
    };

    staging = argc > 1 && strcmp(argv[1], "_staging") == 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
