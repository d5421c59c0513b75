/* SPDX-License-Identifier: Apache-2.0 */
/* Time by the device's clock: TIMESTAMPs are sent while somebody measures or a timeline is
 * recorded, never otherwise, and never to a driver without the table. */
#include "unit.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <frit/frit.h>
#include <frit/inspect.h>

#include "api/host.h"
#include "api/plugin_interface.h"
#include "api/plugin_rig.h"
#include "fake/null/stats.h"

enum { STEPS = 50, SIDE = 64 };

static uint64_t counted(const struct plugin_rig *rig, const char *name)
{
    void *instance;
    const null_stats *stats = rig_interface(rig->host, "null", NULL_STATS, &instance);

    return stats->get(instance, (frit_str){name, strlen(name)});
}

/* Pairs of options. */
static void open_null(struct plugin_rig *rig, const char *const *options, const char *timeline)
{
    memset(rig, 0, sizeof(*rig));
    rig_plugin(rig, "plugin.null", RIG_NULL);
    rig_set(rig, "fusion", "store", "none");
    for (; options[0]; options += 2)
        rig_set(rig, "plugin.null", options[0], options[1]);
    if (timeline)
        rig_set(rig, "frit", "timeline", timeline);
    rig_open(rig, "null");
}

static void run_steps(const struct plugin_rig *rig, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        frit_tensor *x = frit_zeros(rig->dev, FRIT_F32, FRIT_SHAPE(SIDE, SIDE));
        frit_tensor *y = frit_exp(frit_take(frit_add_f(frit_take(x), 1)));

        assert_int_equal(frit_sync(rig->dev, NULL), FRIT_OK);
        frit_release(y);
    }
}

static const char *const late[] = {NULL}, *const at_once[] = {"option.inline", "yes", NULL};

static void only_while_measured(void **state)
{
    for (int i = 0; i < 2; i++) {
        frit_device_time time = {.struct_size = sizeof(time)};
        struct plugin_rig rig;
        uint64_t sent;

        (void)state;
        open_null(&rig, i ? at_once : late, NULL);
        run_steps(&rig, STEPS);
        assert_int_equal(counted(&rig, "timestamps"), 0);
        assert_int_equal(counted(&rig, "clock"), 0);
        assert_int_equal(frit_device_time_stop(rig.dev, &time, NULL), FRIT_INVALID);

        assert_int_equal(frit_device_time_start(rig.dev, NULL), FRIT_OK);
        assert_int_equal(frit_device_time_start(rig.dev, NULL), FRIT_BUSY);
        run_steps(&rig, STEPS);
        assert_int_equal(frit_device_time_stop(rig.dev, &time, NULL), FRIT_OK);
        sent = counted(&rig, "timestamps");
        assert_true(time.commands >= STEPS);
        assert_int_equal(sent, 2 * time.commands);
        assert_int_equal(time.lost, 0);
        assert_true(time.busy_ns > 0 && time.busy_ns < 10000000000u);

        run_steps(&rig, STEPS);
        assert_int_equal(counted(&rig, "timestamps"), sent);
        rig_close(&rig);
    }
}

/* More commands than are kept before somebody reads them. */
static void many_commands(void **state)
{
    frit_device_time time = {.struct_size = sizeof(time)};
    struct plugin_rig rig;
    uint64_t launches;

    (void)state;
    open_null(&rig, (const char *const[]){"option.max_fused_ops", "0", NULL}, NULL);
    assert_int_equal(frit_device_time_start(rig.dev, NULL), FRIT_OK);
    launches = rig_stats(&rig).launches;
    run_steps(&rig, 1500);
    assert_int_equal(frit_device_time_stop(rig.dev, &time, NULL), FRIT_OK);
    assert_true(time.commands >= rig_stats(&rig).launches - launches);
    assert_true(time.commands > 2048);
    assert_int_equal(time.lost, 0);
    rig_close(&rig);
}

static void without_the_table(void **state)
{
    frit_err err = {.struct_size = sizeof(err)};
    static const char *const none[] = {"option.clock", "none", NULL};
    char path[] = "/tmp/frit-device-time-XXXXXX";
    int file = mkstemp(path);
    struct plugin_rig rig;

    (void)state;
    assert_true(file >= 0);
    close(file);
    open_null(&rig, none, path);
    assert_int_equal(frit_device_time_start(rig.dev, &err), FRIT_UNSUPPORTED);
    assert_non_null(strstr(err.text, "no clock"));
    run_steps(&rig, STEPS);
    assert_int_equal(counted(&rig, "timestamps"), 0);
    rig_close(&rig);
    unlink(path);
}

/* A clock that does not answer: nothing is sent, and everything runs. */
static void a_clock_that_fails(void **state)
{
    static const char *const failing[] = {"option.fail_call", "clock:1:unsupported", NULL};
    struct plugin_rig rig;

    (void)state;
    open_null(&rig, failing, NULL);
    assert_int_equal(frit_device_time_start(rig.dev, NULL), FRIT_UNSUPPORTED);
    run_steps(&rig, STEPS);
    assert_int_equal(counted(&rig, "timestamps"), 0);
    assert_int_equal(frit_device_time_start(rig.dev, NULL), FRIT_OK);
    run_steps(&rig, 1);
    assert_true(counted(&rig, "timestamps") > 0);
    assert_int_equal(frit_device_time_stop(rig.dev, &(frit_device_time){.struct_size = 8}, NULL),
                     FRIT_OK);
    rig_close(&rig);
}

/* Durations below 0 count for nothing. */
static void a_clock_that_goes_backwards(void **state)
{
    static const char *const backwards[] = {"option.clock", "backwards", NULL};
    frit_device_time time = {.struct_size = sizeof(time)};
    struct plugin_rig rig;

    (void)state;
    open_null(&rig, backwards, NULL);
    assert_int_equal(frit_device_time_start(rig.dev, NULL), FRIT_OK);
    run_steps(&rig, STEPS);
    assert_int_equal(frit_device_time_stop(rig.dev, &time, NULL), FRIT_OK);
    assert_true(time.commands >= STEPS);
    assert_int_equal(time.busy_ns, 0);
    rig_close(&rig);
}

static char *read_file(const char *path)
{
    FILE *file = fopen(path, "r");
    char *text = calloc(1, 1 << 22);

    assert_non_null(file);
    assert_non_null(text);
    assert_true(fread(text, 1, (1 << 22) - 1, file) > 0);
    fclose(file);
    return text;
}

static uint32_t count_of(const char *text, const char *part)
{
    uint32_t n = 0;

    for (const char *at = text; (at = strstr(at, part)) != NULL; at++)
        n++;
    return n;
}

/* As many spans on the device's track as commands were measured, by their names. */
static void a_timeline_has_a_track(void **state)
{
    for (int i = 0; i < 2; i++) {
        char path[] = "/tmp/frit-device-time-XXXXXX", *text;
        int file = mkstemp(path);
        struct plugin_rig rig;
        uint64_t sent;

        (void)state;
        assert_true(file >= 0);
        close(file);
        open_null(&rig, i ? at_once : late, path);
        run_steps(&rig, STEPS);
        sent = counted(&rig, "timestamps");
        assert_true(sent >= 2 * STEPS);
        rig_close(&rig);
        text = read_file(path);
        assert_non_null(strstr(text, "\"thread_name\",\"cat\":\"\",\"ph\":\"M\",\"pid\":2"));
        assert_int_equal(count_of(text, "\"cat\":\"null:0\",\"ph\":\"X\",\"pid\":2"), sent / 2);
        assert_non_null(strstr(text, "exp\",\"cat\":\"null:0\""));
        free(text);
        unlink(path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_while_measured),         cmocka_unit_test(many_commands),
        cmocka_unit_test(without_the_table),           cmocka_unit_test(a_clock_that_fails),
        cmocka_unit_test(a_clock_that_goes_backwards), cmocka_unit_test(a_timeline_has_a_track),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
