/* SPDX-License-Identifier: Apache-2.0 */
/* The cpu gives the same bits interpreted and compiled, with stores through the caches and around
 * them, for each instruction set of the machine: elementwise ops and rows of several types.  Of the
 * pairs of a type and a work, half are compiled with stores through the caches and the others with
 * stores around them, the other way round for the next instruction set; a third of that with the
 * address sanitizer, since most of the time is LLVM's; all pairs both ways with FRIT_TEST_LONG=1.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"

#include <frit/frit.h>

enum { ROWS = 67, COLUMNS = 1031, COUNT = ROWS * COLUMNS, WHOLE = 1024 };

static frit_tensor *curves(frit_tensor *x, frit_tensor *y)
{
    frit_tensor *t = frit_add(frit_tanh(x), frit_erf(y));

    t = frit_mul(t, frit_exp(frit_neg(x)));
    return frit_div(frit_sub(t, frit_sin(y)), frit_add_f(frit_abs(frit_log(frit_abs(x))), 0.5));
}

static frit_tensor *corners(frit_tensor *x, frit_tensor *y)
{
    frit_tensor *t = frit_sqrt(x), *u = frit_div(y, frit_floor(x)); /* NaN, infinities, zeros */

    t = frit_maximum(t, frit_rem(u, y));
    return frit_where(frit_lt(t, u), frit_minimum(t, x), frit_pow(frit_abs(x), y));
}

static frit_tensor *integers(frit_tensor *x, frit_tensor *y)
{
    frit_tensor *t = frit_add(frit_mul(x, x), frit_mul(y, x));

    return frit_sub(frit_maximum(t, frit_neg(y)), frit_rem(t, frit_add_f(frit_abs(y), 1)));
}

static frit_tensor *softmax(frit_tensor *x, frit_tensor *y)
{
    frit_tensor *e = frit_exp(frit_sub(x, frit_max(x, .axes = FRIT_AXES(1), .keep = 1)));

    e = frit_div(e, frit_sum(e, .axes = FRIT_AXES(1), .keep = 1));
    return frit_mul(e, y);
}

/* Rows without a tail, of which nothing else is stored: a group leaves them to the next one. */
static frit_tensor *softmax_whole(frit_tensor *x, frit_tensor *y)
{
    frit_tensor *e, *sum;

    (void)y;
    x = frit_slice(x, FRIT_SLICES({0, ROWS, 1}, {0, WHOLE, 1}));
    e = frit_sub(x, frit_take(frit_max(x, .axes = FRIT_AXES(1), .keep = 1)));
    e = frit_exp(frit_take(e));
    sum = frit_sum(e, .axes = FRIT_AXES(1), .keep = 1);
    return frit_div(frit_take(e), frit_take(sum));
}

static frit_tensor *norm(frit_tensor *x, frit_tensor *y)
{
    frit_tensor *s = frit_sum(frit_mul(x, x), .axes = FRIT_AXES(1), .keep = 1);

    return frit_mul(frit_div(x, frit_sqrt(frit_add_f(s, 1))), y);
}

static frit_tensor *sum_all(frit_tensor *x, frit_tensor *y)
{
    return frit_sum(frit_mul(x, y), .axes = FRIT_AXES(0, 1));
}

static frit_tensor *sum_columns(frit_tensor *x, frit_tensor *y)
{
    return frit_sum(frit_sub(x, y), .axes = FRIT_AXES(0));
}

static frit_tensor *places(frit_tensor *x, frit_tensor *y)
{
    return frit_argmax(frit_add(x, y), .axes = FRIT_AXES(1));
}

static const struct {
    const char *name;
    frit_tensor *(*make)(frit_tensor *x, frit_tensor *y);
    bool real;   /* of floats alone */
    int64_t n;   /* elements of the result */
    size_t size; /* of one; 0: as the operands' */
    bool apart;  /* its operands are ready, the memory that it gets has other numbers */
} works[] = {
    {"curves", curves, true, COUNT, 0, false},
    {"corners", corners, true, COUNT, 0, false},
    {"integers", integers, false, COUNT, 0, false},
    {"softmax", softmax, true, COUNT, 0, false},
    {"softmax of whole chunks", softmax_whole, true, (int64_t)ROWS *WHOLE, 0, true},
    {"norm", norm, true, COUNT, 0, false},
    {"sum", sum_all, false, 1, 0, false},
    {"columns", sum_columns, false, COLUMNS, 0, false},
    {"places", places, false, ROWS, 8, false},
};
enum { WORKS = sizeof works / sizeof *works };

static const struct {
    uint32_t dtype;
    size_t size;
    bool real;
} types[] = {{FRIT_F32, 4, true}, {FRIT_F64, 8, true},  {FRIT_I32, 4, false}, {FRIT_I64, 8, false},
             {FRIT_F16, 2, true}, {FRIT_BF16, 2, true}, {FRIT_U8, 1, false},  {FRIT_I16, 2, false}};
enum { TYPES = sizeof types / sizeof *types };

struct results {
    char *bytes[TYPES][WORKS]; /* NULL: not computed */
};

/* Which pairs of a type and a work to compute. */
struct pairs {
    int first, every;
};

static const struct pairs all_pairs = {0, 1};

static bool is_computed(struct pairs pairs, int type, int work)
{
    return (type + work) % pairs.every == pairs.first;
}

static size_t size_of(int type, int work)
{
    return (size_t)works[work].n * (works[work].size ? works[work].size : types[type].size);
}

/* The next tensor with this many elements probably gets the memory of this one. */
static void spoil_memory(frit_device *device, uint32_t dtype, int64_t n)
{
    frit_tensor *other = frit_full(device, dtype, FRIT_SHAPE(n), 7);

    if (frit_sync(device, NULL))
        fail_msg("type %u: %s", dtype, frit_tensor_error(other));
    frit_release(other);
}

static void compute(frit_device *device, struct pairs pairs, struct results *out)
{
    for (int t = 0; t < TYPES; t++)
        for (int w = 0; w < WORKS; w++) {
            frit_scope scope = frit_scope_begin(device);
            frit_tensor *x =
                frit_random_uniform(device, FRIT_F32, FRIT_SHAPE(ROWS, COLUMNS), -4, 90);
            frit_tensor *y =
                frit_random_uniform(device, FRIT_F32, FRIT_SHAPE(ROWS, COLUMNS), -9, 9);
            frit_tensor *made;

            if (!is_computed(pairs, t, w)) { /* the random numbers of the others are the same */
                frit_scope_end(scope);
                continue;
            }
            x = frit_cast(types[t].real ? x : frit_abs(x), types[t].dtype);
            y = frit_cast(types[t].real ? y : frit_abs(y), types[t].dtype);
            if (works[w].apart)
                spoil_memory(device, types[t].dtype, works[w].n);
            out->bytes[t][w] = calloc(size_of(t, w), 1);
            assert_non_null(out->bytes[t][w]);
            if (types[t].real || !works[w].real) {
                made = works[w].make(x, y);
                if (frit_read(made, out->bytes[t][w], size_of(t, w), NULL))
                    fail_msg("%s: %s", works[w].name, frit_tensor_error(made));
            }
            frit_scope_end(scope);
        }
}

/* False: the machine has no such set, or no library. */
static bool run_with(const char *isa, const char *tier, const char *stream_bytes,
                     struct pairs pairs, struct results *out)
{
    frit_err err = {.struct_size = sizeof(err)};
    const frit_setting settings[] = {{"fusion", "compile", "wait"},
                                     {"frit", "fallback", "none"},
                                     {"plugin.cpu", "option.isa", isa},
                                     {"plugin.cpu", "option.tier", tier},
                                     {"plugin.cpu", "option.stream_bytes", stream_bytes}};
    const frit_host_params params = {
        .struct_size = sizeof params, .settings = settings, .n_settings = 5};
    frit_host *host = NULL;
    frit_device *device = NULL;
    bool can;

    if (frit_host_open(&params, &host, &err))
        fail_msg("%s", err.text);
    can = frit_device_open(host, "cpu", &device, &err) == FRIT_OK;
    if (can) {
        frit_seed(host, 5);
        compute(device, pairs, out);
        frit_device_close(device);
    } else {
        print_message("isa %s, tier %s: %s\n", isa, tier, err.text);
    }
    frit_host_close(host);
    return can;
}

static void results_fini(struct results *results)
{
    for (int t = 0; t < TYPES; t++)
        for (int w = 0; w < WORKS; w++)
            free(results->bytes[t][w]);
}

/* `through` and `around`: what is computed with stores through the caches and around them, both
 * parts of `plain`. */
static void compare(const char *isa, struct pairs plain, struct pairs through, struct pairs around)
{
    static const char *const from[] = {"0", "1"};
    struct results interpreted = {0}, compiled[2] = {{{{0}}}};

    for (int i = 0; i < 2; i++) {
        if (i == 0 && !run_with(isa, "0", "0", plain, &interpreted))
            break;
        if (!run_with(isa, "1", from[i], i ? around : through, &compiled[i]))
            break;
        for (int t = 0; t < TYPES; t++)
            for (int w = 0; w < WORKS; w++)
                if (compiled[i].bytes[t][w] &&
                    memcmp(interpreted.bytes[t][w], compiled[i].bytes[t][w], size_of(t, w)) != 0)
                    fail_msg("isa %s, stores around the caches %s, type %u: %s differs", isa,
                             i ? "always" : "where large", types[t].dtype, works[w].name);
    }
    results_fini(&interpreted);
    results_fini(&compiled[0]);
    results_fini(&compiled[1]);
}

#ifdef __SANITIZE_ADDRESS__
enum { PLAIN = 4, EVERY = 3 * PLAIN };
#else
enum { PLAIN = 1, EVERY = 3 * PLAIN };
#endif

static void tiers_change_nothing(void **state)
{
    static const char *const isas[] = {"baseline", "avx2", "avx512"};
    const bool all = getenv("FRIT_TEST_LONG") != NULL;

    (void)state;
    for (int i = 0; i < 3; i++)
        compare(isas[i], all ? all_pairs : (struct pairs){i % PLAIN, PLAIN},
                all ? all_pairs : (struct pairs){i, EVERY},
                all ? all_pairs : (struct pairs){(i + PLAIN) % EVERY, EVERY});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(tiers_change_nothing)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
