/* SPDX-License-Identifier: Apache-2.0 */
/* `frit bench overhead`: what the host adds to an op, measured on the device `null`, which runs
 * commands inside submit and computes nothing; `deferred` on one that is unlike a CPU.
 *
 * Each figure is a median over rounds of STAGE_STEPS times the mix. */
#include "bench/overhead.h"

#include <frit/inspect.h>

#include "bench/stage.h"

enum {
    PAIRS = 5,
    MANY_PLANS = 10000,
    QUICK_PLANS = 100,
    CHAIN_STEPS = 125, /* 1,000 ops */
    CHAIN_ROUNDS = 9,
    QUICK_CHAINS = 1
};

static const char *const names[] = {"mix",      "mix-threads", "mix-plans",
                                    "deferred", "rotating",    "search"};

/* Commands run inside submit, in memory that the host can reach. */
#define INLINE_STAGE .inlined = "yes", .hold = "0", .memory = "host"

static const struct mix_form scoped_mix = {
    .n_shapes = 2, .side = 2, .grows = 2, .steps_per_shape = 8, .steps_per_scope = 8};
static const struct mix_form large_mix = {
    .n_shapes = 2, .side = 128, .grows = 64, .steps_per_shape = 8, .steps_per_scope = 8};
static const struct mix_form rotating_mix = {
    .n_shapes = 16, .side = 2, .grows = 1, .steps_per_shape = 8};

static const struct stage_form plain_form = {INLINE_STAGE, .fusers = "1", .max_fused_ops = "64",
                                             .mix = &mix_plain};
/* The same in scopes, which cost something themselves. */
static const struct stage_form scoped_form = {INLINE_STAGE, .fusers = "1", .max_fused_ops = "64",
                                              .mix = &scoped_mix};
static const struct stage_form search_form = {INLINE_STAGE, .fusers = "4", .max_fused_ops = "64",
                                              .mix = &mix_plain};
static const struct stage_form rotating_form = {INLINE_STAGE, .fusers = "1", .max_fused_ops = "64",
                                                .mix = &rotating_mix};
/* Blocks of 20 ops end within a step of the eight in a scope: what lies between them has 64 KiB and
 * more, and is dead before the next such value is made.  The host waits for nothing. */
static const struct stage_form deferred_form = {.inlined = "no",
                                                .hold = "32",
                                                .memory = "device",
                                                .fusers = "1",
                                                .max_fused_ops = "20",
                                                .mix = &large_mix};

static const char *row_at(size_t index)
{
    return index < sizeof(names) / sizeof(names[0]) ? names[index] : NULL;
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
    return round / (STAGE_STEPS * MIX_OPS);
}

/* Calls of the driver per op, once everything is warm. */
static void add_counts(const struct stage *stage, struct bench_row *row)
{
    frit_stats before = {.struct_size = sizeof(before)}, after = {.struct_size = sizeof(after)};
    struct bench_mix mix;
    double ops;

    mix_init(&mix, stage->device, stage->form->mix, stage->weights);
    for (int i = 0; i < STAGE_WARM_ROUNDS; i++)
        mix_run(&mix, STAGE_STEPS);
    frit_stats_get(stage->device, &before);
    for (int i = 0; i < STAGE_WARM_ROUNDS; i++)
        mix_run(&mix, STAGE_STEPS);
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
        (void)frit_flush(stage->device, NULL);
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
    double both = stage_run(stage, 2, 0);
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
    many = stage_run(stage, 1, 1);
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
    double alone = mix || threads ? stage_run(stage, 1, 0) : 0;
    double shared = mix || plans ? stage_run(stage, 1, 1) : 0;
    int status = mix ? measure_shared(stage, alone, shared) : CLI_FINE;

    if (status == CLI_FINE && threads)
        status = measure_threads(stage, alone);
    if (status == CLI_FINE && plans)
        status = measure_plans(stage, shared);
    return status;
}

/* A row of the mix in another form, and what it is compared with. */
struct form_row {
    const char *name, *what;
    const struct stage_form *form;
    const struct stage_form *beside; /* as it is recorded, but on a device like a CPU */
    const char *beside_text;
};

static const struct form_row form_rows[] = {
    {"deferred",
     "8 ops, 128x128 and 192x192, scopes of 64 ops, a queue that is late, no host pointers",
     &deferred_form, &scoped_form, "times the cost inside submit, 2x2 and 4x4"},
    {"rotating", "8 ops, 2x2 to 17x17 in turn, 64 ops each", &rotating_form, &plain_form,
     "times the cost of 2x2 and 4x4"},
};

/* Both in turn; medians. */
static int measure_pairs(const struct stage *stage, const struct stage *beside, double *ns,
                         double *ratio)
{
    uint32_t pairs = stage->bench->quick ? 1 : PAIRS;
    double ours[PAIRS], ratios[PAIRS];

    for (uint32_t i = 0; i < pairs; i++) {
        double base = stage_run(beside, 1, 0);

        ours[i] = stage_run(stage, 1, 0);
        if (base < 0 || ours[i] < 0)
            return CLI_FAILED;
        ratios[i] = ours[i] / base;
    }
    *ns = bench_median(ours, pairs);
    *ratio = bench_median(ratios, pairs);
    return CLI_FINE;
}

static int measure_form(const struct bench *bench, const struct form_row *form)
{
    struct stage stage, beside = {0};
    double ns = 0, ratio = 0;
    int status = stage_open(&stage, bench, form->form);

    if (status == CLI_FINE)
        status = stage_open(&beside, bench, form->beside);
    if (status == CLI_FINE)
        status = measure_pairs(&stage, &beside, &ns, &ratio);
    if (status == CLI_FINE) {
        struct bench_row row = row_of(&stage, form->name, form->what, 1, 1);

        add_figure(&row, (struct bench_figure){"ns_per_op", "ns per op", per_op(ns), 0, false});
        add_figure(&row, (struct bench_figure){"mix_ratio", form->beside_text, ratio, 1.3, false});
        add_counts(&stage, &row);
        bench_print(bench, &row);
    }
    stage_close(&beside);
    stage_close(&stage);
    return status;
}

/* Milliseconds of the first and the second run of the chain on a fresh device. */
static int run_chain(const struct bench *bench, double *first, double *second)
{
    struct stage stage;
    struct bench_mix mix;
    int status = stage_open(&stage, bench, &search_form);

    if (status == CLI_FINE) {
        uint64_t t[3];
        frit_tensor *results[2];

        mix_init(&mix, stage.device, search_form.mix, stage.weights);
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
    int status = bench_check_filters(bench, row_at);

    if (status != CLI_FINE)
        return status;
    status = stage_open(&stage, bench, &plain_form);
    if (status == CLI_FINE)
        status = measure_mix(&stage);
    for (size_t i = 0; i < sizeof(form_rows) / sizeof(form_rows[0]) && status == CLI_FINE; i++)
        if (bench_wants(bench, form_rows[i].name))
            status = measure_form(bench, &form_rows[i]);
    if (status == CLI_FINE && bench_wants(bench, "search"))
        status = measure_search(&stage);
    stage_close(&stage);
    return status;
}
