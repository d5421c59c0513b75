/* SPDX-License-Identifier: Apache-2.0 */
/* equiv: random streams played in several ways must read the same.
 *
 *   equiv [--seed S] [--count N] [--device D] [--plugin FILE] [--set SECTION.KEY=VALUE[,...]]...
 *         [--near DEVICE] [--beside SECTION.KEY=VALUE[,...]]... [--large] [--shapes N] [--print]
 *         [--no-shrink]
 *
 * What the device reads with fusion is compared bit for bit with a play without fusion, or with one
 * for the settings of each `--beside`.  With `--near` it is compared, within the tolerance between
 * drivers, with that device, and bit for bit with each `--beside`.
 *
 * With `--shapes`, only N streams differ in more than data and scalars; they are played repeatedly,
 * with other data, on devices that stay open.  The first difference is printed with a script that
 * shows it and from which nothing can be removed. */
#include <stdio.h>
#include <stdlib.h>

#include "options.h"
#include "seeds.h"

/* Of all scripts that were played. */
struct totals {
    uint64_t streams, ops, views, made, early, threaded;
};

struct program {
    struct options options;
    struct tester tester;
    struct scripts scripts;
    struct totals totals;
    frit_host *plain;           /* does not fuse; NULL: there is none */
    frit_host *poisoned, *bare; /* fuse, with and without NaN in free memory */
    frit_host *beside[MAX_SIDES];
};

static void count_script(struct totals *totals, const struct script *script)
{
    totals->streams++;
    totals->ops += script->n_ops;
    totals->views += script->n_views;
    totals->made += script->n_made;
    totals->early += script->n_early;
    totals->threaded += script->n_threads >= 3;
}

/* ---- hosts ---- */

/* `beside`: more settings, or NULL. */
static frit_host *open_host(struct options *options, const char *fusion, const char *poison,
                            char *beside)
{
    frit_err err = {.struct_size = sizeof(err)};
    const struct options before = *options;
    frit_host *host = NULL;

    options_set(options, "fusion", "enabled", fusion);
    options_set(options, "frit", "poison", poison);
    if (beside && !options_set_text(options, beside)) {
        fprintf(stderr, "equiv: --beside wants SECTION.KEY=VALUE\n");
    } else if (frit_host_open(&(frit_host_params){.struct_size = sizeof(frit_host_params),
                                                  .settings = options->settings,
                                                  .n_settings = options->n_settings},
                              &host, &err)) {
        fprintf(stderr, "equiv: %s\n", err.text);
        frit_host_close(host);
        host = NULL;
    }
    *options = before;
    return host;
}

static bool add_side(struct program *program, const char *name, frit_host *host)
{
    program->tester.sides[program->tester.n_sides++] =
        (struct side){.name = name,
                      .host = host,
                      .device = program->options.device,
                      .stays = program->options.shapes > 0};
    return host != NULL;
}

/* The measure is the same device without fusion or, where it stands beside others, one of them. */
static bool open_sides(struct program *program)
{
    struct options *options = &program->options;
    bool near = options->near, good = true;

    program->poisoned = open_host(options, "yes", "yes", NULL);
    program->bare = open_host(options, "yes", "no", NULL);
    for (uint32_t k = 0; k < options->n_beside; k++)
        program->beside[k] = open_host(options, "yes", "yes", options->beside[k]);
    if (near || options->n_beside == 0)
        program->plain = open_host(options, "no", "yes", NULL);
    program->tester.measure = (struct side){.name = near ? "the measure" : "op by op",
                                            .host = program->plain,
                                            .device = near ? options->near : options->device,
                                            .stays = near || options->shapes};
    good = add_side(program, "fused", program->bare) && program->poisoned;
    for (uint32_t k = 0; k < options->n_beside; k++)
        good = good && add_side(program, options->beside[k], program->beside[k]);
    if (!near && options->n_beside) { /* the last one */
        program->tester.measure.name = "beside";
        program->tester.measure.host = program->beside[options->n_beside - 1];
        program->tester.n_sides--;
    }
    return good && program->tester.measure.host;
}

static void close_sides(struct program *program)
{
    session_close(&program->tester);
    for (uint32_t k = 0; k < MAX_SIDES; k++)
        frit_host_close(program->beside[k]);
    frit_host_close(program->plain);
    frit_host_close(program->poisoned);
    frit_host_close(program->bare);
}

/* ---- what was seen ---- */

/* What the scripts were like; false where they are not what they should be, or nothing was fused.
 */
static bool summary(const struct program *program)
{
    const struct totals *totals = &program->totals;
    const struct tester *tester = &program->tester;
    uint64_t views = totals->views * 100 / totals->ops, early = totals->early * 100 / totals->made;
    uint64_t threaded = totals->threaded * 100 / totals->streams;
    uint64_t plain = tester->measure.launches, fused = tester->sides[0].launches;
    bool enough = totals->streams < 100 || (views >= 25 && early >= 30 && threaded >= 20);
    bool fuses = program->options.plugin != NULL;

    printf("%llu streams: %llu ops, %llu %% views, %llu %% of the values die before they are run, "
           "%llu %% with 3 or more threads; %llu launches of %s, %llu fused, %llu plans\n",
           (unsigned long long)totals->streams, (unsigned long long)totals->ops,
           (unsigned long long)views, (unsigned long long)early, (unsigned long long)threaded,
           (unsigned long long)plain, tester->measure.name, (unsigned long long)fused,
           (unsigned long long)tester->sides[0].explorations);
    if (tester->near)
        printf("%llu plays; %llu floats beside f64, %.3f %% of them where a hundredth of the "
               "largest is let pass; at most %.3f of what is allowed; %llu plays were looked at "
               "more closely\n",
               (unsigned long long)tester->plays, (unsigned long long)tester->seen.elements,
               100.0 * (double)tester->seen.rough / (double)tester->seen.elements,
               tester->seen.most, (unsigned long long)tester->again);
    if (!enough)
        printf("equiv: too few views, deaths or threads\n");
    if (fuses && fused >= plain)
        printf("equiv: nothing was fused\n");
    return enough && (!fuses || fused < plain);
}

/* ---- seeds ---- */

enum { ALL_TYPES = 16 }; /* one seed of so many is measured in all types in any case */

/* 0: the same, 1: they differ, 2: nothing could be run. */
static int test_seed(struct program *program)
{
    struct scripts *scripts = &program->scripts;
    struct tester *tester = &program->tester;
    struct session session;
    struct difference difference;

    scripts_generate(scripts);
    count_script(&program->totals, &scripts->own);
    scripts_session(scripts, tester->near, &session);
    if (program->options.print)
        script_print(&scripts->own, 0);
    if (!session_run(tester, &session, &difference))
        return 2;
    if (!difference.play)
        return 0;
    printf("equiv: seed %llu, round %u, play '%s': %s\n", (unsigned long long)scripts->seed,
           scripts->round, difference.play, difference.text);
    if (!program->options.no_shrink)
        scripts_report(scripts, tester, &session);
    return 1;
}

/* With --shapes: the number of scripts that are repeated, each in several forms. */
static uint32_t scripts_of(const struct options *options)
{
    uint32_t forms = options->large ? SCRIPT_LARGE : SEED_FORMS;

    return (options->shapes + forms - 1) / forms;
}

static int run(struct program *program)
{
    const struct options *options = &program->options;
    struct tester *tester = &program->tester;
    uint32_t n = scripts_of(options);
    int result = 0;

    if (!open_sides(program))
        return 2;
    tester->near = options->near != NULL;
    program->scripts.well_conditioned = tester->near;
    program->scripts.repeated = n > 0;
    program->scripts.large = options->large;
    for (uint64_t k = 0; k < options->count && result == 0; k++) {
        uint64_t seed = options->seed + (n ? k % n : k);

        program->scripts.seed = seed;
        program->scripts.round = n ? (uint32_t)(k / n) : 0;
        tester->all_types = (options->seed + k) % ALL_TYPES == 0;
        if (!n)
            tester->sides[0].host = seed % 2 ? program->poisoned : program->bare;
        result = test_seed(program);
    }
    if (result == 0 && options->count > 0 && !summary(program))
        result = 1;
    return result;
}

int main(int argc, char **argv)
{
    struct program *program = calloc(1, sizeof(*program));
    struct options *options = &program->options;
    int result = 2;

    if (!program)
        return 2;
    *options = (struct options){.seed = 1, .count = 200, .device = "reference:0"};
    options_set(options, "frit", "log", "off,validate=warn"); /* what Vulkan layers say */
    options_set(options, "fusion", "store", "none");
    options_set(options, "plugin.reference", "option.memory_bytes", "268435456");
    options_set(options, "plugin.cpu", "option.memory_bytes", "268435456");
    if (!options_parse(options, argc, argv)) {
        fprintf(stderr, "usage: equiv [--seed S] [--count N] [--device D] [--plugin FILE]\n"
                        "             [--set SECTION.KEY=VALUE[,...]]... [--near D]\n"
                        "             [--beside SECTION.KEY=VALUE[,...]]...\n"
                        "             [--large] [--shapes N] [--print] [--no-shrink]\n");
    } else {
        if (options->plugin)
            options_set(options, "plugin.org.frit.blocks", "library", options->plugin);
        result = run(program);
        close_sides(program);
    }
    free(program);
    return result;
}
