/* SPDX-License-Identifier: Apache-2.0 */
/* Products, convolutions and attention of operands whose elements lie up to 2^32 apart: their
 * offsets, and what 32 bits count of elements and of bytes, end within a view of two rows.  The
 * memory between is never touched, so no machine needs to have it.  Against the same numbers close
 * together on reference:0.
 *
 * FRIT_TEST_LONG=1: every function in every type and distance, and operands and results that do
 * have more than 2^31 elements, for which 3 GiB are needed. */
#include "device/rig.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { ROWS = 2, COLS = 20 };

/* From the first element of a view to its last: next to what 31 and 32 bits hold as elements, as
 * bytes of 16 and 32 bits, and to where kernels keep a margin. */
static const int64_t spans[] = {(1ll << 29) + 1, (1ll << 30) - 1,     (1ll << 31) - 70000,
                                (1ll << 31) - 2, (1ll << 31) - 1,     1ll << 31,
                                (1ll << 31) + 1, (1ll << 32) - 70000, (1ll << 32) + 5};

enum { N_SPANS = sizeof(spans) / sizeof(spans[0]) };

/* ---- numbers ---- */

static int number_at(int seed, int i)
{
    return (i * 7 + i / 11 * 3 + seed * 5) % 5 - 2;
}

/* A whole number between -2 and 2 as an element of this type. */
static void put_number(char *to, uint32_t dtype, int number)
{
    static const uint16_t halves[] = {0xc000, 0xbc00, 0, 0x3c00, 0x4000};
    const float single = (float)number;
    uint32_t bits;
    uint16_t upper;

    memcpy(&bits, &single, sizeof(bits));
    upper = (uint16_t)(bits >> 16);
    if (dtype == FRIT_F32)
        memcpy(to, &single, sizeof(single));
    else if (dtype == FRIT_F16)
        memcpy(to, &halves[number + 2], sizeof(halves[0]));
    else if (dtype == FRIT_BF16)
        memcpy(to, &upper, sizeof(upper));
    else
        *to = (char)number;
}

static uint64_t bytes_of(uint32_t dtype, int64_t count)
{
    return frit_storage_bytes(dtype, count);
}

static frit_tensor *dense(frit_device *device, uint32_t dtype, int seed, int64_t rows)
{
    char data[COLS * COLS * sizeof(float)];

    for (int i = 0; i < rows * COLS; i++)
        put_number(data + bytes_of(dtype, i), dtype, number_at(seed, i));
    return frit_from_host(device, dtype, FRIT_SHAPE(rows, COLS), data,
                          bytes_of(dtype, rows * COLS));
}

/* ---- views over memory that is not there ---- */

struct apart {
    void *memory;
    uint64_t bytes;
    frit_tensor *view; /* [ROWS, COLS] */
};

static void replace(frit_tensor **to, frit_tensor *by)
{
    frit_release(*to);
    *to = by;
}

static struct apart apart_make(frit_device *device, uint32_t dtype, int64_t span)
{
    const int64_t stride = span - (COLS - 1);
    const frit_range first = {0, COLS, 1};
    struct apart a = {.bytes = bytes_of(dtype, ROWS * stride)};

    a.memory = mmap(NULL, a.bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_true(a.memory != MAP_FAILED);
    for (int i = 0; i < ROWS * COLS; i++)
        put_number((char *)a.memory + bytes_of(dtype, i / COLS * stride + i % COLS), dtype,
                   number_at(0, i));
    a.view = frit_wrap_host(device, dtype, FRIT_SHAPE(ROWS, stride), a.memory, a.bytes, NULL, NULL);
    replace(&a.view, frit_slice(a.view, FRIT_SLICES({0}, first)));
    return a;
}

/* ---- functions of x [ROWS, COLS] and y [COLS, COLS] ---- */

#define FIRST(n) \
    {            \
        0, n, 1  \
    }

static frit_tensor *turned(frit_tensor *t)
{
    return frit_transpose(t, 0, 1);
}

static frit_tensor *rows_times(frit_tensor *x, frit_tensor *y)
{
    return frit_matmul(x, y);
}

static frit_tensor *sum_over_rows(frit_tensor *x, frit_tensor *y)
{
    return frit_matmul(turned(x), frit_slice(y, FRIT_SLICES(FIRST(ROWS), {0})));
}

static frit_tensor *times_columns(frit_tensor *x, frit_tensor *y)
{
    return frit_matmul(y, turned(x));
}

static frit_tensor *times_rows(frit_tensor *x, frit_tensor *y)
{
    return frit_matmul(frit_slice(y, FRIT_SLICES({0}, FIRST(ROWS))), x);
}

static frit_tensor *backwards(frit_tensor *x, frit_tensor *y)
{
    return frit_matmul(frit_flip(x, .axes = FRIT_AXES(0)), y);
}

static frit_tensor *batches(frit_tensor *x, frit_tensor *y)
{
    return frit_matmul(frit_reshape(x, FRIT_SHAPE(ROWS, 4, 5)),
                       frit_slice(y, FRIT_SLICES(FIRST(5), {0})));
}

static frit_tensor *times_batches(frit_tensor *x, frit_tensor *y)
{
    return frit_matmul(frit_slice(y, FRIT_SLICES({0}, FIRST(4))),
                       frit_reshape(x, FRIT_SHAPE(ROWS, 4, 5)));
}

static frit_tensor *added_after(frit_tensor *x, frit_tensor *y)
{
    return frit_add(frit_matmul(frit_slice(y, FRIT_SLICES(FIRST(ROWS), {0})), y), x);
}

static frit_tensor *scaled_before(frit_tensor *x, frit_tensor *y)
{
    return frit_matmul(frit_add(x, x), y);
}

static frit_tensor *one_column(frit_tensor *x, frit_tensor *y)
{
    return frit_matmul(x, frit_slice(y, FRIT_SLICES({0}, FIRST(1))));
}

static frit_tensor *conv_images(frit_tensor *x, frit_tensor *y)
{
    frit_tensor *w =
        frit_reshape(frit_slice(y, FRIT_SLICES(FIRST(4), FIRST(6))), FRIT_SHAPE(4, 2, 3));

    return frit_conv(frit_reshape(x, FRIT_SHAPE(ROWS, 2, 10)), w, NULL, .padding = {1});
}

static frit_tensor *conv_channels(frit_tensor *x, frit_tensor *y)
{
    frit_tensor *w =
        frit_reshape(frit_slice(y, FRIT_SLICES(FIRST(9), FIRST(18))), FRIT_SHAPE(9, ROWS, 3, 3));

    return frit_conv(frit_reshape(x, FRIT_SHAPE(1, ROWS, 4, 5)), w, NULL, .padding = {1, 1});
}

static frit_tensor *conv_lines(frit_tensor *x, frit_tensor *y)
{
    frit_tensor *w =
        frit_reshape(frit_slice(y, FRIT_SLICES(FIRST(3), FIRST(6))), FRIT_SHAPE(3, 1, 2, 3));

    return frit_conv(frit_reshape(x, FRIT_SHAPE(1, 1, ROWS, COLS)), w, NULL, .padding = {1, 0});
}

static frit_tensor *conv_weights(frit_tensor *x, frit_tensor *y)
{
    frit_tensor *images = frit_reshape(y, FRIT_SHAPE(5, 4, COLS));

    return frit_conv(images, frit_reshape(x, FRIT_SHAPE(ROWS, 4, 5)), NULL, .padding = {2});
}

/* t [n, COLS] with a batch and a head of one. */
static frit_tensor *as_head(frit_tensor *t, int64_t n)
{
    return frit_reshape(t, FRIT_SHAPE(1, 1, n, COLS));
}

static frit_tensor *attention_queries(frit_tensor *x, frit_tensor *y)
{
    return frit_attention(as_head(x, ROWS), as_head(y, COLS), as_head(y, COLS), NULL, NULL);
}

static frit_tensor *attention_keys(frit_tensor *x, frit_tensor *y)
{
    return frit_attention(as_head(y, COLS), as_head(x, ROWS), as_head(x, ROWS), NULL, NULL);
}

static frit_tensor *attention_heads(frit_tensor *x, frit_tensor *y)
{
    frit_tensor *h = frit_reshape(x, FRIT_SHAPE(1, ROWS, 4, 5));

    (void)y;
    return frit_attention(h, h, h, NULL, NULL, .causal = 1);
}

static frit_tensor *attention_bias(frit_tensor *x, frit_tensor *y)
{
    frit_tensor *q = as_head(frit_slice(y, FRIT_SLICES(FIRST(ROWS), {0})), ROWS);

    return frit_attention(q, as_head(y, COLS), as_head(y, COLS), NULL, x);
}

static const struct function {
    const char *name;
    frit_tensor *(*of)(frit_tensor *x, frit_tensor *y);
    bool is_real; /* of floats alone */
} functions[] = {
    {"rows times", rows_times, false},
    {"sum over rows", sum_over_rows, false},
    {"times columns", times_columns, false},
    {"times rows", times_rows, false},
    {"backwards", backwards, false},
    {"batches", batches, false},
    {"times batches", times_batches, false},
    {"added after", added_after, false},
    {"scaled before", scaled_before, false},
    {"one column", one_column, false},
    {"conv, images", conv_images, true},
    {"conv, channels", conv_channels, true},
    {"conv, lines", conv_lines, true},
    {"conv, weights", conv_weights, true},
    {"attention, queries", attention_queries, true},
    {"attention, keys", attention_keys, true},
    {"attention, heads", attention_heads, true},
    {"attention, bias", attention_bias, true},
};

enum { N_FUNCTIONS = sizeof(functions) / sizeof(functions[0]) };

static float *values_of(frit_device *device, const struct function *f, frit_tensor *x,
                        frit_tensor *y, uint64_t *count)
{
    const frit_scope scope = frit_scope_begin(device);
    frit_tensor *result = frit_keep(frit_cast(f->of(x, y), FRIT_F32));
    frit_dims dims;

    frit_scope_end(scope);
    dims = frit_tensor_dims(result);
    *count = 1;
    for (int64_t d = 0; d < dims.rank; d++)
        *count *= (uint64_t)dims.dim[d];
    return rig_read(result);
}

static const struct type {
    uint32_t dtype;
    double tolerance;
} types[] = {{FRIT_F32, 0x1p-20}, {FRIT_F16, 0x1p-9}, {FRIT_BF16, 0x1p-6}, {FRIT_I8, 0}};

enum { N_TYPES = sizeof(types) / sizeof(types[0]) };

static void check(struct rig *rig, frit_device *reference, const struct function *f,
                  const struct type *type, int64_t span)
{
    struct apart a = apart_make(rig->dev, type->dtype, span);
    frit_tensor *y = dense(rig->dev, type->dtype, 1, COLS);
    frit_tensor *near_x = dense(reference, type->dtype, 0, ROWS);
    frit_tensor *near_y = dense(reference, type->dtype, 1, COLS);
    uint64_t n, n_want;
    float *got = values_of(rig->dev, f, a.view, y, &n);
    float *want = values_of(reference, f, near_x, near_y, &n_want);

    assert_int_equal(n, n_want);
    for (uint64_t i = 0; i < n; i++)
        if (!(fabs((double)got[i] - (double)want[i]) <=
              type->tolerance * fmax(1, fabs((double)want[i]))))
            fail_msg("%s of type %u over %lld elements: element %llu is %g, not %g", f->name,
                     type->dtype, (long long)span, (unsigned long long)i, (double)got[i],
                     (double)want[i]);
    free(got);
    free(want);
    frit_release(a.view);
    frit_release(y);
    frit_release(near_x);
    frit_release(near_y);
    assert_int_equal(frit_sync_all(rig->dev, NULL), FRIT_OK);
    munmap(a.memory, a.bytes);
}

/* Each function over each distance, in one type; with FRIT_TEST_LONG=1 in all. */
static void run_tier(const char *tier, int every)
{
    const frit_setting settings[] = {{"plugin.cpu", "option.tier", tier}};
    const int all = N_FUNCTIONS * N_SPANS;
    frit_err err = {.struct_size = sizeof(err)};
    frit_device *reference;
    struct rig rig;

    rig_open_with(&rig, settings, 1);
    assert_int_equal(frit_device_open(rig.host, "reference:0", &reference, &err), FRIT_OK);
    for (int i = 0; i < all * N_TYPES; i++) {
        const struct function *f = &functions[i % N_FUNCTIONS];
        const int s = i / N_FUNCTIONS % N_SPANS, t = i / all;

        if ((i % N_FUNCTIONS + s + t) % every || (f->is_real && types[t].dtype == FRIT_I8))
            continue;
        check(&rig, reference, f, &types[t], spans[s]);
    }
    frit_device_close(reference);
    assert_true(rig_stats(&rig).bytes_adopted > 0);
    rig_close(&rig);
}

static void test_interpreted(void **state)
{
    (void)state;
    run_tier("0", getenv("FRIT_TEST_LONG") ? 1 : 7);
}

static void test_compiled(void **state)
{
    (void)state;
    run_tier("1", getenv("FRIT_TEST_LONG") ? 1 : 29);
}

/* ---- refusals ---- */

/* A result that no memory holds fails with its size; the device goes on. */
static void test_refused(void **state)
{
    const int64_t many = 1ll << 20;
    const uint64_t bytes = (uint64_t)(many + 1) * (uint64_t)many * sizeof(float);
    frit_err err = {.struct_size = sizeof(err)};
    frit_tensor *a, *b, *turned_b, *y;
    struct rig rig;
    char size[32];
    float *got;

    (void)state;
    rig_open(&rig);
    a = frit_full(rig.dev, FRIT_F32, FRIT_SHAPE(many + 1, 1), 3);
    b = frit_full(rig.dev, FRIT_F32, FRIT_SHAPE(1, many), 2);
    y = frit_matmul(a, b);
    assert_int_not_equal(frit_sync(rig.dev, &err), FRIT_OK);
    snprintf(size, sizeof(size), "%llu", (unsigned long long)bytes / 1000); /* and a tail */
    if (!strstr(err.text, size) || !strstr(err.text, " bytes") || !strstr(err.text, "matmul"))
        fail_msg("it says '%s', without %s thousand bytes", err.text, size);
    frit_release(y);
    turned_b = frit_transpose(b, 0, 1);
    got = rig_read(frit_matmul(b, turned_b));
    assert_true(got[0] == 4 * (float)many);
    frit_release(turned_b);
    frit_release(a);
    frit_release(b);
    free(got);
    rig_close(&rig);
}

/* ---- operands that have as many elements ---- */

/* Zeros but for what the test puts there; only what is read is paged in, and shares one page. */
static struct apart zeros(frit_device *device, uint32_t dtype, frit_dims dims,
                          const int64_t *places, int n_places)
{
    int64_t count = 1;
    struct apart a;

    for (int64_t d = 0; d < dims.rank; d++)
        count *= dims.dim[d];
    a.bytes = bytes_of(dtype, count);
    a.memory = mmap(NULL, a.bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_true(a.memory != MAP_FAILED);
    for (int i = 0; i < n_places; i++)
        put_number((char *)a.memory + bytes_of(dtype, places[i]), dtype, 2);
    a.view = frit_wrap_host(device, dtype, dims, a.memory, a.bytes, NULL, NULL);
    return a;
}

static void zeros_free(struct rig *rig, struct apart *a)
{
    frit_release(a->view);
    assert_int_equal(frit_sync_all(rig->dev, NULL), FRIT_OK);
    munmap(a->memory, a->bytes);
}

/* Elements `places` of `y` are `wanted`, and no others. */
static void check_places(frit_tensor *y, const int64_t *places, int n_places, float wanted)
{
    const int64_t count = frit_tensor_dims(y).dim[0];
    float *got = rig_read(frit_cast(y, FRIT_F32));
    int found = 0;

    frit_release(y);
    for (int64_t i = 0; i < count; i++)
        found += got[i] != 0;
    for (int i = 0; i < n_places; i++)
        if (got[places[i]] != wanted)
            fail_msg("element %lld is %g, not %g", (long long)places[i], (double)got[places[i]],
                     (double)wanted);
    assert_int_equal(found, n_places);
    free(got);
}

enum { TALL = (1 << 16) + 3, WIDE = 1 << 15 }; /* 2^31 elements and three rows */

static void test_many_elements(void **state)
{
    static const int64_t rows[] = {0, 5, TALL - 4, TALL - 3, TALL - 1};
    int64_t places[5];
    struct rig rig;
    struct apart a;
    frit_tensor *x;

    (void)state;
    if (!getenv("FRIT_TEST_LONG"))
        skip();
    rig_open(&rig);
    for (int i = 0; i < 5; i++)
        places[i] = rows[i] * WIDE + (i % 2 ? WIDE - 1 : 7);
    a = zeros(rig.dev, FRIT_I8, FRIT_SHAPE(TALL, WIDE), places, 5);
    x = frit_full(rig.dev, FRIT_I8, FRIT_SHAPE(WIDE, 1), 3);
    check_places(frit_matmul(a.view, x), rows, 5, 6);
    frit_release(x);
    zeros_free(&rig, &a);
    rig_close(&rig);
}

/* Windows of 3 x 3, 64 apart, of an image of 4 GiB. */
static void test_large_image(void **state)
{
    enum { APART = 64, DOWN = (TALL - 3) / APART + 1, ACROSS = (WIDE - 3) / APART + 1 };
    static const int64_t windows[][2] = {{0, 0}, {1, ACROSS - 1}, {DOWN - 2, 3}, {DOWN - 1, 9}};
    int64_t places[4], results[4];
    struct rig rig;
    struct apart a;
    frit_tensor *w;

    (void)state;
    if (!getenv("FRIT_TEST_LONG"))
        skip();
    rig_open(&rig);
    for (int i = 0; i < 4; i++) {
        places[i] = (windows[i][0] * APART + 2) * WIDE + windows[i][1] * APART + i % 3;
        results[i] = windows[i][0] * ACROSS + windows[i][1];
    }
    a = zeros(rig.dev, FRIT_F16, FRIT_SHAPE(1, 1, TALL, WIDE), places, 4);
    w = frit_full(rig.dev, FRIT_F16, FRIT_SHAPE(1, 1, 3, 3), 0.5);
    check_places(frit_reshape(frit_take(frit_conv(a.view, w, NULL, .stride = {APART, APART})),
                              FRIT_SHAPE((int64_t)DOWN * ACROSS)),
                 results, 4, 1);
    frit_release(w);
    zeros_free(&rig, &a);
    rig_close(&rig);
}

/* One query over 2^25 keys, of which the last alone is not 0, and takes all the weight. */
static void test_many_keys(void **state)
{
    enum { SIZE = 64, KEYS = (1 << 25) + 3 };
    int64_t places[SIZE], all[SIZE];
    struct rig rig;
    struct apart a;
    frit_tensor *q;

    (void)state;
    if (!getenv("FRIT_TEST_LONG"))
        skip();
    rig_open(&rig);
    for (int i = 0; i < SIZE; i++) {
        places[i] = (KEYS - 1) * (int64_t)SIZE + i;
        all[i] = i;
    }
    a = zeros(rig.dev, FRIT_F16, FRIT_SHAPE(1, 1, KEYS, SIZE), places, SIZE);
    q = frit_full(rig.dev, FRIT_F16, FRIT_SHAPE(1, 1, 1, SIZE), 4);
    check_places(
        frit_reshape(frit_take(frit_attention(q, a.view, a.view, NULL, NULL)), FRIT_SHAPE(SIZE)),
        all, SIZE, 2);
    frit_release(q);
    zeros_free(&rig, &a);
    rig_close(&rig);
}

/* A result of 2 GiB, some of whose rows are read. */
static void test_many_results(void **state)
{
    static const int64_t rows[] = {0, TALL - 4, TALL - 3, TALL - 1};
    struct rig rig;
    frit_tensor *a, *b, *y;
    int8_t *got = malloc(WIDE);

    (void)state;
    if (!getenv("FRIT_TEST_LONG")) {
        free(got);
        skip();
    }
    assert_non_null(got);
    rig_open(&rig);
    a = frit_full(rig.dev, FRIT_I8, FRIT_SHAPE(TALL, 1), 3);
    b = frit_full(rig.dev, FRIT_I8, FRIT_SHAPE(1, WIDE), -5);
    y = frit_matmul(a, b);
    for (int i = 0; i < 4; i++) {
        const frit_range row = {rows[i], rows[i] + 1, 1};
        frit_tensor *one = frit_slice(y, FRIT_SLICES(row, {0}));

        assert_int_equal(frit_read(one, got, WIDE, NULL), FRIT_OK);
        for (int k = 0; k < WIDE; k++)
            assert_int_equal(got[k], -15);
        frit_release(one);
    }
    frit_release(a);
    frit_release(b);
    frit_release(y);
    free(got);
    rig_close(&rig);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_interpreted),  cmocka_unit_test(test_compiled),
        cmocka_unit_test(test_refused),      cmocka_unit_test(test_many_elements),
        cmocka_unit_test(test_large_image),  cmocka_unit_test(test_many_keys),
        cmocka_unit_test(test_many_results),
    };

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
