/* SPDX-License-Identifier: Apache-2.0 */
/* Random rows: the published first answer of Philox4x32-10, the moments of the distributions, and
 * that a seed gives the same numbers again while the next op gives others.  Bounds are five
 * standard deviations of the estimate, so a right generator with these fixed seeds stays inside and
 * a wrong one hardly can. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"

#include <frit/frit.h>

enum { COUNT = 1 << 16 };

struct fixture {
    frit_host *host;
    frit_device *device;
    double *values;
};

static int open_fixture(void **state)
{
    frit_err err = {.struct_size = sizeof(err)};
    struct fixture *f = calloc(1, sizeof(*f));
    const char *name = getenv("FRIT_TEST_DEVICE");

    *state = f;
    f->values = malloc(COUNT * sizeof(*f->values));
    if (frit_host_open(NULL, &f->host, &err) != FRIT_OK ||
        frit_device_open(f->host, name ? name : "reference:0", &f->device, &err) != FRIT_OK) {
        print_error("%s\n", err.text);
        return -1;
    }
    return 0;
}

static int close_fixture(void **state)
{
    struct fixture *f = *state;

    frit_device_close(f->device);
    frit_host_close(f->host);
    free(f->values);
    free(f);
    return 0;
}

static void draw(struct fixture *f, frit_tensor *tensor)
{
    frit_tensor *wide = frit_cast(tensor, FRIT_F64);

    assert_string_equal(frit_tensor_error(wide), "");
    assert_int_equal(frit_read(wide, f->values, COUNT * sizeof(*f->values), NULL), FRIT_OK);
    frit_release(wide);
    frit_release(tensor);
}

/* Mean of (x - center)^power. */
static double moment(const struct fixture *f, double center, int power)
{
    double sum = 0;

    for (int i = 0; i < COUNT; i++)
        sum += pow(f->values[i] - center, power);
    return sum / COUNT;
}

static void assert_near(double value, double expected, double deviation)
{
    if (fabs(value - expected) > 5 * deviation)
        fail_msg("%.9g is more than five deviations of %.3g from %.9g", value, deviation, expected);
}

static void raw_words_are_the_published_ones(void **state)
{
    static const uint32_t known[4] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
    struct fixture *f = *state;
    frit_tensor *words;
    uint32_t got[4];

    frit_seed(f->host, 0);
    words = frit_random_raw(f->device, FRIT_U32, FRIT_SHAPE(4));
    assert_int_equal(frit_read(words, got, sizeof(got), NULL), FRIT_OK);
    assert_memory_equal(got, known, sizeof(known));
    frit_release(words);
}

static void a_seed_repeats_and_ops_differ(void **state)
{
    struct fixture *f = *state;
    uint64_t first[64], second[64], again[64];
    uint64_t *rounds[3] = {first, second, again};

    for (int i = 0; i < 3; i++) {
        frit_tensor *words;

        if (i != 1)
            frit_seed(f->host, 42);
        words = frit_random_raw(f->device, FRIT_U64, FRIT_SHAPE(64));
        assert_int_equal(frit_read(words, rounds[i], sizeof(first), NULL), FRIT_OK);
        frit_release(words);
    }
    assert_memory_equal(first, again, sizeof(first));
    for (int i = 0; i < 64; i++)
        assert_int_not_equal(first[i], second[i]);
}

static void uniforms_fill_the_range_evenly(void **state)
{
    static const uint32_t dtypes[] = {FRIT_F64, FRIT_F32};
    struct fixture *f = *state;

    for (size_t i = 0; i < 2; i++) {
        double width = 6, variance = width * width / 12, apart = 0;

        frit_seed(f->host, 1 + i);
        draw(f, frit_random_uniform(f->device, dtypes[i], FRIT_SHAPE(COUNT), -2, 4));
        for (int k = 0; k < COUNT; k++)
            assert_true(f->values[k] >= -2 && f->values[k] < 4);
        assert_near(moment(f, 0, 1), 1, sqrt(variance / COUNT));
        assert_near(moment(f, 1, 2), variance, sqrt(pow(width, 4) / 180 / COUNT));
        for (int k = 1; k < COUNT; k++)
            apart += (f->values[k] - 1) * (f->values[k - 1] - 1);
        assert_near(apart / COUNT, 0, variance / sqrt(COUNT));
    }
}

static void normals_have_their_moments(void **state)
{
    static const uint32_t dtypes[] = {FRIT_F64, FRIT_F32};
    struct fixture *f = *state;

    for (size_t i = 0; i < 2; i++) {
        double apart = 0;

        frit_seed(f->host, 3 + i);
        draw(f, frit_random_normal(f->device, dtypes[i], FRIT_SHAPE(COUNT), 3, 0.5));
        for (int k = 0; k < COUNT; k++)
            f->values[k] = (f->values[k] - 3) / 0.5;
        assert_near(moment(f, 0, 1), 0, sqrt(1.0 / COUNT));
        assert_near(moment(f, 0, 2), 1, sqrt(2.0 / COUNT));
        assert_near(moment(f, 0, 3), 0, sqrt(15.0 / COUNT));
        assert_near(moment(f, 0, 4), 3, sqrt(96.0 / COUNT));
        for (int k = 0; k < COUNT; k += 2)
            apart += f->values[k] * f->values[k + 1];
        assert_near(2 * apart / COUNT, 0, sqrt(2.0 / COUNT));
    }
}

static void bernoulli_hits_its_share(void **state)
{
    struct fixture *f = *state;

    frit_seed(f->host, 5);
    draw(f, frit_random_bernoulli(f->device, FRIT_BOOL, FRIT_SHAPE(COUNT), 0.3));
    assert_near(moment(f, 0, 1), 0.3, sqrt(0.3 * 0.7 / COUNT));
}

static void integers_are_even_over_the_range(void **state)
{
    struct fixture *f = *state;
    double hits[10] = {0};

    frit_seed(f->host, 6);
    draw(f, frit_random_int_i(f->device, FRIT_I32, FRIT_SHAPE(COUNT), -5, 5));
    for (int i = 0; i < COUNT; i++) {
        assert_true(f->values[i] >= -5 && f->values[i] < 5);
        hits[(int)f->values[i] + 5]++;
    }
    for (int i = 0; i < 10; i++)
        assert_near(hits[i] / COUNT, 0.1, sqrt(0.1 * 0.9 / COUNT));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(raw_words_are_the_published_ones, open_fixture,
                                        close_fixture),
        cmocka_unit_test_setup_teardown(a_seed_repeats_and_ops_differ, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(uniforms_fill_the_range_evenly, open_fixture,
                                        close_fixture),
        cmocka_unit_test_setup_teardown(normals_have_their_moments, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(bernoulli_hits_its_share, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(integers_are_even_over_the_range, open_fixture,
                                        close_fixture),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
