/* SPDX-License-Identifier: Apache-2.0 */
/* Sections, keys and values of options: what is taken, and the exact text where it is not. */
#include "host/conf/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/str.h"

#define USER "/home/.config/frit/frit.ini"

/* A file, and the text of its failure after the file's name. */
struct row {
    const char *text;
    const char *error;
};

static void refuses_with_line_and_reason(void **state)
{
    static const struct row rows[] = {
        {"[strem]\n", ":1: there is no section [strem]; allowed: [frit] [search] [stream] [fusion] "
                      "[tune] [memory] [dist] "
                      "[plugin.ID]; did you mean "
                      "[stream]?"},
        {"[elsewhere]\n", ":1: there is no section [elsewhere]; allowed: [frit] [search] [stream] "
                          "[fusion] [tune] [memory] [dist] [plugin.ID]"},
        {"[Frit]\n", ":1: there is no section [Frit]; allowed: [frit] [search] [stream] [fusion] "
                     "[tune] [memory] [dist] "
                     "[plugin.ID]; did you mean "
                     "[frit]?"},
        {"[ frit ]\n", ":1: there is no section [ frit ]; allowed: [frit] [search] [stream] "
                       "[fusion] [tune] [memory] [dist] [plugin.ID]; "
                       "did you mean [frit]?"},
        {"[frit]\n\ndevise = cpu\n",
         ":3: [frit] has no key 'devise'; allowed: config_version device log seed threads "
         "decompose poison fallback trace timeline artefacts artefact_bytes x-ANY; did you mean "
         "'device'?"},
        {"[stream]\ndevice = cpu\n",
         ":2: [stream] has no key 'device'; allowed: max_ops single queues capture x-ANY"},
        {"[frit]\nconfig_version = 2\n",
         ":2: [frit] config_version: '2' is not allowed; allowed: 1"},
        {"[stream]\nmax_ops = 0\n",
         ":2: [stream] max_ops: '0' is not allowed; allowed: a whole number from 1 to 1048576"},
        {"[stream]\nmax_ops = 1048577\n", ":2: [stream] max_ops: '1048577' is not allowed; "
                                          "allowed: a whole number from 1 to 1048576"},
        {"[stream]\nmax_ops = 12k\n",
         ":2: [stream] max_ops: '12k' is not allowed; allowed: a whole number from 1 to 1048576"},
        {"[stream]\nmax_ops = +1\n",
         ":2: [stream] max_ops: '+1' is not allowed; allowed: a whole number from 1 to 1048576"},
        {"[stream]\nmax_ops = 0x10\n",
         ":2: [stream] max_ops: '0x10' is not allowed; allowed: a whole number from 1 to 1048576"},
        {"[frit]\nseed = 9223372036854775808\n",
         ":2: [frit] seed: '9223372036854775808' is not allowed; allowed: "
         "a whole number from 0 to 9223372036854775807"},
        {"[frit]\nseed = -1\n", ":2: [frit] seed: '-1' is not allowed; allowed: a whole number "
                                "from 0 to 9223372036854775807"},
        {"[frit]\ndecompose = true\n",
         ":2: [frit] decompose: 'true' is not allowed; allowed: yes no"},
        {"[frit]\ndevice =\n", ":2: [frit] device: the value is missing"},
        {"[frit]\nseed =\n", ":2: [frit] seed: the value is missing"},
        {"[frit]\nlog = loud\n",
         ":2: [frit] log: 'loud' is not a level; allowed: off error warn info debug trace"},
        {"[frit]\nlog = info,=debug\n",
         ":2: [frit] log: topic '' is empty, too long, or one too many"},
        {"[frit]\ndevice = a\n[search]\n[frit]\ndevice = a\n",
         ":5: [frit] device is given twice; first: %s" USER ":2"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char wanted[512];

        snprintf(wanted, sizeof(wanted), "%%s" USER "%s", rows[i].error);
        world_write(USER, rows[i].text);
        world_refuses(FRIT_INVALID, wanted);
    }
}

static void takes_good_values(void **state)
{
    struct conf *conf;

    (void)state;
    world_write(
        USER,
        "[frit]\nconfig_version = 1\ndevice = hip:0, cpu\nlog = info, load=debug\n"
        "seed = 9223372036854775807\ndecompose = yes\nx-note = anything = goes\nx-note = again\n"
        "[search]\ndirs =\n[stream]\nmax_ops = 1048576\n[memory]\nchunk_bytes = 4096\n");
    conf = world_load();
    assert_string_equal(conf_options(conf)->device, "hip:0, cpu");
    assert_string_equal(conf_options(conf)->log, "info, load=debug");
    assert_int_equal(conf_options(conf)->seed, INT64_MAX);
    assert_true(conf_options(conf)->decompose);
    assert_string_equal(conf_options(conf)->search_dirs, "");
    assert_int_equal(conf_options(conf)->stream_max_ops, 1048576);
    assert_int_equal(conf_options(conf)->memory_chunk_bytes, 4096);
    world_shows(conf, "frit", "x-note", NULL, "");
    conf_destroy(conf);
}

static void refuses_variables_and_settings(void **state)
{
    (void)state;
    world_setenv("FRIT_STREAM_MAX_OPS=none");
    world_refuses(FRIT_INVALID,
                  "environment FRIT_STREAM_MAX_OPS: [stream] max_ops: 'none' is not allowed; "
                  "allowed: a whole number from 1 to 1048576");
    world_reset();
    world_set("frit", "devise", "cpu");
    world_refuses(
        FRIT_INVALID,
        "program: [frit] has no key 'devise'; allowed: config_version device log seed threads "
        "decompose poison fallback trace timeline artefacts artefact_bytes x-ANY; did you mean "
        "'device'?");
    world_reset();
    world_set("frit", "device", NULL);
    world_refuses(FRIT_INVALID,
                  "program: section, key or value of a setting is NULL; give all three");
    world_reset();
    world_set("frit", "device", "a");
    world_set("frit", "device", "b");
    world_refuses(FRIT_INVALID, "program: [frit] device is given twice; first: program");
}

/* ---- variables that mean nothing ---- */

static struct str logged;

static void collect(void *ctx, uint32_t level, const char *topic, const char *text)
{
    (void)ctx;
    str_addf(&logged, "%u %s: %s\n", (unsigned)level, topic, text);
}

static const char *warnings(void)
{
    struct conf *conf = world_load();

    str_fini(&logged);
    log_set_sink(collect, NULL);
    conf_warn(conf);
    log_set_sink(NULL, NULL);
    conf_destroy(conf);
    return logged.text ? logged.text : "";
}

static void warns_of_strange_variables(void **state)
{
    (void)state;
    world_setenv("FRIT_TEST_BUILD=/x");
    world_setenv("FRIT_PLUGIN_PATH=/x");
    world_setenv("FRIT_CONFIG=/dev/null");
    world_setenv("FRITTER=1");
    world_setenv("FRIT_SEED=1");
    assert_string_equal(warnings(), "");
    world_setenv("FRIT_DEVISE=cpu");
    assert_string_equal(
        warnings(),
        "2 conf: unknown environment variable FRIT_DEVISE; did you mean FRIT_DEVICE?\n");
    world_reset();
    world_setenv("FRIT_FROM_ELSEWHERE=1");
    assert_string_equal(warnings(), "2 conf: unknown environment variable FRIT_FROM_ELSEWHERE\n");
    str_fini(&logged);
}

/* ---- conf/frit.ini ---- */

/* Takes the ';' from what is an option with a default; the sections of plugins stay comments. */
static void uncomment(char *text)
{
    bool plugins = false;
    char *out = text;

    for (char *line = text; *line;) {
        size_t length = strcspn(line, "\n");
        char *next = line + length + (line[length] == '\n');

        plugins |= strncmp(line, ";[", 2) == 0;
        if (line[0] == ';' && line[1] != ' ' && length > 1 && !plugins)
            line++;
        memmove(out, line, (size_t)(next - line));
        out += next - line;
        line = next;
    }
    *out = '\0';
}

/* The file that is shipped says the same as no file, about every option. */
static void the_shipped_file_is_the_defaults(void **state)
{
    static char text[16384];
    frit_config_desc plain = {.struct_size = sizeof(plain)};
    frit_config_desc shipped = plain;
    struct conf *defaults, *conf;
    FILE *file = fopen("conf/frit.ini", "r");
    uint64_t count = 0;

    (void)state;
    assert_non_null(file);
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    fclose(file);
    defaults = world_load();
    world_write(USER, text);
    conf_destroy(world_load());
    uncomment(text);
    world_write(USER, text);
    conf = world_load();
    for (; conf_at(defaults, count, &plain); count++) {
        assert_true(conf_at(conf, count, &shipped));
        assert_string_equal(shipped.section, plain.section);
        assert_string_equal(shipped.key, plain.key);
        assert_string_equal(shipped.value, plain.value);
        assert_string_equal(plain.origin, "built in");
        assert_non_null(strstr(shipped.origin, USER));
    }
    assert_false(conf_at(conf, count, &shipped));
    assert_int_equal(count, RULE_N_OPTIONS);
    conf_destroy(defaults);
    conf_destroy(conf);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(refuses_with_line_and_reason),     TEST(takes_good_values),
        TEST(refuses_variables_and_settings),   TEST(warns_of_strange_variables),
        TEST(the_shipped_file_is_the_defaults),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
