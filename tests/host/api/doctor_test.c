/* SPDX-License-Identifier: Apache-2.0 */
/* What tools learn of the library, its files, and plugin files that are not loaded. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <frit/doctor.h>

#include "load/find.h"

static const char *built(const char *file)
{
    static char path[512];

    snprintf(path, sizeof(path), "%s/%s", getenv("FRIT_TEST_BUILD"), file);
    return path;
}

/* ---- the library ---- */

static void says_how_it_was_built(void **state)
{
    frit_build_desc build = {.struct_size = sizeof(build)}, none = {0};

    (void)state;
    assert_int_equal(frit_build(&build), FRIT_OK);
    assert_string_equal(build.version, FRIT_VERSION);
    assert_true(build.path[0] && build.compiler[0] && build.sanitizer[0]);
    assert_true(build.abi_min <= build.abi_max && build.abi_max > 0);
    assert_int_equal(frit_build(&none), FRIT_INVALID);
    assert_int_equal(frit_build(NULL), FRIT_INVALID);
    assert_string_equal(frit_reason_advice(FRIT_REASON_NO_RUNTIME), "install the vendor's runtime");
    assert_string_equal(frit_reason_advice(FRIT_REASON_NONE), "");
    assert_string_equal(frit_reason_advice(9999), "");
}

/* ---- places ---- */

static bool place_of(frit_host *host, uint32_t kind, const char *path)
{
    frit_place_desc place = {.struct_size = sizeof(place)};

    for (uint64_t i = 0; frit_place_at(host, i, &place) == FRIT_OK; i++)
        if (place.kind == kind && strcmp(place.path, path) == 0)
            return true;
    return false;
}

static void names_what_it_uses(void **state)
{
    static const frit_setting settings[] = {{"frit", "artefacts", "/nowhere/artefacts"},
                                            {"fusion", "store", "/nowhere/plans"},
                                            {"tune", "store", "/nowhere/decisions"},
                                            {"search", "dirs", "/nowhere/plugins"}};
    const frit_host_params params = {
        .struct_size = sizeof(params), .settings = settings, .n_settings = 4};
    frit_place_desc place = {.struct_size = sizeof(place)};
    char file[] = "/tmp/frit-doctor-XXXXXX";
    frit_host *host;
    int fd = mkstemp(file);

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "[frit]\n", 7), 7);
    assert_int_equal(close(fd), 0);
    assert_int_equal(setenv("FRIT_CONFIG", file, 1), 0);
    assert_int_equal(unsetenv("FRIT_PLUGIN_PATH"), 0);
    assert_int_equal(frit_host_open(&params, &host, NULL), FRIT_OK);
    assert_true(place_of(host, FRIT_PLACE_CONFIG, file));
    assert_true(place_of(host, FRIT_PLACE_PLUGINS, "/nowhere/plugins"));
    assert_true(place_of(host, FRIT_PLACE_PLANS, "/nowhere/plans"));
    assert_true(place_of(host, FRIT_PLACE_DECISIONS, "/nowhere/decisions"));
    assert_true(place_of(host, FRIT_PLACE_ARTEFACTS, "/nowhere/artefacts"));
    assert_int_equal(frit_place_at(host, 1000, &place), FRIT_INVALID);
    assert_int_equal(frit_place_at(NULL, 0, &place), FRIT_INVALID);
    frit_host_close(host);
    assert_int_equal(setenv("FRIT_CONFIG", "/dev/null", 1), 0);
    assert_int_equal(unlink(file), 0);
}

/* ---- files ---- */

static void reads_a_plugin(void **state)
{
    frit_plugin_file_desc about = {.struct_size = sizeof(about)};
    frit_needed_desc needed = {.struct_size = sizeof(needed)};
    frit_plugin_file *file;
    bool has_c = false;

    (void)state;
    assert_int_equal(frit_plugin_file_read(built("tests/fake/libfrit-fake-good.so"), &file, NULL),
                     FRIT_OK);
    assert_int_equal(frit_plugin_file_about(file, &about), FRIT_OK);
    assert_string_equal(about.id, "fake-good");
    assert_string_equal(about.version, "1.0");
    assert_int_equal(about.reason, FRIT_REASON_NONE);
    assert_int_equal(about.n_exports, 1);
    assert_null(frit_plugin_file_export_at(file, 0));
    assert_int_equal(about.flags & (FRIT_FILE_NOTE | FRIT_FILE_SYMBOLS | FRIT_FILE_RELRO |
                                    FRIT_FILE_BIND_NOW | FRIT_FILE_STAYS),
                     FRIT_FILE_NOTE | FRIT_FILE_SYMBOLS | FRIT_FILE_RELRO | FRIT_FILE_BIND_NOW |
                         FRIT_FILE_STAYS);
    assert_int_equal(about.flags & (FRIT_FILE_EXECUTABLE_STACK | FRIT_FILE_TEXT_RELOCATIONS |
                                    FRIT_FILE_WRITABLE_CODE | FRIT_FILE_OLD_RPATH),
                     0);
    for (uint64_t i = 0; frit_plugin_file_needed_at(file, i, &needed) == FRIT_OK; i++)
        has_c |= strcmp(needed.name, "libc.so.6") == 0 && needed.path[0] == '/';
    assert_true(has_c);
    frit_plugin_file_free(file);
}

static void reads_what_is_none(void **state)
{
    frit_plugin_file_desc about = {.struct_size = sizeof(about)};
    frit_plugin_file *file;

    (void)state;
    assert_int_equal(frit_plugin_file_read("/nowhere/libfrit-x.so", &file, NULL), FRIT_OK);
    assert_int_equal(frit_plugin_file_about(file, &about), FRIT_OK);
    assert_string_equal(about.reason_name, "not-found");
    frit_plugin_file_free(file);
    assert_int_equal(frit_plugin_file_read(built("tests/fake/libfake-plain.so"), &file, NULL),
                     FRIT_OK);
    assert_int_equal(frit_plugin_file_about(file, &about), FRIT_OK);
    assert_string_equal(about.reason_name, "no-entry");
    assert_true(about.n_exports > 0);
    assert_non_null(frit_plugin_file_export_at(file, 0));
    frit_plugin_file_free(file);
    assert_int_equal(frit_plugin_file_read(NULL, &file, NULL), FRIT_INVALID);
    frit_plugin_file_free(NULL);
}

/* ---- probes ---- */

static void probe(const char *path, frit_probe_desc *out, frit_plugin_file **file)
{
    frit_err err = {.struct_size = sizeof(err)};

    *out = (frit_probe_desc){.struct_size = sizeof(*out)};
    assert_int_equal(frit_plugin_file_read(built(path), file, NULL), FRIT_OK);
    if (frit_plugin_file_probe(*file, NULL, out, &err))
        fail_msg("%s", err.text);
}

static void tries_a_plugin(void **state)
{
    static const frit_setting bad = {"frit", "devise", "cpu"};
    const frit_host_params params = {
        .struct_size = sizeof(params), .settings = &bad, .n_settings = 1};
    frit_plugin_file *file;
    frit_probe_desc desc;

    (void)state;
    probe("tests/fake/libfrit-fake-good.so", &desc, &file);
    assert_int_equal(desc.reason, FRIT_REASON_NONE);
    assert_int_equal(desc.n_devices, 1);
    assert_true(desc.seconds > 0);
    assert_string_equal(desc.changes, "");
    assert_int_equal(frit_plugin_file_probe(file, &params, &desc, NULL), FRIT_INVALID);
    frit_plugin_file_free(file);
    probe("tests/probe/libfrit-sin-open-exit.so", &desc, &file);
    assert_string_equal(desc.reason_name, "exits");
    frit_plugin_file_free(file);
    probe("tests/probe/libfrit-sin-open-umask.so", &desc, &file);
    assert_int_equal(desc.reason, FRIT_REASON_NONE);
    assert_non_null(strstr(desc.changes, "umask"));
    frit_plugin_file_free(file);
}

/* What the host itself refuses once the file is loaded, and a driver without devices. */
static void reports_refusals(void **state)
{
    frit_plugin_file *file;
    frit_probe_desc desc;

    (void)state;
    probe("tests/fake/libfrit-fake-null-submit.so", &desc, &file);
    assert_string_equal(desc.reason_name, "bad-table");
    assert_non_null(strstr(desc.detail, "'submit'"));
    frit_plugin_file_free(file);
    probe("tests/fake/libfrit-fake-no-devices.so", &desc, &file);
    assert_true(desc.reason && desc.n_devices == 0);
    assert_true(desc.detail[0] != '\0');
    frit_plugin_file_free(file);
}

static int set_up(void **state)
{
    static char library[512];

    (void)state;
    snprintf(library, sizeof(library), "%s", built("lib"));
    find_set_own_folder(library);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_how_it_was_built), cmocka_unit_test(names_what_it_uses),
        cmocka_unit_test(reads_a_plugin),        cmocka_unit_test(reads_what_is_none),
        cmocka_unit_test(tries_a_plugin),        cmocka_unit_test(reports_refusals),
    };

    return cmocka_run_group_tests(tests, set_up, NULL);
}
