/* SPDX-License-Identifier: Apache-2.0 */
/* Little address space (ulimit -v): most of it stays the program's, pools take what there is in
 * smaller chunks, and every failure has a text.  Each test in a process of its own. */
#include "api/rig.h"

#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <frit/plugin.h>

enum { MIB = 1 << 20 };

static void expect(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "in the child: %s\n", what);
    _exit(1);
}

static void in_child(void (*fn)(void))
{
    int status = -1;
    pid_t child;

    if (FRIT_SANITIZER != FRIT_SANITIZER_NONE)
        skip(); /* it reserves terabytes */
    child = fork();
    if (child == 0) {
        alarm(60);
        fn();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void limit_space(uint64_t bytes)
{
    const struct rlimit limit = {bytes, RLIM_INFINITY};

    expect(!setrlimit(RLIMIT_AS, &limit), "setrlimit");
}

static uint64_t used_space(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");

    expect(file && fscanf(file, "%lu", &pages) == 1, "/proc/self/statm");
    fclose(file);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void leave_space(void)
{
    const uint64_t all = (uint64_t)4 << 30;
    struct rig rig;

    limit_space(all);
    rig_open(&rig, NULL, 0);
    frit_release(rig_f32(&rig, FRIT_RANK0, &(float){1}));
    expect(used_space() < all / 4, "tensors take most of the address space");
}

static void fill_space(void)
{
    enum { SPACE = 60, TENSORS = 256 };
    frit_err err = {.struct_size = sizeof(err)};
    frit_tensor *tensors[TENSORS];
    uint64_t before;
    int n = 0;
    struct rig rig;

    rig_open(&rig, NULL, 0);
    frit_release(rig_f32(&rig, FRIT_RANK0, &(float){1}));
    before = rig_stats(&rig).reserved_now;
    limit_space(used_space() + (uint64_t)SPACE * MIB);
    do {
        tensors[n] = frit_ones(rig.dev, FRIT_F32, FRIT_SHAPE(MIB / sizeof(float)));
    } while (!frit_sync(rig.dev, &err) && ++n < TENSORS);
    expect(n < TENSORS, "there is a limit");
    expect(frit_tensor_status(tensors[n]) == FRIT_NO_DEVICE_MEMORY &&
               strstr(frit_tensor_error(tensors[n]), "ones: "),
           frit_tensor_error(tensors[n]));
    expect(err.status == FRIT_NO_DEVICE_MEMORY && err.text[0], "frit_sync says so");
    expect(rig_stats(&rig).reserved_now - before > (uint64_t)(SPACE - 8) * MIB,
           "pools take less than there is");
    while (n >= 0)
        frit_release(tensors[n--]);
    rig_close(&rig);
}

/* From no space on, until everything works. */
static void grow_space(void)
{
    enum { STEP = 64 << 10, STEPS = 400 };
    uint64_t used;
    bool good = false;

    used = used_space();
    for (int i = 0; i < STEPS && !good; i++) {
        frit_err err = {.struct_size = sizeof(err)};
        frit_device *device = NULL;
        frit_host *host = NULL;
        frit_tensor *sum;
        float out[2], data[2] = {1, 2};

        limit_space(used + (uint64_t)i * STEP);
        if (frit_host_open(NULL, &host, &err) ||
            frit_device_open(host, "reference", &device, &err)) {
            expect(err.text[0], "a failed open has a text");
            frit_host_close(host);
            continue;
        }
        sum = frit_from_host(device, FRIT_F32, FRIT_SHAPE(2), data, sizeof(data));
        sum = frit_add(frit_take(sum), sum);
        good = !frit_read(sum, out, sizeof(out), &err);
        expect(good ? out[1] == 4 : err.text[0], "a failed read has a text");
        expect(good || frit_tensor_error(sum)[0], "a failed tensor has a text");
        frit_release(sum);
        frit_device_close(device);
        frit_host_close(host);
    }
    expect(good, "it works in the end");
}

static void test_most_of_the_space_is_left(void **state)
{
    (void)state;
    in_child(leave_space);
}

static void test_pools_take_what_there_is(void **state)
{
    (void)state;
    in_child(fill_space);
}

static void test_failures_have_texts(void **state)
{
    (void)state;
    in_child(grow_space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_most_of_the_space_is_left),
        cmocka_unit_test(test_pools_take_what_there_is),
        cmocka_unit_test(test_failures_have_texts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
