/* SPDX-License-Identifier: Apache-2.0 */
/* `frit bench overhead`: what the host adds to an op, measured on the device `null`, which runs
 * commands inside submit and computes nothing.
 *
 * Each figure is a median over rounds of STEPS times the mix.  Threads that measure stay on one CPU
 * each where the system lets them. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "bench.h"
#include "bench_mix.h"

enum {
    STEPS = MIX_KEPT, /* of a round: 512 ops */
    WARM_ROUNDS = 20,
    MANY_PLANS = 10000,
    QUICK_PLANS = 100,
    CHAIN_STEPS = 125, /* 1,000 ops */
    CHAIN_ROUNDS = 9,
    QUICK_CHAINS = 1
};

static const char *const names[] = {"mix", "mix-threads", "mix-plans", "search"};

static const char *row_at(size_t index)
{
    return index < sizeof(names) / sizeof(names[0]) ? names[index] : NULL;
}

/* A host with the device, and the tensors that all threads use. */
struct stage {
    const struct bench *bench;
    frit_host *host;
    frit_device *device;
    frit_tensor *weights[MIX_SHAPES];
};

/* ---- the stage ---- */

static int stage_open(struct stage *stage, const struct bench *bench, const char *fusers)
{
    const frit_setting settings[] = {
        {"fusion", "store", "none"},
        {"plugin.null", "option.inline", "yes"},
        {"plugin.null", "option.check", "no"},
        {"plugin.null", "option.fusers", fusers},
        {"plugin.null", "option.fuse_ops", "64"},
        {"plugin.null", "library", bench->null_path},
    };
    frit_host_params params = {.struct_size = sizeof(params),
                               .settings = settings,
                               .n_settings = *bench->null_path ? 6 : 5};

    *stage = (struct stage){.bench = bench};
    if (frit_host_open(&params, &stage->host))
        return failed(bench->in, "%s",
                      stage->host ? frit_host_error(stage->host) : "no memory for a host");
    if (frit_device_open(stage->host, "null:0", &stage->device))
        return failed(bench->in, "%s\nIt comes with the tests; see --plugin.",
                      frit_host_error(stage->host));
    mix_weights(stage->device, stage->weights);
    return CLI_FINE;
}

static void stage_close(struct stage *stage)
{
    for (int s = 0; s < MIX_SHAPES && stage->device; s++)
        frit_release(stage->weights[s]);
    frit_device_close(stage->device);
    frit_host_close(stage->host);
}

/* CLI_FAILED after a message if an op failed since the last time. */
static int stage_check(const struct stage *stage)
{
    if (frit_sync_all(stage->device))
        return failed(stage->bench->in, "the ops failed: %s", frit_host_error(stage->host));
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
    mix_init(&mix, r->stage->device, r->stage->weights);
    for (int i = 0; i < WARM_ROUNDS; i++)
        mix_run(&mix, STEPS);
    atomic_fetch_add(r->ready, 1);
    while (!atomic_load(r->go))
        sched_yield();
    for (uint64_t i = 0; r->rounds ? i < r->rounds : !atomic_load(r->stop); i++) {
        uint64_t start = bench_now();

        mix_run(&mix, STEPS);
        if (r->samples)
            r->samples[i] = (double)(bench_now() - start);
    }
    mix_fini(&mix);
    (void)frit_flush(mix.device);
    return NULL;
}

/* Measures on `n_measured` threads, while `n_other` more run the mix too.  The median of a round in
 * nanoseconds, mean over the threads; below 0 after a message. */
static double run_mix(const struct stage *stage, int n_measured, int n_other)
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
        sum = n == n_measured + n_other ? -1 : (failed(stage->bench->in, "no memory"), -1);
    free(samples);
    return sum;
}

/* ---- the rows ---- */

static struct bench_row row_of(const struct stage *stage, const char *name, const char *what,
                               uint64_t streams, uint64_t plans)
{
    return (struct bench_row){.suite = "overhead",
                              .row = name,
                              .what = what,
                              .device = frit_device_name(stage->device),
                              .ops = MIX_OPS,
                              .streams = streams,
                              .plans = plans};
}

static void add_figure(struct bench_row *row, struct bench_figure figure)
{
    row->figures[row->n_figures++] = figure;
}

static double per_op(double round)
{
    return round / (STEPS * MIX_OPS);
}

/* What the driver is asked for, per op, once everything is warm. */
static void add_counts(const struct stage *stage, struct bench_row *row)
{
    frit_stats before = {.struct_size = sizeof(before)}, after = {.struct_size = sizeof(after)};
    struct bench_mix mix;
    double ops;

    mix_init(&mix, stage->device, stage->weights);
    for (int i = 0; i < WARM_ROUNDS; i++)
        mix_run(&mix, STEPS);
    frit_stats_get(stage->device, &before);
    for (int i = 0; i < WARM_ROUNDS; i++)
        mix_run(&mix, STEPS);
    frit_stats_get(stage->device, &after);
    mix_fini(&mix);
    ops = (double)(after.ops - before.ops);
    add_figure(row, (struct bench_figure){
                        "driver_allocs_per_op", "driver allocations per op",
                        (double)(after.driver_allocs - before.driver_allocs) / ops, 0, false});
    add_figure(row,
               (struct bench_figure){"launches_per_op", "launches per op",
                                     (double)(after.launches - before.launches) / ops, 0, false});
    add_figure(row,
               (struct bench_figure){"submits_per_op", "submissions per op",
                                     (double)(after.submits - before.submits) / ops, 0, false});
}

/* Runs sequences of four ops, each with a plan of its own. */
static void make_plans(const struct stage *stage, int count)
{
    static const uint32_t rows[] = {FRIT_OP_neg,  FRIT_OP_abs,  FRIT_OP_exp,  FRIT_OP_log,
                                    FRIT_OP_sqrt, FRIT_OP_tanh, FRIT_OP_relu, FRIT_OP_sin,
                                    FRIT_OP_cos,  FRIT_OP_floor};
    enum { N_ROWS = sizeof(rows) / sizeof(rows[0]) };

    for (int i = 0; i < count; i++) {
        frit_tensor *value = frit_ref(stage->weights[0]);

        for (int left = i, k = 0; k < 4; k++, left /= N_ROWS) {
            frit_input in = {.tensor = frit_take(value)};
            frit_call call = {
                .struct_size = sizeof(call), .op = rows[left % N_ROWS], .n_in = 1, .in = &in};

            frit_op(stage->device, &call, &value, 1);
        }
        (void)frit_flush(stage->device);
        frit_release(value);
    }
}

static const char mix_text[] = "8 ops, 2x2 and 4x4, a weight shared with another running thread";

/* One thread, with another that shares the weight. */
static int measure_shared(const struct stage *stage, double alone, double shared)
{
    struct bench_row row = row_of(stage, "mix", mix_text, 1, 1);

    if (alone < 0 || shared < 0)
        return CLI_FAILED;
    add_figure(&row, (struct bench_figure){"ns_per_op", "ns per op", per_op(shared), 40, false});
    add_figure(&row, (struct bench_figure){"ns_per_op_alone", "ns per op without it", per_op(alone),
                                           0, false});
    add_counts(stage, &row);
    bench_print(stage->bench, &row);
    return CLI_FINE;
}

/* What two threads gain. */
static int measure_threads(const struct stage *stage, double alone)
{
    double both = run_mix(stage, 2, 0);
    struct bench_row row = row_of(stage, "mix-threads", "the same on two threads at once", 2, 1);

    if (alone < 0 || both < 0)
        return CLI_FAILED;
    add_figure(&row,
               (struct bench_figure){"ns_per_op", "ns per op of each", per_op(both), 0, false});
    add_figure(&row, (struct bench_figure){"speed_up", "times the ops of one thread",
                                           2 * alone / both, 1.8, true});
    bench_print(stage->bench, &row);
    return CLI_FINE;
}

/* How much an op costs with many plans known. */
static int measure_plans(const struct stage *stage, double shared)
{
    int plans = stage->bench->quick ? QUICK_PLANS : MANY_PLANS;
    struct bench_row row = row_of(stage, "mix-plans", mix_text, 1, (uint64_t)plans);
    double many;

    make_plans(stage, plans);
    many = run_mix(stage, 1, 1);
    if (shared < 0 || many < 0)
        return CLI_FAILED;
    add_figure(&row, (struct bench_figure){"ns_per_op", "ns per op", per_op(many), 40, false});
    add_figure(&row, (struct bench_figure){"plans_ratio", "times the cost with one plan",
                                           many / shared, 1.1, false});
    bench_print(stage->bench, &row);
    return CLI_FINE;
}

/* The figures of one row are part of others; what no wanted row needs is not measured. */
static int measure_mix(const struct stage *stage)
{
    bool mix = bench_wants(stage->bench, "mix"), plans = bench_wants(stage->bench, "mix-plans");
    bool threads = bench_wants(stage->bench, "mix-threads");
    double alone = mix || threads ? run_mix(stage, 1, 0) : 0;
    double shared = mix || plans ? run_mix(stage, 1, 1) : 0;
    int status = mix ? measure_shared(stage, alone, shared) : CLI_FINE;

    if (status == CLI_FINE && threads)
        status = measure_threads(stage, alone);
    if (status == CLI_FINE && plans)
        status = measure_plans(stage, shared);
    return status;
}

/* Milliseconds of the first and the second run of the chain on a fresh device. */
static int run_chain(const struct bench *bench, double *first, double *second)
{
    struct stage stage;
    struct bench_mix mix;
    int status = stage_open(&stage, bench, "4");

    if (status == CLI_FINE) {
        uint64_t t[3];
        frit_tensor *results[2];

        mix_init(&mix, stage.device, stage.weights);
        status = stage_check(&stage);
        for (int i = 0; i < 2; i++) {
            t[i] = bench_now();
            results[i] = mix_chain(&mix, CHAIN_STEPS);
        }
        t[2] = bench_now();
        *first = (double)(t[1] - t[0]) * 1e-6;
        *second = (double)(t[2] - t[1]) * 1e-6;
        for (int i = 0; i < 2; i++)
            frit_release(results[i]);
        mix_fini(&mix);
        if (status == CLI_FINE)
            status = stage_check(&stage);
    }
    stage_close(&stage);
    return status;
}

static int measure_search(const struct stage *stage)
{
    double first[CHAIN_ROUNDS], second[CHAIN_ROUNDS];
    struct bench_row row =
        row_of(stage, "search", "a scope of 1,000 ops with 4 fusers, first and second run", 1, 0);
    int rounds = stage->bench->quick ? QUICK_CHAINS : CHAIN_ROUNDS;
    double known;

    for (int i = 0; i < rounds; i++)
        if (run_chain(stage->bench, &first[i], &second[i]))
            return CLI_FAILED;
    known = bench_median(second, (size_t)rounds);
    row.ops = CHAIN_STEPS * MIX_OPS;
    add_figure(&row, (struct bench_figure){"first_ms", "ms first",
                                           bench_median(first, (size_t)rounds), 10, false});
    add_figure(&row, (struct bench_figure){"second_ms", "ms when known", known, 0, false});
    bench_print(stage->bench, &row);
    return CLI_FINE;
}

int bench_overhead(const struct bench *bench)
{
    struct stage stage;
    int status = bench_check(bench, row_at);

    if (status != CLI_FINE)
        return status;
    status = stage_open(&stage, bench, "1");
    if (status == CLI_FINE)
        status = stage_check(&stage);
    if (status == CLI_FINE)
        status = measure_mix(&stage);
    if (status == CLI_FINE && bench_wants(bench, "search"))
        status = measure_search(&stage);
    stage_close(&stage);
    return status;
}
