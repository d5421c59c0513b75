/* SPDX-License-Identifier: Apache-2.0 */
/* Each allocation of a load with all layers fails once: a clean status, nothing is left (the
 * address sanitizer looks), and the next load works. */
#include "host/conf/world.h"

#include <string.h>

#include "failing_alloc.h"

static void survives_no_memory(void **state)
{
    long n = 0;
    bool hit = true;

    (void)state;
    world_write("/etc/frit/plugins.d/a.ini", "[plugin.c]\nlibrary = c.so\noption.z = 1\n");
    world_write("/etc/frit/frit.ini", "[search]\ndirs = a:b\n[plugin.a]\noption.x = 1\n");
    world_write("/home/.config/frit/frit.ini",
                "[frit]\nlog = info\n[plugin.a]\noption.x = 2\noption.y = 3\n");
    world_setenv("FRIT_DEVISE=1");
    world_setenv("FRIT_SEED=1");
    world_set("plugin.b", "option.z", "1");
    for (; hit; n++) {
        frit_err err = ERR_INIT;
        struct conf *conf = (struct conf *)&err;
        frit_status status;

        failing_alloc_arm(n);
        status = world_try(&conf, &err);
        hit = failing_alloc_disarm();
        assert_int_equal(status, hit ? FRIT_NO_HOST_MEMORY : FRIT_OK);
        assert_true((conf == NULL) == hit);
        if (hit)
            assert_non_null(strstr(err.text, "no host memory for "));
        conf_destroy(conf);
    }
    assert_in_range(n, 20, 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(survives_no_memory, world_setup, world_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
