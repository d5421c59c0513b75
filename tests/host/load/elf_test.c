/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are not plugins: each kind has its reason, none is opened in a way that hangs, and a
 * cut plugin is refused before the dynamic loader maps it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "host/load/rig.h"
#include "load/device.h"
#include "load/reason.h"

static const char *place(const char *name)
{
    static char path[128];

    snprintf(path, sizeof(path), "%s/%s", rig_dir(), name);
    return path;
}

/* Loads the file as the library of a section and checks what is said. */
static void expect(const char *path, uint32_t reason, const char *words)
{
    struct rig rig;
    const frit_setting settings[] = {{"plugin.wanted", "library", path}, {NULL, NULL, NULL}};
    const struct plugin *plugin;

    assert_int_equal(rig_open(&rig, settings), FRIT_OK);
    assert_int_equal(registry_n_plugins(rig.registry), 1);
    plugin = registry_plugin_at(rig.registry, 0);
    assert_string_equal(reason_name(plugin->reason), reason_name(reason));
    rig_contains(plugin->detail, words);
    rig_contains(rig_log(), reason_name(reason));
    assert_int_equal(registry_n_devices(rig.registry), 0);
    rig_close(&rig);
}

static void expect_bytes(const void *bytes, size_t count, const char *words)
{
    const char *path = place("file.so");
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
    expect(path, FRIT_REASON_NOT_ELF, words);
    assert_int_equal(unlink(path), 0);
}

static void nothing_there(void **state)
{
    (void)state;
    expect(place("missing.so"), FRIT_REASON_NOT_FOUND, "missing.so");
    expect(place("no/such/dir.so"), FRIT_REASON_NOT_FOUND, "No such file");
}

static void not_regular_files(void **state)
{
    const char *path = place("pipe.so");

    (void)state;
    expect(rig_dir(), FRIT_REASON_NOT_A_FILE, rig_dir());
    expect("/dev/null", FRIT_REASON_NOT_A_FILE, "not a regular file");
    assert_int_equal(mkfifo(path, 0600), 0);
    expect(path, FRIT_REASON_NOT_A_FILE, "not a regular file");
    assert_int_equal(unlink(path), 0);
}

static void not_elf(void **state)
{
    const char text[] = "#!/bin/sh\necho this is a program, but not that kind of program at all\n";

    (void)state;
    expect_bytes("", 0, "is empty");
    expect_bytes(text, sizeof(text) - 1, "ELF magic");
    expect_bytes("\177ELF", 4, "shorter than an ELF header");
}

/* The good plugin's header with one field changed. */
static void other_kinds_of_elf(void **state)
{
    Elf64_Ehdr good, bad;
    FILE *file = fopen(rig_fake("libfrit-fake-good.so"), "rb");

    (void)state;
    assert_non_null(file);
    assert_int_equal(fread(&good, sizeof(good), 1, file), 1);
    assert_int_equal(fclose(file), 0);

    bad = good;
    bad.e_ident[EI_CLASS] = ELFCLASS32;
    expect_bytes(&bad, sizeof(bad), "64-bit");
    bad = good;
    bad.e_ident[EI_DATA] = ELFDATA2MSB;
    expect_bytes(&bad, sizeof(bad), "little-endian");
    bad = good;
    bad.e_machine = EM_S390;
    expect_bytes(&bad, sizeof(bad), "another machine");
    bad = good;
    bad.e_type = ET_REL;
    expect_bytes(&bad, sizeof(bad), "not a shared object");
    bad = good;
    bad.e_phnum = 0xffff;
    expect_bytes(&bad, sizeof(bad), "impossible table");
    bad = good;
    bad.e_phoff = UINT64_MAX - 8;
    expect_bytes(&bad, sizeof(bad), "cut off");
    expect_bytes(&good, sizeof(good), "cut off before its table");
}

static void cut_plugin(void **state)
{
    static char bytes[1 << 22];
    FILE *file = fopen(rig_fake("libfrit-fake-good.so"), "rb");
    size_t count;

    (void)state;
    assert_non_null(file);
    count = fread(bytes, 1, sizeof(bytes), file);
    assert_int_equal(fclose(file), 0);
    assert_in_range(count, 4097, sizeof(bytes) - 1);
    expect_bytes(bytes, 4096, "a segment ends past the end");
}

static void shared_objects_that_are_no_plugins(void **state)
{
    (void)state;
    expect(rig_fake("libfake-plain.so"), FRIT_REASON_NO_ENTRY, "libfake-plain.so");
    expect(rig_fake("libfake-unresolved.so"), FRIT_REASON_LOAD_FAILED, "nobody_has_this");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_there), cmocka_unit_test(not_regular_files),
        cmocka_unit_test(not_elf),       cmocka_unit_test(other_kinds_of_elf),
        cmocka_unit_test(cut_plugin),    cmocka_unit_test(shared_objects_that_are_no_plugins),
    };

    return cmocka_run_group_tests(tests, rig_setup, rig_teardown);
}
