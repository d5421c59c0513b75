/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/stage.h"
#include "invocation.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

/* ---- the stage ---- */

int stage_open(struct stage *stage, const struct bench *bench, const struct stage_form *form)
{
    frit_err err = {.struct_size = sizeof(err)};
    const frit_setting settings[] = {
        {"fusion", "store", "none"},
        {"plugin.null", "option.inline", form->inlined},
        {"plugin.null", "option.hold", form->hold},
        {"plugin.null", "option.memory", form->memory},
        {"plugin.null", "option.check", "no"},
        {"plugin.null", "option.fusers", form->fusers},
        {"plugin.null", "option.max_fused_ops", form->max_fused_ops},
        {"plugin.null", "library", bench->null_path},
    };
    frit_host_params params = {.struct_size = sizeof(params),
                               .settings = settings,
                               .n_settings = *bench->null_path ? 8 : 7};

    *stage = (struct stage){.bench = bench, .form = form};
    if (frit_host_open(&params, &stage->host, &err))
        return fail_command(bench->in, "%s", err.text);
    if (frit_device_open(stage->host, "null:0", &stage->device, &err))
        return fail_command(
            bench->in, "%s\nIt is built with Frit, but not installed; see --plugin.", err.text);
    mix_weights(stage->device, form->mix, stage->weights);
    return stage_check(stage);
}

void stage_close(struct stage *stage)
{
    mix_release(stage->weights);
    frit_device_close(stage->device);
    frit_host_close(stage->host);
}

int stage_check(const struct stage *stage)
{
    frit_err err = {.struct_size = sizeof(err)};
    if (frit_sync_all(stage->device, &err))
        return fail_command(stage->bench->in, "the ops failed: %s", err.text);
    return CLI_FINE;
}

/* Puts the calling thread on the n-th of the CPUs that it may use, if there are as many. */
static void pin(int n)
{
    cpu_set_t allowed, one;

    if (sched_getaffinity(0, sizeof(allowed), &allowed) || n >= CPU_COUNT(&allowed))
        return;
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &allowed) || n-- > 0)
            continue;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        (void)sched_setaffinity(0, sizeof(one), &one);
        return;
    }
}

/* ---- threads that run the mix ---- */

struct runner {
    const struct stage *stage;
    int cpu;
    uint64_t rounds; /* 0: until `stop` */
    atomic_uint *ready;
    atomic_bool *go, *stop;
    double *samples; /* of `rounds`: ns of each */
};

static void *runner_main(void *arg)
{
    const struct runner *r = arg;
    struct bench_mix mix;

    pin(r->cpu);
    mix_init(&mix, r->stage->device, r->stage->form->mix, r->stage->weights);
    for (int i = 0; i < STAGE_WARM_ROUNDS; i++)
        mix_run(&mix, STAGE_STEPS);
    atomic_fetch_add(r->ready, 1);
    while (!atomic_load(r->go))
        sched_yield();
    for (uint64_t i = 0; r->rounds ? i < r->rounds : !atomic_load(r->stop); i++) {
        uint64_t start = bench_now();

        mix_run(&mix, STAGE_STEPS);
        if (r->samples)
            r->samples[i] = (double)(bench_now() - start);
    }
    mix_fini(&mix);
    (void)frit_flush(mix.device, NULL);
    return NULL;
}

double stage_run(const struct stage *stage, int n_measured, int n_other)
{
    uint64_t rounds = stage->bench->rounds;
    struct runner runners[4];
    pthread_t threads[4];
    atomic_bool go = false, stop = false;
    atomic_uint ready = 0;
    int n = 0;
    double *samples = malloc((size_t)n_measured * rounds * sizeof(*samples)), sum = 0;

    while (samples && n < n_measured + n_other) {
        bool measured = n < n_measured;

        runners[n] = (struct runner){stage,
                                     n,
                                     measured ? rounds : 0,
                                     &ready,
                                     &go,
                                     &stop,
                                     measured ? samples + (uint64_t)n * rounds : NULL};
        if (pthread_create(&threads[n], NULL, runner_main, &runners[n]))
            break;
        n++;
    }
    while (atomic_load(&ready) < (unsigned)n)
        sched_yield();
    atomic_store(&go, true);
    for (int i = 0; i < n; i++) {
        if (i == n_measured)
            atomic_store(&stop, true);
        pthread_join(threads[i], NULL);
    }
    if (n == n_measured + n_other && !stage_check(stage))
        for (int i = 0; i < n_measured; i++)
            sum += bench_median(samples + (uint64_t)i * rounds, rounds) / n_measured;
    else
        sum = n == n_measured + n_other ? -1 : (fail_command(stage->bench->in, "no memory"), -1);
    free(samples);
    return sum;
}
