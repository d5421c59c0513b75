/* SPDX-License-Identifier: Apache-2.0 */
/* Candidates are measured and checked at first launches: the fastest right one runs from then on,
 * those that are bad never again, and every result is right meanwhile. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <frit/frit.h>
#include <frit/inspect.h>
#include <frit/tune.h>

#include "api/host.h"
#include "base/clock.h"
#include "base/str.h"
#include "device/device.h"
#include "fake/candidates/stats.h"
#include "memory/buffer.h"
#include "memory/memory.h"
#include "plugin_interface.h"
#include "plugin_rig.h"
#include "run/preassign.h"
#include "tune/key.h"
#include "tune/store.h"

#define RIG_CANDIDATES "fake/candidates/libfrit-fake-candidates.so"
#define PLUGIN         "plugin.fake-candidates"
#define LONG_MS        "600000" /* enough for every limit, with sanitizers too */

enum { MOST = 5000, AGAIN = 6 };

static const candidates_stats *stats_of(const struct plugin_rig *rig, void **instance)
{
    return rig_interface(rig->host, "fake-candidates", CANDIDATES_STATS, instance);
}

static uint64_t launches(const struct plugin_rig *rig, const char *name)
{
    void *instance;
    const candidates_stats *stats = stats_of(rig, &instance);

    return stats->launches(instance, (frit_str){name, strlen(name)});
}

/* How a device is opened: pairs of options of the plugin.  By a real clock launches take long
 * enough that what the host adds, with sanitizers too, decides nothing. */
static const char *const ways[][7] = {
    {"option.clock", "simulated", NULL},
    {"option.clock", "none", "option.host_pointers", "no", "option.cost_ns", "500000", NULL},
    {"option.clock", "real", "option.compiles", "yes", "option.cost_ns", "500000", NULL},
};
enum { WAYS = sizeof(ways) / sizeof(*ways), TRIES = 20 };

/* By a real clock another process may take the processor from what is faster by a factor of two. */
static int tries_of(int way)
{
    return way ? TRIES : 1;
}

static void begin_rig(struct plugin_rig *rig, const char *candidates, const char *const *options,
                      const char *when, const char *budget)
{
    memset(rig, 0, sizeof(*rig));
    rig_plugin(rig, PLUGIN, RIG_CANDIDATES);
    rig_set(rig, PLUGIN, "option.candidates", candidates);
    for (; options[0]; options += 2)
        rig_set(rig, PLUGIN, options[0], options[1]);
    rig_set(rig, "fusion", "store", "none");
    rig_set(rig, "tune", "when", when);
    rig_set(rig, "tune", "budget", budget);
    rig_set(rig, "frit", "log", "off");
}

static void open_with(struct plugin_rig *rig, const char *candidates, const char *const *options,
                      const char *when)
{
    begin_rig(rig, candidates, options, when, "5000");
}

static void open_rig(struct plugin_rig *rig, const char *candidates, const char *const *options)
{
    open_with(rig, candidates, options, "any");
    rig_open(rig, "candidates");
}

/* ---- programs ---- */

static frit_tensor *numbers(const struct plugin_rig *rig, int64_t n, float from)
{
    static float data[MOST];

    for (int64_t i = 0; i < n; i++)
        data[i] = from + (float)(i % 100);
    return frit_from_host(rig->dev, FRIT_F32, FRIT_SHAPE(n), data, (uint64_t)n * sizeof(*data));
}

/* Element i is `from` and `step` for each of i % 100. */
static void expect_sum(frit_tensor *tensor, int64_t n, float from, int step)
{
    static float data[MOST];
    frit_err err = {.struct_size = sizeof(err)};

    if (frit_read(tensor, data, (uint64_t)n * sizeof(*data), &err))
        fail_msg("%s", err.text);
    for (int64_t i = 0; i < n; i++)
        if (data[i] != from + (float)(step * (int)(i % 100)))
            fail_msg("element %d of %d is %g", (int)i, (int)n, (double)data[i]);
}

/* One sum of two tensors, in the memory of one of them or not. */
static void add_once(const struct plugin_rig *rig, int64_t n, bool in_place)
{
    frit_tensor *a = numbers(rig, n, 1), *b = numbers(rig, n, 2);
    frit_tensor *sum = in_place ? frit_add(frit_take(a), b) : frit_add(a, b);

    expect_sum(sum, n, 3, 2);
    frit_release(sum);
    frit_release(b);
    if (!in_place)
        frit_release(a);
}

static void add_again(const struct plugin_rig *rig, int64_t n)
{
    for (int i = 0; i < AGAIN; i++)
        add_once(rig, n, i % 2);
}

/* ---- the fastest ---- */

static bool wins(const char *candidates, const char *winner, int64_t n, int way)
{
    struct plugin_rig rig;
    uint64_t before;
    bool always;

    open_rig(&rig, candidates, ways[way]);
    add_once(&rig, n, false);
    add_once(&rig, n, true);
    before = launches(&rig, winner);
    add_again(&rig, n);
    always = launches(&rig, winner) - before == AGAIN;
    rig_close(&rig);
    return always;
}

static void expect_winner(const char *candidates, const char *winner, int64_t n)
{
    for (int w = 0; w < WAYS; w++) {
        int tries = tries_of(w);

        while (tries && !wins(candidates, winner, n, w))
            tries--;
        if (!tries)
            fail_msg("%s: %s does not run, way %d", candidates, winner, w);
    }
}

static void the_fastest_runs(void **state)
{
    (void)state;
    expect_winner("slow:800,fast:10,equal", "fast", 1000);
    expect_winner("slow:800,equal", "first", 1000);
    expect_winner("preferred:800,slow:800", "first", 1000);
}

static void the_first_fast_call_does_not_count(void **state)
{
    (void)state;
    expect_winner("fast_once", "first", 1000);
}

/* Each size has a decision of its own. */
static void sizes_differ(void **state)
{
    struct plugin_rig rig;
    uint64_t small, large;

    (void)state;
    open_rig(&rig, "small,large", ways[0]);
    add_once(&rig, 100, false);
    add_once(&rig, 5000, false);
    small = launches(&rig, "small");
    add_again(&rig, 100);
    assert_int_equal(launches(&rig, "small") - small, AGAIN);
    large = launches(&rig, "large");
    add_again(&rig, 5000);
    assert_int_equal(launches(&rig, "large") - large, AGAIN);
    rig_close(&rig);
}

/* What is fast only on operands that it has just used is not fast for programs. */
static void operands_are_rotated(void **state)
{
    static const char *const cold[] = {"option.clock", "simulated", "option.cache_bytes", "65536",
                                       NULL};
    static const char *const warm[] = {"option.clock", "simulated", "option.cache_bytes", "64",
                                       NULL};
    struct plugin_rig rig;
    uint64_t before;

    (void)state;
    open_rig(&rig, "fast_cached,slow", cold);
    add_once(&rig, 1000, false);
    before = launches(&rig, "first");
    add_again(&rig, 1000);
    assert_int_equal(launches(&rig, "first") - before, AGAIN);
    rig_close(&rig);
    open_rig(&rig, "fast_cached,slow", warm); /* operands that evict themselves */
    add_once(&rig, 1000, false);
    before = launches(&rig, "fast_cached");
    add_again(&rig, 1000);
    assert_int_equal(launches(&rig, "fast_cached") - before, AGAIN);
    rig_close(&rig);
}

/* ---- the roofline ---- */

static frit_decision_desc decision_of(const struct plugin_rig *rig, frit_decisions **list,
                                      const char *what)
{
    frit_decision_desc desc = {.struct_size = sizeof(desc)};

    assert_int_equal(frit_decisions_read(rig->dev, list, NULL), FRIT_OK);
    for (uint64_t i = 0; !frit_decision_at(*list, i, &desc); i++)
        if (strncmp(desc.what, what, strlen(what)) == 0)
            return desc;
    fail_msg("no decision for %s", what);
}

static void sum_up(const struct plugin_rig *rig, int64_t n)
{
    float *data = calloc((size_t)n, sizeof(*data));
    frit_tensor *zeros =
        frit_from_host(rig->dev, FRIT_F32, FRIT_SHAPE(n), data, (uint64_t)n * sizeof(*data));
    frit_tensor *sum = frit_sum(zeros, .axes = FRIT_AXES(0));
    float result;

    assert_int_equal(frit_read(sum, &result, sizeof(result), NULL), FRIT_OK);
    assert_true(result == 0);
    frit_release(sum);
    frit_release(zeros);
    free(data);
}

/* 5 MiB: the first candidate takes no longer than any launch of the device does, and the others are
 * not timed.  In 4 MiB and less a launch runs at four times the rate, which must end no search of
 * a larger one. */
static void a_launch_at_the_limit_ends_the_search(void **state)
{
    static const char *const even[] = {
        "option.clock", "simulated", "option.cost_ns", "0", "option.mib_ns", "100000", NULL};
    static const char *const cached[] = {
        "option.clock", "simulated",          "option.cost_ns", "0", "option.mib_ns",
        "100000",       "option.cache_bytes", "4500000",        NULL};
    const int64_t n = 5 << 18;
    struct plugin_rig rig;
    frit_decisions *list;

    (void)state;
    begin_rig(&rig, "slow", even, "any", LONG_MS);
    rig_open(&rig, "candidates");
    sum_up(&rig, n);
    assert_string_equal(decision_of(&rig, &list, "sum").reason, "roofline");
    frit_decisions_free(list);
    assert_string_equal(decision_of(&rig, &list, "roofline: sum").reason, "measured");
    frit_decisions_free(list);
    rig_close(&rig);
    begin_rig(&rig, "slow", cached, "any", LONG_MS);
    rig_open(&rig, "candidates");
    sum_up(&rig, n);
    assert_string_equal(decision_of(&rig, &list, "sum").reason, "measured");
    frit_decisions_free(list);
    rig_close(&rig);
}

/* As from a machine that was busy: twice as long as the device takes. */
static void add_slow_limits(const struct plugin_rig *rig)
{
    for (uint32_t step = 0; step < 3; step++) {
        const uint64_t ns = UINT64_C(200000) << (2 * step);
        const struct tune_candidate one = {
            .identity = "first", .state = TUNE_RIGHT, .n_samples = 1, .samples = &ns};

        for (int sum = 0; sum < 2; sum++) {
            struct str key = {0};

            tune_key_limit(sum ? FRIT_OP_sum : FRIT_OP_add, FRIT_F32, step, &key);
            assert_int_equal(tune_store_add(device_tune_store(rig->dev),
                                            &(struct tune_record){.key = key.text,
                                                                  .key_bytes = key.length,
                                                                  .what = "roofline: slow",
                                                                  .n_candidates = 1,
                                                                  .candidates = &one},
                                            NULL),
                             FRIT_OK);
            str_fini(&key);
        }
    }
}

/* The first candidate is faster than the limit, and the next one faster still. */
static void a_wrong_limit_ends_no_search(void **state)
{
    static const char *const even[] = {
        "option.clock", "simulated", "option.cost_ns", "0", "option.mib_ns", "100000", NULL};
    frit_decision_desc decision = {.struct_size = sizeof(decision)};
    frit_tried_desc winner = {.struct_size = sizeof(winner)};
    struct plugin_rig rig;
    frit_decisions *list;

    (void)state;
    open_rig(&rig, "fast", even);
    add_slow_limits(&rig);
    sum_up(&rig, 5 << 18);
    assert_int_equal(frit_decisions_read(rig.dev, &list, NULL), FRIT_OK);
    assert_int_equal(frit_decision_at(list, 0, &decision), FRIT_OK);
    assert_string_equal(decision.reason, "measured"); /* the only one: limits are forgotten */
    assert_int_equal(frit_decision_candidate_at(list, 0, 0, &winner), FRIT_OK);
    assert_string_equal(winner.identity, "fast");
    assert_int_equal(frit_decision_at(list, 1, &decision), FRIT_INVALID);
    frit_decisions_free(list);
    rig_close(&rig);
}

/* ---- bad ones ---- */

static const char *const bad[] = {"wrong_odd",      "silent",        "beyond",  "before",
                                  "wrong_in_place", "class_lies",    "refuses", "declines",
                                  "big_workspace",  "refuses_later", "fails"};

enum { N_WRONG = 6 /* of these, the first ones */ };

/* With one that is right, and faster than the first, beside it. */
static void bad_ones_never_run_again(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        char candidates[64];
        struct plugin_rig rig;
        uint64_t before, fast;

        snprintf(candidates, sizeof(candidates), "%s,fast:10", bad[i]);
        open_rig(&rig, candidates, ways[i % WAYS]);
        add_once(&rig, 1000, false); /* even: wrong_odd is right */
        add_once(&rig, 1001, false);
        add_once(&rig, 1001, true);
        before = launches(&rig, bad[i]);
        fast = launches(&rig, "fast");
        add_again(&rig, 1001);
        if (launches(&rig, bad[i]) != before)
            fail_msg("%s ran again", bad[i]);
        assert_int_equal(launches(&rig, "fast") - fast, AGAIN);
        assert_in_range(rig_stats(&rig).tuned, 1, 2);
        assert_int_equal(rig_stats(&rig).quarantined, i < N_WRONG);
        rig_close(&rig);
    }
}

/* ---- splits ---- */

/* 995, 997 and 999 share a decision, until its winner refuses one of them. */
static void a_refused_size_is_tuned_apart(void **state)
{
    struct plugin_rig rig;
    uint64_t before;

    (void)state;
    open_with(&rig, "refuses_size:10,slow,fast", ways[0], "any");
    rig_set(&rig, PLUGIN, "option.refuse_size", "997");
    rig_open(&rig, "candidates");
    add_once(&rig, 999, false);
    assert_int_equal(rig_stats(&rig).tuned, 1);
    add_once(&rig, 997, false); /* the next best one runs */
    assert_int_equal(rig_stats(&rig).tuned, 1);
    before = launches(&rig, "fast");
    add_once(&rig, 997, false);
    assert_int_equal(rig_stats(&rig).tuned, 2);
    assert_true(launches(&rig, "fast") > before);
    before = launches(&rig, "fast");
    add_again(&rig, 997);
    assert_int_equal(launches(&rig, "fast") - before, AGAIN);
    before = launches(&rig, "refuses_size");
    add_again(&rig, 995);
    assert_int_equal(launches(&rig, "refuses_size") - before, AGAIN);
    assert_int_equal(rig_stats(&rig).tuned, 2);
    rig_close(&rig);
}

/* ---- blocks in parts ---- */

enum { SMALL = 100, LARGE = 4000, SPLIT = 1000 }; /* the fused program is slow from SPLIT on */

static void open_fusing(struct plugin_rig *rig, const char *candidates, const char *const *options)
{
    open_with(rig, candidates, options, "any");
    rig_set(rig, PLUGIN, "option.fuses", "8");
    rig_set(rig, PLUGIN, "option.split", "1000");
}

/* a * 2 + b, one program of two ops, whose result may lie in the memory of an operand. */
static frit_tensor *chain(const struct plugin_rig *rig, int64_t n, bool in_place)
{
    frit_tensor *a = numbers(rig, n, 1), *b = numbers(rig, n, 2);
    frit_tensor *sum = frit_add(frit_take(frit_mul_f(a, 2)), in_place ? frit_take(b) : b);

    frit_release(a);
    if (!in_place)
        frit_release(b);
    return sum;
}

static void chain_again(const struct plugin_rig *rig, int64_t n, int times)
{
    for (int i = 0; i < times; i++) {
        frit_tensor *sum = chain(rig, n, i % 2);

        expect_sum(sum, n, 4, 3);
        frit_release(sum);
    }
}

/* Whether chains of `n` run as one program, or in parts, from now on. */
static bool chains_run(const struct plugin_rig *rig, int64_t n, bool in_parts)
{
    const uint64_t fused = launches(rig, "fused"), single = launches(rig, "first");
    const uint64_t parts = rig_stats(rig).in_parts;

    chain_again(rig, n, AGAIN);
    return launches(rig, "fused") - fused == (in_parts ? 0 : AGAIN) &&
           launches(rig, "first") - single == (in_parts ? 2 * AGAIN : 0) &&
           rig_stats(rig).in_parts - parts == (in_parts ? AGAIN : 0);
}

static void expect_chains(const struct plugin_rig *rig, int64_t n, bool in_parts)
{
    assert_true(chains_run(rig, n, in_parts));
}

static bool large_ones_run_in_parts(int way)
{
    struct plugin_rig rig;
    bool is_right;

    open_fusing(&rig, "", ways[way]);
    rig_open(&rig, "candidates");
    chain_again(&rig, SMALL, 2);
    chain_again(&rig, LARGE, 2);
    is_right = chains_run(&rig, SMALL, false) && chains_run(&rig, LARGE, true);
    assert_int_equal(rig_stats(&rig).tuned >= 2, true);
    assert_int_equal(rig_stats(&rig).quarantined, 0);
    assert_true(rig_stats(&rig).bound_launches > 0);
    rig_close(&rig);
    return is_right;
}

static void slow_blocks_run_in_parts(void **state)
{
    (void)state;
    for (int w = 0; w < WAYS; w++) {
        int tries = tries_of(w);

        while (tries && !large_ones_run_in_parts(w))
            tries--;
        assert_true(tries);
    }
}

/* The sum is written into given memory: densely by the last part. */
static void parts_write_into_preassigned_memory(void **state)
{
    const uint64_t bytes = LARGE * sizeof(float);
    struct plugin_rig rig;
    struct buffer *memory;

    (void)state;
    open_fusing(&rig, "", ways[0]);
    rig_open(&rig, "candidates");
    chain_again(&rig, LARGE, 2);
    assert_int_equal(buffer_create(rig.dev->memory, 2 * bytes, false, &memory, NULL), FRIT_OK);
    for (int i = 0; i < AGAIN; i++) {
        const uint64_t single = launches(&rig, "first"), first = (uint64_t)(i % 2) * bytes;
        frit_tensor *a = numbers(&rig, LARGE, 1), *b = numbers(&rig, LARGE, 2);
        frit_tensor *sum = frit_add(frit_take(frit_mul_f(a, 2)), b);

        assert_int_equal(stream_preassign(sum, memory, first, NULL), FRIT_OK);
        assert_int_equal(launches(&rig, "first"), single);
        expect_sum(sum, LARGE, 4, 3);
        assert_int_equal(launches(&rig, "first") - single, 2);
        frit_release(sum);
        frit_release(a);
        frit_release(b);
    }
    buffer_disown(memory);
    rig_close(&rig);
}

/* The decision is of another process, as it were; the parts have candidates of their own. */
static void decisions_on_parts_are_kept(void **state)
{
    char folder[] = "/tmp/frit-parts-XXXXXX", path[64];

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/tune.db", folder);
    for (int i = 0; i < 2; i++) {
        struct plugin_rig rig;

        open_fusing(&rig, "", ways[0]);
        rig_set(&rig, "tune", "store", path);
        rig_open(&rig, "candidates");
        chain_again(&rig, SMALL, 2);
        chain_again(&rig, LARGE, 2);
        expect_chains(&rig, SMALL, false);
        expect_chains(&rig, LARGE, true);
        assert_int_equal(rig_stats(&rig).tuned > 0, i == 0);
        rig_close(&rig);
    }
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
}

/* Of which one is faster than the first: the block's other program is slower than that, too. */
static void parts_choose_among_their_candidates(void **state)
{
    struct plugin_rig rig;
    uint64_t fast;

    (void)state;
    open_fusing(&rig, "fast:10", ways[0]);
    rig_open(&rig, "candidates");
    chain_again(&rig, LARGE, 2);
    fast = launches(&rig, "fast");
    chain_again(&rig, LARGE, AGAIN);
    assert_int_equal(launches(&rig, "fast") - fast, 2 * AGAIN);
    rig_close(&rig);
}

static void forced_parts(struct plugin_rig *rig, const char *numeric, const char *refuses)
{
    open_fusing(rig, "", ways[0]);
    rig_set(rig, "tune", "force", "parts");
    rig_set(rig, "fusion", "numeric", numeric);
    rig_set(rig, PLUGIN, "option.add_refuses", refuses);
    rig_open(rig, "candidates");
}

static void parts_that_cannot_run_leave_it_to_the_program(void **state)
{
    struct plugin_rig rig;

    (void)state;
    forced_parts(&rig, "reordered", "1000");
    chain_again(&rig, SMALL, 2);
    expect_chains(&rig, SMALL, true);
    for (int i = 0; i < AGAIN; i++) {
        const uint64_t fused = launches(&rig, "fused"), in_parts = rig_stats(&rig).in_parts;

        chain_again(&rig, LARGE, 1);
        assert_int_equal(launches(&rig, "fused") - fused, 1);
        assert_int_equal(rig_stats(&rig).in_parts, in_parts);
    }
    rig_close(&rig);
    forced_parts(&rig, "exact", "0");
    expect_chains(&rig, SMALL, false);
    rig_close(&rig);
}

/* ---- composite ops ---- */

static void open_means(struct plugin_rig *rig, const char *const *options, const char *store,
                       const char *force)
{
    open_with(rig, "", options, "any");
    rig_set(rig, PLUGIN, "option.means", "yes");
    rig_set(rig, PLUGIN, "option.split", "1000");
    rig_set(rig, "tune", "store", store);
    rig_set(rig, "tune", "force", force);
    rig_open(rig, "candidates");
}

/* The mean of `n` numbers that end after a whole hundred. */
static void mean_again(const struct plugin_rig *rig, int64_t n, int times)
{
    for (int i = 0; i < times; i++) {
        frit_tensor *x = numbers(rig, n, 1), *mean = frit_mean(x, .axes = FRIT_AXES(0));

        expect_sum(mean, 1, 50.5f, 0);
        frit_release(mean);
        frit_release(x);
    }
}

/* Whether means of `n` run as what they stand for, two launches, from now on. */
static bool means_run(const struct plugin_rig *rig, int64_t n, bool decomposed)
{
    const uint64_t whole = launches(rig, "whole"), first = launches(rig, "first");

    mean_again(rig, n, AGAIN);
    return launches(rig, "whole") - whole == (decomposed ? 0 : AGAIN) &&
           launches(rig, "first") - first == (decomposed ? 2 * AGAIN : 0);
}

static void expect_means(const struct plugin_rig *rig, int64_t n, bool decomposed)
{
    assert_true(means_run(rig, n, decomposed));
}

static bool large_ones_are_decomposed(int way)
{
    struct plugin_rig rig;
    bool is_right;

    open_means(&rig, ways[way], "none", "none");
    mean_again(&rig, SMALL, 2);
    mean_again(&rig, LARGE, 3);
    is_right = means_run(&rig, SMALL, false) && means_run(&rig, LARGE, true) &&
               means_run(&rig, SMALL, false);
    assert_int_equal(rig_stats(&rig).quarantined, 0);
    if (is_right)
        assert_true(rig_stats(&rig).decomposed > 0);
    rig_close(&rig);
    return is_right;
}

static void slow_composites_are_decomposed(void **state)
{
    (void)state;
    for (int w = 0; w < WAYS; w++) {
        int tries = tries_of(w);

        while (tries && !large_ones_are_decomposed(w))
            tries--;
        assert_true(tries);
    }
}

static void decisions_on_composites_are_kept(void **state)
{
    char folder[] = "/tmp/frit-forms-XXXXXX", path[64];
    frit_err err = {.struct_size = sizeof(err)};

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/tune.db", folder);
    for (int i = 0; i < 2; i++) {
        struct plugin_rig rig;

        open_means(&rig, ways[0], path, "none");
        mean_again(&rig, SMALL, i ? 0 : 2);
        mean_again(&rig, LARGE, i ? 0 : 3);
        expect_means(&rig, SMALL, false);
        expect_means(&rig, LARGE, true);
        assert_int_equal(rig_stats(&rig).tuned > 0, i == 0);
        if (i)
            assert_int_equal(frit_decisions_forget(rig.dev, NULL, NULL, &err), FRIT_OK);
        mean_again(&rig, LARGE, AGAIN);
        rig_close(&rig);
    }
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
}

static void a_forced_form_runs(void **state)
{
    struct plugin_rig rig;

    (void)state;
    open_means(&rig, ways[0], "none", "decomposed");
    expect_means(&rig, SMALL, true);
    rig_close(&rig);
}

/* ---- while the device is idle ---- */

enum { WAIT_MS = 10000, BUSY_MS = 50, CALM_MS = 9, NS_PER_MS = 1000000 };

static void sleep_ms(int64_t ms)
{
    const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    nanosleep(&time, NULL);
}

/* Copies the reason of the decision on add. */
static void reason_of(const struct plugin_rig *rig, char out[32])
{
    frit_decisions *list;
    const frit_decision_desc decision = decision_of(rig, &list, "add");

    snprintf(out, 32, "%s", decision.reason);
    frit_decisions_free(list);
}

static void open_idle(struct plugin_rig *rig, const char *const *options, const char *idle)
{
    begin_rig(rig, "slow,equal,fast:10", options, "any", "1");
    rig_set(rig, "tune", "idle", idle);
    rig_open(rig, "candidates");
}

/* Plans that ran before follow a moment after the decision can be read. */
static void await_launch(const struct plugin_rig *rig, const char *name)
{
    const uint64_t before = launches(rig, name), begun = clock_ns();

    while (launches(rig, name) == before && clock_ns() - begun < WAIT_MS * (uint64_t)NS_PER_MS)
        add_once(rig, 1000, false);
}

/* The first launch has no time for all of its candidates; the best one runs all the same, once
 * there was time, in plans that ran before. */
static void the_rest_is_measured_when_idle(void **state)
{
    (void)state;
    for (int w = 1; w < WAYS; w++) {
        struct plugin_rig rig;
        char reason[32];
        uint64_t before;

        open_idle(&rig, ways[w], "60000");
        add_once(&rig, 1000, false);
        add_again(&rig, 1000);
        reason_of(&rig, reason);
        for (int ms = 0; ms < WAIT_MS && strcmp(reason, "budget") == 0; ms += 5) {
            sleep_ms(5);
            reason_of(&rig, reason);
        }
        assert_string_equal(reason, "measured");
        await_launch(&rig, "fast");
        before = launches(&rig, "fast");
        add_again(&rig, 1000);
        assert_int_equal(launches(&rig, "fast") - before, AGAIN);
        rig_close(&rig);
    }
}

static uint64_t trials(const struct plugin_rig *rig)
{
    return launches(rig, "slow") + launches(rig, "equal") + launches(rig, "fast");
}

/* Keeps the device at work for BUSY_MS; the longest time without a launch.  *n: trials at the end.
 */
static uint64_t be_busy(const struct plugin_rig *rig, uint64_t *n)
{
    const uint64_t begun = clock_ns();
    uint64_t last = begun, longest = 0;

    while (last - begun < BUSY_MS * NS_PER_MS) {
        uint64_t now;

        add_once(rig, 1000, false);
        *n = trials(rig);
        now = clock_ns();
        longest = now - last > longest ? now - last : longest;
        last = now;
    }
    return longest;
}

/* A contest waits when the device is closed. */
static void a_busy_device_measures_nothing(void **state)
{
    struct plugin_rig rig;
    uint64_t before, after, gap = UINT64_MAX;

    (void)state;
    for (int tries = 0; tries < 20 && gap >= CALM_MS * NS_PER_MS; tries++) {
        open_idle(&rig, ways[1], "60000");
        add_once(&rig, 1000, false);
        before = trials(&rig);
        gap = be_busy(&rig, &after);
        if (gap < CALM_MS * NS_PER_MS)
            assert_int_equal(after, before);
        rig_close(&rig);
    }
    if (gap >= CALM_MS * NS_PER_MS)
        skip(); /* the machine is too slow to keep a device at work */
}

static void it_can_be_switched_off(void **state)
{
    struct plugin_rig rig;
    char reason[32];

    (void)state;
    open_idle(&rig, ways[1], "0");
    add_once(&rig, 1000, false);
    sleep_ms(5 * CALM_MS);
    reason_of(&rig, reason);
    assert_string_equal(reason, "budget");
    rig_close(&rig);
}

/* The user's measurement is neither refused nor counts what trials do. */
static void device_time_is_the_users(void **state)
{
    struct plugin_rig rig;

    (void)state;
    open_idle(&rig, ways[2], "60000");
    add_once(&rig, 1000, false);
    for (int i = 0; i < 10; i++) {
        frit_device_time time = {.struct_size = sizeof(time)};

        assert_int_equal(frit_device_time_start(rig.dev, NULL), FRIT_OK);
        sleep_ms(3);
        assert_int_equal(frit_device_time_stop(rig.dev, &time, NULL), FRIT_OK);
        assert_int_equal(time.commands, 0);
        sleep_ms(15);
    }
    rig_close(&rig);
}

/* ---- when ---- */

/* Plans that are bound, or recorded by the driver, do not outlast what they follow. */
static void decisions_reach_bound_plans_at_once(void **state)
{
    (void)state;
    for (int captures = 0; captures < 2; captures++) {
        struct plugin_rig rig;
        uint64_t before;

        open_with(&rig, "fast", ways[0], "any");
        if (captures)
            rig_set(&rig, PLUGIN, "option.captures", "yes");
        rig_open(&rig, "candidates");
        add_once(&rig, 1000, false);
        add_again(&rig, 1000);
        add_again(&rig, 1000);
        assert_int_equal(rig_stats(&rig).tuned, 1);
        assert_int_equal(frit_decisions_forget(rig.dev, NULL, NULL, NULL), FRIT_OK);
        before = launches(&rig, "first");
        add_once(&rig, 1000, false);
        assert_int_equal(rig_stats(&rig).tuned, 2);
        assert_true(launches(&rig, "first") > before); /* in its trials */
        rig_close(&rig);
    }
}

static void nothing_is_measured_ahead(void **state)
{
    struct plugin_rig rig;

    (void)state;
    open_with(&rig, "fast", ways[0], "ahead");
    rig_open(&rig, "candidates");
    add_again(&rig, 1000);
    assert_int_equal(launches(&rig, "fast"), 0);
    assert_int_equal(launches(&rig, "first"), AGAIN);
    rig_close(&rig);
}

static void a_forced_one_runs(void **state)
{
    struct plugin_rig rig;

    (void)state;
    open_with(&rig, "fast,slow", ways[0], "any");
    rig_set(&rig, "tune", "force", "slow");
    rig_open(&rig, "candidates");
    add_again(&rig, 1000);
    assert_int_equal(launches(&rig, "slow"), AGAIN);
    assert_int_equal(launches(&rig, "fast"), 0);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fastest_runs),
        cmocka_unit_test(the_first_fast_call_does_not_count),
        cmocka_unit_test(sizes_differ),
        cmocka_unit_test(operands_are_rotated),
        cmocka_unit_test(a_launch_at_the_limit_ends_the_search),
        cmocka_unit_test(a_wrong_limit_ends_no_search),
        cmocka_unit_test(bad_ones_never_run_again),
        cmocka_unit_test(the_rest_is_measured_when_idle),
        cmocka_unit_test(a_busy_device_measures_nothing),
        cmocka_unit_test(it_can_be_switched_off),
        cmocka_unit_test(device_time_is_the_users),
        cmocka_unit_test(a_refused_size_is_tuned_apart),
        cmocka_unit_test(decisions_reach_bound_plans_at_once),
        cmocka_unit_test(slow_blocks_run_in_parts),
        cmocka_unit_test(parts_write_into_preassigned_memory),
        cmocka_unit_test(decisions_on_parts_are_kept),
        cmocka_unit_test(parts_choose_among_their_candidates),
        cmocka_unit_test(parts_that_cannot_run_leave_it_to_the_program),
        cmocka_unit_test(slow_composites_are_decomposed),
        cmocka_unit_test(decisions_on_composites_are_kept),
        cmocka_unit_test(a_forced_form_runs),
        cmocka_unit_test(nothing_is_measured_ahead),
        cmocka_unit_test(a_forced_one_runs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
