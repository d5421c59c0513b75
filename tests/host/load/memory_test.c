/* SPDX-License-Identifier: Apache-2.0 */
/* Each allocation of opening a registry fails in turn: a clean status, nothing lost (the address
 * sanitizer looks), and the next try works. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "host/load/rig.h"
#include "load/pick.h"
#include "load/why.h"

static size_t countdown; /* the allocation that fails; 0: none */

static int fails_now(void)
{
    return countdown > 0 && --countdown == 0;
}

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *ptr, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *ptr, size_t bytes);

void *__wrap_malloc(size_t bytes)
{
    return fails_now() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return fails_now() ? NULL : __real_calloc(count, bytes);
}

void *__wrap_realloc(void *ptr, size_t bytes)
{
    return fails_now() ? NULL : __real_realloc(ptr, bytes);
}

/* Opens a registry over all fakes, picks a device, gets the explanation of all others.  True if no
 * allocation failed. */
static int try_all(const struct conf *conf)
{
    struct registry *registry = NULL;
    const struct device_entry *device = NULL;
    frit_err err = {.struct_size = sizeof(err)};
    struct str text = {0};
    frit_status status = registry_open(conf, &registry, &err);
    int whole = 0;

    if (status) {
        assert_int_equal(status, FRIT_NO_HOST_MEMORY);
        assert_null(registry);
        rig_contains(err.text, "memory");
        return 0;
    }
    status = registry_pick(registry, "nope, fake:77", &device, &err);
    assert_true(status == FRIT_UNSUPPORTED || status == FRIT_NO_HOST_MEMORY);
    registry_why(registry, "fake", &text);
    whole = status == FRIT_UNSUPPORTED && !text.failed;
    str_fini(&text);
    registry_close(registry);
    return whole;
}

static void every_allocation_may_fail(void **state)
{
    struct rig rig;
    size_t n = 0;
    int whole;

    (void)state;
    setenv("FRIT_PLUGIN_PATH", rig_fake_dir(), 1);
    assert_int_equal(rig_open(&rig, NULL), FRIT_OK);
    do {
        countdown = ++n;
        whole = try_all(rig.conf);
        if (countdown > 0) /* fewer than n allocations are made */
            break;
    } while (n < 10000);
    assert_true(whole);
    assert_in_range(n, 10, 9999);
    countdown = 0;
    assert_true(try_all(rig.conf));
    rig_close(&rig);
    setenv("FRIT_PLUGIN_PATH", rig_dir(), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation_may_fail)};

    return cmocka_run_group_tests(tests, rig_setup, rig_teardown);
}
