/* SPDX-License-Identifier: Apache-2.0 */
/* Plugins opened and closed many times: nothing is left but the mapped files. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "host/load/rig.h"
#include "threads.h"

enum { FIRST = 5, CYCLES = 200, MORE_MAPS = 8 };

struct counted {
    size_t descriptors, maps;
    uint32_t threads;
};

static size_t count_lines(const char *path)
{
    FILE *file = fopen(path, "r");
    size_t n = 0;
    int c;

    assert_non_null(file);
    while ((c = getc(file)) != EOF)
        n += c == '\n';
    fclose(file);
    return n;
}

static size_t count_entries(const char *path)
{
    DIR *folder = opendir(path);
    size_t n = 0;

    assert_non_null(folder);
    while (readdir(folder))
        n++;
    closedir(folder);
    return n;
}

static struct counted count(void)
{
    return (struct counted){.descriptors = count_entries("/proc/self/fd"),
                            .maps = count_lines("/proc/self/maps"),
                            .threads = count_threads()};
}

static void cycle(const char *library)
{
    const frit_setting settings[] = {
        {"plugin.reference", "library", library},
        {"plugin.fake-good", "library", rig_fake("libfrit-fake-good.so")},
        {NULL, NULL, NULL}};
    struct rig rig;

    assert_int_equal(rig_open(&rig, settings), FRIT_OK);
    assert_int_equal(rig_plugin(&rig, "reference")->n_devices, 1);
    assert_int_equal(rig_plugin(&rig, "fake-good")->n_devices, 1);
    rig_close(&rig);
}

static void nothing_grows(void **state)
{
    struct counted first = {0}, last;
    char library[600];

    (void)state;
    snprintf(library, sizeof(library), "%s/lib/frit/plugins/libfrit-reference.so",
             getenv("FRIT_TEST_BUILD"));
    for (int i = 0; i < CYCLES; i++) {
        cycle(library);
        if (i == FIRST)
            first = count();
    }
    last = count();
    assert_int_equal(last.descriptors, first.descriptors);
    assert_int_equal(last.threads, first.threads);
    assert_true(last.maps <= first.maps + MORE_MAPS); /* the heap may be in more parts */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_grows)};

    return cmocka_run_group_tests(tests, rig_setup, rig_teardown);
}
