/* SPDX-License-Identifier: Apache-2.0 */
/* Launches: what each candidate does beside computing, and how long it takes. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <frit/op_table.h>

#include "candidates.h"

enum { NS_PER_MS = 1000000 };

static enum kind kind_of(const frit_launch *launch)
{
    return program_of(launch)->offers[launch->candidate].kind;
}

/* ---- time ---- */

/* Whether the first operand lies where that of the program's last launch did. */
static bool has_same_operand(const frit_launch *launch)
{
    const frit_arg *arg = frit_arg_at(launch, 0);
    const uint64_t place = (uint64_t)(uintptr_t)arg->memory + arg->offset;

    return atomic_exchange(&program_of(launch)->operand, place) == place;
}

/* What is not fast for its size, or any more, takes four times as long as the first candidate. */
static bool is_fast(const struct options *options, const frit_launch *launch, uint64_t launches)
{
    switch (kind_of(launch)) {
    case KIND_fast_once:
        return launches < (uint64_t)options->fast_calls;
    case KIND_small:
    case KIND_fused:
    case KIND_whole:
        return compute_size(launch) <= options->split;
    case KIND_large:
        return compute_size(launch) >= options->split;
    case KIND_fast_cached:
        return has_same_operand(launch);
    default:
        return true;
    }
}

/* What the first candidate takes. */
static double cost_of(const struct options *options, const frit_launch *launch)
{
    const uint64_t bytes = compute_bytes(launch);
    const double per_mib =
        (double)options->mib_ns / (bytes <= (uint64_t)options->cache_bytes ? 4 : 1);

    return (double)options->cost_ns + per_mib * (double)bytes / (1 << 20);
}

uint64_t launch_charge(const frit_launch *launch)
{
    struct program *program = program_of(launch);
    const struct instance *instance = program->instance;
    const struct options *options = &instance->options;
    uint64_t launches = atomic_fetch_add(&program->launches[launch->candidate], 1);
    int64_t percent = program->offers[launch->candidate].percent;

    if (program->n_offers == 1 && program->op == FRIT_OP_copy)
        return 0;
    if (kind_of(launch) == KIND_sleeps)
        return (uint64_t)options->sleep_ms * NS_PER_MS;
    if (!is_fast(options, launch, launches))
        percent = 4 * kinds[KIND_first].percent;
    return (uint64_t)(cost_of(options, launch) * (double)percent / 100);
}

/* What takes long sleeps, to leave the processor to others; the rest is exact. */
static void spend(const struct plug *plug, uint64_t since, uint64_t ns)
{
    const struct timespec whole = {.tv_sec = (time_t)(ns / 1000 / NS_PER_MS),
                                   .tv_nsec = (long)(ns % (1000 * NS_PER_MS))};

    if (ns >= 50 * NS_PER_MS)
        nanosleep(&whole, NULL);
    while (plug_now_ns(plug) - since < ns)
        ;
}

/* ---- counting ---- */

/* One write per line, so that lines of several processes do not mix. */
static void log_launch(const struct program *program, const frit_launch *launch)
{
    char line[128];
    int n = snprintf(line, sizeof line, "%ld %s %s %s\n", (long)getpid(),
                     program->n_steps ? "fused" : frit_op_info_at(program->op)->name,
                     kinds[kind_of(launch)].name.ptr,
                     compute_is_in_place(launch) ? "in-place" : "apart");

    if (program->instance->log >= 0)
        (void)!write(program->instance->log, line, (size_t)n);
}

/* ---- running ---- */

/* What ends, stops or fails the launch. */
static frit_status disturb(const struct program *program, enum kind kind, frit_err *err)
{
    if (kind == KIND_crashes)
        raise(SIGSEGV);
    while (kind == KIND_hangs)
        pause();
    if (kind == KIND_fails)
        return plug_fail(&program->instance->plug, err, FRIT_IO, "fails on purpose");
    return FRIT_OK;
}

static frit_status run(void *ctx, const frit_launch *launch, frit_err *err)
{
    struct program *program = program_of(launch);
    struct instance *instance = program->instance;
    const uint64_t since = plug_now_ns(&instance->plug);
    const enum kind kind = kind_of(launch);
    frit_status status;

    (void)ctx;
    atomic_fetch_add(&instance->launches[kind], 1);
    log_launch(program, launch);
    status = disturb(program, kind, err);
    if (status)
        return status;
    compute(program, launch, kind);
    if (instance->options.clock != CLOCK_SIMULATED)
        spend(&instance->plug, since, launch_charge(launch));
    return FRIT_OK;
}

static frit_status check(void *ctx, const frit_launch *launch, frit_err *err)
{
    const struct device *device = ctx;
    const struct program *program = program_of(launch);

    if (program && launch->candidate < program->n_offers)
        return FRIT_OK;
    return plug_fail(&device->instance->plug, err, FRIT_INVALID,
                     "a launch of a program or candidate that there is not");
}

static frit_str name(const frit_launch *launch)
{
    return kinds[kind_of(launch)].name;
}

const struct hosted_driver launch_driver = {.check = check, .run = run, .name = name};
