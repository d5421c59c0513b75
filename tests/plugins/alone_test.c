/* SPDX-License-Identifier: Apache-2.0 */
/* A program that wants the device cpu starts no other driver's runtime: no loader of one is in the
 * process, though all plugins are. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"

#include <frit/frit.h>

/* Whether a file whose name begins so is mapped. */
static bool is_mapped(const char *begin)
{
    FILE *file = fopen("/proc/self/maps", "r");
    char *line = NULL;
    size_t capacity = 0;
    bool found = false;

    assert_non_null(file);
    while (!found && getline(&line, &capacity, file) > 0) {
        const char *slash = strrchr(line, '/');

        found = slash && strncmp(slash + 1, begin, strlen(begin)) == 0;
    }
    free(line);
    (void)fclose(file);
    return found;
}

static void cpu_starts_nothing_else(void **state)
{
    frit_host *host = NULL;
    frit_device *device = NULL;
    frit_tensor *x;
    float values[3];

    (void)state;
    assert_int_equal(frit_host_open(NULL, &host, NULL), FRIT_OK);
    assert_int_equal(frit_device_open(host, "cpu", &device, NULL), FRIT_OK);
    x = frit_ones(device, FRIT_F32, FRIT_SHAPE(3));
    x = frit_add_f(frit_take(x), 1);
    assert_int_equal(frit_read(x, values, sizeof(values), NULL), FRIT_OK);
    assert_true(values[2] == 2);
    assert_true(is_mapped("libfrit-vulkan.so"));
    assert_false(is_mapped("libvulkan"));
    frit_release(x);
    frit_device_close(device);
    frit_host_close(host);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(cpu_starts_nothing_else)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
