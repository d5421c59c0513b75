/* SPDX-License-Identifier: Apache-2.0 */
/* What a thousand steps cost: no plan, no search and no memory after the second one, though rate
 * and corrections change with each. */
#include "api/plugin_rig.h"
#include "train/network.h"

enum { STEPS = 1000, WARM = 2, MOST_PLANS = 3 };

struct run_case {
    const char *name, *device;
    const char *options[2]; /* of the plugin null, with values */
    uint32_t flags;
    double clip_norm;
    bool is_scaled, fuses;
    uint32_t most_launches; /* a step, where ops fuse */
};

/* The most launches are what was measured when this was written. */
static const struct run_case cases[] = {
    {"cpu", "cpu:0", {NULL}, 0, 0, false, true, 12},
    {"cpu in place", "cpu:0", {NULL}, FRIT_OPTIMIZER_IN_PLACE, 0, false, true, 12},
    {"cpu clipped", "cpu:0", {NULL}, 0, 1, false, true, 16},
    {"cpu scaled", "cpu:0", {NULL}, 0, 0, true, true, 19},
    {"cpu scaled and clipped", "cpu:0", {NULL}, 0, 1, true, true, 24},
    {"reference", "reference:0", {NULL}, 0, 1, true, false, 0},
    {"no pointers", "null:0", {"memory", "device"}, 0, 0, false, true, 0},
    {"opaque", "null:0", {"opaque", "yes"}, FRIT_OPTIMIZER_IN_PLACE, 1, false, true, 0},
};

static void open_device(struct plugin_rig *rig, const struct run_case *c, char *key, size_t size)
{
    rig_set(rig, "frit", "log", "off");
    rig_set(rig, "fusion", "compile", "wait");
    if (!strcmp(c->device, "null:0"))
        rig_plugin(rig, "plugin.null", RIG_NULL);
    if (c->options[0]) {
        snprintf(key, size, "option.%s", c->options[0]);
        rig_set(rig, "plugin.null", key, c->options[1]);
    }
    rig_open(rig, c->device);
}

static void expect_warm(const struct run_case *c, int step, const frit_stats *before,
                        const frit_stats *now)
{
    const struct {
        const char *name;
        uint64_t before, now;
    } same[] = {
        {"plans", before->plans_now, now->plans_now},
        {"searches", before->explorations, now->explorations},
        {"missed plans", before->plan_misses, now->plan_misses},
        {"programs", before->programs, now->programs},
        {"allocations of the driver", before->driver_allocs, now->driver_allocs},
        {"bytes", before->bytes_now, now->bytes_now},
        {"reserved bytes", before->reserved_now, now->reserved_now},
        {"tensors", before->tensors_now, now->tensors_now},
        {"buffers", before->buffers_now, now->buffers_now},
    };

    for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
        if (same[i].before != same[i].now)
            fail_msg("%s, step %d: %s: %llu became %llu", c->name, step, same[i].name,
                     (unsigned long long)same[i].before, (unsigned long long)same[i].now);
    }
    if (now->plan_runs - before->plan_runs > MOST_PLANS)
        fail_msg("%s, step %d: %llu plans", c->name, step,
                 (unsigned long long)(now->plan_runs - before->plan_runs));
    if (c->most_launches && now->launches - before->launches > c->most_launches)
        fail_msg("%s, step %d: %llu launches", c->name, step,
                 (unsigned long long)(now->launches - before->launches));
}

/* Returns the bytes in buffers at the end. */
static uint64_t train(const struct run_case *c, struct plugin_rig *rig)
{
    frit_optimizer_config config = frit_adamw_config(0.02);
    frit_stats before = {0}, now = {0};
    frit_scaler *scaler = NULL;
    struct network n;

    config.flags = c->flags;
    config.clip_norm = c->clip_norm;
    if (c->is_scaled)
        OK(frit_scaler_create(rig->dev, NULL, &scaler, err));
    config.scaler = scaler;
    network_begin(&n, rig->dev, &config);
    for (int step = 1; step <= STEPS; step++) {
        frit_optimizer_set_rate(n.optimizer, 0.02 / step);
        frit_release(network_step(&n));
        OK(frit_sync(rig->dev, err));
        now = rig_stats(rig);
        if (step > WARM)
            expect_warm(c, step, &before, &now);
        before = now;
    }
    assert_int_equal(frit_optimizer_steps(n.optimizer), STEPS);
    network_end(&n);
    frit_scaler_destroy(scaler);
    return now.bytes_now;
}

static void test_a_thousand_steps(void **state)
{
    uint64_t bytes[2] = {0};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct plugin_rig rig = {0};
        uint64_t end;
        char key[64];

        open_device(&rig, &cases[i], key, sizeof(key));
        end = train(&cases[i], &rig);
        if (i < 2)
            bytes[i] = end;
        rig_close(&rig);
    }
    assert_true(bytes[1] < bytes[0]); /* in place */
}

/* ---- many small parameters ---- */

enum { N_MANY = 40, FEW_STEPS = 4 };

/* The launches of a step of as many small parameters of different sizes. */
static uint64_t launches_of_many(bool is_scaled, double clip_norm)
{
    frit_optimizer_config config = frit_adam_config(0.01);
    struct plugin_rig rig = {.n_settings = 0};
    frit_tensor *params[N_MANY], *grads[N_MANY];
    frit_optimizer *optimizer;
    frit_stats before, now;

    rig_set(&rig, "frit", "log", "off");
    rig_set(&rig, "fusion", "compile", "wait");
    rig_open(&rig, "cpu:0");
    config.clip_norm = clip_norm;
    if (is_scaled)
        OK(frit_scaler_create(rig.dev, NULL, &config.scaler, err));
    for (int i = 0; i < N_MANY; i++) {
        params[i] = frit_zeros(rig.dev, FRIT_F32, FRIT_SHAPE(16 + i));
        grads[i] = frit_ones(rig.dev, FRIT_F32, FRIT_SHAPE(16 + i));
    }
    OK(frit_optimizer_create(&config, params, N_MANY, &optimizer, err));
    now = rig_stats(&rig);
    for (int step = 0; step < FEW_STEPS; step++) {
        const frit_scope scope = frit_scope_begin(rig.dev);

        before = now;
        OK(frit_optimizer_step(optimizer, params, grads, err));
        frit_scope_end(scope);
        now = rig_stats(&rig);
    }
    frit_optimizer_destroy(optimizer);
    frit_scaler_destroy(config.scaler);
    for (int i = 0; i < N_MANY; i++) {
        frit_release(params[i]);
        frit_release(grads[i]);
    }
    rig_close(&rig);
    return now.launches - before.launches;
}

/* Updates of all are one launch. */
static void test_many_small_parameters(void **state)
{
    (void)state;
    assert_int_equal(launches_of_many(false, 0), 1);
    assert_true(launches_of_many(false, 1) <= N_MANY + 3); /* a sum each for the norm */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_thousand_steps),
        cmocka_unit_test(test_many_small_parameters),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
