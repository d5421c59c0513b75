/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin `null` derives memory from the first input of every program, and refuses launches
 * whose derived memory is marked valid though nobody derived it.  Counts are those of frit_stats.
 */
#include <pthread.h>

#include <frit/inspect.h>

#include "api/plugin_rig.h"

enum { ROUNDS = 10, SIDE = 64 };

static void open_null(struct plugin_rig *rig, const char *queue, const char *value)
{
    rig_plugin(rig, "plugin.null", RIG_NULL);
    rig_set(rig, "plugin.null", "option.derive", "yes");
    rig_set(rig, "plugin.null", "option.max_fused_ops", "0");
    rig_set(rig, "plugin.null", queue, value);
    rig_open(rig, "null:0");
}

static frit_tensor *square(const struct plugin_rig *rig)
{
    static const float data[SIDE * SIDE];

    return frit_from_host(rig->dev, FRIT_F32, FRIT_SHAPE(SIDE, SIDE), data, sizeof(data));
}

/* The weight is the first input of a product. */
static void multiply(frit_tensor *weight, frit_tensor *x)
{
    static float out[SIDE * SIDE];

    assert_int_equal(frit_read(frit_take(frit_matmul(weight, x)), out, sizeof(out), NULL), FRIT_OK);
}

static void weights(const char *queue, const char *value)
{
    struct plugin_rig rig = {0};
    frit_tensor *weight, *x;
    frit_stats stats;

    open_null(&rig, queue, value);
    weight = square(&rig);
    x = square(&rig);
    for (int i = 0; i < ROUNDS; i++)
        multiply(weight, x);
    stats = rig_stats(&rig);
    assert_int_equal(stats.derived_fills, 1);
    assert_int_equal(stats.derived_hits, ROUNDS - 1);
    assert_int_equal(stats.buffers_now, 3);
    for (int i = 0; i < ROUNDS; i++) { /* an optimiser's step, in place */
        weight = frit_add(frit_take(weight), x);
        multiply(weight, x);
        multiply(weight, x);
    }
    assert_true(rig_stats(&rig).in_place > 0);
    assert_true(rig_stats(&rig).derived_fills > ROUNDS);
    assert_int_equal(frit_sync(rig.dev, NULL), FRIT_OK);
    frit_release(weight);
    frit_release(x);
    assert_int_equal(rig_stats(&rig).buffers_now, 0);
    assert_int_equal(rig_stats(&rig).faults, 0);
    rig_close(&rig);
}

static void test_weights_are_packed_once(void **state)
{
    (void)state;
    weights("option.inline", "yes");
    weights("option.inline", "no");
    weights("option.permute", "yes");
}

struct worker {
    frit_tensor *weight, *x;
};

static void *work(void *ctx)
{
    const struct worker *worker = ctx;

    for (int i = 0; i < 20 * ROUNDS; i++) {
        frit_tensor *y = frit_matmul(worker->weight, worker->x);

        y = frit_add(frit_take(y), worker->weight);
        frit_release(y);
        if (i % 8 == 0)
            multiply(worker->weight, worker->x);
    }
    return NULL;
}

/* Who finds what another stream derives is after it in the queue. */
static void test_streams_share_weights(void **state)
{
    enum { THREADS = 4 };
    struct plugin_rig rig = {0};
    pthread_t threads[THREADS];
    struct worker worker;

    (void)state;
    open_null(&rig, "option.permute", "yes");
    for (int round = 0; round < ROUNDS; round++) {
        worker = (struct worker){.weight = square(&rig), .x = square(&rig)};
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, work, &worker), 0);
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(frit_sync_all(rig.dev, NULL), FRIT_OK);
        frit_release(worker.weight);
        frit_release(worker.x);
    }
    assert_true(rig_stats(&rig).derived_hits > rig_stats(&rig).derived_fills);
    assert_int_equal(rig_stats(&rig).faults, 0);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_weights_are_packed_once),
        cmocka_unit_test(test_streams_share_weights),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
