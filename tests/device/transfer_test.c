/* SPDX-License-Identifier: Apache-2.0 */
/* Many transfers at once give the bytes that single ones give, among ops that make and use them.
 * Argument `_staging`: of vulkan, without pointers to device memory. */
#include "device/rig.h"

#include <string.h>

enum { TENSORS = 40, ROUNDS = 3 };

static bool staging;

static void open_device(struct rig *rig)
{
    frit_err err = {.struct_size = sizeof(err)};
    const frit_setting settings[] = {{"fusion", "store", "none"},
                                     {"plugin.vulkan", "option.staging", "force"}};
    const frit_host_params params = {
        .struct_size = sizeof(params), .settings = settings, .n_settings = staging ? 2 : 1};
    const char *name = getenv("FRIT_TEST_DEVICE");

    if (frit_host_open(&params, &rig->host, &err) ||
        frit_device_open(rig->host, name ? name : "cpu:0", &rig->dev, &err))
        fail_msg("%s", err.text);
}

/* From one element to 3 MiB, of odd sizes. */
static int64_t count_of(int t)
{
    return t % 8 == 7 ? 786433 + t : 1 + 37 * t * t;
}

struct many {
    frit_tensor *x[TENSORS];
    float *in[TENSORS], *out[TENSORS];
};

static void make(struct rig *rig, struct many *many)
{
    for (int t = 0; t < TENSORS; t++) {
        many->in[t] = rig_numbers((uint64_t)count_of(t));
        many->out[t] = calloc((size_t)count_of(t), sizeof(float));
        many->x[t] = frit_full(rig->dev, FRIT_F32, FRIT_SHAPE(count_of(t)), t);
    }
}

static uint64_t bytes_of(int t)
{
    return (uint64_t)count_of(t) * sizeof(float);
}

static void write_round(struct many *many, int round)
{
    frit_write_item items[TENSORS];

    for (int t = 0; t < TENSORS; t++) {
        many->in[t][0] = (float)(1000 * round + t);
        items[t] =
            (frit_write_item){.tensor = many->x[t], .data = many->in[t], .bytes = bytes_of(t)};
    }
    assert_int_equal(frit_write_many(items, TENSORS, NULL), FRIT_OK);
}

/* What is read are the tensors, and their negatives, in turns. */
static void read_round(struct many *many)
{
    frit_read_item items[TENSORS];

    for (int t = 0; t < TENSORS; t++)
        items[t] = (frit_read_item){.tensor = t % 2 ? frit_take(frit_neg(many->x[t])) : many->x[t],
                                    .data = many->out[t],
                                    .bytes = bytes_of(t)};
    assert_int_equal(frit_read_many(items, TENSORS, NULL), FRIT_OK);
    for (int t = 0; t < TENSORS; t++) {
        for (int64_t i = 0; i < count_of(t); i++)
            assert_true(many->out[t][i] == (t % 2 ? -many->in[t][i] : many->in[t][i]));
    }
}

static void test_many_are_as_one_by_one(void **state)
{
    struct rig rig;
    struct many many;

    (void)state;
    open_device(&rig);
    make(&rig, &many);
    for (int round = 0; round < ROUNDS; round++) {
        write_round(&many, round);
        read_round(&many);
        for (int t = 0; t < TENSORS; t++) {
            memset(many.out[t], 0, bytes_of(t));
            assert_int_equal(frit_read(many.x[t], many.out[t], bytes_of(t), NULL), FRIT_OK);
            assert_memory_equal(many.out[t], many.in[t], bytes_of(t));
        }
    }
    for (int t = 0; t < TENSORS; t++) {
        frit_release(many.x[t]);
        free(many.in[t]);
        free(many.out[t]);
    }
    rig_close(&rig);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_many_are_as_one_by_one)};

    staging = argc > 1 && strcmp(argv[1], "_staging") == 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
