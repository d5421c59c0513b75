/* SPDX-License-Identifier: Apache-2.0 */
/* [fusion] compile: what needs a program that is not compiled yet takes another way meanwhile, or
 * waits.  The driver refuses to launch what was not compiled. */
#include "api/plugin_rig.h"

#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include <frit/inspect.h>

#include "api/host.h"
#include "api/plugin_interface.h"
#include "fake/null/stats.h"

enum { PATIENCE_MS = 60000 };

static const float four[4] = {1, 2, 3, 4};

static void open_null(struct plugin_rig *rig, const char *compile, const char *ms)
{
    rig_plugin(rig, "plugin.null", RIG_NULL);
    rig_set(rig, "plugin.null", "option.compile_ms", ms);
    rig_set(rig, "fusion", "compile", compile);
    rig_open(rig, "null:0");
}

/* Compiles end as open_gate lets them, however long the test takes. */
static void open_gated(struct plugin_rig *rig)
{
    rig_plugin(rig, "plugin.null", RIG_NULL);
    rig_set(rig, "plugin.null", "option.compile_gate", "yes");
    rig_set(rig, "fusion", "compile", "background");
    rig_open(rig, "null:0");
}

/* Lets so many compiles end, now or later; UINT64_MAX: all. */
static void open_gate(const struct plugin_rig *rig, uint64_t n)
{
    void *instance;
    const null_stats *stats = rig_interface(rig->host, "null", NULL_STATS, &instance);

    stats->open_gate(instance, n);
}

/* Unary rows, one after the other; one block. */
static void run(struct plugin_rig *rig, const char *rows)
{
    frit_tensor *x = frit_from_host(rig->dev, FRIT_F32, FRIT_SHAPE(4), four, sizeof(four));

    for (; *rows; rows++)
        x = *rows == 'n' ? frit_neg(frit_take(x)) : frit_exp(frit_take(x));
    assert_int_equal(frit_sync(rig->dev, NULL), FRIT_OK);
    assert_int_equal(frit_tensor_status(x), FRIT_OK);
    frit_release(x);
}

static void pause_ms(void)
{
    static const struct timespec ms = {0, 1000000};

    nanosleep(&ms, NULL);
}

/* Until a run is not one of those that wait. */
static void run_until_ready(struct plugin_rig *rig, const char *rows)
{
    for (int i = 0; i < PATIENCE_MS; i++) {
        uint64_t waiting = rig_stats(rig).waiting;

        run(rig, rows);
        if (rig_stats(rig).waiting == waiting)
            return;
        pause_ms();
    }
    fail_msg("%s is never ready", rows);
}

/* The programs of single ops, compiled. */
static void ready_ops(struct plugin_rig *rig)
{
    run(rig, "n");
    run(rig, "e");
}

/* Where the ops of a block have to be compiled too, its own program is one compile, not many. */
static void a_block_waits_where_its_ops_would(void **state)
{
    struct plugin_rig rig = {0};
    frit_stats stats;

    (void)state;
    open_null(&rig, "background", "30");
    run(&rig, "nene");
    stats = rig_stats(&rig);
    assert_int_equal(stats.waiting, 0);
    assert_int_equal(stats.fused, 1);
    assert_int_equal(stats.launches, 1);
    assert_int_equal(stats.compiles, 1);
    rig_close(&rig);
}

/* The compiles of all programs of a plan are queued before its first launch: the second block of
 * this one is being compiled while the run waits for the first. */
static void a_plan_s_programs_are_compiled_beside_each_other(void **state)
{
    struct plugin_rig rig = {0};
    frit_stats stats;

    (void)state;
    rig_set(&rig, "plugin.null", "option.max_fused_ops", "2");
    open_null(&rig, "background", "30");
    run(&rig, "neennn");
    stats = rig_stats(&rig);
    assert_int_equal(stats.waiting, 0);
    assert_int_equal(stats.fused, 3);
    assert_int_equal(stats.compiles, 3);
    rig_close(&rig);
}

static void ops_run_one_by_one_meanwhile(void **state)
{
    struct plugin_rig rig = {0};
    frit_stats stats;

    (void)state;
    open_gated(&rig);
    open_gate(&rig, 2);
    ready_ops(&rig);
    run(&rig, "nene");
    stats = rig_stats(&rig);
    assert_int_equal(stats.waiting, 1);
    assert_int_equal(stats.fused, 0);
    assert_int_equal(stats.launches, 2 + 4);
    open_gate(&rig, UINT64_MAX);
    run_until_ready(&rig, "nene");
    stats = rig_stats(&rig);
    assert_int_equal(stats.fused, 1);
    assert_int_equal(stats.compiles, 3); /* neg, exp, the block: each once */
    assert_int_equal(stats.fallbacks_ops, 0);
    assert_int_equal(stats.fallbacks_candidate, 0);
    assert_int_equal(stats.disabled, 0);
    rig_close(&rig);
}

/* Nothing is left of the way that was taken meanwhile. */
static void later_runs_are_fused(void **state)
{
    struct plugin_rig rig = {0};
    frit_stats before, after;

    (void)state;
    open_null(&rig, "background", "5");
    run_until_ready(&rig, "nen");
    before = rig_stats(&rig);
    for (int i = 0; i < 10; i++)
        run(&rig, "nen");
    after = rig_stats(&rig);
    assert_int_equal(after.fused - before.fused, 10);
    assert_int_equal(after.launches - before.launches, 10);
    rig_close(&rig);
}

/* Ops whose values between them are large: the program, however long it takes. */
static void large_blocks_wait(void **state)
{
    static const struct {
        int64_t n;
        uint64_t waiting;
    } sizes[] = {{64 << 20, 0}, {(64 << 20) - 1, 1}};
    uint64_t single =
        UINT64_MAX; /* compiles of ops, of which the first round counts how many there are */

    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct plugin_rig rig = {0};
        frit_tensor *x;

        open_gated(&rig);
        open_gate(&rig, single);
        x = frit_full(rig.dev, FRIT_F32, FRIT_SHAPE(1, 3), 1);
        assert_int_equal(frit_sync(rig.dev, NULL), FRIT_OK);
        x = frit_exp(frit_take(x));
        assert_int_equal(frit_sync(rig.dev, NULL), FRIT_OK);
        x = frit_neg(frit_take(x));
        assert_int_equal(frit_sync(rig.dev, NULL), FRIT_OK);
        frit_release(x);
        x = frit_full(rig.dev, FRIT_F32, FRIT_SHAPE(sizes[i].n), 1);
        assert_int_equal(frit_sync(rig.dev, NULL), FRIT_OK);
        single = rig_stats(&rig).compiles;
        x = frit_exp(frit_take(frit_expand(frit_take(x), FRIT_SHAPE(1, sizes[i].n))));
        x = frit_neg(frit_take(x));
        assert_int_equal(frit_sync(rig.dev, NULL), FRIT_OK);
        assert_int_equal(frit_tensor_status(x), FRIT_OK);
        assert_int_equal(rig_stats(&rig).waiting, sizes[i].waiting);
        assert_int_equal(rig_stats(&rig).fused, !sizes[i].waiting);
        frit_release(x);
        open_gate(&rig, UINT64_MAX);
        rig_close(&rig);
    }
}

static void it_may_wait(void **state)
{
    struct plugin_rig rig = {0};
    frit_stats stats;

    (void)state;
    open_null(&rig, "wait", "5");
    run(&rig, "nene");
    stats = rig_stats(&rig);
    assert_int_equal(stats.waiting, 0);
    assert_int_equal(stats.fused, 1);
    assert_int_equal(stats.compiles, 1);
    rig_close(&rig);
}

static atomic_uint n_failures;

static void listen(void *ctx, uint32_t level, const char *topic, const char *text)
{
    (void)ctx, (void)level, (void)topic;
    if (strstr(text, "call 3 of compile fails on request"))
        atomic_fetch_add(&n_failures, 1);
}

static void a_failed_compile_is_a_refusal(void **state)
{
    struct plugin_rig rig = {.log = listen};
    frit_stats before, after;

    (void)state;
    atomic_store(&n_failures, 0);
    rig_set(&rig, "frit", "log", "debug");
    rig_set(&rig, "plugin.null", "option.fail_call", "compile:3:unsupported");
    open_null(&rig, "background", "1");
    run_until_ready(&rig, "n");
    run_until_ready(&rig, "e");
    assert_int_equal(rig_stats(&rig).compiles, 2);
    run_until_ready(&rig, "ne");
    before = rig_stats(&rig);
    assert_int_equal(before.compiles, 3);
    assert_int_equal(before.fallbacks_ops, 1);
    run(&rig, "ne");
    after = rig_stats(&rig);
    assert_int_equal(after.compiles, 3);
    assert_int_equal(after.fallbacks_ops, 1); /* it is bound as its ops, which run */
    assert_int_equal(after.launches - before.launches, 2);
    assert_int_equal(after.waiting, before.waiting);
    assert_int_equal(after.fused, before.fused);
    assert_int_equal(atomic_load(&n_failures), 1);
    rig_close(&rig);
}

/* A device closes while compiles are under way. */
static void closing_waits(void **state)
{
    struct plugin_rig rig = {0};

    (void)state;
    open_null(&rig, "background", "100");
    run(&rig, "nene");
    run(&rig, "nnee");
    rig_close(&rig);
}

/* A run for each of this many blocks, none of which is compiled yet. */
static void run_blocks(struct plugin_rig *rig, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        char rows[10] = "";

        for (unsigned k = 0; k < 9; k++)
            rows[k] = i >> k & 1 ? 'n' : 'e';
        run(rig, rows);
    }
}

/* Compiles that did not begin are cancelled, the running one is requested to stop; none is waited
 * for. */
static void closing_cancels(void **state)
{
    struct plugin_rig rig = {0};
    frit_stats stats;

    (void)state;
    open_gated(&rig);
    open_gate(&rig, 2);
    ready_ops(&rig);
    run_blocks(&rig, 100);
    stats = rig_stats(&rig);
    assert_int_equal(stats.waiting, 100);
    assert_true(stats.compiles < 20);
    alarm(120); /* none of the others ends by itself */
    rig_close(&rig);
    alarm(0);
}

/* Blocks of a plan that are equal: not both at once. */
static void equal_blocks_are_joined(void **state)
{
    struct plugin_rig rig = {0};
    frit_stats stats;

    (void)state;
    rig_set(&rig, "plugin.null", "option.max_fused_ops", "2");
    open_gated(&rig);
    open_gate(&rig, 2);
    ready_ops(&rig);
    run(&rig, "nenene");
    assert_int_equal(rig_stats(&rig).waiting, 3);
    open_gate(&rig, UINT64_MAX);
    run_until_ready(&rig, "nenene");
    stats = rig_stats(&rig);
    assert_int_equal(stats.compiles_joined, 1);
    assert_int_equal(stats.compiles, 4); /* two of the blocks are one program */
    assert_int_equal(stats.compiles_cancelled, 0);
    rig_close(&rig);
}

/* However many signatures there are, and however many of them are to be compiled. */
static void signatures_are_bounded(void **state)
{
    enum { STORE_BYTES = 1 << 20, SIGNATURES = 10000 };
    static float zeros[SIGNATURES];
    struct plugin_rig rig = {0};
    uint64_t most = 0;
    frit_stats stats;

    (void)state;
    rig_set(&rig, "plugin.null", "option.static_shapes", "yes");
    rig_set(&rig, "fusion", "store_bytes", "1048576");
    open_null(&rig, "background", "-1");
    for (uint64_t i = 0; i < SIGNATURES; i++) {
        uint64_t n = 1 + i * 7919 % SIGNATURES;
        frit_tensor *x =
            frit_from_host(rig.dev, FRIT_F32, FRIT_SHAPE((int64_t)n), zeros, n * sizeof(*zeros));

        x = frit_exp(frit_take(frit_neg(frit_take(x))));
        assert_int_equal(frit_sync(rig.dev, NULL), FRIT_OK);
        frit_release(x);
        stats = rig_stats(&rig);
        most = stats.cache_bytes_now > most ? stats.cache_bytes_now : most;
    }
    assert_true(most > STORE_BYTES / 4 && most <= STORE_BYTES / 2);
    assert_true(stats.cache_evicted > SIGNATURES / 2);
    rig_close(&rig);
}

/* Plans are forgotten while their programs are compiled. */
static void programs_live_as_long_as_their_compile(void **state)
{
    static const char *const ms[] = {"3", "30"}; /* the second for a machine that is busy */
    uint64_t n_cancelled = 0;

    (void)state;
    for (size_t i = 0; i < sizeof(ms) / sizeof(ms[0]) && n_cancelled == 0; i++) {
        struct plugin_rig rig = {0};

        rig_set(&rig, "fusion", "store_bytes", "65536");
        open_null(&rig, "background", ms[i]);
        ready_ops(&rig);
        run_blocks(&rig, 512);
        n_cancelled = rig_stats(&rig).compiles_cancelled;
        assert_true(rig_stats(&rig).plans_now < 400);
        rig_close(&rig);
    }
    assert_true(n_cancelled > 0); /* nobody wants them any more */
}

/* Said once at warn with the op, and counted each time, though another way is found. */
static void faults_are_counted_and_reported(void **state)
{
    struct plugin_rig rig = {.log = listen};
    frit_stats stats;

    (void)state;
    atomic_store(&n_failures, 0);
    rig_set(&rig, "plugin.null", "option.fail_call", "compile:3:internal");
    open_null(&rig, "wait", "1");
    run(&rig, "n");
    run(&rig, "e");
    assert_int_equal(rig_stats(&rig).faults, 0);
    run(&rig, "ne");
    stats = rig_stats(&rig);
    assert_int_equal(stats.faults, 1);
    assert_int_equal(stats.fallbacks_ops, 1);
    run(&rig, "ne");
    assert_int_equal(rig_stats(&rig).faults, 2);
    assert_int_equal(atomic_load(&n_failures), 1); /* the log is at warn */
    rig_close(&rig);
}

static void other_words_are_refused(void **state)
{
    frit_err err = {.struct_size = sizeof(err)};
    static const frit_setting setting = {"fusion", "compile", "later"};
    frit_host_params params = {
        .struct_size = sizeof(params), .settings = &setting, .n_settings = 1};
    frit_host *host;

    (void)state;
    assert_int_equal(frit_host_open(&params, &host, &err), FRIT_INVALID);
    assert_string_equal(err.text, "program: [fusion] compile: 'later' is not allowed; "
                                  "set background or wait");
    frit_host_close(host);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_block_waits_where_its_ops_would),
        cmocka_unit_test(a_plan_s_programs_are_compiled_beside_each_other),
        cmocka_unit_test(ops_run_one_by_one_meanwhile),
        cmocka_unit_test(later_runs_are_fused),
        cmocka_unit_test(large_blocks_wait),
        cmocka_unit_test(it_may_wait),
        cmocka_unit_test(a_failed_compile_is_a_refusal),
        cmocka_unit_test(closing_waits),
        cmocka_unit_test(closing_cancels),
        cmocka_unit_test(equal_blocks_are_joined),
        cmocka_unit_test(signatures_are_bounded),
        cmocka_unit_test(faults_are_counted_and_reported),
        cmocka_unit_test(programs_live_as_long_as_their_compile),
        cmocka_unit_test(other_words_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
