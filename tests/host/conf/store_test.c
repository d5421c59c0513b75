/* SPDX-License-Identifier: Apache-2.0 */
/* Where plans and decisions are kept. */
#include "host/conf/world.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

/* `path` NULL: nowhere. */
static void expect(const char *path)
{
    struct conf *conf = world_load();

    if (path)
        assert_string_equal(conf_plan_store(conf), path);
    else
        assert_null(conf_plan_store(conf));
    conf_destroy(conf);
}

static void so_do_decisions(void **state)
{
    char path[PATH_MAX];
    struct conf *conf = world_load();

    (void)state;
    snprintf(path, sizeof(path), "%s/home/.cache/frit/tune.db", world_root());
    assert_string_equal(conf_tune_store(conf), path);
    conf_destroy(conf);
    world_set("tune", "store", "none");
    conf = world_load();
    assert_null(conf_tune_store(conf));
    conf_destroy(conf);
}

static void it_lies_in_the_cache(void **state)
{
    char home[PATH_MAX];

    (void)state;
    snprintf(home, sizeof(home), "%s/home/.cache/frit/plans.db", world_root());
    expect(home);
    world_setenv("XDG_CACHE_HOME=relative");
    expect(home);
    world_reset();
    world_setenv("XDG_CACHE_HOME=/var/tmp");
    expect("/var/tmp/frit/plans.db");
}

static void it_is_where_the_option_says(void **state)
{
    char here[PATH_MAX - 16], path[PATH_MAX];

    (void)state;
    world_set("fusion", "store", "/a/b.db");
    expect("/a/b.db");
    world_reset();
    world_set("fusion", "store", "none");
    expect(NULL);
    world_reset();
    world_set("fusion", "store", "c.db");
    assert_non_null(getcwd(here, sizeof(here)));
    snprintf(path, sizeof(path), "%s/c.db", here);
    expect(path);
}

static void without_a_home_it_is_nowhere(void **state)
{
    static const char *const environment[] = {"HOME=relative", NULL};
    struct conf_sources sources = {.environment = environment, .root = world_root()};
    struct conf *conf;
    frit_err err = ERR_INIT;

    (void)state;
    assert_int_equal(conf_load_from(&sources, &conf, &err), FRIT_OK);
    assert_null(conf_plan_store(conf));
    conf_destroy(conf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(it_lies_in_the_cache, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(it_is_where_the_option_says, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(so_do_decisions, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(without_a_home_it_is_nowhere, world_setup, world_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
