/* SPDX-License-Identifier: Apache-2.0 */
/* Known plans with blocks while memory is scarce: of the host, each allocation fails once in turn;
 * of the device, there is less and less.  Each round is right or says what is missing, and the next
 * ones are right and run as before. */
#include "api/plugin_rig.h"

#include "failing_alloc.h"
#include "run/drain.h"

enum { N = 4096, ROUNDS = 4, DEVICE_BYTES = 1 << 20, STEP_BYTES = 1 << 14 };

static float ones[N];

static void open_small(struct plugin_rig *rig)
{
    *rig = (struct plugin_rig){0};
    rig_set(rig, "frit", "log", "off");
    rig_set(rig, "fusion", "store", "none");
    rig_set(rig, "plugin.reference", "option.memory_bytes", "1048576");
    rig_plugin(rig, "plugin.org.frit.blocks", RIG_BLOCKS);
    rig_open(rig, "reference:0");
    for (int i = 0; i < N; i++)
        ones[i] = 1;
}

static frit_tensor *make_input(struct plugin_rig *rig)
{
    return frit_from_host(rig->dev, FRIT_F32, FRIT_SHAPE(N), ones, sizeof(ones));
}

static uint64_t plays(struct plugin_rig *rig)
{
    struct stream_counters count;

    streams_sum_counters(rig->dev, &count);
    return atomic_load(&count.replays);
}

/* From a tensor of ones, which is released: two chains with a matmul between them, and the sum. */
static frit_status play_round(struct plugin_rig *rig, frit_tensor *x)
{
    frit_scope scope = frit_scope_begin(rig->dev);
    frit_tensor *a = frit_mul_f(frit_add_f(frit_neg(x), 3), 2); /* 4 */
    frit_tensor *m = frit_matmul(frit_reshape(a, FRIT_SHAPE(64, 64)),
                                 frit_reshape(x, FRIT_SHAPE(64, 64)));     /* 256 */
    frit_tensor *b = frit_keep(frit_add_f(frit_mul(m, m), 1));             /* 65537 */
    frit_tensor *s = frit_keep(frit_sum(frit_sub(a, frit_mul_f(a, 0.5)))); /* 2 N */
    float out[N] = {0}, sum = 0;
    frit_status st, last;

    frit_scope_end(scope);
    st = frit_read(frit_take(b), out, sizeof(out), NULL);
    last = frit_read(frit_take(s), &sum, sizeof(sum), NULL);
    for (int i = 0; i < N; i++)
        assert_true(st || out[i] == 65537);
    assert_true(last || sum == 2 * N);
    frit_release(x);
    frit_sync(rig->dev, NULL); /* the failure was returned before */
    return st ? st : last;
}

static void learn(struct plugin_rig *rig)
{
    for (int i = 0; i < ROUNDS; i++)
        assert_int_equal(play_round(rig, make_input(rig)), FRIT_OK);
    assert_true(rig_stats(rig).fused > 0);
}

/* Memory may lie elsewhere now, which is another bound: so twice. */
static void good_rounds(struct plugin_rig *rig)
{
    uint64_t before = plays(rig);

    for (int i = 0; i < 2; i++)
        assert_int_equal(play_round(rig, make_input(rig)), FRIT_OK);
    assert_true(plays(rig) > before);
    assert_int_equal(rig_stats(rig).tensors_now, 0);
    assert_int_equal(rig_stats(rig).buffers_now, 0);
}

static void test_each_allocation_of_the_host(void **state)
{
    struct plugin_rig rig;
    bool hit = true;

    (void)state;
    open_small(&rig);
    learn(&rig);
    for (long n = 0; hit; n++) {
        frit_tensor *x = make_input(&rig);
        frit_status st;

        frit_trim(rig.dev);
        failing_alloc_arm(n);
        st = play_round(&rig, x);
        hit = failing_alloc_disarm();
        assert_true(st == FRIT_OK || (hit && st == FRIT_NO_HOST_MEMORY));
        good_rounds(&rig);
    }
    rig_close(&rig);
}

/* Others take more and more of the device. */
static void test_less_and_less_of_the_device(void **state)
{
    uint32_t n_right = 0, n_failed = 0;
    struct plugin_rig rig;

    (void)state;
    open_small(&rig);
    learn(&rig);
    for (uint64_t taken = STEP_BYTES; taken < DEVICE_BYTES; taken += STEP_BYTES) {
        frit_tensor *x = make_input(&rig), *others[DEVICE_BYTES / STEP_BYTES];
        uint32_t n = 0;
        frit_status st;

        while (n < taken / STEP_BYTES)
            others[n++] = make_input(&rig);
        st = play_round(&rig, x);
        assert_true(st == FRIT_OK || st == FRIT_NO_DEVICE_MEMORY);
        n_right += st == FRIT_OK;
        n_failed += st != FRIT_OK;
        while (n)
            frit_release(others[--n]);
        good_rounds(&rig);
    }
    assert_true(n_right > 0);
    assert_true(n_failed > 0);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_allocation_of_the_host),
        cmocka_unit_test(test_less_and_less_of_the_device),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
