/* SPDX-License-Identifier: Apache-2.0 */
/* Groupings follow from the ops alone: whatever shapes came before, in whatever order, from
 * whatever store, the same ops run as the same launches. */
#include "api/plugin_rig.h"

#include <math.h>
#include <pthread.h>
#include <stdbool.h>

#include "record/binding.h"

#ifdef __SANITIZE_ADDRESS__
enum { RANDOM = 8 };
#else
enum { RANDOM = 24 };
#endif
enum { SIZES = 6, ROUNDS = 3, WRITTEN = 4, PROGRAMS = WRITTEN + RANDOM };

static const int64_t sizes[SIZES] = {6, 7, 4, 3, 12, 2};

static void open_device(struct plugin_rig *rig, const char *device, const char *store)
{
    *rig = (struct plugin_rig){0};
    rig_plugin(rig, "plugin.org.frit.blocks", RIG_BLOCKS);
    rig_set(rig, "fusion", "store", store);
    rig_set(rig, "fusion", "compile", "wait");
    rig_set(rig, "frit", "decompose", "yes");
    rig_open(rig, device);
}

static frit_tensor *input(struct plugin_rig *rig, int64_t n)
{
    float data[12 * 4 * 3];

    for (int i = 0; i < 12 * 4 * 3; i++)
        data[i] = (float)(i % 7) * 0.25F;
    return frit_from_host(rig->dev, FRIT_F32, FRIT_SHAPE(n, 4, 3), data, (uint64_t)n * 12 * 4);
}

/* One op of a random program, over values of one type. */
static frit_tensor *random_op(uint32_t *state, frit_tensor *a, frit_tensor *b)
{
    *state = *state * 1664525 + 1013904223;
    switch (*state >> 20 & 15) {
    case 0:
        return frit_group_norm(a, NULL, NULL, .groups = 2);
    case 1:
        return frit_softmax(a, 1 + (int64_t)(*state >> 24 & 1));
    case 2:
        return frit_layer_norm(a, NULL, NULL, .axes = FRIT_AXES(1, 2));
    case 3:
        return frit_sub(a, frit_take(frit_var(a, .axes = FRIT_AXES(2), .keep = 1)));
    case 4:
        return frit_mul(a, frit_take(frit_sum(b, .axes = FRIT_AXES(0), .keep = 1)));
    case 5:
        return frit_gelu(a);
    case 6:
        return frit_silu(a);
    case 7:
        return frit_log_softmax(a, 2);
    case 8:
    case 9:
        return frit_add(a, b);
    case 10:
    case 11:
        return frit_mul(a, b);
    case 12:
        return frit_permute(frit_take(frit_permute(a, FRIT_AXES(0, 2, 1))), FRIT_AXES(0, 2, 1));
    default:
        return *state >> 25 & 1 ? frit_tanh(a) : frit_neg(a);
    }
}

enum { RANDOM_OPS = 10, RANDOM_VALUES = 4 };

static frit_tensor *random_program(uint32_t seed, frit_tensor *x)
{
    frit_tensor *values[RANDOM_VALUES], *y = frit_exp(x);
    uint32_t state = seed * 2654435761u;

    for (int i = 0; i < RANDOM_VALUES; i++)
        values[i] = frit_ref(x);
    for (int i = 0; i < RANDOM_OPS; i++) {
        int at = (int)(state >> 16) & (RANDOM_VALUES - 1);
        frit_tensor *made = random_op(&state, y, values[at]);

        frit_release(values[at]);
        values[at] = y;
        y = made;
    }
    for (int i = 0; i < RANDOM_VALUES; i++)
        frit_release(values[i]);
    return y;
}

/* Programs whose composites have inner dims that equal n at some sizes and not at others. */
static frit_tensor *program(struct plugin_rig *rig, int number, frit_tensor *x)
{
    if (number >= WRITTEN)
        return random_program((uint32_t)number, x);
    switch (number) {
    case 0: {
        const float gain[4] = {1, 2, 3, 4};
        frit_tensor *g = frit_from_host(rig->dev, FRIT_F32, FRIT_SHAPE(4), gain, sizeof(gain));
        frit_tensor *y = frit_take(frit_mul(x, x));

        y = frit_take(frit_group_norm(y, g, frit_take(g), .groups = 2));
        return frit_tanh(frit_take(frit_add(y, x)));
    }
    case 1:
        return frit_neg(frit_take(frit_softmax(frit_take(frit_exp(x)), 1)));
    case 2:
        return frit_add(frit_take(frit_var(x, .axes = FRIT_AXES(2), .keep = 1)), x);
    default:
        return frit_exp(frit_take(
            frit_layer_norm(frit_take(frit_neg(x)), NULL, NULL, .axes = FRIT_AXES(1, 2))));
    }
}

/* What one run launches. */
static uint64_t launches_of(struct plugin_rig *rig, int number, int64_t n)
{
    frit_tensor *x = input(rig, n), *y;
    uint64_t before, after;

    assert_int_equal(frit_sync(rig->dev, NULL), FRIT_OK);
    before = rig_stats(rig).launches;
    y = program(rig, number, x);
    assert_int_equal(frit_tensor_status(y), FRIT_OK);
    assert_int_equal(frit_sync(rig->dev, NULL), FRIT_OK);
    after = rig_stats(rig).launches;
    frit_release(x);
    frit_release(y);
    return after - before;
}

/* ---- the same from any history ---- */

struct expected {
    uint64_t launches[PROGRAMS][SIZES];
};

/* Each program at each size in a host of its own. */
static void learn(const char *device, struct expected *expected)
{
    for (int p = 0; p < PROGRAMS; p++) {
        for (int i = 0; i < SIZES; i++) {
            struct plugin_rig rig;

            open_device(&rig, device, "none");
            expected->launches[p][i] = launches_of(&rig, p, sizes[i]);
            rig_close(&rig);
        }
    }
}

static void expect(struct plugin_rig *rig, const struct expected *expected, int p, int i)
{
    uint64_t launches = launches_of(rig, p, sizes[i]);

    if (launches != expected->launches[p][i])
        fail_msg("program %d, n = %lld: %llu launches, %llu from an empty store", p,
                 (long long)sizes[i], (unsigned long long)launches,
                 (unsigned long long)expected->launches[p][i]);
}

static void expect_all(struct plugin_rig *rig, const struct expected *expected, bool backwards)
{
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < SIZES; i++) {
            for (int p = 0; p < PROGRAMS; p++)
                expect(rig, expected, p, backwards ? SIZES - 1 - i : i);
        }
    }
}

static void check_device(const char *device)
{
    char folder[] = "/tmp/frit-history-XXXXXX", store[128], command[128];
    struct plugin_rig rig;
    struct expected expected;

    assert_non_null(mkdtemp(folder));
    snprintf(store, sizeof(store), "%s/plans.db", folder);
    learn(device, &expected);
    for (int backwards = 0; backwards < 2; backwards++) {
        open_device(&rig, device, "none");
        expect_all(&rig, &expected, backwards);
        rig_close(&rig);
    }
    for (int start = 0; start < 2; start++) { /* fills a store, then starts from it */
        open_device(&rig, device, store);
        expect_all(&rig, &expected, start);
        assert_int_equal(rig_stats(&rig).explorations == 0, start);
        rig_close(&rig);
    }
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    assert_int_equal(system(command), 0);
}

static void test_sizes_in_any_order_with_fusers(void **state)
{
    (void)state;
    check_device("reference:0");
}

static void test_sizes_in_any_order_on_cpu(void **state)
{
    (void)state;
    check_device("cpu:0");
}

/* ---- a death that is not as predicted, while matching waits ---- */

enum { LOOPS = 4 };

/* y = exp(x), z = neg(softmax(y)): y dies with the softmax, or is kept. */
static void step(frit_tensor *x, bool keep_y, pthread_mutex_t *baton)
{
    float y_out[8], expected[8], data[8];
    frit_tensor *y, *z;

    if (baton)
        pthread_mutex_lock(baton); /* as another thread that runs this stream */
    y = frit_exp(x);
    z = frit_softmax(keep_y ? y : frit_take(y), 1);
    z = frit_neg(frit_take(z));
    z = frit_abs(frit_take(z));
    if (baton)
        pthread_mutex_unlock(baton);
    assert_int_equal(frit_read(frit_take(z), data, sizeof(data), NULL), FRIT_OK);
    if (!keep_y)
        return;
    assert_int_equal(frit_read(x, data, sizeof(data), NULL), FRIT_OK);
    for (int i = 0; i < 8; i++)
        expected[i] = expf(data[i]);
    assert_int_equal(frit_read(frit_take(y), y_out, sizeof(y_out), NULL), FRIT_OK);
    for (int i = 0; i < 8; i++)
        assert_true(fabsf(y_out[i] - expected[i]) < 1e-5F);
}

static void test_deaths_that_are_matched_late(void **state)
{
    const float data[8] = {0, 1, 2, 3, -1, -2, -3, 0.5F};
    struct plugin_rig rig;
    frit_tensor *x;

    (void)state;
    open_device(&rig, "reference:0", "none");
    x = frit_from_host(rig.dev, FRIT_F32, FRIT_SHAPE(2, 4), data, sizeof(data));
    for (int i = 0; i < LOOPS; i++)
        step(x, false, NULL);
    step(x, true, &binding_peek(rig.dev)->stream->baton);
    frit_release(x);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes_in_any_order_with_fusers),
        cmocka_unit_test(test_sizes_in_any_order_on_cpu),
        cmocka_unit_test(test_deaths_that_are_matched_late),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
