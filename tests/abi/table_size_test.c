/* SPDX-License-Identifier: Apache-2.0 */
/* Drivers whose tables, or whose host's tables, have another struct_size than today's: shorter by
 * every number of slots, as in an earlier minor, and longer, as in a later one.  Each must work as
 * before or be refused in words.  tests/fake/resized.c makes the sizes and ends the process where
 * somebody uses what is not there. */
#include "unit.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <frit/custom.h>
#include <frit/frit.h>
#include <frit/fuser.h>
#include <frit/native.h>

#define RESIZED "fake/resized/libfrit-fake-resized.so"

enum { SLOT = 8, N = 64, PATH = 4096 };

static char folder[] = "/tmp/frit-table-size-XXXXXX";

/* ---- what there is to resize ---- */

struct table {
    const char *name;
    uint32_t first;   /* the shortest that is tried: struct_size and what stands beside it */
    uint32_t least;   /* what is shorter must be refused */
    uint32_t enough;  /* with so much it must work */
    uint32_t bytes;   /* today */
    uint32_t longest; /* bytes, or more */
};

#define TABLE(name, type, first, least, enough)                                              \
    {                                                                                        \
        name, first, least, FRIT_END_OF(type, enough), sizeof(type), sizeof(type) + 2 * SLOT \
    }
#define REQUIRED(name, type, last) TABLE(name, type, SLOT, FRIT_END_OF(type, last), last)

/* What the host lends.  Each plugin needs another part of core and options. */
static const struct table host_tables[] = {
    TABLE(FRIT_HOST_CORE, frit_host_core, SLOT, FRIT_END_OF(frit_host_core, mem_free), now_ns),
    TABLE(FRIT_HOST_OPTIONS, frit_host_options, SLOT, FRIT_END_OF(frit_host_options, get_str),
          get_bool),
    TABLE(FRIT_HOST_TRACE, frit_host_trace, SLOT, 0, reserved),
    TABLE(FRIT_HOST_EXEC, frit_host_exec, SLOT, 0, reserved),
    TABLE(FRIT_HOST_CACHE, frit_host_cache, SLOT, 0, reserved),
    TABLE("frit_fuser_device", frit_fuser_device, FRIT_END_OF(frit_fuser_device, self), 0, self),
};

static const struct table plugin_tables[] = {
    REQUIRED(FRIT_BACKEND, frit_backend, op_program),
    REQUIRED(FRIT_FUSER_TABLE, frit_fuser_table, finish),
    REQUIRED(FRIT_NATIVE_TABLE, frit_native_table, get),
};

/* It stays in its place, where there is no room for more. */
static const struct table program_table = {"frit_program_table",
                                           FRIT_END_OF(frit_program_table, destroy),
                                           0,
                                           FRIT_END_OF(frit_program_table, destroy),
                                           sizeof(frit_program_table),
                                           sizeof(frit_program_table)};

/* ---- drivers ---- */

struct driver {
    const char *id; /* of the plugin, and the driver's name */
    const char *file;
    bool plain;    /* neither kernel formats nor compiles: no optional slot is in use */
    bool computes; /* the right numbers */
    bool fuses;
};

static const struct driver drivers[] = {
    {"null", NULL_PLUGIN, true, false, true},
    {"null", NULL_PLUGIN, false, false, true},
    {"reference", REFERENCE, false, true, false},
    {"cpu", CPU, false, true, true},
};

static void set_resized(const struct driver *driver, const char *table, uint32_t bytes)
{
    char text[16];

    snprintf(text, sizeof(text), "%u", bytes);
    assert_int_equal(setenv("RESIZED_PLUGIN", driver->file, 1), 0);
    assert_int_equal(setenv("RESIZED_TABLE", table, 1), 0);
    assert_int_equal(setenv("RESIZED_BYTES", text, 1), 0);
}

static void no_log(void *ctx, uint32_t level, const char *topic, const char *text)
{
    (void)ctx;
    (void)level;
    (void)topic;
    (void)text;
}

/* Its only plugin is the resized one.  Plans are saved, so that the next host of the same `store`
 * has them from the plugin's from_state. */
static frit_host *open_host(const struct driver *driver, const char *store)
{
    static char path[PATH];
    char section[64];
    const frit_setting settings[] = {
        {section, "library", path},
        {"frit", "fallback", "none"},
        {"fusion", "store", store},
        {"plugin.null", "option.opaque", driver->plain ? "yes" : "no"},
        {"plugin.null", "option.compile_ms", driver->plain ? "-1" : "0"}};
    const bool is_null = strcmp(driver->id, "null") == 0;
    const frit_host_params params = {.struct_size = sizeof(params),
                                     .settings = settings,
                                     .n_settings = is_null ? 5 : 3,
                                     .log = no_log};
    const char *build = getenv("FRIT_TEST_BUILD");
    frit_host *host = NULL;

    if (!build)
        fail_msg("FRIT_TEST_BUILD must name the build folder");
    snprintf(path, sizeof(path), "%s/tests/" RESIZED, build);
    snprintf(section, sizeof(section), "plugin.%s", driver->id);
    if (frit_host_open(&params, &host))
        fail_msg("%s", frit_host_error(host));
    return host;
}

static frit_plugin_desc about_resized(frit_host *host)
{
    frit_plugin_desc desc = {.struct_size = sizeof(desc)};

    for (uint64_t i = 0; frit_plugin_at(host, i, &desc) == FRIT_OK; i++) {
        if (strstr(desc.path, RESIZED))
            return desc;
    }
    fail_msg("the host did not look at " RESIZED);
    return desc;
}

/* ---- work ---- */

/* sum(exp(x - x) * 3) and a copy out of a view: maps, a reduction, a fused block, transfers.  False
 * if something failed, in words. */
static bool compute(const struct driver *driver, frit_device *device)
{
    float x[N], half[N / 2], sum = 0;
    frit_tensor *in, *map, *total, *view;
    bool ok;

    for (int i = 0; i < N; i++)
        x[i] = (float)i;
    in = frit_from_host(device, FRIT_F32, FRIT_SHAPE(N), x, sizeof(x));
    map = frit_mul_f(frit_take(frit_exp(frit_take(frit_sub(in, in)))), 3);
    total = frit_sum(map);
    view = frit_slice(in, FRIT_SLICES({0, N, 2}));
    ok = frit_read(total, &sum, sizeof(sum)) == FRIT_OK;
    assert_true(ok || frit_tensor_error(total)[0]);
    assert_int_equal(frit_read(view, half, sizeof(half)), FRIT_OK);
    frit_release(in);
    frit_release(map);
    frit_release(total);
    frit_release(view);
    assert_int_equal(frit_sync(device) == FRIT_OK, ok);
    if (driver->computes) {
        assert_true(!ok || sum == 3 * N);
        assert_true(half[N / 2 - 1] == N - 2);
    }
    return ok;
}

/* Twice: the second time runs the plan of the first. */
static bool run(const struct driver *driver, frit_device *device)
{
    bool ok = compute(driver, device) && compute(driver, device);
    char *left = NULL;

    frit_trim(device);
    if (frit_leaks(device, &left))
        fail_msg("%s", left);
    frit_device_close(device);
    return ok;
}

static bool works(const struct driver *driver, const char *table, uint32_t bytes, const char *store)
{
    frit_host *host;
    frit_device *device = NULL;
    char name[64];
    bool ok;

    set_resized(driver, table, bytes);
    host = open_host(driver, store);
    snprintf(name, sizeof(name), "%s:0", driver->id);
    ok = frit_device_open(host, name, &device) == FRIT_OK;
    if (ok) {
        ok = run(driver, device);
    } else {
        frit_plugin_desc desc = about_resized(host);

        assert_true(desc.reason != FRIT_REASON_NONE && desc.detail[0]);
        assert_non_null(strstr(frit_host_error(host), name));
    }
    frit_host_close(host);
    return ok;
}

/* A driver with kernel formats needs the slots behind the required ones. */
static uint32_t enough_of(const struct driver *driver, const struct table *table)
{
    bool needs_more = !driver->plain && strcmp(table->name, FRIT_BACKEND) == 0;

    return needs_more ? table->bytes : table->enough;
}

static void try_table(const struct driver *driver, const struct table *table)
{
    bool offered = driver->fuses || strcmp(table->name, FRIT_FUSER_TABLE) != 0;
    uint32_t worked = 0, tried = 0;
    char store[PATH];

    snprintf(store, sizeof(store), "%s/plans", folder);
    for (uint32_t bytes = table->first; bytes <= table->longest; bytes += SLOT) {
        bool ok = works(driver, table->name, bytes, store);
        bool must = bytes >= table->bytes || bytes == enough_of(driver, table);

        if (ok ? offered && bytes < table->least : must)
            fail_msg("%s with %u bytes of %s is %s", driver->id, bytes, table->name,
                     ok ? "not refused" : "refused");
        if (table == &program_table) /* the next ones are made anew, and so resized */
            (void)remove(store);
        worked += ok ? 1 : 0;
        tried++;
    }
    (void)remove(store);
    print_message("%s: %s works in %u of %u sizes\n", driver->id, table->name, worked, tried);
}

static void each_driver(const struct table *tables, size_t count)
{
    for (size_t d = 0; d < sizeof(drivers) / sizeof(drivers[0]); d++) {
        for (size_t t = 0; t < count; t++)
            try_table(&drivers[d], &tables[t]);
    }
}

static void hosts_of_other_minors(void **state)
{
    (void)state;
    each_driver(host_tables, sizeof(host_tables) / sizeof(host_tables[0]));
}

static void plugins_of_other_minors(void **state)
{
    (void)state;
    each_driver(plugin_tables, sizeof(plugin_tables) / sizeof(plugin_tables[0]));
    each_driver(&program_table, 1);
}

static int setup(void **state)
{
    (void)state;
    return mkdtemp(folder) ? setenv("FRIT_PLUGIN_PATH", folder, 1) : -1;
}

static int teardown(void **state)
{
    (void)state;
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts_of_other_minors),
        cmocka_unit_test(plugins_of_other_minors),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
