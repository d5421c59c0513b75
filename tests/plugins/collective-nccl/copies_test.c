/* SPDX-License-Identifier: Apache-2.0 */
/* Which copy of the library the engine uses: the one that is in the process, and no second one.
 * Libraries stay in a process, so the tests depend on their order. */
#include "engine.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/frit-nccl-XXXXXX";
static char copy[64];

static frit_status create_id(frit_err *err)
{
    struct world world;
    frit_status status;

    world_open_without_id(&world);
    status = world.table->group_id(world.instance, &world.id, err);
    world_close(&world);
    return status;
}

static void test_no_library(void **state)
{
    frit_err err = {.struct_size = sizeof err};
    void *installed = dlopen("libnccl.so.2", RTLD_LAZY | RTLD_LOCAL);

    (void)state;
    if (installed) { /* then there is no such case, and nothing must be known of it */
        dlclose(installed);
        return;
    }
    engine_use_library("");
    assert_int_equal(create_id(&err), FRIT_UNSUPPORTED);
    assert_non_null(strstr(err.text, "libnccl.so.2: cannot open shared object file"));
    assert_non_null(strstr(err.text, "; install NCCL 2.14 or later, or set its file name by the "
                                     "option `nccl`"));
}

static void copy_file(const char *from, const char *to)
{
    char buffer[65536];
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    size_t n;

    assert_non_null(in);
    assert_non_null(out);
    while ((n = fread(buffer, 1, sizeof buffer, in)))
        assert_int_equal(fwrite(buffer, 1, n, out), n);
    fclose(in);
    assert_int_equal(fclose(out), 0);
}

/* Another part of the program has loaded one from its own folder. */
static void test_the_copy_in_the_process(void **state)
{
    const char *build = getenv("FRIT_TEST_BUILD");
    frit_err err = {.struct_size = sizeof err};
    char from[512], expected[128];

    (void)state;
    snprintf(from, sizeof from, "%s/tests/fake/libfake-nccl.so", build ? build : "build");
    assert_non_null(mkdtemp(folder));
    snprintf(copy, sizeof copy, "%s/libnccl.so.2", folder);
    copy_file(from, copy);
    assert_non_null(dlopen(copy, RTLD_NOW | RTLD_LOCAL));
    engine_use_library("");
    if (create_id(&err))
        fail_msg("%s", err.text);
    snprintf(expected, sizeof expected, "NCCL 2.28.9, %s", copy);
    assert_string_equal(world_log, expected);
}

static void test_a_second_copy_is_refused(void **state)
{
    frit_err err = {.struct_size = sizeof err};
    char expected[128];

    (void)state;
    snprintf(expected, sizeof expected,
             "collective-nccl: %s is in this process already, and `nccl` is ", copy);
    engine_use_library("libfake-nccl.so");
    assert_int_equal(create_id(&err), FRIT_UNSUPPORTED);
    assert_memory_equal(err.text, expected, strlen(expected));
    assert_non_null(strstr(err.text, "/libfake-nccl.so: leave the option empty"));
    unlink(copy);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_library),
        cmocka_unit_test(test_the_copy_in_the_process),
        cmocka_unit_test(test_a_second_copy_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
