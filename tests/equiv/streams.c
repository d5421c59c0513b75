/* SPDX-License-Identifier: Apache-2.0 */
/* equiv: random streams, op by op and fused, must read the same bits.
 *
 *   equiv [--seed S] [--count N] [--device D] [--plugin FILE] [--set SECTION.KEY=VALUE]...
 * [--print]
 *
 * Each script is played in two sessions, each on a device just opened, so that its plans are
 * unknown: the script, again (its plans are known now), with other sizes and scalars, and with
 * fewer deaths (the plans that are known are almost its own); and after another script (the plans
 * that are known are foreign).  The same sessions run on a host that does not fuse.  The first
 * difference is printed with a script that shows it and from which nothing can be left out. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "play.h"

enum { MAX_SETTINGS = 32, SESSION_PLAYS = 4, SHRINK_SECONDS = 60 };

struct tester {
    const char *device;
    bool shrinks;
    frit_host *plain, *poisoned, *bare; /* the fused one, with and without NaN in free memory */
    frit_host *fused;                   /* one of the two, by seed */
    uint64_t launches_plain, launches_fused;
    uint64_t ops, views, made, early, threaded, streams;
};

struct session {
    struct {
        const struct script *script;
        const uint8_t *left;
        uint32_t variant;
        const char *name;
    } plays[SESSION_PLAYS];
    uint32_t n_plays;
};

struct difference {
    char text[700];
    const char *play; /* name; NULL: there is no difference */
    uint32_t variant;
    const struct script *script;
};

/* ---- sessions ---- */

/* Plays a whole session on a fresh device; false where the device cannot be opened. */
static bool run_session(const struct tester *tester, frit_host *host, const struct session *session,
                        struct play *plays, uint64_t *launches)
{
    frit_device *device;
    frit_stats stats = {.struct_size = sizeof(stats)};

    if (frit_device_open(host, tester->device, &device)) {
        fprintf(stderr, "equiv: %s\n", frit_host_error(host));
        return false;
    }
    frit_seed(host, 7);
    for (uint32_t k = 0; k < session->n_plays; k++)
        play_script(&plays[k], device, session->plays[k].script, session->plays[k].variant,
                    session->plays[k].left);
    frit_stats_get(device, &stats);
    *launches += stats.launches;
    frit_device_close(device);
    return true;
}

static void compare_session(const struct session *session, const struct play *plain,
                            const struct play *fused, struct difference *difference)
{
    for (uint32_t k = 0; k < session->n_plays; k++) {
        const struct script *script = session->plays[k].script;
        uint32_t variant = session->plays[k].variant;
        const struct play *faulty = plain[k].fault ? &plain[k] : &fused[k];

        if (faulty->fault)
            snprintf(difference->text, sizeof(difference->text), "%s: %s",
                     faulty == &plain[k] ? "op by op" : "fused", faulty->text);
        else if (play_compare(script, variant, &plain[k], &fused[k], difference->text,
                              sizeof(difference->text)))
            continue;
        difference->play = session->plays[k].name;
        difference->variant = variant;
        difference->script = script;
        return;
    }
}

/* False where nothing could be run at all. */
static bool try_session(struct tester *tester, const struct session *session,
                        struct difference *difference)
{
    struct play plain[SESSION_PLAYS] = {{0}}, fused[SESSION_PLAYS] = {{0}};
    bool ran;

    *difference = (struct difference){.play = NULL};
    ran = run_session(tester, tester->plain, session, plain, &tester->launches_plain) &&
          run_session(tester, tester->fused, session, fused, &tester->launches_fused);
    if (ran)
        compare_session(session, plain, fused, difference);
    for (uint32_t k = 0; k < session->n_plays; k++) {
        play_fini(&plain[k], session->plays[k].script);
        play_fini(&fused[k], session->plays[k].script);
    }
    return ran;
}

/* ---- scripts ---- */

struct scripts {
    struct script own, longer, foreign;
    uint8_t own_left[SCRIPT_VARS], longer_left[SCRIPT_VARS], foreign_left[SCRIPT_VARS];
};

/* The same ops, but about half of the takes and releases do not happen. */
static void lengthen_lives(struct scripts *scripts)
{
    struct script *longer = &scripts->longer;

    *longer = scripts->own;
    for (uint32_t i = 0; i < longer->n_actions; i++) {
        struct action *action = &longer->actions[i];
        struct chance chance = {longer->seed ^ (uint64_t)i << 32};

        if (action->kind == ACT_RELEASE && chance_of(&chance, 50))
            action->off = true;
        for (uint32_t k = 0; k < action->n_in && action->kind == ACT_OP; k++)
            action->in[k].take &= chance_of(&chance, 50);
    }
    script_settle(longer, scripts->longer_left);
}

static void settle(struct scripts *scripts)
{
    script_settle(&scripts->own, scripts->own_left);
    lengthen_lives(scripts);
}

/* ---- shrinking ---- */

static bool still_differs(struct tester *tester, const struct session *session, uint32_t attempts)
{
    struct difference difference;

    for (uint32_t k = 0; k < attempts; k++)
        if (try_session(tester, session, &difference) && difference.play)
            return true;
    return false;
}

/* Turns off as many actions as it can, in smaller and smaller runs. */
static void shrink(struct tester *tester, const struct session *session, struct scripts *scripts)
{
    struct script *script = &scripts->own;
    struct script *before = malloc(sizeof(*before));
    time_t end = time(NULL) + SHRINK_SECONDS;

    for (uint32_t run = script->n_actions / 2; before && run >= 1; run /= 2)
        for (uint32_t at = 0; at < script->n_actions && time(NULL) < end; at += run) {
            uint32_t dropped = 0;

            *before = *script;
            for (uint32_t i = at; i < at + run && i < script->n_actions; i++) {
                dropped += !script->actions[i].off;
                script->actions[i].off = true;
            }
            if (dropped == 0)
                continue;
            settle(scripts);
            if (still_differs(tester, session, script->n_threads ? 5 : 1))
                continue;
            *script = *before;
            settle(scripts);
        }
    free(before);
}

/* ---- seeds ---- */

static void report(struct tester *tester, const struct session *session, struct scripts *scripts)
{
    struct difference difference, last;

    try_session(tester, session, &difference);
    shrink(tester, session, scripts);
    for (uint32_t k = 0; k < 20; k++) {
        try_session(tester, session, &last);
        if (last.play) {
            difference = last;
            break;
        }
    }
    printf("equiv: seed %llu differs in the play '%s': %s\n", (unsigned long long)scripts->own.seed,
           difference.play ? difference.play : "(it did not differ again)", difference.text);
    script_print(difference.script ? difference.script : &scripts->own, difference.variant);
}

static void count_script(struct tester *tester, const struct script *script)
{
    tester->streams++;
    tester->ops += script->n_ops;
    tester->views += script->n_views;
    tester->made += script->n_made;
    tester->early += script->n_early;
    tester->threaded += script->n_threads >= 3;
}

/* 0: the same, 1: they differ, 2: nothing could be run. */
static int test_seed(struct tester *tester, struct scripts *scripts, uint64_t seed)
{
    uint32_t other = 1 + (uint32_t)(seed % (SCRIPT_VARIANTS - 1));
    struct session sessions[2] = {
        {.plays = {{&scripts->own, scripts->own_left, 0, "empty store"},
                   {&scripts->own, scripts->own_left, 0, "filled store"},
                   {&scripts->own, scripts->own_left, other, "other sizes"},
                   {&scripts->longer, scripts->longer_left, 0, "fewer deaths"}},
         .n_plays = 4},
        {.plays = {{&scripts->foreign, scripts->foreign_left, 0, "another script"},
                   {&scripts->own, scripts->own_left, 0, "foreign store"}},
         .n_plays = 2}};

    script_generate(&scripts->own, seed);
    settle(scripts);
    script_generate(&scripts->foreign, ~seed);
    script_settle(&scripts->foreign, scripts->foreign_left);
    count_script(tester, &scripts->own);
    for (uint32_t k = 0; k < 2; k++) {
        struct difference difference;

        if (!try_session(tester, &sessions[k], &difference))
            return 2;
        if (difference.play) {
            printf("equiv: seed %llu, play '%s': %s\n", (unsigned long long)seed, difference.play,
                   difference.text);
            if (tester->shrinks)
                report(tester, &sessions[k], scripts);
            return 1;
        }
    }
    return 0;
}

/* ---- the program ---- */

struct options {
    uint64_t seed, count;
    const char *device, *plugin;
    bool print, no_shrink;
    frit_setting settings[MAX_SETTINGS];
    uint32_t n_settings;
};

static void set(struct options *options, const char *section, const char *key, const char *value)
{
    if (options->n_settings < MAX_SETTINGS)
        options->settings[options->n_settings++] = (frit_setting){section, key, value};
}

/* "fusion.max_blocks=2"; the text is cut in place. */
static bool set_text(struct options *options, char *text)
{
    char *value = strchr(text, '='), *key;

    if (!value)
        return false;
    *value = '\0';
    key = strrchr(text, '.');
    if (!key)
        return false;
    *key = '\0';
    set(options, text, key + 1, value + 1);
    return true;
}

static bool parse(struct options *options, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i];

        if (strcmp(name, "--print") == 0) {
            options->print = true;
            continue;
        }
        if (strcmp(name, "--no-shrink") == 0) {
            options->no_shrink = true;
            continue;
        }
        if (++i == argc)
            return false;
        if (strcmp(name, "--seed") == 0)
            options->seed = strtoull(argv[i], NULL, 10);
        else if (strcmp(name, "--count") == 0)
            options->count = strtoull(argv[i], NULL, 10);
        else if (strcmp(name, "--device") == 0)
            options->device = argv[i];
        else if (strcmp(name, "--plugin") == 0)
            options->plugin = argv[i];
        else if (strcmp(name, "--set") != 0 || !set_text(options, argv[i]))
            return false;
    }
    return true;
}

static frit_host *open_host(struct options *options, const char *fusion, const char *poison)
{
    frit_host *host;

    set(options, "fusion", "enabled", fusion);
    set(options, "frit", "poison", poison);
    if (frit_host_open(&(frit_host_params){.struct_size = sizeof(frit_host_params),
                                           .settings = options->settings,
                                           .n_settings = options->n_settings},
                       &host)) {
        fprintf(stderr, "equiv: %s\n", host ? frit_host_error(host) : "no memory");
        frit_host_close(host);
        host = NULL;
    }
    options->n_settings -= 2;
    return host;
}

/* What the scripts were like; false where they are not what they should be, or nothing was fused.
 */
static bool summary(const struct tester *tester, bool fuses)
{
    uint64_t views = tester->views * 100 / tester->ops, early = tester->early * 100 / tester->made;
    uint64_t threaded = tester->threaded * 100 / tester->streams;
    bool enough = tester->streams < 100 || (views >= 25 && early >= 30 && threaded >= 20);

    printf("%llu streams: %llu ops, %llu %% views, %llu %% of the values die before they are run, "
           "%llu %% with 3 or more threads; %llu launches op by op, %llu fused\n",
           (unsigned long long)tester->streams, (unsigned long long)tester->ops,
           (unsigned long long)views, (unsigned long long)early, (unsigned long long)threaded,
           (unsigned long long)tester->launches_plain, (unsigned long long)tester->launches_fused);
    if (!enough)
        printf("equiv: too few views, deaths or threads\n");
    if (fuses && tester->launches_fused >= tester->launches_plain)
        printf("equiv: nothing was fused\n");
    return enough && (!fuses || tester->launches_fused < tester->launches_plain);
}

static int run(struct options *options)
{
    struct tester tester = {.device = options->device, .shrinks = !options->no_shrink};
    struct scripts *scripts = malloc(sizeof(*scripts));
    int result = 2;

    tester.plain = open_host(options, "no", "yes");
    tester.poisoned = open_host(options, "yes", "yes");
    tester.bare = open_host(options, "yes", "no");
    if (!scripts || !tester.plain || !tester.poisoned || !tester.bare)
        goto out;
    result = 0;
    for (uint64_t k = 0; k < options->count && result == 0; k++) {
        script_generate(&scripts->own, options->seed + k);
        if (options->print)
            script_print(&scripts->own, 0);
        tester.fused = (options->seed + k) % 2 ? tester.poisoned : tester.bare;
        result = test_seed(&tester, scripts, options->seed + k);
    }
    if (result == 0 && options->count > 0 && !summary(&tester, options->plugin != NULL))
        result = 1;
out:
    frit_host_close(tester.plain);
    frit_host_close(tester.poisoned);
    frit_host_close(tester.bare);
    free(scripts);
    return result;
}

int main(int argc, char **argv)
{
    struct options options = {.seed = 1, .count = 200, .device = "reference:0"};

    set(&options, "frit", "log", "off");
    set(&options, "fusion", "store", "none");
    set(&options, "plugin.reference", "option.memory_bytes", "268435456");
    set(&options, "plugin.cpu", "option.memory_bytes", "268435456");
    if (!parse(&options, argc, argv)) {
        fprintf(stderr, "usage: equiv [--seed S] [--count N] [--device D] [--plugin FILE] "
                        "[--set SECTION.KEY=VALUE]... [--print] [--no-shrink]\n");
        return 2;
    }
    if (options.plugin)
        set(&options, "plugin.org.frit.blocks", "library", options.plugin);
    return run(&options);
}
