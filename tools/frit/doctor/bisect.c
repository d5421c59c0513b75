/* SPDX-License-Identifier: Apache-2.0 */
/* First the setting under which the program is right, since that names the kind of the fault; then
 * the shortest sequence of ops that is wrong, each end by halving.  Every run is a process. */
#include "doctor/bisect.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <frit/inspect.h>

#include "doctor/judge.h"
#include "doctor/save.h"
#include "invocation.h"
#include "json.h"
#include "session.h"
#include "term.h"

enum { FUSERS = 64, EXCLUDE = FUSERS * 113, MAX_REPEAT = 1000, MAX_GUESSES = 32 };

/* ---- settings ---- */

/* A setting under which one part of the machinery has no say. */
struct variant {
    frit_setting setting;
    const char *cause;  /* what is at fault if the results are right then */
    const char *advice; /* beside the setting itself */
};

/* The most particular first: a candidate is at fault before the fuser that made it. */
static const struct variant variants[] = {
    {{"fusion", "store", "none"}, "a plan that was kept", "remove the file of plans"},
    {{"frit", "artefacts", "none"},
     "compiled code that was kept",
     "remove the folder of artefacts"},
    {{"tune", "store", "none"},
     "a decision of the tuner that was kept",
     "`frit tune show` lists them, `frit tune forget` drops them"},
    {{"fusion", "max_candidates", "1"}, "a candidate of a program, not its first", ""},
    {{"fusion", "numeric", "exact"}, "the numeric class that the configuration allows", ""},
    {{"stream", "capture", "no"}, "the driver's recordings of submits (frit.capture/1)", ""},
    {{"stream", "queues", "1"}, "several queues of the driver", ""},
};
enum { N_VARIANTS = sizeof(variants) / sizeof(variants[0]), N_KEPT = 3 /* the first ones */ };

static const frit_setting single_ops = {"fusion", "enabled", "no"};

enum cause { CAUSE_NONE, CAUSE_SETTING, CAUSE_FUSER, CAUSE_FUSION, CAUSE_DRIVER };

struct bisect {
    const struct invocation *in;
    struct judge judge;
    frit_setting base[1 + N_KEPT]; /* of all runs but the bare ones */
    size_t n_base;
    struct verdict whole;     /* of the program as it is configured */
    char fusers[FUSERS][112]; /* that made its programs */
    size_t n_fusers;
    enum cause cause;
    frit_setting setting; /* under which it is right, unless the driver is the cause */
    const char *words;    /* of a CAUSE_SETTING */
    const char *advice;
    char exclude[EXCLUDE]; /* the fusers at fault */
    bool has_region;
    struct region region;         /* the shortest that is wrong */
    struct verdict wrong;         /* its run */
    const char *saved;            /* the folder that it was written to; NULL: none */
    struct trial_block block;     /* that made it, if only one has several ops */
    bool has_block, is_elsewhere; /* a block is known; an op ran on the fallback device */
};

/* `setting`: beside those of all runs; NULL: none. */
static bool run_with(struct bisect *b, const struct region *region, const frit_setting *setting,
                     struct verdict *out, struct trial *trial)
{
    frit_setting settings[2 + N_KEPT];

    memcpy(settings, b->base, sizeof(b->base));
    if (setting)
        settings[b->n_base] = *setting;
    judge_run(&b->judge, region, settings, b->n_base + (setting != NULL), out, trial);
    return out->agrees;
}

static bool is_right(struct bisect *b, const struct region *region, const frit_setting *setting)
{
    struct verdict verdict;

    return run_with(b, region, setting, &verdict, NULL);
}

/* With all of the machinery switched off, and op by op. */
static bool run_bare(struct bisect *b, const struct region *region, struct verdict *out,
                     struct trial *trial)
{
    frit_setting settings[N_VARIANTS + 2] = {b->base[0], single_ops};

    for (size_t i = 0; i < N_VARIANTS; i++)
        settings[i + 2] = variants[i].setting;
    judge_run(&b->judge, region, settings, N_VARIANTS + 2, out, trial);
    return out->agrees;
}

static struct region whole_of(const struct bisect *b)
{
    return (struct region){0, b->judge.program.n_ops - 1};
}

/* ---- the cause ---- */

static void note_fusers(struct bisect *b, const struct trial *trial)
{
    for (size_t i = 0; i < trial->n_blocks; i++) {
        const char *fuser = trial->blocks[i].fuser;
        size_t k = 0;

        while (k < b->n_fusers && strcmp(b->fusers[k], fuser) != 0)
            k++;
        if (*fuser && k == b->n_fusers && k < FUSERS)
            snprintf(b->fusers[b->n_fusers++], sizeof(b->fusers[0]), "%s", fuser);
    }
}

/* Where the process died its blocks are unknown: those of ops beside each other stand for them. */
static void guess_fusers(struct bisect *b)
{
    const size_t last = b->judge.program.n_ops - 1;
    struct verdict verdict;
    struct trial trial;

    for (size_t i = 0; i <= last && i < MAX_GUESSES && b->n_fusers == 0; i++) {
        const struct region region = {i, i < last ? i + 1 : last};

        run_with(b, &region, NULL, &verdict, &trial);
        note_fusers(b, &trial);
        trial_fini(&trial);
    }
}

static bool blame_setting(struct bisect *b, const struct variant *variant)
{
    b->cause = CAUSE_SETTING;
    b->setting = variant->setting;
    b->words = variant->cause;
    b->advice = variant->advice;
    return true;
}

/* If nothing that is kept is at fault, nothing is used or kept from then on: a plugin that ends its
 * process again and again would be refused for it. */
static bool try_kept(struct bisect *b)
{
    const struct region all = whole_of(b);

    for (size_t i = 0; i < N_KEPT; i++)
        b->base[b->n_base++] = variants[i].setting;
    if (!is_right(b, &all, NULL))
        return false;
    b->n_base = 1;
    for (size_t i = 0; i + 1 < N_KEPT; i++)
        if (is_right(b, &all, &variants[i].setting))
            return blame_setting(b, &variants[i]);
    return blame_setting(b, &variants[N_KEPT - 1]);
}

static bool try_settings(struct bisect *b)
{
    const struct region all = whole_of(b);

    for (size_t i = N_KEPT; i < N_VARIANTS; i++)
        if (is_right(b, &all, &variants[i].setting))
            return blame_setting(b, &variants[i]);
    return false;
}

/* Lists those that are marked. */
static void list_fusers(struct bisect *b, const bool *out)
{
    size_t used = 0;

    b->exclude[0] = '\0';
    for (size_t i = 0; i < b->n_fusers; i++)
        if (out[i])
            used += (size_t)snprintf(b->exclude + used, sizeof(b->exclude) - used, "%s%s",
                                     used ? "," : "", b->fusers[i]);
}

static bool is_right_without(struct bisect *b, const bool *out)
{
    const frit_setting setting = {"fusion", "exclude", b->exclude};
    const struct region all = whole_of(b);

    list_fusers(b, out);
    return is_right(b, &all, &setting);
}

/* One of them, or as few as possible: each in turn is let in again. */
static bool try_fusers(struct bisect *b)
{
    bool out[FUSERS] = {0};
    bool found = false;

    for (size_t i = 0; i < b->n_fusers && !found; i++) {
        out[i] = true;
        found = is_right_without(b, out);
        out[i] = found;
    }
    for (size_t i = 0; i < b->n_fusers && !found; i++)
        out[i] = true;
    if (!found && (b->n_fusers < 2 || !is_right_without(b, out)))
        return false;
    for (size_t i = 0; i < b->n_fusers && !found; i++) {
        out[i] = false;
        out[i] = !is_right_without(b, out);
    }
    list_fusers(b, out);
    b->cause = CAUSE_FUSER;
    b->setting = (frit_setting){"fusion", "exclude", b->exclude};
    b->words = b->exclude;
    b->advice = "report it to the plugin's author";
    return true;
}

/* What stays wrong with everything off is the driver's; else one setting is enough, or only all of
 * them together. */
static void find_cause(struct bisect *b)
{
    const struct region all = whole_of(b);
    struct verdict verdict;

    b->advice = "report it to the plugin's author";
    if (!run_bare(b, &all, &verdict, NULL)) {
        b->cause = CAUSE_DRIVER;
        return;
    }
    if (try_kept(b) || try_settings(b))
        return;
    if (b->n_fusers == 0)
        guess_fusers(b);
    if (try_fusers(b))
        return;
    b->cause = CAUSE_FUSION;
    b->setting = single_ops;
    b->words = is_right(b, &all, &single_ops)
                   ? "running ops together, with whatever fusers"
                   : "several of fusion, candidates, recordings and queues";
}

/* ---- the place ---- */

/* As configured; or op by op if it is wrong there too. */
static bool is_right_there(struct bisect *b, const struct region *region, struct verdict *out,
                           struct trial *trial)
{
    return b->cause == CAUSE_DRIVER ? run_bare(b, region, out, trial)
                                    : run_with(b, region, NULL, out, trial);
}

/* The least `last` for which the ops up to it are wrong. */
static size_t find_last(struct bisect *b)
{
    size_t right = 0, wrong = b->judge.program.n_ops; /* numbers of ops from the start on */
    struct verdict verdict;

    while (right + 1 < wrong) {
        const size_t middle = right + (wrong - right) / 2;

        if (is_right_there(b, &(struct region){0, middle - 1}, &verdict, NULL))
            right = middle;
        else
            wrong = middle;
    }
    return wrong - 1;
}

static bool has_random(const struct bisect *b, size_t last)
{
    for (size_t i = 0; i <= last; i++)
        if (b->judge.program.ops[i].is_random)
            return true;
    return false;
}

/* The greatest `first`: the ops before it are made by the reference.  Random numbers depend on the
 * ops before them, so that those must stay. */
static size_t find_first(struct bisect *b, size_t last)
{
    size_t wrong = 0, right = last + 1;
    struct verdict verdict;

    while (wrong + 1 < right && !has_random(b, last)) {
        const size_t middle = wrong + (right - wrong) / 2;

        if (is_right_there(b, &(struct region){middle, last}, &verdict, NULL))
            right = middle;
        else
            wrong = middle;
    }
    return wrong;
}

static void note_blocks(struct bisect *b, const struct trial *trial)
{
    size_t n = 0;

    for (size_t i = 0; i < trial->n_blocks; i++) {
        b->is_elsewhere |= (trial->blocks[i].flags & FRIT_STEP_ELSEWHERE) != 0;
        if (!*trial->blocks[i].fuser)
            continue;
        b->block = trial->blocks[i];
        n++;
    }
    b->has_block = n == 1;
}

/* What is kept is kept for whole programs. */
static void find_place(struct bisect *b)
{
    struct trial trial;

    b->region.last = find_last(b);
    b->region.first = find_first(b, b->region.last);
    b->has_region = !is_right_there(b, &b->region, &b->wrong, &trial);
    note_blocks(b, &trial);
    trial_fini(&trial);
}

/* --output */
static int save(struct bisect *b)
{
    const char *folder = invocation_value(b->in, "--output");

    if (!folder || !b->has_region)
        return CLI_FINE;
    b->saved = folder;
    return save_region(b->in, &b->judge, &b->region, folder);
}

static int run_all(struct bisect *b)
{
    const struct region all = {0, b->judge.program.n_ops - 1};
    struct trial trial;

    run_with(b, &all, NULL, &b->whole, &trial);
    if (!*b->judge.device_name) {
        trial_fini(&trial);
        return fail_command(b->in, "%s", b->whole.words);
    }
    note_fusers(b, &trial);
    trial_fini(&trial);
    if (b->whole.agrees)
        return CLI_FINE;
    find_cause(b);
    if (b->cause == CAUSE_DRIVER || b->n_base > 1)
        find_place(b);
    return save(b);
}

/* ---- text ---- */

static void show_cause(const struct bisect *b)
{
    printf("  cause            ");
    if (b->cause == CAUSE_FUSER)
        printf("fuser %s\n", b->words);
    else if (b->cause == CAUSE_DRIVER)
        printf("%s %s: it is wrong op by op too\n",
               b->is_elsewhere ? "the fallback device of" : "the driver of", b->judge.device_name);
    else
        printf("%s\n", b->words);
    if (b->cause == CAUSE_DRIVER)
        printf("  until then       use another device: `frit devices` lists them\n");
    else
        printf("  right with       [%s] %s = %s\n", b->setting.section, b->setting.key,
               b->setting.value);
    if (*b->advice)
        printf("  what to do       %s\n", b->advice);
}

static void show_place(const struct bisect *b)
{
    if (!b->has_region) {
        puts("  first wrong      unknown: the program as a whole only");
        return;
    }
    printf("  first wrong      ");
    if (b->has_block)
        printf("block \"%s\" [%s]:\n", b->block.label, b->block.fuser);
    else if (b->region.first == b->region.last)
        puts("op");
    else
        printf("%zu ops, with right operands:\n", b->region.last - b->region.first + 1);
    for (size_t i = b->region.first; i <= b->region.last; i++)
        printf("      %s\n", b->judge.program.ops[i].text);
    printf("    %s\n", b->wrong.words);
}

static void show(const struct bisect *b)
{
    printf("%s: %s against %s: ", b->in->args[1], b->judge.device_name, b->judge.against_name);
    if (b->whole.agrees) {
        term_paint(stdout, PAINT_GOOD, 0, "no difference");
        printf(" (%" PRIu32 " runs)\n", b->judge.repeat);
        return;
    }
    term_paint(stdout, PAINT_BAD, 0, "wrong");
    printf("\n    %s\n", b->whole.words);
    show_cause(b);
    show_place(b);
    if (b->saved)
        printf("  saved            %s: `frit doctor bisect %s`\n", b->saved, b->saved);
    printf("  found in %" PRIu32 " trials\n", b->judge.n_trials);
}

/* ---- JSON ---- */

static void json_place(struct json *json, const struct bisect *b)
{
    json_list(json, "ops");
    for (size_t i = b->region.first; b->has_region && i <= b->region.last; i++)
        json_text(json, NULL, b->judge.program.ops[i].text);
    json_close(json);
    json_text(json, "ops_difference", b->has_region ? b->wrong.words : NULL);
    json_text(json, "block", b->has_block ? b->block.label : NULL);
    json_text(json, "block_fuser", b->has_block ? b->block.fuser : NULL);
}

static void print_json(const struct bisect *b)
{
    static const char *const causes[] = {[CAUSE_NONE] = NULL,
                                         [CAUSE_SETTING] = "setting",
                                         [CAUSE_FUSER] = "fuser",
                                         [CAUSE_FUSION] = "fusion",
                                         [CAUSE_DRIVER] = "driver"};
    char setting[EXCLUDE + 64] = "";
    struct json json;

    if (b->setting.section)
        snprintf(setting, sizeof(setting), "%s.%s=%s", b->setting.section, b->setting.key,
                 b->setting.value);
    json_begin(&json, stdout);
    json_text(&json, "file", b->in->args[1]);
    json_text(&json, "device", b->judge.device_name);
    json_text(&json, "against", b->judge.against_name);
    json_bool(&json, "agrees", b->whole.agrees);
    json_text(&json, "difference", b->whole.agrees ? NULL : b->whole.words);
    json_text(&json, "cause", causes[b->cause]);
    json_text(&json, "fusers", b->cause == CAUSE_FUSER ? b->exclude : NULL);
    json_text(&json, "right_with", b->setting.section ? setting : NULL);
    json_place(&json, b);
    json_text(&json, "saved", b->saved);
    json_uint(&json, "trials", b->judge.n_trials);
    json_end(&json);
}

/* ---- the command ---- */

/* A number of `least` at least. */
static int take_number(const struct invocation *in, const char *option, double least, double most,
                       double *out)
{
    const char *text = invocation_value(in, option);
    char *end;

    if (!text)
        return CLI_FINE;
    *out = strtod(text, &end);
    if (*end || end == text || !(*out >= least) || *out > most)
        return fail_usage(in, "%s %s: must be a number from %g to %g", option, text, least, most);
    return CLI_FINE;
}

int bisect_command(const struct invocation *in)
{
    const char *against = invocation_value(in, "--against");
    double tolerance = -1, repeat = 8, seconds = 60;
    struct bisect *b;
    int status;

    if (take_number(in, "--tolerance", 0, 1e300, &tolerance) ||
        take_number(in, "--repeat", 1, MAX_REPEAT, &repeat) ||
        take_number(in, "--timeout", 1, 86400, &seconds))
        return CLI_MISUSED;
    b = calloc(1, sizeof(*b));
    if (!b)
        return fail_command(in, "no memory");
    b->in = in;
    /* Programs run as they will once they are compiled. */
    b->base[b->n_base++] = (frit_setting){"fusion", "compile", "wait"};
    b->judge = (struct judge){.device = invocation_value(in, "--device"),
                              .against = against ? against : "reference",
                              .tolerance = tolerance,
                              .repeat = (uint32_t)repeat,
                              .seconds = seconds};
    status = judge_open(&b->judge, in);
    if (status == CLI_FINE)
        status = run_all(b);
    if (status == CLI_FINE && invocation_has(in, "--json"))
        print_json(b);
    else if (status == CLI_FINE)
        show(b);
    if (status == CLI_FINE && !b->whole.agrees)
        status = CLI_FAILED;
    judge_fini(&b->judge);
    free(b);
    return status;
}
