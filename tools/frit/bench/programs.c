/* SPDX-License-Identifier: Apache-2.0 */
/* `frit bench programs`: what whole programs cost before they are warm, and what is left of them
 * afterwards: an optimiser's step over many small tensors, unrelated ops, loops that never wait.
 *
 * A first step is measured on a fresh host without known plans, whose compiled code is found in a
 * folder that an earlier host has filled, so that it is the search and not the compiler that is
 * measured. */
#include "bench/programs.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <frit/inspect.h>

#include "bench/bench.h"
#include "bench/place.h"
#include "invocation.h"

enum {
    MAX_TENSORS = 1024,
    SIDE = 64,
    SGD_OPS = 5,      /* of a parameter */
    ADAM_OPS = 13,    /* likewise */
    QUIET_STEPS = 8,  /* without anything new: the program is warm */
    MAX_LAUNCHES = 6, /* of an optimiser's step */
    MAX_STEPS = 400,
    WARM_STEPS = 9,
    LOOP_BEGINNING = 32,
    LOOP_TOGETHER = 128,
    LOOP_STEPS = 512,
    LOOP_ROUNDS = 5
};

static const double patience = 60; /* seconds until a program has to be warm */

enum program { PROGRAM_SGD, PROGRAM_ADAM, PROGRAM_UNRELATED, PROGRAM_LOOP };

struct program_row {
    const char *name, *what;
    enum program program;
    int n;           /* parameters, ops, ops of a step */
    double first_ms; /* to be reached; 0: none */
};

static const struct program_row program_rows[] = {
    {"sgd-64", "SGD with momentum, 64 small parameters", PROGRAM_SGD, 64, 20},
    {"sgd-256", "SGD with momentum, 256 small parameters", PROGRAM_SGD, 256, 80},
    {"sgd-1024", "SGD with momentum, 1,024 small parameters", PROGRAM_SGD, 1024, 320},
    {"adam-1024", "Adam, 1,024 small parameters", PROGRAM_ADAM, 1024, 0},
    {"unrelated-128", "exp of 128 tensors", PROGRAM_UNRELATED, 128, 0},
    {"unrelated-256", "exp of 256 tensors", PROGRAM_UNRELATED, 256, 0},
    {"unrelated-512", "exp of 512 tensors", PROGRAM_UNRELATED, 512, 0},
    {"unrelated-1024", "exp of 1,024 tensors", PROGRAM_UNRELATED, 1024, 50},
    {"loop-5", "a loop of 5 ops that never waits", PROGRAM_LOOP, 5, 0},
    {"loop-7", "a loop of 7 ops that never waits", PROGRAM_LOOP, 7, 0},
    {"loop-8", "a loop of 8 ops that never waits", PROGRAM_LOOP, 8, 0},
};
enum { N_PROGRAMS = sizeof(program_rows) / sizeof(program_rows[0]) };

static const char *row_at(size_t index)
{
    return index < N_PROGRAMS ? program_rows[index].name : NULL;
}

/* ---- the programs ---- */

/* What a program has from one step to the next. */
struct state {
    const struct program_row *row;
    frit_device *device;
    frit_tensor *value[MAX_TENSORS]; /* parameters, operands; of a loop its value and two weights */
    frit_tensor *slope[MAX_TENSORS]; /* of optimisers */
    frit_tensor *speed[MAX_TENSORS]; /* SGD; of Adam the mean of slopes */
    frit_tensor *power[MAX_TENSORS]; /* Adam: the mean of their squares */
    double decay[2];                 /* Adam: of both means, to the power of the step's number */
};

static frit_tensor *filled(frit_device *device, frit_dims dims, float value)
{
    static float data[2 * SIDE * SIDE];
    uint64_t n = 1;

    for (int64_t d = 0; d < dims.rank; d++)
        n *= (uint64_t)dims.dim[d];
    for (uint64_t i = 0; i < n; i++)
        data[i] = value + (float)(i % 7) / 16;
    return frit_from_host(device, FRIT_F32, dims, data, n * sizeof(*data));
}

/* Matrices and vectors of two sizes, as of layers. */
static frit_dims dims_of(int i)
{
    switch (i % 4) {
    case 0:
        return FRIT_SHAPE(SIDE, SIDE);
    case 1:
        return FRIT_SHAPE(SIDE);
    case 2:
        return FRIT_SHAPE(2 * SIDE, SIDE);
    default:
        return FRIT_SHAPE(2 * SIDE);
    }
}

static bool is_optimiser(const struct program_row *row)
{
    return row->program == PROGRAM_SGD || row->program == PROGRAM_ADAM;
}

static void state_init(struct state *s, const struct program_row *row, frit_device *device)
{
    int n = row->program == PROGRAM_LOOP ? 3 : row->n;
    bool optimises = is_optimiser(row);

    *s = (struct state){.row = row, .device = device, .decay = {1, 1}};
    for (int i = 0; i < n; i++) {
        frit_dims dims = optimises                      ? dims_of(i)
                         : row->program == PROGRAM_LOOP ? FRIT_SHAPE(SIDE, SIDE)
                                                        : FRIT_SHAPE(SIDE);

        s->value[i] = filled(device, dims, 0.5f);
        s->speed[i] = optimises ? filled(device, dims, 0) : NULL;
        s->slope[i] = optimises ? filled(device, dims, 0.25f) : NULL;
        s->power[i] = row->program == PROGRAM_ADAM ? filled(device, dims, 0) : NULL;
    }
}

static void state_fini(struct state *s)
{
    for (int i = 0; i < MAX_TENSORS; i++) {
        frit_release(s->value[i]);
        frit_release(s->speed[i]);
        frit_release(s->slope[i]);
        frit_release(s->power[i]);
    }
}

/* speed = 0.9 speed + 2 slope; value = value - 0.01 speed. */
static void step_sgd(struct state *s)
{
    frit_scope scope = frit_scope_begin(s->device);

    for (int i = 0; i < s->row->n; i++) {
        frit_tensor *slope = frit_mul_f(s->slope[i], 2);
        frit_tensor *speed = frit_add(frit_mul_f(s->speed[i], 0.9), slope);
        frit_tensor *value = frit_sub(s->value[i], frit_mul_f(speed, 0.01));

        frit_release(s->speed[i]);
        frit_release(s->value[i]);
        s->speed[i] = frit_keep(speed);
        s->value[i] = frit_keep(value);
    }
    frit_scope_end(scope);
}

/* The value less the mean of slopes over the root of that of their squares, both corrected for how
 * few steps they are of. */
static frit_tensor *adam_value(frit_tensor *value, frit_tensor *mean, frit_tensor *power,
                               const double decay[2])
{
    frit_tensor *root = frit_sqrt(frit_mul_f(power, 1 / (1 - decay[1])));
    frit_tensor *change =
        frit_div(frit_mul_f(mean, 0.001 / (1 - decay[0])), frit_add_f(root, 1e-8));

    return frit_sub(value, change);
}

/* mean = 0.9 mean + 0.1 slope; power = 0.999 power + 0.001 slope^2; then the value. */
static void step_adam(struct state *s)
{
    frit_scope scope = frit_scope_begin(s->device);

    s->decay[0] *= 0.9;
    s->decay[1] *= 0.999;
    for (int i = 0; i < s->row->n; i++) {
        frit_tensor *slope = s->slope[i], *square = frit_mul(slope, slope);
        frit_tensor *mean = frit_add(frit_mul_f(s->speed[i], 0.9), frit_mul_f(slope, 0.1));
        frit_tensor *power = frit_add(frit_mul_f(s->power[i], 0.999), frit_mul_f(square, 0.001));
        frit_tensor *value = adam_value(s->value[i], mean, power, s->decay);

        frit_release(s->speed[i]);
        frit_release(s->power[i]);
        frit_release(s->value[i]);
        s->speed[i] = frit_keep(mean);
        s->power[i] = frit_keep(power);
        s->value[i] = frit_keep(value);
    }
    frit_scope_end(scope);
}

static void step_unrelated(struct state *s)
{
    static frit_tensor *results[MAX_TENSORS];

    for (int i = 0; i < s->row->n; i++)
        results[i] = frit_exp(s->value[i]);
    (void)frit_flush(s->device, NULL);
    for (int i = 0; i < s->row->n; i++)
        frit_release(results[i]);
}

/* As many of eight ops as the row says. */
static void step_loop(struct state *s)
{
    frit_tensor *x = s->value[0];

    for (int i = 0; i < s->row->n; i++) {
        frit_tensor *in = frit_take(x);

        switch (i) {
        case 0:
            x = frit_mul_f(in, 0.5);
            break;
        case 1:
            x = frit_add(in, s->value[1]);
            break;
        case 2:
            x = frit_tanh(in);
            break;
        case 3:
            x = frit_mul(in, s->value[2]);
            break;
        case 4:
            x = frit_sub_f(in, 0.25);
            break;
        case 5:
            x = frit_abs(in);
            break;
        case 6:
            x = frit_sub(in, s->value[1]);
            break;
        default:
            x = frit_neg(in);
        }
    }
    s->value[0] = x;
}

static void step(struct state *s)
{
    if (s->row->program == PROGRAM_SGD)
        step_sgd(s);
    else if (s->row->program == PROGRAM_ADAM)
        step_adam(s);
    else if (s->row->program == PROGRAM_UNRELATED)
        step_unrelated(s);
    else
        step_loop(s);
}

/* ---- steps that end ---- */

struct measured {
    double ms, cpu_ms; /* by the clock; of the calling thread */
    uint64_t searches;
};

static double cpu_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

/* One step and a wait. */
static struct measured measure_step(struct place *place, struct state *s)
{
    uint64_t searches = place_stats(place).explorations, begun = bench_now();
    double cpu = cpu_now();
    struct measured m;

    step(s);
    place_sync(place);
    m.ms = (double)(bench_now() - begun) * 1e-6;
    m.cpu_ms = cpu_now() - cpu;
    m.searches = place_stats(place).explorations - searches;
    return m;
}

/* Steps until nothing new is searched, compiled or waited for. */
static void warm_up(struct place *place, struct state *s)
{
    uint64_t begun = bench_now();
    frit_stats last = place_stats(place);

    for (int i = 0, quiet = 0; i < MAX_STEPS && quiet < QUIET_STEPS; i++) {
        frit_stats now;

        measure_step(place, s);
        now = place_stats(place);
        quiet = now.waiting == last.waiting && now.explorations == last.explorations &&
                        now.compiles == last.compiles
                    ? quiet + 1
                    : 0;
        last = now;
        if ((double)(bench_now() - begun) * 1e-9 > patience)
            return;
    }
}

static void add(struct bench_row *row, const char *key, const char *unit, double value,
                double target)
{
    row->figures[row->n_figures++] = (struct bench_figure){key, unit, value, target, false};
}

/* A host of its own with the program's tensors, which end_program ends. */
static struct state *begin_program(struct place *place, const struct bench *bench,
                                   const struct program_row *row, struct cache *cache)
{
    struct state *s = malloc(sizeof(*s));

    if (!s) {
        fail_command(bench->in, "no memory");
        return NULL;
    }
    if (place_open(place, bench, cache) != CLI_FINE) {
        free(s);
        return NULL;
    }
    state_init(s, row, place->device);
    place_sync(place);
    return s;
}

static int end_program(struct place *place, struct state *s)
{
    state_fini(s);
    free(s);
    return place_close(place);
}

/* The program on a host without anything, until it is warm. */
static int run_cold(const struct bench *bench, const struct program_row *row, struct cache *cache,
                    struct bench_row *out)
{
    struct place place;
    struct state *s = begin_program(&place, bench, row, cache);
    double ms[WARM_STEPS];
    frit_stats before, after;

    if (!s)
        return CLI_FAILED;
    out->device = place_name(&place);
    add(out, "cold_ms", "ms first, with compiles", measure_step(&place, s).ms, 0);
    warm_up(&place, s);
    before = place_stats(&place);
    for (int i = 0; i < WARM_STEPS; i++)
        ms[i] = measure_step(&place, s).ms;
    after = place_stats(&place);
    add(out, "step_ms", "ms a step when warm", bench_median(ms, WARM_STEPS), 0);
    if (bench_clock_start(place.device)) {
        for (int i = 0; i < WARM_STEPS; i++)
            measure_step(&place, s);
        add(out, "device_ms", "ms of the device a step", bench_clock_stop(place.device, WARM_STEPS),
            0);
    }
    add(out, "launches_per_step", "launches a step then",
        (double)(after.launches - before.launches) / WARM_STEPS,
        is_optimiser(row) ? MAX_LAUNCHES : 0);
    add(out, "bound_per_step", "of these by bound plans",
        (double)(after.bound_launches - before.bound_launches) / WARM_STEPS, 0);
    add(out, "captured_per_step", "of these by recordings of the driver",
        (double)(after.captured_launches - before.captured_launches) / WARM_STEPS, 0);
    return end_program(&place, s);
}

/* Its first step where compiled code is at hand. */
static int run_first(const struct bench *bench, const struct program_row *row, struct cache *cache,
                     struct bench_row *out)
{
    struct place place;
    struct state *s = begin_program(&place, bench, row, cache);
    struct measured first;

    if (!s)
        return CLI_FAILED;
    first = measure_step(&place, s);
    add(out, "first_ms", "ms first", first.ms, row->first_ms);
    add(out, "first_cpu_ms", "ms of the calling thread's processor", first.cpu_ms, 0);
    add(out, "searches", "searches in it", (double)first.searches, 0);
    return end_program(&place, s);
}

/* Of a parameter, or whatever the program has many of. */
static uint64_t ops_of(enum program program)
{
    return program == PROGRAM_SGD ? SGD_OPS : program == PROGRAM_ADAM ? ADAM_OPS : 1;
}

static int run_program(const struct bench *bench, const struct program_row *row)
{
    struct bench_row out = {.suite = "programs",
                            .row = row->name,
                            .what = row->what,
                            .ops = (uint64_t)row->n * ops_of(row->program)};
    struct cache cache;
    int status = cache_create(&cache, bench);

    if (status == CLI_FINE)
        status = run_cold(bench, row, &cache, &out);
    if (status == CLI_FINE)
        status = run_first(bench, row, &cache, &out);
    if (status == CLI_FINE)
        bench_print(bench, &out);
    cache_remove(&cache);
    return status;
}

/* ---- loops ---- */

/* Milliseconds of the first steps on a fresh host; below 0 after a message. */
static double loop_beginning(const struct bench *bench, const struct program_row *row, bool flush)
{
    struct place place;
    struct state s;
    uint64_t begun;
    double ms;

    if (place_open(&place, bench, NULL) != CLI_FINE)
        return -1;
    state_init(&s, row, place.device);
    place_sync(&place);
    begun = bench_now();
    for (int i = 0; i < LOOP_TOGETHER; i++) {
        step(&s);
        if (flush)
            (void)frit_flush(place.device, NULL);
    }
    place_sync(&place);
    ms = (double)(bench_now() - begun) * 1e-6;
    state_fini(&s);
    return place_close(&place) == CLI_FINE ? ms : -1;
}

/* What is new after the first steps. */
static int count_loop(const struct bench *bench, const struct program_row *row,
                      struct bench_row *out)
{
    frit_stats early, late, end;
    struct place place;
    struct state s;
    int status = place_open(&place, bench, NULL);

    if (status != CLI_FINE)
        return status;
    out->device = place_name(&place);
    state_init(&s, row, place.device);
    place_sync(&place);
    for (int i = 0; i < LOOP_BEGINNING; i++)
        step(&s);
    early = place_stats(&place);
    for (int i = LOOP_BEGINNING; i < LOOP_STEPS; i++)
        step(&s);
    late = place_stats(&place);
    place_sync(&place);
    end = place_stats(&place);
    add(out, "late_searches", "searches after 32 steps",
        (double)(late.explorations - early.explorations), 0);
    add(out, "tail_searches", "searches of what was left at the end",
        (double)(end.explorations - late.explorations), 0);
    add(out, "late_programs", "programs made after 32 steps",
        (double)(end.programs - early.programs), 0);
    add(out, "plans", "plans known after 512 steps", (double)end.plans_now, 8);
    state_fini(&s);
    return place_close(&place);
}

static int run_loop(const struct bench *bench, const struct program_row *row)
{
    struct bench_row out = {
        .suite = "programs", .row = row->name, .what = row->what, .ops = (uint64_t)row->n};
    size_t rounds = bench->quick ? 1 : LOOP_ROUNDS;
    double together[LOOP_ROUNDS], flushed[LOOP_ROUNDS], ratios[LOOP_ROUNDS];
    int status = count_loop(bench, row, &out);

    for (size_t i = 0; i < rounds && status == CLI_FINE; i++) {
        together[i] = loop_beginning(bench, row, false);
        flushed[i] = loop_beginning(bench, row, true);
        ratios[i] = together[i] / flushed[i];
        status = together[i] < 0 || flushed[i] < 0 ? CLI_FAILED : CLI_FINE;
    }
    if (status != CLI_FINE)
        return status;
    add(&out, "together_ms", "ms of the first 128 steps", bench_median(together, rounds), 0);
    add(&out, "flushed_ms", "ms of these with a flush each", bench_median(flushed, rounds), 0);
    add(&out, "together_ratio", "times the time with a flush each", bench_median(ratios, rounds),
        2);
    bench_print(bench, &out);
    return CLI_FINE;
}

int bench_programs(const struct bench *bench)
{
    int status = bench_check_filters(bench, row_at);

    for (int i = 0; i < N_PROGRAMS && status == CLI_FINE; i++) {
        const struct program_row *row = &program_rows[i];

        if (!bench_wants(bench, row->name) || (bench->quick && row->n > 64))
            continue;
        status = row->program == PROGRAM_LOOP ? run_loop(bench, row) : run_program(bench, row);
    }
    return status;
}
