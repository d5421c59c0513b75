/* SPDX-License-Identifier: Apache-2.0 */
/* A program with more rights than its caller does not look at the environment, nor at the user's
 * files. */
#include "unit.h"

#include <stdbool.h>
#include <stdlib.h>
#include <sys/auxv.h>

#include "base/fail.h"
#include "conf/conf.h"

static bool is_secure;

unsigned long __real_getauxval(unsigned long type);
unsigned long __wrap_getauxval(unsigned long type);

unsigned long __wrap_getauxval(unsigned long type)
{
    return type == AT_SECURE ? is_secure : __real_getauxval(type);
}

static int64_t seed_with(bool secure)
{
    frit_err err = ERR_INIT;
    struct conf *conf;
    int64_t seed;

    is_secure = secure;
    if (conf_load(NULL, 0, &conf, &err))
        fail_msg("%s", err.text);
    seed = conf_options(conf)->seed;
    conf_destroy(conf);
    return seed;
}

static void the_environment_is_ignored(void **state)
{
    (void)state;
    assert_int_equal(setenv("FRIT_CONFIG", "/dev/null", 1), 0);
    assert_int_equal(setenv("FRIT_SEED", "123456789", 1), 0);
    assert_int_equal(seed_with(false), 123456789);
    assert_int_not_equal(seed_with(true), 123456789);
    assert_int_equal(setenv("FRIT_CONFIG", "/nonexistent/frit.ini", 1), 0);
    assert_int_not_equal(seed_with(true), 123456789); /* not even looked at */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_environment_is_ignored)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
