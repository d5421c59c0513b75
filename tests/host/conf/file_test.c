/* SPDX-License-Identifier: Apache-2.0 */
/* Which files are read, which are refused whole, and where relative paths in them start. */
#include "host/conf/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SYSTEM "/etc/frit/frit.ini"

enum { MOST = 1 << 20 };

static void no_file_is_fine(void **state)
{
    struct conf *conf;

    (void)state;
    conf = world_load();
    world_shows(conf, "frit", "device", "auto", "built in");
    assert_int_equal(conf_n_dirs(conf), 0);
    assert_int_equal(conf_n_plugins(conf), 0);
    conf_destroy(conf);
    world_write("/etc/frit", "a file, so that /etc/frit/frit.ini is none\n");
    conf_destroy(world_load());
}

static void a_named_file_must_be_readable(void **state)
{
    (void)state;
    world_setenv("FRIT_CONFIG=%s/none.ini");
    world_refuses(
        FRIT_IO, "%s/none.ini: cannot be read: No such file or directory; make it readable or name "
                 "another one in FRIT_CONFIG");
    world_reset();
    world_setenv("FRIT_CONFIG=%s");
    world_refuses(FRIT_IO, "%s: cannot be read: not a regular file; make it readable or name "
                           "another one in FRIT_CONFIG");
    world_reset();
    world_setenv("FRIT_CONFIG=/dev/zero");
    world_refuses(FRIT_IO,
                  "/dev/zero: cannot be read: not a regular file; make it readable or name "
                  "another one in FRIT_CONFIG");
    world_reset();
    world_setenv("FRIT_CONFIG=/dev/null");
    conf_destroy(world_load());
}

static void a_usual_file_that_is_there_must_be_readable(void **state)
{
    (void)state;
    world_write("/etc/frit/frit.ini/x", "");
    world_refuses(FRIT_IO,
                  "%s" SYSTEM
                  ": cannot be read: not a regular file; make it readable or name another one "
                  "in FRIT_CONFIG");
}

static void at_most_a_mebibyte(void **state)
{
    static const char tail[] = "[stream]\nmax_ops=7";
    char *bytes = malloc(MOST + 1);
    struct conf *conf;

    (void)state;
    assert_non_null(bytes);
    memset(bytes, '\n', MOST + 1);
    for (size_t i = 0; i + 1 < sizeof(tail); i++) /* to the last byte */
        bytes[MOST + 2 - sizeof(tail) + i] = tail[i];
    world_write_bytes(SYSTEM, bytes, MOST + 1);
    world_refuses(FRIT_INVALID, "%s" SYSTEM ": larger than the limit of 1048576 bytes");
    world_write_bytes(SYSTEM, bytes + 1, MOST);
    conf = world_load();
    assert_int_equal(conf_options(conf)->stream_max_ops, 7);
    conf_destroy(conf);
    free(bytes);
}

static void a_half_valid_file_changes_nothing(void **state)
{
    (void)state;
    world_write(SYSTEM,
                "[frit]\ndevice = cpu\n[plugin.a]\nlibrary = a.so\n[stream]\nmax_ops = many\n");
    world_refuses(FRIT_INVALID, "%s" SYSTEM ":6: [stream] max_ops: 'many' is not allowed; allowed: "
                                "a whole number from 1 to 1048576");
    world_write(SYSTEM, "[frit]\ndevice = cpu\n[stream\n");
    world_refuses(FRIT_INVALID, "%s" SYSTEM ":3: the section's ']' is missing");
}

static void only_ini_files_of_the_directory(void **state)
{
    struct conf *conf;

    (void)state;
    world_write("/etc/frit/plugins.d/README", "nonsense");
    world_write("/etc/frit/plugins.d/a.ini~", "nonsense");
    world_write("/etc/frit/plugins.d/.a.ini", "nonsense");
    world_write("/etc/frit/plugins.d/ini", "nonsense");
    world_write("/etc/frit/plugins.d/b.ini", "[frit]\nseed = 9\n");
    conf = world_load();
    assert_int_equal(conf_options(conf)->seed, 9);
    conf_destroy(conf);
    world_write("/etc/frit/plugins.d/c.ini", "nonsense");
    world_refuses(FRIT_INVALID, "%s/etc/frit/plugins.d/c.ini:1: neither [section] nor key = value");
}

static void relative_paths_start_at_their_file(void **state)
{
    char wanted[256];
    struct conf *conf;

    (void)state;
    world_write("/sub/c.ini", "[search]\ndirs = lib::/opt/x:../up:\n[plugin.a]\nlibrary = a.so\n"
                              "[plugin.b]\nlibrary = /b.so\n");
    world_setenv("FRIT_CONFIG=%s/sub/c.ini");
    conf = world_load();
    assert_int_equal(conf_n_dirs(conf), 3);
    snprintf(wanted, sizeof(wanted), "%s/sub/lib", world_root());
    assert_string_equal(conf_dir_at(conf, 0)->value, wanted);
    assert_string_equal(conf_dir_at(conf, 1)->value, "/opt/x");
    snprintf(wanted, sizeof(wanted), "%s/sub/../up", world_root());
    assert_string_equal(conf_dir_at(conf, 2)->value, wanted);
    snprintf(wanted, sizeof(wanted), "%s/sub/c.ini:2", world_root());
    assert_string_equal(conf_dir_at(conf, 2)->origin, wanted);
    assert_false(conf_dirs_replace(conf));
    snprintf(wanted, sizeof(wanted), "%s/sub/a.so", world_root());
    assert_string_equal(conf_plugin_at(conf, 0)->library, wanted);
    assert_string_equal(conf_plugin_at(conf, 1)->library, "/b.so");
    conf_destroy(conf);
}

/* A file that is named relatively gives absolute paths all the same, messages name it as it was
 * given. */
static void a_relative_file_gives_absolute_paths(void **state)
{
    char here[1024];
    char wanted[1100];
    struct conf *conf;

    (void)state;
    assert_non_null(getcwd(here, sizeof(here)));
    world_write("/sub/c.ini", "[plugin.a]\nlibrary = a.so\n");
    assert_int_equal(chdir(world_root()), 0);
    world_setenv("FRIT_CONFIG=sub/c.ini");
    conf = world_load();
    snprintf(wanted, sizeof(wanted), "%s/sub/a.so", world_root());
    assert_string_equal(conf_plugin_at(conf, 0)->library, wanted);
    world_shows(conf, "plugin.a", "library", "a.so", "sub/c.ini:2");
    conf_destroy(conf);
    assert_int_equal(chdir("sub"), 0);
    world_reset();
    world_setenv("FRIT_CONFIG=c.ini");
    conf = world_load();
    assert_string_equal(conf_plugin_at(conf, 0)->library, wanted);
    conf_destroy(conf);
    assert_int_equal(chdir(here), 0);
}

static void the_path_variable_replaces_directories(void **state)
{
    struct conf *conf;

    (void)state;
    world_write(SYSTEM, "[search]\ndirs = /sys\n");
    world_setenv("FRIT_SEARCH_DIRS=/more");
    conf = world_load();
    assert_int_equal(conf_n_dirs(conf), 1);
    assert_string_equal(conf_dir_at(conf, 0)->value, "/more");
    assert_false(conf_dirs_replace(conf));
    conf_destroy(conf);
    world_setenv("FRIT_PLUGIN_PATH=/one:/two");
    conf = world_load();
    assert_int_equal(conf_n_dirs(conf), 2);
    assert_string_equal(conf_dir_at(conf, 1)->value, "/two");
    assert_string_equal(conf_dir_at(conf, 1)->origin, "environment FRIT_PLUGIN_PATH");
    assert_true(conf_dirs_replace(conf));
    conf_destroy(conf);
    world_set("search", "dirs", "/mine");
    conf = world_load();
    assert_int_equal(conf_n_dirs(conf), 1);
    assert_string_equal(conf_dir_at(conf, 0)->origin, "program");
    assert_false(conf_dirs_replace(conf));
    conf_destroy(conf);
}

static void relative_paths_elsewhere_are_refused(void **state)
{
    (void)state;
    world_setenv("FRIT_PLUGIN_PATH=/one:two");
    world_refuses(
        FRIT_INVALID,
        "environment FRIT_PLUGIN_PATH: [search] dirs: 'two' is not absolute; relative paths "
        "are only allowed in files");
    world_reset();
    world_set("plugin.a", "library", "a.so");
    world_refuses(FRIT_INVALID, "program: [plugin.a] library: 'a.so' is not absolute; relative "
                                "paths are only allowed in files");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(no_file_is_fine),
        TEST(a_named_file_must_be_readable),
        TEST(a_usual_file_that_is_there_must_be_readable),
        TEST(at_most_a_mebibyte),
        TEST(a_half_valid_file_changes_nothing),
        TEST(only_ini_files_of_the_directory),
        TEST(relative_paths_start_at_their_file),
        TEST(a_relative_file_gives_absolute_paths),
        TEST(the_path_variable_replaces_directories),
        TEST(relative_paths_elsewhere_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
