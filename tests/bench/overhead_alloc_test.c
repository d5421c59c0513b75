/* SPDX-License-Identifier: Apache-2.0 */
/* Ops whose plans are known allocate nothing: not the host, and not a driver that runs them inside
 * submit.  Every allocation of what is linked statically, the host and its lent mem_alloc included,
 * is counted. */
#include "unit.h"

#include <stdatomic.h>
#include <stdio.h>

#include <frit/frit.h>

#include "bench/mix.h"

enum { WARM_ROUNDS = 60, ROUNDS = 50 };

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *ptr, size_t bytes);
void *__real_aligned_alloc(size_t align, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *ptr, size_t bytes);
void *__wrap_aligned_alloc(size_t align, size_t bytes);

static atomic_ulong allocations;

void *__wrap_malloc(size_t bytes)
{
    atomic_fetch_add(&allocations, 1);
    return __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    atomic_fetch_add(&allocations, 1);
    return __real_calloc(count, bytes);
}

void *__wrap_realloc(void *ptr, size_t bytes)
{
    atomic_fetch_add(&allocations, 1);
    return __real_realloc(ptr, bytes);
}

void *__wrap_aligned_alloc(size_t align, size_t bytes)
{
    atomic_fetch_add(&allocations, 1);
    return __real_aligned_alloc(align, bytes);
}

static frit_host *open_host(void)
{
    static char path[4096];
    const frit_setting settings[] = {
        {"fusion", "store", "none"},
        {"plugin.null", "library", path},
        {"plugin.null", "option.inline", "yes"},
        {"plugin.null", "option.check", "no"},
    };
    const frit_host_params params = {.struct_size = sizeof(params),
                                     .settings = settings,
                                     .n_settings = sizeof(settings) / sizeof(settings[0])};
    const char *build = getenv("FRIT_TEST_BUILD");
    frit_host *host = NULL;

    if (!build)
        fail_msg("FRIT_TEST_BUILD must name the build folder");
    snprintf(path, sizeof(path), "%s/tests/fake/null/libfrit-null.so", build);
    assert_int_equal(frit_host_open(&params, &host, NULL), FRIT_OK);
    return host;
}

static unsigned long run(struct bench_mix *mix, int rounds)
{
    unsigned long before = atomic_load(&allocations);

    for (int i = 0; i < rounds; i++)
        mix_run(mix, MIX_KEPT);
    return atomic_load(&allocations) - before;
}

static void warm_ops_allocate_nothing(void **state)
{
    frit_host *host = open_host();
    frit_tensor *weights[MIX_SHAPES];
    frit_device *device = NULL;
    struct bench_mix mix;
    unsigned long warm;

    (void)state;
    assert_int_equal(frit_device_open(host, "null:0", &device, NULL), FRIT_OK);
    mix_weights(device, &mix_plain, weights);
    mix_init(&mix, device, &mix_plain, weights);
    assert_int_not_equal(run(&mix, WARM_ROUNDS), 0);
    warm = run(&mix, ROUNDS);
    assert_int_equal(frit_sync(device, NULL), FRIT_OK);
    if (warm)
        fail_msg("%lu allocations in %d warm ops", warm, ROUNDS * MIX_KEPT * MIX_OPS);
    mix_fini(&mix);
    mix_release(weights);
    frit_device_close(device);
    frit_host_close(host);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(warm_ops_allocate_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
