/* SPDX-License-Identifier: Apache-2.0 */
/* Plugins whose tables, or whose host's tables, have another struct_size than today's: shorter by
 * every number of slots, as in an earlier minor, and longer, as in a later one.  Each must work as
 * before, or be refused with a text.  tests/fake/resized.c changes the sizes, and ends the process
 * if a slot past the end of a table is used. */
#include "unit.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <frit/capture.h>
#include <frit/collective.h>
#include <frit/custom.h>
#include <frit/extmem.h>
#include <frit/frit.h>
#include <frit/fuser.h>
#include <frit/inspect.h>
#include <frit/native.h>
#include <frit/profile.h>

#define RESIZED "fake/resized/libfrit-fake-resized.so"

enum { SLOT = 8, N = 64, PATH = 4096 };

static char folder[] = "/tmp/frit-table-size-XXXXXX";

/* ---- what there is to resize ---- */

/* What a plugin offers; 0: any. */
enum { DRIVER = 1, FUSERS = 2, OPS = 4, RECORDS = 8, ENGINE = 16, CLOCK = 32, MEMORY = 64 };

struct table {
    const char *name;
    uint32_t users; /* plugins that offer or use it */
    /* Sizes in bytes: */
    uint32_t shortest; /* the first that is tried: struct_size and its neighbour */
    uint32_t required; /* a shorter table must be refused */
    uint32_t enough;   /* a table of this size must work */
    uint32_t bytes;    /* today's; from here on every size must work */
    uint32_t longest;  /* the last that is tried */
};

#define TABLE(name, users, type, shortest, required, enough)                      \
    {                                                                             \
        name, users, shortest, required, FRIT_END_OF(type, enough), sizeof(type), \
            sizeof(type) + 2 * SLOT                                               \
    }
#define REQUIRED(name, users, type, last) \
    TABLE(name, users, type, SLOT, FRIT_END_OF(type, last), last)

/* Tables of the host.  Which slots of core and of the options are needed depends on the plugin. */
static const struct table host_tables[] = {
    TABLE(FRIT_HOST_CORE, 0, frit_host_core, SLOT, FRIT_END_OF(frit_host_core, mem_free), now_ns),
    TABLE(FRIT_HOST_OPTIONS, DRIVER, frit_host_options, SLOT,
          FRIT_END_OF(frit_host_options, get_str), get_bool),
    TABLE(FRIT_HOST_TRACE, DRIVER, frit_host_trace, SLOT, 0, reserved),
    TABLE(FRIT_HOST_EXEC, DRIVER, frit_host_exec, SLOT, 0, reserved),
    TABLE(FRIT_HOST_CACHE, DRIVER, frit_host_cache, SLOT, 0, reserved),
    TABLE("frit_fuser_device", FUSERS, frit_fuser_device, FRIT_END_OF(frit_fuser_device, self), 0,
          self),
};

static const struct table plugin_tables[] = {
    REQUIRED(FRIT_BACKEND, DRIVER, frit_backend, op_program),
    REQUIRED(FRIT_FUSER_TABLE, FUSERS, frit_fuser_table, finish),
    REQUIRED(FRIT_NATIVE_TABLE, DRIVER, frit_native_table, get),
    REQUIRED(FRIT_EXTMEM_TABLE, MEMORY, frit_extmem_table, import),
    REQUIRED(FRIT_PROFILE_TABLE, CLOCK, frit_profile_table, clock),
    REQUIRED(FRIT_OPS_TABLE, OPS, frit_ops_table, ops),
    REQUIRED(FRIT_CAPTURE_TABLE, RECORDS, frit_capture_table, release),
    REQUIRED(FRIT_COLLECTIVE_TABLE, ENGINE, frit_collective_table, wait),
};

/* The table is shortened in place, so that it cannot be made longer.  Without spec_release the
 * memory of specs would leak. */
static const struct table program_table = {FRIT_PROGRAM_TABLE,
                                           DRIVER | FUSERS,
                                           FRIT_END_OF(frit_program_table, spec_release),
                                           0,
                                           FRIT_END_OF(frit_program_table, spec_release),
                                           sizeof(frit_program_table),
                                           sizeof(frit_program_table)};

/* ---- plugins ---- */

struct resized {
    const char *id;
    const char *file;
    const char *device; /* its own, or reference:0 of the plugin `reference` beside it */
    uint32_t offers;
    bool plain;    /* neither kernel formats nor compiles: no optional slot is in use */
    bool computes; /* the right numbers */
};

static const struct resized plugins[] = {
    {"null", NULL_PLUGIN, "null:0", DRIVER | FUSERS | CLOCK | MEMORY, true, false},
    {"null", NULL_PLUGIN, "null:0", DRIVER | FUSERS | CLOCK | MEMORY, false, false},
    {"reference", REFERENCE, "reference:0", DRIVER | CLOCK, false, true},
    {"reference", LATE, "reference:0", DRIVER | RECORDS, false, true},
    {"cpu", CPU, "cpu:0", DRIVER | FUSERS | CLOCK, false, true},
    {"org.frit.blocks", BLOCKS, "reference:0", FUSERS, false, true},
    {"fake-ops", CUSTOM_OPS, "reference:0", OPS, false, true},
    {"collective-local", COLLECTIVE, "reference:0", ENGINE, false, true},
};

static void set_resized(const struct resized *plugin, const char *table, uint32_t bytes)
{
    char text[16];

    snprintf(text, sizeof(text), "%u", bytes);
    assert_int_equal(setenv("RESIZED_PLUGIN", plugin->file, 1), 0);
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

/* With the resized plugin, and `reference` where that has no driver.  Plans are saved, so that the
 * next host of the same `store` has them from the plugin's from_state. */
static frit_host *open_host(const struct resized *plugin, const char *store)
{
    frit_err err = {.struct_size = sizeof(err)};
    static char path[PATH];
    const char *build = getenv("FRIT_TEST_BUILD");
    char section[64];
    frit_setting settings[6] = {
        {section, "library", path}, {"frit", "fallback", "none"}, {"fusion", "store", store}};
    frit_host_params params = {
        .struct_size = sizeof(params), .settings = settings, .n_settings = 3, .log = no_log};
    frit_host *host = NULL;

    if (!build)
        fail_msg("FRIT_TEST_BUILD must name the build folder");
    snprintf(path, sizeof(path), "%s/tests/" RESIZED, build);
    snprintf(section, sizeof(section), "plugin.%s", plugin->id);
    if (!(plugin->offers & DRIVER))
        settings[params.n_settings++] = (frit_setting){"plugin.reference", "library", REFERENCE};
    if (strcmp(plugin->id, "null") == 0 && plugin->plain)
        settings[params.n_settings++] = (frit_setting){"plugin.null", "option.opaque", "yes"};
    if (strcmp(plugin->id, "null") == 0 && !plugin->plain)
        settings[params.n_settings++] = (frit_setting){"plugin.null", "option.compile_ms", "0"};
    if (frit_host_open(&params, &host, &err))
        fail_msg("%s", err.text);
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
static bool compute(const struct resized *plugin, frit_device *device)
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
    ok = frit_read(total, &sum, sizeof(sum), NULL) == FRIT_OK;
    assert_true(ok || frit_tensor_error(total)[0]);
    assert_int_equal(frit_read(view, half, sizeof(half), NULL), FRIT_OK);
    frit_release(in);
    frit_release(map);
    frit_release(total);
    frit_release(view);
    assert_int_equal(frit_sync(device, NULL) == FRIT_OK, ok);
    if (plugin->computes) {
        assert_true(!ok || sum == 3 * N);
        assert_true(half[N / 2 - 1] == N - 2);
    }
    return ok;
}

/* Twice: the second time runs the plan of the first. */
static bool run(const struct resized *plugin, frit_device *device)
{
    bool ok = compute(plugin, device) && compute(plugin, device);
    char *left = NULL;

    frit_trim(device);
    if (frit_leaks(device, &left))
        fail_msg("%s", left);
    frit_device_close(device);
    return ok;
}

/* True if everything works; otherwise checks that there is a text that says why. */
static bool works(const struct resized *plugin, const char *table, uint32_t bytes,
                  const char *store)
{
    frit_err err = {.struct_size = sizeof(err)};
    frit_host *host;
    frit_device *device = NULL;
    frit_plugin_desc desc;
    bool ok = false;

    set_resized(plugin, table, bytes);
    host = open_host(plugin, store);
    if (frit_device_open(host, plugin->device, &device, &err) == FRIT_OK)
        ok = run(plugin, device);
    else
        assert_non_null(strstr(err.text, plugin->device));
    desc = about_resized(host);
    assert_true(desc.reason == FRIT_REASON_NONE ? ok : desc.detail[0]);
    assert_true(device ? ok || plugin->offers & DRIVER : true);
    ok = ok && desc.reason == FRIT_REASON_NONE;
    frit_host_close(host);
    return ok;
}

/* A driver with kernel formats also needs optional slots. */
static uint32_t enough_of(const struct resized *plugin, const struct table *table)
{
    bool needs_more = !plugin->plain && strcmp(table->name, FRIT_BACKEND) == 0;

    return needs_more ? table->bytes : table->enough;
}

static void try_table(const struct resized *plugin, const struct table *table)
{
    char store[PATH];

    snprintf(store, sizeof(store), "%s/plans", folder);
    print_message("%s, bytes of %s (! refused):", plugin->id, table->name);
    for (uint32_t bytes = table->shortest; bytes <= table->longest; bytes += SLOT) {
        bool must = bytes >= table->bytes || bytes == enough_of(plugin, table);
        bool ok;

        print_message(" %u", bytes); /* first, as it may be the last */
        ok = works(plugin, table->name, bytes, store);
        print_message("%s", ok ? "" : "!");
        if (ok ? bytes < table->required : must)
            fail_msg("%s with %u bytes of %s is %s", plugin->id, bytes, table->name,
                     ok ? "not refused" : "refused");
        if (table == &program_table) /* so that the next programs are created, and resized, anew */
            (void)remove(store);
    }
    (void)remove(store);
    print_message("\n");
}

static void try_all(const struct table *tables, size_t count)
{
    for (size_t p = 0; p < sizeof(plugins) / sizeof(plugins[0]); p++) {
        for (size_t t = 0; t < count; t++) {
            if (!tables[t].users || tables[t].users & plugins[p].offers)
                try_table(&plugins[p], &tables[t]);
        }
    }
}

static void hosts_of_other_minors(void **state)
{
    (void)state;
    try_all(host_tables, sizeof(host_tables) / sizeof(host_tables[0]));
}

static void plugins_of_other_minors(void **state)
{
    (void)state;
    try_all(plugin_tables, sizeof(plugin_tables) / sizeof(plugin_tables[0]));
    try_all(&program_table, 1);
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
