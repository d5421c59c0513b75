/* SPDX-License-Identifier: Apache-2.0 */
/* Who wins: program, environment, user file, frit.ini, plugins.d from its last name, built in. */
#include "host/conf/world.h"

#define USER   "/home/.config/frit/frit.ini"
#define SYSTEM "/etc/frit/frit.ini"

static void expect(const char *value, const char *origin)
{
    struct conf *conf = world_load();

    assert_string_equal(conf_options(conf)->device, value);
    world_shows(conf, "frit", "device", value, origin);
    conf_destroy(conf);
}

static void each_layer_beats_the_next(void **state)
{
    (void)state;
    expect("auto", "built in");
    world_write("/etc/frit/plugins.d/10-a.ini", "[frit]\ndevice = first\n");
    expect("first", "%s/etc/frit/plugins.d/10-a.ini:2");
    world_write("/etc/frit/plugins.d/9-b.ini", "[frit]\n\ndevice = last\n");
    expect("last", "%s/etc/frit/plugins.d/9-b.ini:3");
    world_write(SYSTEM, "[frit]\ndevice = system\n");
    expect("system", "%s" SYSTEM ":2");
    world_write(USER, "[frit]\ndevice = user\n");
    expect("user", "%s" USER ":2");
    world_setenv("FRIT_DEVICE=variable");
    expect("variable", "environment FRIT_DEVICE");
    world_set("frit", "device", "program");
    expect("program", "program");
}

static void layers_add_up(void **state)
{
    struct conf *conf;

    (void)state;
    world_write(SYSTEM, "[memory]\nkeep_bytes = 7\nchunk_bytes = 8192\n");
    world_write(USER, "[memory]\nkeep_bytes = 8\n");
    world_setenv("FRIT_STREAM_MAX_OPS=3");
    world_set("frit", "seed", "5");
    conf = world_load();
    assert_int_equal(conf_options(conf)->memory_keep_bytes, 8);
    assert_int_equal(conf_options(conf)->memory_chunk_bytes, 8192);
    assert_int_equal(conf_options(conf)->stream_max_ops, 3);
    assert_int_equal(conf_options(conf)->seed, 5);
    assert_false(conf_options(conf)->decompose);
    world_shows(conf, "stream", "max_ops", "3", "environment FRIT_STREAM_MAX_OPS");
    world_shows(conf, "memory", "chunk_bytes", "8192", "%s" SYSTEM ":3");
    conf_destroy(conf);
}

static void a_beaten_value_must_be_right_too(void **state)
{
    (void)state;
    world_write(SYSTEM, "[stream]\nmax_ops = 0\n");
    world_set("stream", "max_ops", "4");
    world_refuses(FRIT_INVALID, "%s" SYSTEM ":2: [stream] max_ops: '0' is not allowed; allowed: "
                                "a whole number from 1 to 1048576");
    world_write(SYSTEM, "[stream]\nmax_ops = 5\nmax_ops = 6\n");
    world_refuses(FRIT_INVALID,
                  "%s" SYSTEM ":3: [stream] max_ops is given twice; first: %s" SYSTEM ":2");
}

static void an_empty_variable_is_none(void **state)
{
    (void)state;
    world_setenv("FRIT_DEVICE=");
    expect("auto", "built in");
}

/* FRIT_CONFIG replaces all files, whatever is in them. */
static void one_file_replaces_all(void **state)
{
    (void)state;
    world_write(SYSTEM, "[nonsense]\n");
    world_write(USER, "nonsense\n");
    world_write("/only.ini", "[frit]\ndevice = only\n");
    world_setenv("FRIT_CONFIG=%s/only.ini");
    expect("only", "%s/only.ini:2");
}

static void xdg_comes_before_home(void **state)
{
    (void)state;
    world_write(USER, "[frit]\ndevice = home\n");
    world_write("/xdg/frit/frit.ini", "[frit]\ndevice = xdg\n");
    world_setenv("XDG_CONFIG_HOME=relative");
    expect("home", "%s" USER ":2");
    world_reset();
    world_setenv("XDG_CONFIG_HOME=%s/xdg");
    expect("xdg", "%s/xdg/frit/frit.ini:2");
    world_remove("/xdg/frit/frit.ini"); /* ~/.config is not read then */
    expect("auto", "built in");
}

static void sections_stand_in_order_of_precedence(void **state)
{
    struct conf *conf;

    (void)state;
    world_write(SYSTEM, "[plugin.b]\nenabled = no\npriority = 3\n[plugin.c]\n");
    world_write(USER, "[plugin.a]\n\n[plugin.b]\nenabled = yes\n");
    conf = world_load();
    assert_int_equal(conf_n_plugins(conf), 3);
    assert_string_equal(conf_plugin_at(conf, 0)->id, "a");
    assert_string_equal(conf_plugin_at(conf, 1)->id, "b");
    assert_string_equal(conf_plugin_at(conf, 2)->id, "c");
    assert_true(conf_plugin_at(conf, 1)->enabled);
    assert_int_equal(conf_plugin_at(conf, 1)->priority, 3);
    world_shows(conf, "plugin.b", "enabled", "yes", "%s" USER ":4");
    world_shows(conf, "plugin.b", "priority", "3", "%s" SYSTEM ":3");
    conf_destroy(conf);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_layer_beats_the_next),
        TEST(layers_add_up),
        TEST(a_beaten_value_must_be_right_too),
        TEST(an_empty_variable_is_none),
        TEST(one_file_replaces_all),
        TEST(xdg_comes_before_home),
        TEST(sections_stand_in_order_of_precedence),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
