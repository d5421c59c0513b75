/* SPDX-License-Identifier: Apache-2.0 */
/* Every sin is met with its reason, and nobody else suffers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "host/load/rig.h"
#include "load/reason.h"

/* Functions that the plugins have, too, each of them its own: nobody may call these. */
__attribute__((visibility("default"))) void fake_open(void);
__attribute__((visibility("default"))) void fake_enumerate(void);

void fake_open(void)
{
    abort();
}

void fake_enumerate(void)
{
    abort();
}

static const struct sin {
    const char *file;
    uint32_t reason, driver_reason;
    const char *words;
} sins[] = {
#define FAKE_SIN(NAME, file, REASON, DRIVER_REASON, words) \
    {"libfrit-fake-" file ".so", FRIT_REASON_##REASON, FRIT_REASON_##DRIVER_REASON, words},
#include "fake/sins.def"
};

enum { N_SINS = sizeof(sins) / sizeof(sins[0]) };

static void check_sin(const struct rig *rig, const struct sin *sin)
{
    const struct plugin *plugin = rig_plugin(rig, sin->file);

    if (plugin->reason != sin->reason || plugin->driver_reason != sin->driver_reason)
        fail_msg("%s: reason %s (%s), driver %s (%s)", sin->file, reason_name(plugin->reason),
                 plugin->detail, reason_name(plugin->driver_reason), plugin->driver_detail);
    rig_contains(plugin->reason ? plugin->detail : plugin->driver_detail, sin->words);
    assert_int_equal(plugin->opened, plugin->reason == FRIT_REASON_NONE);
    assert_int_equal(plugin->driver[0] || plugin->fusers.push, plugin->reason == FRIT_REASON_NONE);
    if (plugin->reason || plugin->driver_reason)
        assert_int_equal(plugin->n_devices, 0);
    if (plugin->reason) { /* nothing of a refused plugin can be called */
        const struct plugin empty = {0};

        assert_memory_equal(&plugin->backend, &empty.backend, sizeof(empty.backend));
        assert_memory_equal(&plugin->fusers, &empty.fusers, sizeof(empty.fusers));
        assert_memory_equal(&plugin->native, &empty.native, sizeof(empty.native));
        assert_int_equal(plugin->n_ops, 0);
    }
}

/* The good driver's device keeps what is written to it. */
static void check_good(const struct rig *rig, const char *id)
{
    const struct plugin *plugin = rig_plugin(rig, id);
    const frit_backend *backend = &plugin->backend;
    frit_alloc_desc desc = {.struct_size = sizeof(desc), .bytes = 8, .align = 4096};
    frit_allocation memory = {.struct_size = sizeof(memory)};
    uint64_t in = 0x0123456789abcdef, out = 0, value = 0;
    const frit_open_params params = {.struct_size = sizeof(params)};
    void *device = NULL;

    assert_int_equal(plugin->reason, FRIT_REASON_NONE);
    assert_int_equal(backend->device_open(plugin->instance, 0, &params, &device, NULL), FRIT_OK);
    assert_int_equal(backend->alloc(device, &desc, &memory, NULL), FRIT_OK);
    assert_int_equal(memory.address % 4096, 0);
    assert_int_equal(backend->write(device, &(frit_transfer){.memory = memory.memory, .bytes = 8},
                                    &in, &value, NULL),
                     FRIT_OK);
    assert_int_equal(backend->read(device, &(frit_transfer){.memory = memory.memory, .bytes = 8},
                                   &out, &value, NULL),
                     FRIT_OK);
    assert_true(in == out);
    backend->free(device, memory.memory);
    backend->device_close(device);
}

/* Once for each of two hosts that live at the same time; the second finds every file mapped
 * already. */
static void every_sin_has_its_reason(void **state)
{
    struct rig rigs[2];

    (void)state;
    setenv("FRIT_PLUGIN_PATH", rig_fake_dir(), 1);
    for (int i = 0; i < 2; i++)
        assert_int_equal(rig_open(&rigs[i], NULL), FRIT_OK);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(registry_n_plugins(rigs[i].registry), N_SINS + 2);
        for (size_t k = 0; k < N_SINS; k++)
            check_sin(&rigs[i], &sins[k]);
        check_good(&rigs[i], "libfrit-fake-good.so");
        check_good(&rigs[i], "libfrit-fake-other.so");
    }
    rig_close(&rigs[0]);
    check_good(&rigs[1], "libfrit-fake-good.so"); /* closing one host leaves the other's alone */
    rig_close(&rigs[1]);
    setenv("FRIT_PLUGIN_PATH", rig_dir(), 1);
}

/* Larger structs of a later version: what is known is taken, the rest is left alone. */
static void the_future_is_cut_to_size(void **state)
{
    struct rig rig;
    const struct plugin *plugin;
    const frit_setting settings[] = {
        {"plugin.fake-future", "library", rig_fake("libfrit-fake-future.so")},
        {"plugin.fake-future", "option.second", "yes"},
        {NULL, NULL, NULL}};

    (void)state;
    assert_int_equal(rig_open(&rig, settings), FRIT_OK);
    plugin = rig_plugin(&rig, "fake-future");
    assert_string_equal(plugin->detail, "");
    assert_int_equal(plugin->backend.struct_size, sizeof(frit_backend));
    assert_null(plugin->backend.memory_cleanup);
    assert_int_equal(plugin->n_devices, 2);
    for (uint32_t i = 0; i < 2; i++) {
        const frit_device_info *info = &plugin->devices[i];

        assert_int_equal(info->index, i);
        assert_int_equal(info->struct_size, sizeof(*info));
        assert_int_equal(info->type, FRIT_DEVICE_UNKNOWN); /* 77 */
        assert_int_equal(info->align_bytes, 64);           /* 0 */
        assert_string_equal(info->stable_id.ptr, i ? "two" : "one");
        assert_string_equal(info->name.ptr, "from the future"); /* no line end gets through */
        assert_string_equal(info->pci.ptr, "");                 /* NULL */
        assert_int_equal(info->n_formats, 1);
        assert_string_equal(info->formats[0].ptr, "new format");
    }
    assert_string_equal(reason_name(plugin->devices[1].reason), "unknown"); /* 999 */
    rig_close(&rig);
}

static void expect_no_cleanup(const char *id, const char *file)
{
    struct rig rig;
    char section[64];
    const frit_setting settings[] = {{section, "library", rig_fake(file)}, {NULL, NULL, NULL}};

    snprintf(section, sizeof(section), "plugin.%s", id);
    assert_int_equal(rig_open(&rig, settings), FRIT_OK);
    assert_int_equal(rig_plugin(&rig, id)->n_devices, 1);
    assert_null(rig_plugin(&rig, id)->backend.memory_cleanup);
    rig_close(&rig);
}

/* A table that ends with its required slots, at the end of readable memory; and one that ends
 * inside a slot. */
static void no_slot_behind_the_table_is_read(void **state)
{
    (void)state;
    expect_no_cleanup("fake-poisoned-tail", "libfrit-fake-poisoned-tail.so");
    expect_no_cleanup("fake-half-slot", "libfrit-fake-half-slot.so");
}

/* Used all the same: with functions of the names of this program's, and its own. */
static void what_is_exported_beside_the_entry_is_named(void **state)
{
    struct rig rig;
    const frit_setting settings[] = {
        {"plugin.fake-loud", "library", rig_fake("loud/libfrit-fake-loud.so")}, {NULL, NULL, NULL}};

    (void)state;
    assert_int_equal(rig_open(&rig, settings), FRIT_OK);
    assert_int_equal(rig_plugin(&rig, "fake-loud")->reason, FRIT_REASON_NONE);
    rig_contains(rig_log(), "libfrit-fake-loud.so exports ");
    rig_contains(rig_log(), " symbols beside its entry, such as 'fake_");
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_sin_has_its_reason),
        cmocka_unit_test(the_future_is_cut_to_size),
        cmocka_unit_test(no_slot_behind_the_table_is_read),
        cmocka_unit_test(what_is_exported_beside_the_entry_is_named),
    };

    return cmocka_run_group_tests(tests, rig_setup, rig_teardown);
}
