/* SPDX-License-Identifier: Apache-2.0 */
/* Every call of a driver and its fusers fails once in turn, and every launch once when it runs,
 * under a workload that is fused.  Each time the results are right or an error says what failed,
 * nothing is left over, and the next workload on the same device is right. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include <frit/frit.h>
#include <frit/inspect.h>

#include "api/host.h"
#include "api/plugin_interface.h"
#include "fake/null/stats.h"

enum { MAX_SETTINGS = 12, N_RESULTS = 4 };

/* A device of the plugin `null` in a host of its own. */
struct rig {
    frit_host *host;
    frit_device *device;
    const null_stats *stats;
    void *instance;
    frit_err err; /* of the last call that failed */
};

/* Ways to have the device; pairs of option and value. */
struct kind {
    const char *name;
    const char *options[6];
    bool blocks; /* the fusers are those of another plugin */
};

static const struct kind kinds[] = {
    {"late", {"max_fused_ops", "32"}, false},   {"inline", {"inline", "yes", "fusers", "2"}, false},
    {"compiled", {"compile_ms", "0"}, false},   {"foreign", {"max_fused_ops", "0"}, true},
    {"unfused", {"max_fused_ops", "0"}, false},
};

static const char *build_path(char *path, size_t capacity, const char *file)
{
    const char *build = getenv("FRIT_TEST_BUILD");

    if (!build)
        fail_msg("FRIT_TEST_BUILD must name the build folder");
    snprintf(path, capacity, "%s/tests/%s", build, file);
    return path;
}

static void find_stats(struct rig *rig)
{
    rig->stats = rig_interface(rig->host, "null", NULL_STATS, &rig->instance);
}

/* `option` NULL: nothing fails.  The device may not open: then `device` is NULL. */
static void rig_open(struct rig *rig, const struct kind *kind, const char *option,
                     const char *value)
{
    char null_path[4096], blocks_path[4096], keys[4][64];
    frit_setting settings[MAX_SETTINGS] = {
        {"frit", "log", "off"},
        {"fusion", "store", "none"},
        {"fusion", "compile", "wait"},
        {"plugin.null", "library",
         build_path(null_path, sizeof(null_path), "fake/null/libfrit-null.so")}};
    frit_host_params params = {
        .struct_size = sizeof(params), .settings = settings, .n_settings = 4};

    if (kind->blocks)
        settings[params.n_settings++] = (frit_setting){
            "plugin.org.frit.blocks", "library",
            build_path(blocks_path, sizeof(blocks_path), "outside/libfrit-blocks.so")};
    for (int i = 0; i < 3 && kind->options[2 * i]; i++) {
        snprintf(keys[i], sizeof(keys[i]), "option.%s", kind->options[2 * i]);
        settings[params.n_settings++] =
            (frit_setting){"plugin.null", keys[i], kind->options[2 * i + 1]};
    }
    if (option) {
        snprintf(keys[3], sizeof(keys[3]), "option.%s", option);
        settings[params.n_settings++] = (frit_setting){"plugin.null", keys[3], value};
    }
    *rig = (struct rig){0};
    assert_int_equal(frit_host_open(&params, &rig->host, NULL), FRIT_OK);
    find_stats(rig);
    if (frit_device_open(rig->host, "null:0", &rig->device, &rig->err))
        rig->device = NULL;
}

static uint64_t count(const struct rig *rig, const char *name)
{
    return rig->stats->get(rig->instance, (frit_str){name, strlen(name)});
}

static void rig_close(struct rig *rig)
{
    frit_stats stats = {.struct_size = sizeof(stats)};

    frit_stats_get(rig->device, &stats);
    assert_int_equal(stats.tensors_now, 0);
    assert_int_equal(stats.queued_now, 0);
    assert_int_equal(stats.buffers_now, 0);
    assert_int_equal(stats.bytes_now, 0);
    frit_device_close(rig->device);
    assert_int_equal(count(rig, "memory_now"), 0);
    assert_int_equal(count(rig, "programs_now"), 0);
    assert_int_equal(count(rig, "kernels_now"), 0);
    assert_int_equal(count(rig, "fusers_now"), 0);
    assert_int_equal(count(rig, "hazards"), 0);
    frit_host_close(rig->host);
}

/* ---- the workload ---- */

static const float sixteen[16] = {1, 2, 3, 4};

static frit_tensor *make_input(struct rig *rig)
{
    return frit_from_host(rig->device, FRIT_F32, FRIT_SHAPE(4, 4), sixteen, sizeof(sixteen));
}

/* Two chains that fuse, one op that does not, a view, values that die inside. */
static void record(struct rig *rig, frit_tensor *out[N_RESULTS])
{
    frit_scope scope = frit_scope_begin(rig->device);
    frit_tensor *x = frit_keep(make_input(rig)), *y = make_input(rig);
    frit_tensor *a = frit_exp(frit_mul_f(frit_add(x, y), 2));
    frit_tensor *m = frit_matmul(a, y);

    out[0] = x;
    out[1] = frit_keep(frit_sum(frit_neg(a)));
    out[2] = frit_keep(frit_add(m, frit_neg(y)));
    out[3] = frit_keep(frit_permute(m, FRIT_AXES(1, 0)));
    frit_scope_end(scope);
}

/* An error says which op, which slot of the driver, or which function of ours failed. */
static void expect_reported(const char *text)
{
    static const char *const words[] = {"add",  "mul",       "exp",   "neg",  "sum",   "matmul",
                                        "copy", "from_host", "write", "read", "submit"};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strstr(text, words[i]))
            return;
    }
    fail_msg("the error does not say what failed: '%s'", text);
}

static frit_status workload(struct rig *rig)
{
    frit_status first = FRIT_OK, st;
    frit_tensor *out[N_RESULTS];
    float data[16];

    record(rig, out);
    st = frit_write(out[0], sixteen, sizeof(sixteen), &rig->err);
    for (int i = 0; i < N_RESULTS; i++) {
        frit_status read = frit_read(
            out[i], data, frit_tensor_dtype(out[i]) ? frit_tensor_bytes(out[i]) : 4, &rig->err);

        if (read) {
            expect_reported(rig->err.text);
            assert_true(rig->err.text[0]);
        }
        first = first ? first : read;
        frit_release(out[i]);
    }
    first = st ? st : first;
    st = frit_sync(rig->device, &rig->err);
    if (st)
        expect_reported(rig->err.text);
    return first ? first : st;
}

/* ---- calls ---- */

static const char *const calls[] = {
#define NULL_CALL(name) #name,
#include "fake/null/calls.def"
};
enum { N_CALLS = sizeof(calls) / sizeof(calls[0]) };

/* Whether the n-th call was made, and failed. */
static bool fail_nth(const struct kind *kind, const char *call, uint64_t n)
{
    /* What a compiler could not do it cannot do later, but for this. */
    const char *status = strcmp(call, "compile") ? "" : ":busy";
    char value[64];
    struct rig rig;
    bool hit;

    snprintf(value, sizeof(value), "%s:%llu%s", call, (unsigned long long)n, status);
    rig_open(&rig, kind, "fail_call", value);
    if (!rig.device) {
        assert_non_null(strstr(rig.err.text, "null"));
        assert_int_equal(frit_device_open(rig.host, "null:0", &rig.device, &rig.err), FRIT_OK);
    }
    workload(&rig);
    hit = count(&rig, call) >= n;
    if (hit && workload(&rig))
        fail_msg("%s, %s: the next workload fails: %s", kind->name, value, rig.err.text);
    rig_close(&rig);
    return hit;
}

static void fail_every(uint64_t *times)
{
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
        for (size_t i = 0; i < N_CALLS; i++) {
            for (uint64_t n = 1; fail_nth(&kinds[k], calls[i], n); n++)
                times[i]++;
        }
    }
}

static void test_every_call_fails_once(void **state)
{
    uint64_t times[N_CALLS] = {0};

    (void)state;
    fail_every(times);
    for (size_t i = 0; i < N_CALLS; i++) {
        /* Programs are not saved here, and nobody measures. */
        if (!times[i] && !strstr(calls[i], "_state") && strcmp(calls[i], "clock") != 0)
            fail_msg("%s was never called", calls[i]);
    }
}

/* A status above 0 is a fault of the plugin, whatever the slot.  What can go another way does. */
static void return_seven(const struct kind *kind, const char *call, uint64_t n)
{
    char value[64];
    struct rig rig;
    frit_status st;

    snprintf(value, sizeof(value), "%s:%llu:7", call, (unsigned long long)n);
    rig_open(&rig, kind, "fail_call", value);
    if (!rig.device) {
        assert_string_equal(call, "device_open");
        assert_non_null(strstr(rig.err.text, "device_open returned 7"));
        assert_int_equal(frit_device_open(rig.host, "null:0", &rig.device, &rig.err), FRIT_OK);
    }
    st = workload(&rig);
    if (st && (st != FRIT_INTERNAL || !strstr(rig.err.text, " 7, which ")))
        fail_msg("%s, %s: %d, %s", kind->name, value, st, rig.err.text);
    /* What a compiler could not do it cannot do later. */
    if (workload(&rig) && strcmp(call, "compile"))
        fail_msg("%s, %s: the next workload fails: %s", kind->name, value, rig.err.text);
    rig_close(&rig);
}

static void test_no_call_returns_seven(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
        for (size_t i = 0; i < N_CALLS; i++) {
            for (uint64_t n = 1; n <= 3; n++)
                return_seven(&kinds[k], calls[i], n);
        }
    }
}

/* After FRIT_NO_DEVICE_MEMORY the host tries alloc once more. */
static void test_an_alloc_is_tried_again(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
        bool hit = true;

        for (uint64_t n = 1; hit; n++) {
            char value[64];
            struct rig rig;

            snprintf(value, sizeof(value), "alloc:%llu:no-device-memory", (unsigned long long)n);
            rig_open(&rig, &kinds[k], "fail_call", value);
            assert_int_equal(workload(&rig), FRIT_OK);
            hit = count(&rig, "alloc") >= n;
            rig_close(&rig);
        }
    }
}

/* ---- completions ---- */

static bool fail_launch(const struct kind *kind, uint64_t n, const char *status, frit_status want)
{
    char value[64];
    struct rig rig;
    frit_status st;
    bool hit;

    snprintf(value, sizeof(value), "%llu:%s", (unsigned long long)n, status);
    rig_open(&rig, kind, "fail_launch", value);
    st = workload(&rig);
    hit = count(&rig, "launches") >= n;
    if (st != (hit ? want : FRIT_OK))
        fail_msg("%s, launch %llu: status %d", kind->name, (unsigned long long)n, st);
    if (hit && workload(&rig))
        fail_msg("%s, launch %llu: the next workload fails: %s", kind->name, (unsigned long long)n,
                 rig.err.text);
    rig_close(&rig);
    return hit;
}

static void test_every_launch_fails_once(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
        uint64_t n = 1;

        while (fail_launch(&kinds[k], n, "timeout", FRIT_TIMEOUT))
            n++;
        assert_true(n > 3);
    }
}

/* ---- a lost device ---- */

/* It is not handed out again as if nothing had happened; when it was closed it is opened anew. */
static void test_a_lost_device_is_opened_anew(void **state)
{
    frit_device *again;
    struct rig rig;

    (void)state;
    rig_open(&rig, &kinds[0], "fail_call", "wait:1:device-lost");
    frit_release(frit_neg(frit_take(make_input(&rig))));
    assert_int_equal(frit_sync(rig.device, &rig.err), FRIT_DEVICE_LOST);
    assert_int_equal(frit_device_open(rig.host, "null:0", &again, &rig.err), FRIT_DEVICE_LOST);
    assert_null(again);
    assert_non_null(strstr(rig.err.text, "call 1 of wait fails on request"));
    frit_device_close(rig.device);
    assert_int_equal(frit_device_open(rig.host, "null:0", &rig.device, &rig.err), FRIT_OK);
    assert_int_equal(workload(&rig), FRIT_OK);
    rig_close(&rig);
}

/* ---- it is a workload that fuses ---- */

static void test_the_workload_fuses(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
        struct rig rig;
        frit_stats stats = {.struct_size = sizeof(stats)};

        rig_open(&rig, &kinds[k], NULL, NULL);
        assert_int_equal(workload(&rig), FRIT_OK);
        frit_stats_get(rig.device, &stats);
        assert_int_equal(stats.fused > 0, strcmp(kinds[k].name, "unfused") != 0);
        rig_close(&rig);
    }
}

/* What is queued is handed over, and nobody waits for it. */
static void test_a_flush_does_not_wait(void **state)
{
    uint64_t waits, submits;
    frit_tensor *x, *y;
    struct rig rig;

    (void)state;
    rig_open(&rig, &kinds[0], "latency", "20000000");
    x = make_input(&rig);
    y = frit_neg(x);
    waits = count(&rig, "wait");
    submits = count(&rig, "submit");
    assert_int_equal(frit_flush(rig.device, NULL), FRIT_OK);
    assert_int_equal(count(&rig, "submit"), submits + 1);
    assert_int_equal(count(&rig, "wait"), waits);
    assert_int_equal(frit_sync(rig.device, NULL), FRIT_OK);
    assert_true(count(&rig, "wait") > waits);
    frit_release(x);
    frit_release(y);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_workload_fuses),
        cmocka_unit_test(test_every_call_fails_once),
        cmocka_unit_test(test_no_call_returns_seven),
        cmocka_unit_test(test_an_alloc_is_tried_again),
        cmocka_unit_test(test_every_launch_fails_once),
        cmocka_unit_test(test_a_lost_device_is_opened_anew),
        cmocka_unit_test(test_a_flush_does_not_wait),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
