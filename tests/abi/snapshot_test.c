/* SPDX-License-Identifier: Apache-2.0 */
/* Plugins that were compiled long ago: today's host uses them or says why not, with both ranges. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "host/load/rig.h"

static void use_device(const struct plugin *plugin)
{
    const frit_backend *backend = &plugin->backend;
    const frit_alloc_desc desc = {.struct_size = sizeof(desc), .bytes = 256, .align = 64};
    frit_allocation memory = {.struct_size = sizeof(memory)};
    uint64_t word = 0, value = 0;
    void *device = NULL;
    frit_failure failure = {.struct_size = sizeof(failure)};
    frit_transfer from = {.struct_size = sizeof(from), .offset = 248, .bytes = 8};
    frit_cmd fill = {.struct_size = sizeof(fill),
                     .kind = FRIT_CMD_FILL,
                     .bytes = 256,
                     .pattern = 0x1122334455667788,
                     .pattern_bytes = 8};

    assert_int_equal(plugin->n_devices, 1);
    assert_int_equal(backend->device_open(plugin->instance, 0, &device, NULL), FRIT_OK);
    assert_int_equal(backend->alloc(device, &desc, &memory, NULL), FRIT_OK);
    fill.dst = memory.memory;
    from.memory = memory.memory;
    assert_int_equal(backend->submit(device, &fill, 1, sizeof(fill), NULL, 0, &value, NULL),
                     FRIT_OK);
    assert_int_equal(backend->read(device, &from, &word, &value, NULL), FRIT_OK);
    assert_int_equal(backend->wait(device, value, UINT64_MAX, &failure, NULL), FRIT_OK);
    assert_true(word == fill.pattern);
    if (plugin->native.get)
        assert_memory_equal(plugin->native.get(device, memory.memory, FRIT_STR("host.ptr")), &word,
                            sizeof(word));
    backend->free(device, memory.memory);
    backend->device_close(device);
}

static void check_snapshot(const char *path)
{
    struct rig rig;
    const frit_setting settings[] = {{"plugin.snapshot", "library", path}, {NULL, NULL, NULL}};
    const struct plugin *plugin;

    print_message("%s\n", path);
    assert_int_equal(rig_open(&rig, settings), FRIT_OK);
    plugin = rig_plugin(&rig, "libfrit-snapshot.so");
    if (FRIT_SANITIZER != FRIT_SANITIZER_NONE) {
        assert_string_equal(reason_name(plugin->reason), "sanitizer-mismatch");
    } else if (plugin->reason) {
        assert_string_equal(reason_name(plugin->reason), "abi-mismatch");
        rig_contains(plugin->detail, "the plugin speaks ABI");
        rig_contains(plugin->detail, "this host");
    } else {
        use_device(plugin);
    }
    rig_close(&rig);
}

static void every_snapshot(void **state)
{
    glob_t found;

    (void)state;
    if (glob("abi/snapshots/*/libfrit-snapshot.so", 0, NULL, &found))
        fail_msg("there is no snapshot: run abi/snapshots/take");
    for (size_t i = 0; i < found.gl_pathc; i++) {
        char *path = realpath(found.gl_pathv[i], NULL);

        assert_non_null(path);
        check_snapshot(path);
        free(path);
    }
    globfree(&found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_snapshot)};

    return cmocka_run_group_tests(tests, rig_setup, rig_teardown);
}
