/* SPDX-License-Identifier: Apache-2.0 */
/* Plugins that were compiled long ago: today's host uses those whose range of versions meets its
 * own, and refuses the others with both ranges. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "host/load/rig.h"
#include "load/reason.h"

enum { PATH = 4096 };

static void use_device(const struct plugin *plugin)
{
    const frit_backend *backend = &plugin->backend;
    const frit_open_params params = {.struct_size = sizeof(params)};
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
    assert_int_equal(backend->device_open(plugin->instance, 0, &params, &device, NULL), FRIT_OK);
    assert_int_equal(backend->alloc(device, &desc, &memory, NULL), FRIT_OK);
    fill.dst = memory.memory;
    from.memory = memory.memory;
    assert_int_equal(backend->submit(device, NULL, &fill, 1, sizeof(fill), NULL, 0, &value, NULL),
                     FRIT_OK);
    assert_int_equal(backend->read(device, &from, &word, &value, NULL), FRIT_OK);
    assert_int_equal(backend->wait(device, NULL, value, UINT64_MAX, &failure, NULL), FRIT_OK);
    assert_true(word == fill.pattern);
    if (plugin->native.get)
        assert_memory_equal(plugin->native.get(device, memory.memory, FRIT_STR("host.ptr")), &word,
                            sizeof(word));
    backend->free(device, memory.memory);
    backend->device_close(device);
}

/* ---- versions ---- */

struct range {
    uint32_t low, high;
};

/* The value of a `#define NAME FRIT_ABI(MAJOR, MINOR)` in the text. */
static uint32_t version_of(const char *text, const char *name)
{
    const char *define = strstr(text, name);
    unsigned major = 0, minor = 0;

    if (!define || sscanf(define + strlen(name), " FRIT_ABI(%u, %u)", &major, &minor) != 2)
        fail_msg("no %s", name);
    return FRIT_ABI(major, minor);
}

/* What the snapshot's headers say that it speaks. */
static struct range range_of(const char *folder)
{
    static char text[1 << 16];
    char path[PATH];
    FILE *file;

    snprintf(path, sizeof(path), "%s/frit/types.h", folder);
    file = fopen(path, "r");
    if (!file)
        fail_msg("%s cannot be read", path);
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    fclose(file);
    return (struct range){version_of(text, "#define FRIT_ABI_MIN"),
                          version_of(text, "#define FRIT_ABI_MAX")};
}

static void contains_range(const char *words, const char *who, struct range range)
{
    char text[64];

    snprintf(text, sizeof(text), "%s %u.%u-%u.%u", who, range.low >> 16, range.low & 0xffff,
             range.high >> 16, range.high & 0xffff);
    rig_contains(words, text);
}

/* ---- the plugins ---- */

static void check_snapshot(const char *folder)
{
    const struct range theirs = range_of(folder), ours = {FRIT_ABI_MIN, FRIT_ABI_MAX};
    const bool meet = theirs.low <= ours.high && ours.low <= theirs.high;
    struct rig rig;
    char path[PATH];
    const frit_setting settings[] = {{"plugin.snapshot", "library", path}, {NULL, NULL, NULL}};
    const struct plugin *plugin;

    print_message("%s %s\n", folder, meet ? "runs" : "is refused");
    snprintf(path, sizeof(path), "%s/libfrit-snapshot.so", folder);
    assert_int_equal(rig_open(&rig, settings), FRIT_OK);
    plugin = rig_plugin(&rig, "libfrit-snapshot.so");
    if (!meet) {
        assert_string_equal(reason_name(plugin->reason), "abi-mismatch");
        contains_range(plugin->detail, "the plugin speaks ABI", theirs);
        contains_range(plugin->detail, "this host", ours);
    } else if (FRIT_SANITIZER != FRIT_SANITIZER_NONE) {
        assert_string_equal(reason_name(plugin->reason), "sanitizer-mismatch");
    } else {
        assert_string_equal(reason_name(plugin->reason), reason_name(FRIT_REASON_NONE));
        use_device(plugin);
    }
    rig_close(&rig);
}

static void every_snapshot(void **state)
{
    glob_t found;

    (void)state;
    if (glob("abi/snapshots/[0-9]*", 0, NULL, &found))
        fail_msg("there is no snapshot: run abi/snapshots/take");
    for (size_t i = 0; i < found.gl_pathc; i++) {
        char *path = realpath(found.gl_pathv[i], NULL);

        if (!path)
            fail_msg("%s is not there", found.gl_pathv[i]);
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
