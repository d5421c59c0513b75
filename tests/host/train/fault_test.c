/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation of a training step, and every call of the driver, fails once.  Each time the
 * step was made or is undone as a whole, an error says what failed, and the step made again is that
 * of a run without faults, bit for bit. */
#include "api/plugin_rig.h"
#include "failing_alloc.h"
#include "fake/null/stats.h"
#include "train/network.h"

#include "api/host.h"
#include "api/plugin_interface.h"

enum { BYTES = 4096, N_CALL_STEPS = 3 };

/* ---- networks that are compared ---- */

/* All parameters and states, one after the other. */
struct snapshot {
    unsigned char bytes[BYTES];
    uint64_t size;
};

static void add(struct snapshot *out, frit_tensor *tensor)
{
    const uint64_t bytes = frit_tensor_bytes(tensor);

    assert_true(out->size + bytes <= BYTES);
    OK(frit_read(tensor, out->bytes + out->size, bytes, err));
    out->size += bytes;
}

static struct snapshot snapshot_of(struct network *n)
{
    frit_state_desc state = {.struct_size = sizeof(state)};
    struct snapshot out = {.size = 0};

    for (int i = 0; i < N_PARAMS; i++)
        add(&out, n->params[i]);
    for (uint64_t i = 0; !frit_optimizer_state_at(n->optimizer, i, &state); i++)
        add(&out, state.tensor);
    for (uint64_t i = 0; n->scaler && !frit_scaler_state_at(n->scaler, i, &state); i++)
        add(&out, state.tensor);
    return out;
}

static void expect_same(const char *what, long n, const struct snapshot *a,
                        const struct snapshot *b)
{
    if (a->size != b->size || memcmp(a->bytes, b->bytes, a->size) != 0)
        fail_msg("fault %ld: %s", n, what);
}

/* Steps that were recorded, failed when they ran, and were undone. */
static uint32_t n_undone;

/* ---- allocations ---- */

struct pair {
    struct plugin_rig rig;
    frit_scaler *scalers[2];
    struct network tried, good; /* at the same step */
};

static void pair_open(struct pair *pair, bool is_scaled)
{
    frit_optimizer_config config = frit_adam_config(0.02);

    *pair = (struct pair){.scalers = {NULL}};
    rig_set(&pair->rig, "frit", "log", "off");
    rig_open(&pair->rig, "reference:0");
    config.clip_norm = is_scaled ? 0.5 : 0;
    for (int i = 0; i < 2; i++) {
        const frit_scaler_config scale = {.struct_size = sizeof(scale), .interval = 2};

        if (is_scaled)
            OK(frit_scaler_create(pair->rig.dev, &scale, &pair->scalers[i], err));
        config.scaler = pair->scalers[i];
        network_begin(i ? &pair->good : &pair->tried, pair->rig.dev, &config);
    }
}

static void pair_close(struct pair *pair)
{
    network_end(&pair->tried);
    network_end(&pair->good);
    for (int i = 0; i < 2; i++)
        frit_scaler_destroy(pair->scalers[i]);
    rig_close(&pair->rig);
}

/* A step during which allocation `n` fails; whether there were so many. */
static bool try_step(struct pair *pair, long n, frit_status *status)
{
    struct network *tried = &pair->tried;
    const uint64_t steps = frit_optimizer_steps(tried->optimizer);
    frit_tensor *loss;

    tried->err.text[0] = '\0';
    failing_alloc_arm(n);
    loss = network_try(tried);
    *status = loss ? FRIT_OK : tried->err.status;
    if (frit_optimizer_sync(tried->optimizer, tried->params, *status ? NULL : &tried->err) &&
        !*status)
        *status = tried->err.status;
    n_undone += loss && frit_optimizer_steps(tried->optimizer) == steps;
    frit_release(loss);
    return failing_alloc_disarm();
}

static bool fail_allocation(struct pair *pair, long n)
{
    const struct snapshot before = snapshot_of(&pair->good);
    const uint64_t steps = frit_optimizer_steps(pair->tried.optimizer);
    struct snapshot after, now;
    frit_status status;
    bool hit;

    hit = try_step(pair, n, &status);
    frit_release(network_step(&pair->good));
    after = snapshot_of(&pair->good);
    if (status && (status != FRIT_NO_HOST_MEMORY || !pair->tried.err.text[0]))
        fail_msg("allocation %ld: %d, '%s'", n, status, pair->tried.err.text);
    now = snapshot_of(&pair->tried);
    if (frit_optimizer_steps(pair->tried.optimizer) == steps) {
        assert_true(status);
        expect_same("what failed was not undone", n, &now, &before);
        frit_release(network_step(&pair->tried));
        now = snapshot_of(&pair->tried);
    }
    expect_same("the step differs from one without a fault", n, &now, &after);
    return hit;
}

static void fail_each_allocation(bool is_scaled)
{
    struct pair pair;
    long n = 0;

    pair_open(&pair, is_scaled);
    while (fail_allocation(&pair, n))
        n++;
    assert_true(n > 20);
    pair_close(&pair);
}

/* Replays allocate nothing, so these all fail while ops are recorded. */
static void test_every_allocation_of_a_warm_step(void **state)
{
    (void)state;
    fail_each_allocation(false);
    fail_each_allocation(true);
}

/* First steps search and make programs, so they allocate much more. */
static void test_allocations_of_a_first_step(void **state)
{
    bool hit = true;
    long n;

    (void)state;
    n_undone = 0;
    for (n = 0; hit; n += 1 + n / 32) {
        struct pair pair;

        pair_open(&pair, n % 2);
        hit = fail_allocation(&pair, n);
        pair_close(&pair);
    }
    assert_true(n > 100);
    assert_true(n_undone > 0);
}

/* ---- calls of the driver ---- */

static const char *const calls[] = {
#define NULL_CALL(name) #name,
#include "fake/null/calls.def"
};

/* The number of calls that the plugin counted. */
static uint64_t count_of_calls(const struct plugin_rig *rig, const char *name)
{
    void *instance;
    const null_stats *stats = rig_interface(rig->host, "null", NULL_STATS, &instance);

    return stats->get(instance, (frit_str){name, strlen(name)});
}

/* A step, repeated if it failed: fails once at most. */
static void make_step(struct network *n, const char *what, bool *has_failed)
{
    for (int attempt = 0; attempt < 2; attempt++) {
        const uint64_t steps = frit_optimizer_steps(n->optimizer);
        frit_tensor *loss = network_try(n);
        frit_status st = loss ? FRIT_OK : n->err.status, sync;

        sync = frit_optimizer_sync(n->optimizer, n->params, st ? NULL : &n->err);
        n_undone += loss && frit_optimizer_steps(n->optimizer) == steps;
        frit_release(loss);
        st = st ? st : sync;
        if (st && (*has_failed || !n->err.text[0]))
            fail_msg("%s: fails again: %s", what, n->err.text);
        *has_failed |= st != FRIT_OK;
        for (int i = 0; i < N_PARAMS; i++)
            assert_int_equal(frit_tensor_status(n->params[i]), FRIT_OK);
        if (frit_optimizer_steps(n->optimizer) == steps + 1)
            return;
        assert_true(st);
    }
}

/* Training during which one call fails; whether there were so many. */
static bool fail_nth(const char *option, const char *call, uint64_t nth, const char *status)
{
    const frit_optimizer_config config = frit_adam_config(0.02);
    struct plugin_rig rig = {.n_settings = 0};
    struct network n;
    bool has_failed = false;
    char value[64];
    uint64_t made;

    snprintf(value, sizeof(value), "%s%s%llu%s", strcmp(call, "launches") ? call : "",
             strcmp(call, "launches") ? ":" : "", (unsigned long long)nth, status);
    rig_set(&rig, "frit", "log", "off");
    rig_set(&rig, "fusion", "compile", "wait");
    rig_plugin(&rig, "plugin.null", RIG_NULL);
    rig_set(&rig, "plugin.null", option, value);
    rig_host(&rig);
    if (frit_device_open(rig.host, "null:0", &rig.dev, NULL)) {
        frit_host_close(rig.host);
        return true;
    }
    if (network_open(&n, rig.dev, FRIT_F32, &config)) { /* before the first step */
        assert_true(n.err.text[0]);
    } else {
        for (int step = 0; step < N_CALL_STEPS; step++)
            make_step(&n, value, &has_failed);
        assert_int_equal(frit_optimizer_steps(n.optimizer), N_CALL_STEPS);
    }
    made = count_of_calls(&rig, call);
    network_end(&n);
    rig_close(&rig);
    return made >= nth;
}

static void test_every_call_of_the_driver(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        /* What a compiler could not do it cannot do later, but for this. */
        const char *status = strcmp(calls[i], "compile") ? "" : ":busy";
        uint64_t nth = 1;

        while (fail_nth("option.fail_call", calls[i], nth, status))
            nth++;
        if (!strcmp(calls[i], "submit") || !strcmp(calls[i], "prepare"))
            assert_true(nth > N_CALL_STEPS);
    }
}

static void test_every_launch(void **state)
{
    uint64_t nth = 1;

    (void)state;
    n_undone = 0;
    while (fail_nth("option.fail_launch", "launches", nth, ":timeout"))
        nth++;
    assert_true(nth > 20);
    assert_true(n_undone > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_allocation_of_a_warm_step),
        cmocka_unit_test(test_allocations_of_a_first_step),
        cmocka_unit_test(test_every_call_of_the_driver),
        cmocka_unit_test(test_every_launch),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
