/* SPDX-License-Identifier: Apache-2.0 */
/* Sections of plugins: keys, ids, options of the plugin's own. */
#include "host/conf/world.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"

#define USER   "/home/.config/frit/frit.ini"
#define SYSTEM "/etc/frit/frit.ini"

static void reads_every_key(void **state)
{
    const struct conf_plugin *plugin;
    struct conf *conf;

    (void)state;
    world_write(USER,
                "[plugin.org.example.npu-2]\nenabled = no\npriority = -1000\ncritical = yes\n"
                "library = /lib/npu.so\noption.precision = int8\noption.empty =\nx-note = free\n");
    conf = world_load();
    assert_null(conf_plugin_find(conf, str_of("org.example.npu")));
    plugin = conf_plugin_find(conf, str_of("org.example.npu-2"));
    assert_ptr_equal(plugin, conf_plugin_at(conf, 0));
    assert_string_equal(plugin->id, "org.example.npu-2");
    assert_string_equal(plugin->library, "/lib/npu.so");
    assert_non_null(strstr(plugin->origin, USER ":5")); /* of the library */
    assert_false(plugin->enabled);
    assert_true(plugin->critical);
    assert_true(plugin->has_priority);
    assert_int_equal(plugin->priority, -1000);
    assert_int_equal(plugin->n_options, 2);
    assert_string_equal(plugin->options[0].key, "precision");
    assert_string_equal(plugin->options[0].value, "int8");
    assert_non_null(strstr(plugin->options[0].origin, USER ":6"));
    assert_string_equal(plugin->options[1].key, "empty");
    assert_string_equal(plugin->options[1].value, "");
    world_shows(conf, "plugin.org.example.npu-2", "option.precision", "int8", "%s" USER ":6");
    world_shows(conf, "plugin.org.example.npu-2", "critical", "yes", "%s" USER ":4");
    world_shows(conf, "plugin.org.example.npu-2", "x-note", NULL, "");
    conf_destroy(conf);
}

static void an_empty_section_has_defaults(void **state)
{
    const struct conf_plugin *plugin;
    struct conf *conf;

    (void)state;
    world_write(USER, "\n[plugin.cpu]\n");
    conf = world_load();
    plugin = conf_plugin_at(conf, 0);
    assert_null(plugin->library);
    assert_non_null(strstr(plugin->origin, USER ":2"));
    assert_true(plugin->enabled);
    assert_false(plugin->critical);
    assert_false(plugin->has_priority);
    assert_int_equal(plugin->priority, 0);
    assert_int_equal(plugin->n_options, 0);
    world_shows(conf, "plugin.cpu", "enabled", NULL, "");
    conf_destroy(conf);
}

static void options_merge_one_by_one(void **state)
{
    const struct conf_plugin *plugin;
    struct conf *conf;

    (void)state;
    world_write(SYSTEM, "[plugin.cpu]\noption.a = 1\noption.b = 1\noption.c = 1\n");
    world_write(USER, "[plugin.cpu]\noption.b = 2\n");
    world_set("plugin.cpu", "option.c", "3");
    conf = world_load();
    plugin = conf_plugin_at(conf, 0);
    assert_string_equal(plugin->origin, "program");
    assert_int_equal(plugin->n_options, 3);
    world_shows(conf, "plugin.cpu", "option.a", "1", "%s" SYSTEM ":2");
    world_shows(conf, "plugin.cpu", "option.b", "2", "%s" USER ":2");
    world_shows(conf, "plugin.cpu", "option.c", "3", "program");
    conf_destroy(conf);
}

static void refuses_with_line_and_reason(void **state)
{
    static const struct {
        const char *text;
        const char *error;
    } rows[] = {
        {"[plugin.]\n",
         ":1: section [plugin.]: the id of a plugin consists of 1 to 40 characters a-z 0-9 . -"},
        {"[plugin.CPU]\n",
         ":1: section [plugin.CPU]: the id of a plugin consists of 1 to 40 characters a-z 0-9 . -"},
        {"[plugin.a_b]\n",
         ":1: section [plugin.a_b]: the id of a plugin consists of 1 to 40 characters a-z 0-9 . -"},
        {"[plugin.0123456789012345678901234567890123456789a]\n",
         ":1: section [plugin.0123456789012345678901234567890123456789a]: the id of a plugin "
         "consists of 1 "
         "to 40 "
         "characters a-z 0-9 . -"},
        {"[plugin.a]\nenable = no\n",
         ":2: [plugin.a] has no key 'enable'; allowed: library enabled priority "
         "critical probe option.NAME x-ANY; did you mean 'enabled'?"},
        {"[plugin.a]\noption. = no\n",
         ":2: [plugin.a] has no key 'option.'; allowed: library enabled priority "
         "critical probe option.NAME x-ANY"},
        {"[plugin.a]\nenabled = on\n",
         ":2: [plugin.a] enabled: 'on' is not allowed; allowed: yes no"},
        {"[plugin.a]\npriority = 1001\n", ":2: [plugin.a] priority: '1001' is not allowed; "
                                          "allowed: a whole number from -1000 to 1000"},
        {"[plugin.a]\nlibrary =\n", ":2: [plugin.a] library: the value is missing"},
        {"[plugin.a]\nenabled = no\nenabled = no\n",
         ":3: [plugin.a] enabled is given twice; first: %s" USER ":2"},
        {"[plugin.a]\noption.x = 1\n\noption.x = 2\n",
         ":4: [plugin.a] option.x is given twice; first: %s" USER ":2"},
        {"[frit]\noption.x = 1\n", ":2: [frit] has no key 'option.x'; allowed: config_version "
                                   "device log seed threads decompose poison fallback trace "
                                   "timeline artefacts artefact_bytes x-ANY"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char wanted[512];

        snprintf(wanted, sizeof(wanted), "%%s" USER "%s", rows[i].error);
        world_write(USER, rows[i].text);
        world_refuses(FRIT_INVALID, wanted);
    }
}

/* The longest id fits into a section; equal options of two plugins are two options. */
static void ids_do_not_mix(void **state)
{
    struct conf *conf;

    (void)state;
    world_write(USER,
                "[plugin.0123456789012345678901234567890123456789]\n[plugin.a]\noption.x = 1\n"
                "[plugin.b]\noption.x = 2\n[plugin.a]\noption.y = 3\n");
    conf = world_load();
    assert_int_equal(conf_n_plugins(conf), 3);
    assert_int_equal(conf_plugin_find(conf, str_of("a"))->n_options, 2);
    assert_int_equal(conf_plugin_find(conf, str_of("b"))->n_options, 1);
    conf_destroy(conf);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(reads_every_key),          TEST(an_empty_section_has_defaults),
        TEST(options_merge_one_by_one), TEST(refuses_with_line_and_reason),
        TEST(ids_do_not_mix),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
