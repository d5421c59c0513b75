/* SPDX-License-Identifier: Apache-2.0 */
/* Loops that never wait: their segments end by counted ops, at one place of the loop's body, so
 * that a loop has few plans and its queue stays short. */
#include "api/plugin_rig.h"

enum { SETTLED = 32, STEPS = 200, MAX_PLANS = 8, MAX_QUEUED = 256 };

static void open_device(struct plugin_rig *rig, const char *device)
{
    *rig = (struct plugin_rig){0};
    rig_plugin(rig, "plugin.org.frit.blocks", RIG_BLOCKS);
    rig_set(rig, "fusion", "store", "none");
    rig_open(rig, device);
}

static frit_tensor *ramp(struct plugin_rig *rig)
{
    const float data[] = {0.25F, 0.5F, 0.75F, 1};

    return frit_from_host(rig->dev, FRIT_F32, FRIT_SHAPE(4), data, sizeof(data));
}

/* One step of a loop of `length` different ops. */
static frit_tensor *step(frit_tensor *x, frit_tensor *w, int length)
{
    for (int i = 0; i < length; i++) {
        switch (i % 4) {
        case 0:
            x = frit_mul_f(frit_take(x), 0.5);
            break;
        case 1:
            x = frit_add(frit_take(x), w);
            break;
        case 2:
            x = i < 4 ? frit_tanh(frit_take(x)) : frit_neg(frit_take(x));
            break;
        default:
            x = frit_abs(frit_take(x));
        }
    }
    return x;
}

static void loop(const char *device, int length, int prologue)
{
    struct plugin_rig rig;
    frit_tensor *x, *w;
    uint64_t settled = 0;

    open_device(&rig, device);
    x = ramp(&rig);
    w = ramp(&rig);
    for (int i = 0; i < prologue; i++)
        x = frit_sub_f(frit_take(x), 0.125);
    for (int i = 0; i < STEPS; i++) {
        if (i == SETTLED)
            settled = rig_stats(&rig).explorations;
        x = step(x, w, length);
        assert_true(rig_stats(&rig).queued_now <= MAX_QUEUED);
    }
    if (rig_stats(&rig).explorations != settled)
        fail_msg("%s, %d ops after %d: %llu searches after %d steps", device, length, prologue,
                 (unsigned long long)(rig_stats(&rig).explorations - settled), SETTLED);
    if (rig_stats(&rig).plans_now > MAX_PLANS)
        fail_msg("%s, %d ops after %d: %llu plans", device, length, prologue,
                 (unsigned long long)rig_stats(&rig).plans_now);
    frit_release(x);
    frit_release(w);
    rig_close(&rig);
}

static void test_loops_have_few_plans(void **state)
{
    static const int lengths[] = {5, 7, 8, 31};
    enum { OF_BLOCKS = 3 }; /* lengths for fusers whose blocks are short: they end segments too */

    (void)state;
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        if (i < OF_BLOCKS)
            loop("reference:0", lengths[i], 0);
        loop("cpu:0", lengths[i], 0);
        loop("cpu:0", lengths[i], 3);
    }
}

/* When no more may be searched, ops of unknown segments run at once. */
static void test_a_cap_piles_up_nothing(void **state)
{
    struct plugin_rig rig = {0};
    frit_tensor *x, *w;

    (void)state;
    rig_set(&rig, "fusion", "store", "none");
    rig_set(&rig, "fusion", "max_explorations", "1");
    rig_open(&rig, "cpu:0");
    x = ramp(&rig);
    w = ramp(&rig);
    frit_release(frit_exp(x));
    assert_int_equal(frit_sync(rig.dev, NULL), FRIT_OK);
    for (int i = 0; i < STEPS; i++) {
        x = step(x, w, 7);
        assert_true(rig_stats(&rig).queued_now <= 2);
    }
    frit_release(x);
    frit_release(w);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loops_have_few_plans),
        cmocka_unit_test(test_a_cap_piles_up_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
