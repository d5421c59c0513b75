/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings of steps on a fake runtime, whose compiler the test holds: the forms that kernels need
 * there are compiled at once, and steps go on meanwhile. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#include <frit/frit.h>
#include <frit/inspect.h>

#include "fake.h"
#include "unit.h"

enum {
    ROWS = 3,
    COLUMNS = 5,
    N = ROWS * COLUMNS,
    HELD_STEPS = 24, /* more than a recording waits for */
    MOST_STEPS = 4000,
    PATIENCE_MS = 20000
};

static struct fake_gpu *compiler;

struct rig {
    frit_host *host;
    frit_device *device;
    frit_tensor *kept[2 * MOST_STEPS]; /* so that results always lie elsewhere */
    uint32_t n_kept, n_steps;
};

static void open_rig(struct rig *rig, const char *compile)
{
    frit_err err = {.struct_size = sizeof err};
    const frit_setting settings[] = {
        {"fusion", "compile", compile}, {"fusion", "enabled", "no"}, {"frit", "fallback", "none"}};
    const frit_host_params params = {
        .struct_size = sizeof params, .settings = settings, .n_settings = 3};

    *rig = (struct rig){0};
    if (frit_host_open(&params, &rig->host, &err) ||
        frit_device_open(rig->host, RIG_DRIVER ":0", &rig->device, &err))
        fail_msg("%s", err.text);
}

static void close_rig(struct rig *rig)
{
    for (uint32_t i = 0; i < rig->n_kept; i++)
        frit_release(rig->kept[i]);
    frit_device_close(rig->device);
    frit_host_close(rig->host);
}

static uint64_t captured(const struct rig *rig)
{
    frit_stats stats = {.struct_size = sizeof stats};

    frit_stats_get(rig->device, &stats);
    return stats.captured_launches;
}

/* Two kernels over operands that lie elsewhere each time; compares what comes of them. */
static void step(struct rig *rig)
{
    frit_err err = {.struct_size = sizeof err};
    float numbers[N], sums[N], products[N], want = 0;
    frit_tensor *x, *y;

    assert_true(rig->n_steps < MOST_STEPS);
    for (uint32_t i = 0; i < N; i++)
        numbers[i] = (float)(i + rig->n_steps % 7);
    rig->n_steps++;
    x = frit_from_host(rig->device, FRIT_F32, FRIT_SHAPE(ROWS, COLUMNS), numbers, sizeof numbers);
    y = frit_cumsum(x, 1);
    rig->kept[rig->n_kept++] = y;
    rig->kept[rig->n_kept++] = frit_mul(y, x);
    frit_release(x);
    if (frit_read(rig->kept[rig->n_kept - 2], sums, sizeof sums, &err) ||
        frit_read(rig->kept[rig->n_kept - 1], products, sizeof products, &err))
        fail_msg("%s", err.text);
    for (uint32_t i = 0; i < N; i++) {
        want = i % COLUMNS ? want + numbers[i] : numbers[i];
        assert_true(sums[i] == want && products[i] == want * numbers[i]);
    }
}

/* ---- the compiler ---- */

/* Compiles that can run at once: the host has as many threads for tasks of plugins, at least. */
static uint32_t most_at_once(void)
{
    cpu_set_t set;

    return !sched_getaffinity(0, sizeof set, &set) && CPU_COUNT(&set) == 1 ? 1 : 2;
}

static void pause_ms(void)
{
    const struct timespec pause = {.tv_nsec = 1000000};

    (void)nanosleep(&pause, NULL);
}

/* Compiles are held from `hold` on until as many as can be are held at once, and the steps that go
 * on meanwhile are over; or for long. */
struct hold {
    pthread_t thread;
    atomic_bool steps_are_over;
    bool at_once; /* as many as can be were held */
};

static void *release(void *ctx)
{
    struct hold *hold = ctx;

    for (uint32_t ms = 0; ms < PATIENCE_MS && !(hold->at_once && hold->steps_are_over); ms++) {
        hold->at_once |= compiler->compiling >= most_at_once();
        pause_ms();
    }
    compiler->holds_compiles = false;
    return NULL;
}

static void hold(struct hold *hold, bool steps_go_on)
{
    hold->steps_are_over = !steps_go_on;
    hold->at_once = false;
    compiler->holds_compiles = true;
    assert_int_equal(pthread_create(&hold->thread, NULL, release, hold), 0);
}

static void end_hold(struct hold *hold)
{
    hold->steps_are_over = true;
    pthread_join(hold->thread, NULL);
    assert_true(hold->at_once);
}

/* ---- the tests ---- */

static int open_compiler(void **state)
{
    (void)state;
    compiler = fake_open_compiler();
    compiler->holds_compiles = false;
    return 0;
}

/* A host that does not wait for compiles goes on without the recording. */
static void test_steps_go_on(void **state)
{
    static struct rig rig;
    static struct hold held;
    uint64_t compiles, early;

    (void)state;
    open_rig(&rig, "background");
    step(&rig);
    step(&rig);
    compiles = compiler->compiles;
    hold(&held, true);
    for (uint32_t i = 0; i < HELD_STEPS; i++)
        step(&rig);
    early = captured(&rig);
    end_hold(&held);
    assert_int_equal(early, 0);
    while (!captured(&rig)) {
        pause_ms();
        step(&rig);
    }
    step(&rig);
    assert_in_range(compiler->compiles - compiles, 2, 3); /* forms, and the driver's own kernels */
    close_rig(&rig);
}

/* One that waits does so for all forms at once. */
static void test_forms_at_once(void **state)
{
    static struct rig rig;
    static struct hold held;

    (void)state;
    open_rig(&rig, "wait");
    step(&rig);
    step(&rig);
    hold(&held, false);
    for (uint32_t i = 0; i < HELD_STEPS; i++)
        step(&rig);
    end_hold(&held);
    assert_true(captured(&rig) > 0);
    close_rig(&rig);
}

/* A device that is closed while its forms are compiled waits for those that were begun. */
static void test_close(void **state)
{
    static struct rig rig;
    static struct hold held;

    (void)state;
    open_rig(&rig, "background");
    step(&rig);
    step(&rig);
    hold(&held, false);
    for (uint32_t i = 0; i < HELD_STEPS; i++)
        step(&rig);
    close_rig(&rig);
    end_hold(&held);
    assert_int_equal(compiler->compiling, 0);
    assert_int_equal(compiler->alive[FAKE_PROGRAM], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps_go_on),
        cmocka_unit_test(test_forms_at_once),
        cmocka_unit_test(test_close),
    };

    return cmocka_run_group_tests(tests, open_compiler, NULL);
}
