/* SPDX-License-Identifier: Apache-2.0 */
/* Numeric sections: a candidate of a looser class is not used for ops that were recorded in one,
 * however fast it is; cold, measured, replayed and recorded by the driver. */
#include "unit.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <frit/frit.h>

#include "api/host.h"
#include "device/device.h"
#include "fake/candidates/stats.h"
#include "plugin_interface.h"
#include "plugin_rig.h"

#define RIG_CANDIDATES "fake/candidates/libfrit-fake-candidates.so"
#define PLUGIN         "plugin.fake-candidates"

enum { N = 1000, ROUNDS = 8 /* enough for a plan to be replayed, and recorded by the driver */ };

struct numeric_rig {
    struct plugin_rig rig;
    const candidates_stats *stats;
    void *instance;
};

static void find_stats(struct numeric_rig *r)
{
    r->stats = rig_interface(r->rig.host, "fake-candidates", CANDIDATES_STATS, &r->instance);
}

/* Where decisions stay from one host to the next. */
static char scratch[] = "/tmp/frit-numeric-XXXXXX", store[64];

static void make_scratch(void)
{
    assert_non_null(mkdtemp(scratch));
    snprintf(store, sizeof(store), "%s/tune.db", scratch);
}

static void remove_scratch(void)
{
    (void)remove(store);
    assert_int_equal(rmdir(scratch), 0);
}

/* `reduced` takes a tenth of the first candidate's time, and differs from it by 2^-9. */
static void open_more(struct numeric_rig *r, const char *numeric, const char *when,
                      const char *captures, const char *deterministic)
{
    rig_plugin(&r->rig, PLUGIN, RIG_CANDIDATES);
    rig_set(&r->rig, PLUGIN, "option.candidates", "reduced:10,fast:50");
    rig_set(&r->rig, PLUGIN, "option.clock", "simulated");
    rig_set(&r->rig, PLUGIN, "option.captures", captures);
    rig_set(&r->rig, "fusion", "store", "none");
    rig_set(&r->rig, "fusion", "numeric", numeric);
    rig_set(&r->rig, "tune", "when", when);
    rig_set(&r->rig, "tune", "budget", "5000");
    rig_set(&r->rig, "tune", "store", *store ? store : "none");
    rig_set(&r->rig, "tune", "deterministic", deterministic);
    rig_set(&r->rig, "frit", "log", "off");
    rig_open(&r->rig, "candidates");
    find_stats(r);
}

static void open_with(struct numeric_rig *r, const char *numeric, const char *when,
                      const char *captures, const char *deterministic)
{
    memset(r, 0, sizeof(*r));
    open_more(r, numeric, when, captures, deterministic);
}

static void open_rig(struct numeric_rig *r, const char *numeric, const char *when,
                     const char *captures)
{
    open_with(r, numeric, when, captures, "no");
}

static uint64_t launches(const struct numeric_rig *r, const char *name)
{
    return r->stats->launches(r->instance, (frit_str){name, strlen(name)});
}

static frit_tensor *numbers(const struct numeric_rig *r)
{
    static float data[N];

    for (int i = 0; i < N; i++)
        data[i] = 1 + (float)(i % 100);
    return frit_from_host(r->rig.dev, FRIT_F32, FRIT_SHAPE(N), data, sizeof(data));
}

/* How many elements have the first candidate's bits. */
static int read_exact(frit_tensor *tensor)
{
    static float data[N];
    frit_err err = {.struct_size = sizeof(err)};
    int n = 0;

    if (frit_read(tensor, data, sizeof(data), &err))
        fail_msg("%s", err.text);
    for (int i = 0; i < N; i++)
        n += data[i] == 2 * (1 + (float)(i % 100));
    return n;
}

static void begin(uint32_t numeric_class)
{
    frit_err err = {.struct_size = sizeof(err)};

    if (frit_numeric_begin(numeric_class, &err))
        fail_msg("%s", err.text);
}

static void end(void)
{
    assert_int_equal(frit_numeric_end(NULL), FRIT_OK);
}

/* x + x, of which `reduced` computes every element, or none. */
static void add(struct numeric_rig *r, frit_tensor *x, bool reduced)
{
    const uint64_t before = launches(r, "reduced");
    frit_tensor *sum = frit_add(x, x);
    const int exact = read_exact(sum);

    frit_release(sum);
    assert_int_equal(exact, reduced ? 0 : N);
    if (launches(r, "reduced") - before != reduced)
        fail_msg("`reduced` ran %d times", (int)(launches(r, "reduced") - before));
}

/* The first launch, which may measure. */
static void add_cold(struct numeric_rig *r, frit_tensor *x, bool may_reduce)
{
    const uint64_t before = launches(r, "reduced");
    frit_tensor *sum = frit_add(x, x);
    const int exact = read_exact(sum);

    frit_release(sum);
    assert_int_equal(exact, may_reduce ? 0 : N);
    if (!may_reduce)
        assert_int_equal(launches(r, "reduced"), before);
}

/* Each launch of some in a section, and outside of it. */
static void add_in_turn(struct numeric_rig *r, frit_tensor *x)
{
    for (int i = 0; i < 4 * ROUNDS; i++) {
        const bool exact = i < 2 * ROUNDS ? i / ROUNDS % 2 : i % 2;
        const uint64_t fast = launches(r, "fast");

        if (exact)
            begin(FRIT_NUMERIC_EXACT);
        add(r, x, !exact);
        if (exact)
            end();
        assert_int_equal(launches(r, "fast") - fast, exact);
    }
}

/* Inside first, or outside first: what was measured there decides nothing here. */
static void sections_bound_what_is_measured(void **state)
{
    (void)state;
    for (int w = 0; w < 4; w++) {
        const bool inside_first = w % 2, captures = w / 2;
        struct numeric_rig r;
        frit_tensor *x;

        open_rig(&r, "reduced", "any", captures ? "yes" : "no");
        x = numbers(&r);
        if (!inside_first)
            add_cold(&r, x, true);
        begin(FRIT_NUMERIC_EXACT);
        add_cold(&r, x, false);
        end();
        if (inside_first)
            add_cold(&r, x, true);
        assert_int_equal(rig_stats(&r.rig).tuned, 2);
        add_in_turn(&r, x);
        assert_int_equal(rig_stats(&r.rig).tuned, 2);
        assert_true(captures == (r.stats->replays(r.instance) > 0));
        frit_release(x);
        rig_close(&r.rig);
    }
}

/* In a section in which nothing is measured, what was measured outside of it decides between those
 * that are allowed. */
static void other_classes_find_what_is_known(void **state)
{
    struct numeric_rig r;
    frit_tensor *x;
    uint64_t fast;

    (void)state;
    open_rig(&r, "reduced", "any", "no");
    x = numbers(&r);
    add_cold(&r, x, true);
    r.rig.dev->measures = false;
    fast = launches(&r, "fast");
    begin(FRIT_NUMERIC_REORDERED);
    for (int i = 0; i < ROUNDS; i++)
        add(&r, x, false);
    end();
    assert_int_equal(launches(&r, "fast") - fast, ROUNDS);
    frit_release(x);
    rig_close(&r.rig);
}

/* Ops of one segment, in turn in a section and not; each by itself, as the device has no fuser. */
static void ops_of_one_segment_differ(void **state)
{
    (void)state;
    for (int w = 0; w < 2; w++) {
        struct numeric_rig r;
        frit_tensor *x;

        open_rig(&r, "reduced", "any", w ? "yes" : "no");
        x = numbers(&r);
        add_cold(&r, x, true);
        begin(FRIT_NUMERIC_EXACT);
        add_cold(&r, x, false);
        end();
        for (int i = 0; i < 4 * ROUNDS; i++) {
            const bool swapped = i >= 2 * ROUNDS;
            const uint64_t before = launches(&r, "reduced");
            frit_tensor *sums[2];

            for (int k = 0; k < 2; k++) {
                if (k != swapped)
                    begin(FRIT_NUMERIC_EXACT);
                sums[k] = frit_add(x, x);
                if (k != swapped)
                    end();
            }
            assert_int_equal(read_exact(sums[swapped]), 0);
            assert_int_equal(read_exact(sums[!swapped]), N);
            assert_int_equal(launches(&r, "reduced") - before, 1);
            frit_release(sums[0]);
            frit_release(sums[1]);
        }
        assert_true(w == (r.stats->replays(r.instance) > 0));
        frit_release(x);
        rig_close(&r.rig);
    }
}

static float first_square(frit_tensor *x)
{
    frit_tensor *y = frit_square(x);
    static float data[N];

    assert_int_equal(frit_read(y, data, sizeof(data), NULL), FRIT_OK);
    frit_release(y);
    return data[3];
}

/* The ops that a composite op is expanded into are of its section. */
static void composite_ops_keep_the_section(void **state)
{
    struct numeric_rig r;
    frit_tensor *x;

    (void)state;
    open_rig(&r, "reduced", "any", "no");
    x = numbers(&r);
    assert_false(first_square(x) == 16);
    for (int i = 0; i < 2 * ROUNDS; i++) {
        const uint64_t before = launches(&r, "reduced");

        if (i % 2)
            begin(FRIT_NUMERIC_EXACT);
        assert_true((first_square(x) == 16) == i % 2);
        if (i % 2)
            end();
        assert_int_equal(launches(&r, "reduced") - before, i % 2 == 0);
    }
    frit_release(x);
    rig_close(&r.rig);
}

static void read_mean(frit_tensor *x)
{
    frit_tensor *y = frit_mean(x, .axes = FRIT_AXES(0));
    float value;

    assert_int_equal(frit_read(y, &value, sizeof(value), NULL), FRIT_OK);
    assert_true(fabsf(value - 50.5f) < 0.001f);
    frit_release(y);
}

/* A composite op that was measured to be faster as what it stands for, whose numbers may differ,
 * runs so outside only; both forms are replayed in turn. */
static void composite_ops_have_the_form_of_the_section(void **state)
{
    struct numeric_rig r;
    frit_tensor *x;

    (void)state;
    memset(&r, 0, sizeof(r));
    rig_set(&r.rig, PLUGIN, "option.means", "yes");
    rig_set(&r.rig, PLUGIN, "option.split", "100");
    open_more(&r, "reordered", "any", "yes", "no");
    x = numbers(&r);
    for (int i = 0; i < 6 * ROUNDS; i++) {
        const bool exact = i < 2 * ROUNDS ? i / ROUNDS % 2 : i % 2;
        const uint64_t whole = launches(&r, "whole"), replays = r.stats->replays(r.instance);

        if (exact)
            begin(FRIT_NUMERIC_EXACT);
        read_mean(x);
        if (exact)
            end();
        if (i < ROUNDS)
            continue; /* it is measured */
        if (launches(&r, "whole") - whole != exact)
            fail_msg("round %d: %d launches of the op itself", i,
                     (int)(launches(&r, "whole") - whole));
        if (i >= 4 * ROUNDS && r.stats->replays(r.instance) == replays)
            fail_msg("round %d is not replayed", i);
    }
    frit_release(x);
    rig_close(&r.rig);
}

static void *reduced_there(void *arg)
{
    struct numeric_rig *r = arg;
    frit_tensor *x = numbers(r);

    add(r, x, true);
    assert_int_equal(frit_numeric_end(NULL), FRIT_INVALID);
    frit_release(x);
    return NULL;
}

static void sections_nest_and_belong_to_threads(void **state)
{
    struct numeric_rig r;
    pthread_t thread;
    frit_tensor *x;

    (void)state;
    open_rig(&r, "reduced", "any", "no");
    x = numbers(&r);
    add_cold(&r, x, true);
    begin(FRIT_NUMERIC_REDUCED);
    add(&r, x, true);
    begin(FRIT_NUMERIC_REORDERED);
    add_cold(&r, x, false);
    begin(FRIT_NUMERIC_RELAXED); /* not looser than the one around it */
    add(&r, x, false);
    assert_int_equal(pthread_create(&thread, NULL, reduced_there, &r), 0);
    pthread_join(thread, NULL);
    end();
    add(&r, x, false);
    end();
    add(&r, x, true);
    end();
    add(&r, x, true);
    frit_release(x);
    rig_close(&r.rig);
}

/* A section opened before the thread's first use of the device. */
static void sections_hold_on_devices_that_are_opened_later(void **state)
{
    struct numeric_rig r;
    frit_tensor *x;

    (void)state;
    begin(FRIT_NUMERIC_EXACT);
    open_rig(&r, "reduced", "any", "no");
    x = numbers(&r);
    add_cold(&r, x, false);
    end();
    add_cold(&r, x, true);
    frit_release(x);
    rig_close(&r.rig);
}

/* No section allows more than the configuration. */
static void the_configuration_bounds_sections(void **state)
{
    struct numeric_rig r;
    frit_tensor *x;

    (void)state;
    open_rig(&r, "reordered", "any", "no");
    x = numbers(&r);
    begin(FRIT_NUMERIC_RELAXED);
    for (int i = 0; i < ROUNDS; i++)
        add(&r, x, false);
    end();
    frit_release(x);
    rig_close(&r.rig);
}

/* A run before anything was decided, one in which `reduced` was found to be the fastest, and one
 * after it. */
static void deterministic_results_do_not_depend_on_decisions(void **state)
{
    (void)state;
    make_scratch();
    for (int run = 0; run < 3; run++) {
        const bool deterministic = run != 1;
        struct numeric_rig r;
        frit_tensor *x;

        open_with(&r, "relaxed", "any", "yes", deterministic ? "yes" : "no");
        x = numbers(&r);
        add_cold(&r, x, !deterministic);
        for (int i = 0; i < ROUNDS; i++)
            add(&r, x, !deterministic);
        assert_int_equal(rig_stats(&r.rig).tuned, !deterministic);
        assert_int_equal(launches(&r, "first") > 0, run < 2);
        assert_int_equal(launches(&r, "fast") > 0, run > 0); /* EXACT, and faster than the first */
        frit_release(x);
        rig_close(&r.rig);
    }
    remove_scratch();
    *store = '\0';
}

static void misuse_is_reported(void **state)
{
    frit_err err = {.struct_size = sizeof(err)};

    (void)state;
    assert_int_equal(frit_numeric_end(&err), FRIT_INVALID);
    assert_non_null(strstr(err.text, "no open section"));
    assert_int_equal(frit_numeric_begin(FRIT_NUMERIC_RELAXED + 1, &err), FRIT_INVALID);
    assert_non_null(strstr(err.text, "no class 4"));
    begin(FRIT_NUMERIC_RELAXED);
    end();
    assert_int_equal(frit_numeric_end(NULL), FRIT_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sections_bound_what_is_measured),
        cmocka_unit_test(other_classes_find_what_is_known),
        cmocka_unit_test(ops_of_one_segment_differ),
        cmocka_unit_test(composite_ops_keep_the_section),
        cmocka_unit_test(composite_ops_have_the_form_of_the_section),
        cmocka_unit_test(sections_nest_and_belong_to_threads),
        cmocka_unit_test(sections_hold_on_devices_that_are_opened_later),
        cmocka_unit_test(the_configuration_bounds_sections),
        cmocka_unit_test(deterministic_results_do_not_depend_on_decisions),
        cmocka_unit_test(misuse_is_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
