/* SPDX-License-Identifier: Apache-2.0 */
/* `frit conform`: a driver against `reference`, row by row. */
#include "conform/conform.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "conform/cases.h"
#include "conform/custom.h"
#include "conform/find.h"
#include "conform/program.h"
#include "conform/report.h"
#include "conform/shard.h"
#include "invocation.h"
#include "term.h"

/* What the run gathers. */
struct gathering {
    struct conform_report report;
    struct progress progress;
    size_t capacity, done;
    size_t lost; /* the case in which the device was lost, else SIZE_MAX */
    bool fail_fast, no_memory;
};

static void note(struct gathering *g, size_t index, enum conform_verdict verdict,
                 const char *reason)
{
    struct conform_report *report = &g->report;
    char *text = strdup(reason);

    if (text && report->n_notes == g->capacity) {
        size_t capacity = g->capacity ? 2 * g->capacity : 64;
        struct conform_note *notes = realloc(report->notes, capacity * sizeof(*notes));

        report->notes = notes ? notes : report->notes;
        g->capacity = notes ? capacity : g->capacity;
    }
    if (text && report->n_notes < g->capacity) {
        report->notes[report->n_notes++] = (struct conform_note){index, verdict, text};
        return;
    }
    free(text);
    g->no_memory = true;
}

/* Collects a verdict; prints a failure at once. */
static bool take(void *ctx, size_t index, enum conform_verdict verdict, const char *reason)
{
    struct gathering *g = ctx;
    bool fails = verdict == VERDICT_FAILED;
    char name[CONFORM_NAME];

    g->report.verdicts[index] = verdict;
    if (!conform_passes(verdict))
        note(g, index, verdict, reason);
    if (fails) {
        g->progress.failed++;
        progress_hide(&g->progress);
        fputs("failed ", stderr);
        term_paint(stderr, PAINT_BAD, 0, conform_case_name(&g->report.cases->at[index], name));
        fprintf(stderr, ": %s\n", reason);
    }
    progress_step(&g->progress, ++g->done);
    return !fails || !g->fail_fast;
}

static int by_index(const void *a, const void *b)
{
    const struct conform_note *x = a, *y = b;

    return (x->index > y->index) - (x->index < y->index);
}

/* ---- the command line ---- */

/* "plugin.ID.option.NAME=VALUE" or "SECTION.KEY=VALUE"; four settings are kept for the device and
 * the defaults. */
static int add_setting(const struct invocation *in, struct conform_options *options, char *text)
{
    char *equals = strchr(text, '='), *option = strstr(text, ".option."), *dot = NULL;

    for (char *at = text; equals && at < equals; at++)
        dot = *at == '.' ? at : dot;
    dot = option && option < equals ? option : dot;
    if (!dot || options->n_settings >= CONFORM_SETTINGS - 4)
        return fail_usage(in, "--set wants SECTION.KEY=VALUE, not '%s'", text);
    *equals = *dot = '\0';
    options->settings[options->n_settings++] = (frit_setting){text, dot + 1, equals + 1};
    return CLI_FINE;
}

/* Whatever the configuration has, but not against --set. */
static void set_unless_given(struct conform_options *options, const frit_setting *setting)
{
    for (size_t i = 0; i < options->n_settings; i++)
        if (strcmp(options->settings[i].section, setting->section) == 0 &&
            strcmp(options->settings[i].key, setting->key) == 0)
            return;
    options->settings[options->n_settings++] = *setting;
}

/* Bounds of errors are those of a class; what is tested is not tried before, since every process
 * here is one that may crash. */
static void set_defaults(struct conform_options *options)
{
    static const frit_setting defaults[] = {{"fusion", "numeric", "reordered"},
                                            {"search", "probe", "never"}};

    for (size_t i = 0; i < sizeof(defaults) / sizeof(defaults[0]); i++)
        set_unless_given(options, &defaults[i]);
}

/* As many children as there are processors, but no crowd on a device. */
static size_t usual_jobs(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);

    return n < 1 ? 1 : n > 4 ? 4 : (size_t)n;
}

static int take_jobs(const struct invocation *in, struct conform_options *options)
{
    const char *text = invocation_value(in, "--jobs");
    char *end = NULL;
    long jobs = text ? strtol(text, &end, 10) : 1;

    if (text && (end == text || *end || jobs < 1 || jobs > CONFORM_JOBS))
        return fail_usage(in, "--jobs wants a number from 1 to %d, not '%s'", CONFORM_JOBS, text);
    options->jobs = text ? (size_t)jobs : usual_jobs();
    return CLI_FINE;
}

static int take_shard(const struct invocation *in, struct conform_shard *shard)
{
    const char *text = invocation_value(in, "--shard");

    *shard = (struct conform_shard){1, 1};
    if (text && !conform_shard_parse(text, shard))
        return fail_usage(in, "--shard wants K/N, from 1/N to N/N with N at most %d, not '%s'",
                          CONFORM_SHARDS, text);
    return CLI_FINE;
}

static int take_fault(const struct invocation *in, frit_setting *fault)
{
    char *text = (char *)invocation_value(in, "--fault"), *equals = text ? strchr(text, '=') : NULL;

    if (text && (!equals || equals == text))
        return fail_usage(in, "--fault wants OPTION=VALUE, not '%s'", text);
    if (text)
        *equals = '\0';
    *fault = (frit_setting){NULL, text, text ? equals + 1 : NULL};
    return CLI_FINE;
}

/* Nothing but the driver computes, compiled now and as it will be, in memory that holds NaN; what
 * is tested is not tried before, since every process here is one that may crash. */
static int take_options(const struct invocation *in, struct conform_options *options)
{
    static const frit_setting fixed[] = {
        {"frit", "fallback", "none"},  {"frit", "poison", "yes"},   {"frit", "artefacts", "none"},
        {"fusion", "compile", "wait"}, {"fusion", "store", "none"}, {"tune", "store", "none"}};
    const char *timeout = invocation_value(in, "--timeout");
    char *end = NULL;

    *options = (struct conform_options){.timeout = 60,
                                        .lose = invocation_value(in, "--lose"),
                                        .isolate = invocation_has(in, "--isolate"),
                                        .quick = invocation_has(in, "--quick")};
    for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
        options->settings[options->n_settings++] = fixed[i];
    if (timeout)
        options->timeout = strtod(timeout, &end);
    if (timeout && (end == timeout || *end || !(options->timeout > 0) || options->timeout > 86400))
        return fail_usage(in, "--timeout wants seconds, not '%s'", timeout);
    for (int i = 0; i < in->n_given; i++) {
        if (strcmp(in->given[i].option->name, "--set") == 0 &&
            add_setting(in, options, (char *)in->given[i].value))
            return CLI_MISUSED;
    }
    set_defaults(options);
    if (take_fault(in, &options->fault))
        return CLI_MISUSED;
    return take_shard(in, &options->shard) ? CLI_MISUSED : take_jobs(in, options);
}

/* A row's name, or a pattern for names of cases. */
static bool fits(const char *filter, const struct conform_case *one)
{
    char name[CONFORM_NAME];

    return strcmp(one->row.name, filter) == 0 || filter_fits(filter, conform_case_name(one, name));
}

/* Keeps the cases that one of the filters names; each has to name some. */
static int keep(const struct invocation *in, struct conform_cases *cases)
{
    bool *kept = calloc(cases->count + 1, sizeof(*kept));
    const char *filter;
    size_t n = 0;
    int at = 0;

    if (!kept)
        return fail_command(in, "no memory");
    while ((filter = invocation_next(in, "--filter", &at))) {
        bool named = false;

        for (size_t i = 0; i < cases->count; i++) {
            bool fit = fits(filter, &cases->at[i]);

            kept[i] = kept[i] || fit;
            named = named || fit;
        }
        if (!named)
            break;
    }
    for (size_t i = 0; i < cases->count; i++)
        if (kept[i])
            cases->at[n++] = cases->at[i];
    cases->count = n;
    free(kept);
    return filter ? fail_usage(in, "no case is named '%s'; names are ROW/TYPE/SHAPE/LAYOUT", filter)
                  : CLI_FINE;
}

/* `*customs` keeps what cases point to. */
static int make_cases(const struct invocation *in, const struct conform_options *options,
                      struct conform_cases *cases, struct conform_custom **customs)
{
    char reason[CONFORM_REASON];
    struct conform_row row;
    bool good = conform_checks_add(cases);
    int status;

    for (size_t i = 0; good && conform_row_at(i, &row); i++)
        good = conform_cases_add(cases, &row, options->quick);
    if (!good)
        return fail_command(in, "no memory");
    if (!conform_customs_add(options, cases, customs, reason))
        return fail_command(in, "%s", reason);
    status = invocation_has(in, "--filter") ? keep(in, cases) : CLI_FINE;
    return conform_shard_keep(cases, &options->shard) ? status : fail_command(in, "no memory");
}

static void list(const struct conform_cases *cases)
{
    static struct conform_program program;
    char name[CONFORM_NAME];

    for (size_t i = 0; i < cases->count; i++) {
        const struct conform_case *one = &cases->at[i];

        conform_case_name(one, name);
        if (one->check)
            printf("# %s: %s\n\n", name, one->check->meaning);
        else if (conform_program_of(one, false, &program))
            printf("# %s\n%s\n", name, program.text);
    }
}

static int fail_lost(const struct invocation *in, const struct conform_report *report, size_t lost)
{
    char name[CONFORM_NAME];

    fail_command(in, "%s was lost in %s; %zu of %zu cases were not run", report->device,
                 conform_case_name(&report->cases->at[lost], name),
                 report->cases->count - report->n_run, report->cases->count);
    return CLI_LOST;
}

static int report_all(const struct invocation *in, const struct gathering *g)
{
    const struct conform_report *report = &g->report;
    const char *junit = invocation_value(in, "--junit");

    conform_report_warn(report, stderr);
    if (invocation_has(in, "--json"))
        conform_report_json(report, stdout);
    else
        conform_report_text(report, stdout);
    if (junit && !conform_report_junit(report, junit))
        return fail_command(in, "%s cannot be written", junit);
    if (g->lost != SIZE_MAX)
        return fail_lost(in, report, g->lost);
    if (report->n_run < report->cases->count)
        return fail_command(in, "stopped at the first failure; %zu of %zu cases were not run",
                            report->cases->count - report->n_run, report->cases->count);
    for (size_t i = 0; i < report->n_notes; i++)
        if (report->notes[i].verdict == VERDICT_FAILED)
            return CLI_FAILED;
    return CLI_FINE;
}

static int run_cases(const struct invocation *in, struct conform_options *options,
                     const struct conform_cases *cases)
{
    struct gathering g = {
        .report = {.device = options->device, .shard = options->shard, .cases = cases},
        .fail_fast = invocation_has(in, "--fail-fast")};
    double start = term_clock();
    int status;

    g.report.verdicts = calloc(cases->count + 1, sizeof(*g.report.verdicts));
    if (!g.report.verdicts)
        return fail_command(in, "no memory");
    progress_begin(&g.progress, in->command->name, cases->count);
    status = conform_run(options, cases, take, &g, &g.lost) ? CLI_FINE : CLI_FAILED;
    progress_hide(&g.progress);
    g.report.n_run = g.done;
    g.report.lost = g.lost != SIZE_MAX;
    g.report.seconds = term_clock() - start;
    if (g.report.n_notes)
        qsort(g.report.notes, g.report.n_notes, sizeof(g.report.notes[0]), by_index);
    if (status == CLI_FINE)
        status = g.no_memory ? fail_command(in, "no memory") : report_all(in, &g);
    free(g.report.verdicts);
    while (g.report.n_notes)
        free(g.report.notes[--g.report.n_notes].reason);
    free(g.report.notes);
    return status;
}

/* Finds the device and sets what opens it. */
static int find_device(const struct invocation *in, struct conform_options *options,
                       struct conform_found *found)
{
    char reason[CONFORM_REASON];

    if (!conform_find(options, in->args[0], found, reason))
        return fail_command(in, "%s: %s", in->args[0], reason);
    if (*found->section)
        options->settings[options->n_settings++] =
            (frit_setting){found->section, "library", found->library};
    options->settings[options->n_settings++] = (frit_setting){"frit", "device", found->device};
    options->device = found->device;
    return CLI_FINE;
}

static int run(const struct invocation *in)
{
    struct conform_custom *customs = NULL;
    struct conform_cases cases = {0};
    struct conform_options options;
    struct conform_found found;
    int status = take_options(in, &options);

    if (status == CLI_FINE)
        status = find_device(in, &options, &found);
    if (status == CLI_FINE)
        status = make_cases(in, &options, &cases, &customs);
    if (status == CLI_FINE && invocation_has(in, "--list"))
        list(&cases);
    else if (status == CLI_FINE)
        status = run_cases(in, &options, &cases);
    free(cases.at);
    conform_customs_free(customs);
    return status;
}

const struct command conform_command = {
    .name = "conform",
    .summary = "what is wrong with a driver",
    .args = "DRIVER|DEVICE|FILE",
    .details =
        "Every row of the op table runs on the driver and on `reference`, with every element\n"
        "type, with empty, odd and large shapes, in every layout (large ones dense, permuted and\n"
        "dying), and with NaN, infinities and the ends of the types; no other device helps out.\n"
        "FILE is a plugin that is not installed.  A case that crashes or hangs fails under its\n"
        "name, and the rest goes on.\n"
        "Failures and progress go to standard error as the run proceeds.\n"
        "\n"
        "device/...     transfers, threads, memory that is not there, what many opens leave\n"
        "memory/...     where memory lies, what a transfer touches, refusals\n"
        "queue/...      order, the timeline, timestamps, submits that must be refused, recordings\n"
        "kernel/...     kernels of other plugins as functions, and what wait reports where they\n"
        "               fail\n"
        "program/...    prepare is pure, aliases are true, saved programs run or are refused\n"
        "fuser/...      the guarantees of fuser.h; results are those of single ops\n"
        "candidate/...  candidates are described in one way, priority is pure, results are within\n"
        "               the numeric class of the first candidate's and the same in each run\n"
        "fault/...      launches that fail, a device that is lost\n"
        "\n"
        "fault/... wants help: --fault names an option of the driver, for its tests, with which\n"
        "every launch fails; --lose a command that a shell runs while a device is open in the\n"
        "process FRIT_CONFORM_PID.  Where the device is lost in any other case the run ends, with\n"
        "exit code 3.\n"
        "\n"
        "Ops that plugins bring are rows too where they have a decomposition: what the driver\n"
        "computes is compared with what `reference` makes of that.  Their slots and attributes\n"
        "say what they take; operands are tried in some shapes, around 0, and what the op's shape\n"
        "rule refuses is skipped.  Others are skipped as NAME/values.  --list has them all.\n"
        "\n"
        "Rows run one by one.  Fusion is tested by fuser/... and program/...: each fuser of the\n"
        "plugin, and of configured plugins that have no device, gets blocks of f32 ops (chains,\n"
        "broadcasts, scalars, values that live on, softmax, a sum, a product with its epilogue)\n"
        "in three sizes, as far as it takes them.  Whole programs of other ops and types: `frit\n"
        "trace`, then `frit replay`.\n"
        "\n"
        "native       the driver runs it\n"
        "decomposed   it runs as several native ops\n"
        "host         a view: only the layout changes\n"
        "fallback     the driver does not take it; counted as skipped\n"
        "refused      the op of a plugin takes no such operands; counted as skipped\n"
        "failed       it does, and the result is wrong, or it crashes\n"
        "\n"
        "Floats are right when they are as near to the exact value as those of `reference`, plus\n"
        "some units in the last place that the row allows; everything else bit for bit.  They are\n"
        "computed with `[fusion] numeric = reordered`, unless --set has another.\n"
        "\n"
        "--shard K/N runs part K of N.  The parts take about equally long, and together they run\n"
        "each case once if all other options are the same: for a device that can be used only\n"
        "some minutes at a time.  A part has whole rows, since the device is opened for each; "
        "only\n"
        "rows with more cases than a part are cut.\n"
        "\n"
        "With --json: driver; shard, shards; cases, passed, failed, skipped, not_run; rows,\n"
        "rows_native, rows_decomposed, rows_host, rows_fallback, rows_refused, rows_failed;\n"
        "seconds; table {row, element types: one of these words, or partial}; failures {case,\n"
        "reason}; skips {case, reason}.",
    .options =
        (const struct option[]){
            {"--quick", NULL, "fewer shapes and layouts", 'q', false},
            {"--filter", "F", "a row, or a pattern: 'add/f32/*'", 'f', true},
            {"--shard", "K/N", "part K of N of the cases, from 1 to N", 0, false},
            {"--fail-fast", NULL, "stop at the first failure", 0, false},
            {"--isolate", NULL, "a process for each case", 0, false},
            {"--jobs", "N", "processes at once; as many as processors, up to 4", 'j', false},
            {"--timeout", "SECONDS", "that one case may take; 60", 0, false},
            {"--set", "S.K=V", "a value of the configuration", 0, true},
            {"--fault", "OPTION=VALUE", "of the driver, with which its launches fail", 0, false},
            {"--lose", "COMMAND", "a command by which the device is lost", 0, false},
            {"--list", NULL, "the cases, of rows as text programs; runs nothing", 0, false},
            {"--json", NULL, "for machines", 0, false},
            {"--junit", "FILE", "a report for continuous integration", 0, false},
            {0}},
    .examples =
        (const char *const[]){"conform cpu --quick", "conform ./libfrit-mine.so --filter matmul",
                              "conform vulkan:0 --filter '*/f16/*' --junit report.xml",
                              "conform cuda --shard 2/8", NULL},
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
