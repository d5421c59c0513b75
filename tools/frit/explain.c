/* SPDX-License-Identifier: Apache-2.0 */
/* `frit explain`: runs a text program in one scope under the inspector, and shows which ops ran
 * together and why. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <frit/inspect.h>
#include <frit/tune.h>

#include "base/str.h"
#include "invocation.h"
#include "json.h"
#include "page.h"
#include "program.h"
#include "session.h"
#include "term.h"

enum { MOST_TIMED = 5 };
#define ENOUGH_SECONDS 2.0

/* The inspection of a run. */
struct explained {
    const char *file;
    const char *device;
    uint64_t n_ops;
    uint64_t programs; /* steps that launch a program */
    uint64_t launches;
    uint64_t faults;
    frit_inspection *inspection;
    frit_inspection_desc about;
    frit_decisions *decisions; /* NULL: none */
    struct {
        uint64_t launches;
        double seconds;
    } timed[MOST_TIMED]; /* later runs, of a page */
    uint64_t n_timed;
};

static bool runs_program(const frit_step_desc *step)
{
    return !(step->flags & (FRIT_STEP_VIEW | FRIT_STEP_SKIPPED));
}

/* Calls `fn` for each step of a run. */
static void each_step(const struct explained *e, uint64_t run,
                      void (*fn)(const frit_step_desc *step, uint64_t number, void *ctx), void *ctx)
{
    frit_step_desc step = {.struct_size = sizeof(step)};

    for (uint64_t s = 0; !frit_inspection_step_at(e->inspection, run, s, &step); s++)
        fn(&step, s, ctx);
}

static void count_program(const frit_step_desc *step, uint64_t number, void *ctx)
{
    (void)number;
    *(uint64_t *)ctx += runs_program(step);
}

/* ---- running ---- */

static int inspect(const struct program *program, const struct invocation *in,
                   const struct session *session, struct explained *e)
{
    frit_err err = {.struct_size = sizeof(err)};
    frit_tensor **outputs = calloc(program->n_outputs + 1, sizeof(frit_tensor *));
    frit_stats before = {.struct_size = sizeof(before)}, after = before;
    int status = CLI_FINE;

    if (!outputs)
        status = fail_command(in, "no memory");
    else if (frit_inspect_start(session->device, &err))
        status = fail_command(in, "%s", err.text);
    frit_stats_get(session->device, &before);
    if (status == CLI_FINE)
        status = program_run(program, in, session, outputs);
    frit_stats_get(session->device, &after);
    if (status == CLI_FINE && frit_inspect_stop(session->device, &e->inspection, &err))
        status = fail_command(in, "%s", err.text);
    for (uint64_t i = 0; i < program->n_outputs && outputs; i++)
        frit_release(outputs[i]);
    free(outputs);
    if (status)
        return status;
    e->n_ops = after.ops - before.ops;
    e->launches = after.launches - before.launches;
    e->faults = after.faults - before.faults;
    e->about.struct_size = sizeof(e->about);
    frit_inspection_about(e->inspection, &e->about);
    for (uint64_t r = 0; r < e->about.n_runs; r++)
        each_step(e, r, count_program, &e->programs);
    return CLI_FINE;
}

/* ---- text ---- */

static void show_values(FILE *out, const char *title, const uint32_t *values,
                        const char *const *types, uint32_t n, uint64_t bytes)
{
    char text[16];

    if (n == 0)
        return;
    fprintf(out, "     %s", title);
    for (uint32_t i = 0; i < n; i++)
        fprintf(out, "%s %%%" PRIu32 " %s", i ? "," : "", values[i], types[i]);
    fprintf(out, " (%s)\n", term_bytes(bytes, text));
}

static void show_step(const frit_step_desc *step, uint64_t number, void *ctx)
{
    FILE *out = ctx;

    fprintf(out, "  %" PRIu64 ". %s", number + 1, step->label);
    if (*step->fuser)
        fprintf(out, "  [%s, score %" PRIu32 ", ended: %s]", step->fuser, step->score, step->end);
    if (step->flags & FRIT_STEP_IN_PLACE)
        fprintf(out, ", in place");
    if (step->flags & FRIT_STEP_SKIPPED)
        fprintf(out, ", skipped");
    if (*step->candidate)
        fprintf(out, ", candidate %s (%s)", step->candidate, step->chosen);
    if (step->flags & FRIT_STEP_BY_OPS)
        fprintf(out, ", ran op by op");
    if (step->flags & FRIT_STEP_DECOMPOSED)
        fprintf(out, ", ran as core ops");
    if (step->flags & FRIT_STEP_ELSEWHERE)
        fprintf(out, ", ran on another device");
    if (step->flags & FRIT_STEP_VIEW)
        fprintf(out, "  (view: nothing runs)");
    fprintf(out, "\n");
    if (*step->why)
        fprintf(out, "     because: %s\n", step->why);
    for (uint32_t i = 0; i < step->n_ops; i++)
        fprintf(out, "       %s\n", step->op_texts[i]);
    if (!runs_program(step))
        return;
    show_values(out, "reads ", step->in, step->in_types, step->n_in, step->bytes_in);
    show_values(out, "stores", step->out, step->out_types, step->n_out, step->bytes_out);
}

static void show(const struct explained *e, FILE *out)
{
    frit_run_desc run = {.struct_size = sizeof(run)};
    char read[16], stored[16];

    fprintf(out, "%s on %s: %" PRIu64 " ops, %" PRIu64 " programs, %" PRIu64 " launches\n", e->file,
            e->device, e->n_ops, e->programs, e->launches);
    for (uint64_t r = 0; !frit_inspection_run_at(e->inspection, r, &run); r++) {
        if (e->about.n_runs > 1)
            fprintf(out, "run %" PRIu64 " of %" PRIu64 "\n", r + 1, e->about.n_runs);
        each_step(e, r, show_step, out);
        fprintf(out, "  reads %s, stores %s\n", term_bytes(run.bytes_in, read),
                term_bytes(run.bytes_out, stored));
    }
}

/* ---- JSON ---- */

static void json_values(struct json *json, const char *key, const uint32_t *values,
                        const char *const *types, uint32_t n)
{
    json_list(json, key);
    for (uint32_t i = 0; i < n; i++) {
        json_object(json, NULL);
        json_uint(json, "value", values[i]);
        json_text(json, "type", types[i]);
        json_close(json);
    }
    json_close(json);
}

/* "map: add f32[2] -> f32[2]": what a decision says of a program and its sizes. */
static void add_what(const frit_step_desc *step, struct str *out)
{
    str_addf(out, "%s", step->label);
    for (uint32_t i = 0; i < step->n_in; i++)
        str_addf(out, " %s", step->in_types[i]);
    str_addf(out, " ->");
    for (uint32_t i = 0; i < step->n_out; i++)
        str_addf(out, " %s", step->out_types[i]);
}

static void json_tried(struct json *json, const frit_tried_desc *tried)
{
    json_object(json, NULL);
    json_text(json, "candidate", tried->identity);
    json_text(json, "class", tried->numeric_class);
    json_text(json, "state", tried->state);
    json_uint(json, "best_ns", tried->best_ns);
    json_uint(json, "median_ns", tried->median_ns);
    json_close(json);
}

/* The candidates that the tuner tried for this program and these sizes. */
static void json_decision(struct json *json, const frit_decisions *decisions,
                          const frit_step_desc *step)
{
    frit_decision_desc decision = {.struct_size = sizeof(decision)};
    frit_tried_desc tried = {.struct_size = sizeof(tried)};
    struct str what = {0};

    add_what(step, &what);
    json_list(json, "tried");
    for (uint64_t i = 0; decisions && !what.failed && !frit_decision_at(decisions, i, &decision);
         i++) {
        if (strcmp(decision.what, what.text) != 0)
            continue;
        for (uint64_t k = 0; !frit_decision_candidate_at(decisions, i, k, &tried); k++)
            json_tried(json, &tried);
    }
    json_close(json);
    str_fini(&what);
}

/* Where json_step writes, and what it looks into. */
struct json_target {
    struct json json;
    const frit_decisions *decisions;
};

static void json_step(const frit_step_desc *step, uint64_t number, void *ctx)
{
    struct json_target *target = ctx;
    struct json *json = &target->json;

    (void)number;
    json_object(json, NULL);
    json_text(json, "label", step->label);
    json_text(json, "fuser", *step->fuser ? step->fuser : NULL);
    json_uint(json, "score", step->score);
    json_text(json, "end", step->end);
    json_bool(json, "program", runs_program(step));
    json_bool(json, "in_place", step->flags & FRIT_STEP_IN_PLACE);
    json_bool(json, "skipped", step->flags & FRIT_STEP_SKIPPED);
    json_text(json, "candidate", *step->candidate ? step->candidate : NULL);
    json_text(json, "chosen", *step->chosen ? step->chosen : NULL);
    json_bool(json, "by_ops", step->flags & FRIT_STEP_BY_OPS);
    json_bool(json, "decomposed", step->flags & FRIT_STEP_DECOMPOSED);
    json_bool(json, "elsewhere", step->flags & FRIT_STEP_ELSEWHERE);
    json_text(json, "why", *step->why ? step->why : NULL);
    json_decision(json, target->decisions, step);
    json_list(json, "ops");
    for (uint32_t i = 0; i < step->n_ops; i++)
        json_text(json, NULL, step->op_texts[i]);
    json_close(json);
    json_values(json, "reads", step->in, step->in_types, step->n_in);
    json_values(json, "stores", step->out, step->out_types, step->n_out);
    json_uint(json, "bytes_read", step->bytes_in);
    json_uint(json, "bytes_stored", step->bytes_out);
    json_close(json);
}

static void json_timed(struct json *json, const struct explained *e)
{
    if (!e->n_timed)
        return;
    json_list(json, "timed");
    for (uint64_t i = 0; i < e->n_timed; i++) {
        json_object(json, NULL);
        json_uint(json, "launches", e->timed[i].launches);
        json_real(json, "seconds", e->timed[i].seconds);
        json_close(json);
    }
    json_close(json);
}

static void print_json(const struct explained *e, FILE *out)
{
    frit_run_desc run = {.struct_size = sizeof(run)};
    struct json_target target = {.decisions = e->decisions};
    struct json *json = &target.json;

    json_begin(json, out);
    json_text(json, "file", e->file);
    json_text(json, "device", e->device);
    json_uint(json, "ops", e->n_ops);
    json_uint(json, "programs", e->programs);
    json_uint(json, "launches", e->launches);
    json_uint(json, "faults", e->faults);
    json_timed(json, e);
    json_list(json, "runs");
    for (uint64_t r = 0; !frit_inspection_run_at(e->inspection, r, &run); r++) {
        json_object(json, NULL);
        json_uint(json, "ops", run.n_ops);
        json_uint(json, "bytes_read", run.bytes_in);
        json_uint(json, "bytes_stored", run.bytes_out);
        json_list(json, "blocks");
        each_step(e, r, json_step, &target);
        json_close(json);
        json_close(json);
    }
    json_close(json);
    json_end(json);
}

/* ---- the page ---- */

/* What the page has, kept until the host is closed and has written the timeline. */
struct page_parts {
    char timeline[32]; /* the file; "" before it is made */
    char *text, *json;
    size_t text_length, json_length;
};

/* Prints into memory; false: there is none. */
static bool print_to_memory(const struct explained *e, char **text, size_t *length,
                            void (*print)(const struct explained *e, FILE *out))
{
    FILE *out = open_memstream(text, length);

    if (!out)
        return false;
    print(e, out);
    return fclose(out) == 0 && *text;
}

/* The program again, warm: at most MOST times, or until the time is up. */
static int time_runs(const struct program *program, const struct invocation *in,
                     const struct session *session, struct explained *e)
{
    const double start = term_clock();
    frit_tensor **outputs = calloc(program->n_outputs + 1, sizeof(frit_tensor *));
    int status = outputs ? CLI_FINE : fail_command(in, "no memory");

    while (status == CLI_FINE && e->n_timed < MOST_TIMED &&
           (!e->n_timed || term_clock() - start < ENOUGH_SECONDS)) {
        frit_stats before = {.struct_size = sizeof(before)}, after = before;
        const double from = term_clock();

        frit_stats_get(session->device, &before);
        status = program_run(program, in, session, outputs);
        e->timed[e->n_timed].seconds = term_clock() - from;
        frit_stats_get(session->device, &after);
        e->timed[e->n_timed++].launches = after.launches - before.launches;
        for (uint64_t i = 0; i < program->n_outputs; i++) {
            frit_release(outputs[i]);
            outputs[i] = NULL;
        }
    }
    free(outputs);
    return status;
}

static int make_page(const struct program *program, const struct invocation *in,
                     const struct session *session, struct explained *e, struct page_parts *parts)
{
    int status = time_runs(program, in, session, e);

    if (status == CLI_FINE && (!print_to_memory(e, &parts->text, &parts->text_length, show) ||
                               !print_to_memory(e, &parts->json, &parts->json_length, print_json)))
        return fail_command(in, "no memory");
    return status;
}

/* The whole file, the caller's; NULL: it cannot be read. */
static char *read_whole(const char *path)
{
    FILE *in = fopen(path, "rb"), *out;
    char piece[4096], *text = NULL;
    size_t length = 0, n;
    bool failed;

    if (!in)
        return NULL;
    out = open_memstream(&text, &length);
    while (out && (n = fread(piece, 1, sizeof(piece), in)) > 0)
        fwrite(piece, 1, n, out);
    failed = ferror(in) || !out || fclose(out) != 0;
    fclose(in);
    if (failed) {
        free(text);
        return NULL;
    }
    return text;
}

static int write_page(const struct invocation *in, const struct page_parts *parts)
{
    const char *path = invocation_value(in, "--html");
    char *timeline = read_whole(parts->timeline);
    const struct page page = {.name = in->args[0],
                              .text = parts->text,
                              .json = parts->json,
                              .timeline = timeline && *timeline ? timeline : "{}"};
    FILE *out = fopen(path, "wb");
    int status = CLI_FINE;

    if (out)
        page_write(&page, out);
    if (!out || ferror(out))
        status = fail_command(in, "%s: cannot be written: %s", path, strerror(errno));
    if (out && fclose(out) && status == CLI_FINE)
        status = fail_command(in, "%s: cannot be written: %s", path, strerror(errno));
    free(timeline);
    return status;
}

/* ---- the command ---- */

static int explain_on(struct program *program, const struct invocation *in,
                      const struct session *session, struct page_parts *parts)
{
    struct explained e = {.file = in->args[0], .device = frit_device_name(session->device)};
    int status = program_feed(program, in, session);

    if (status == CLI_FINE)
        status = inspect(program, in, session, &e);
    if (status == CLI_FINE && frit_decisions_read(session->device, &e.decisions, NULL))
        e.decisions = NULL; /* then none are shown */
    if (status == CLI_FINE && parts)
        status = make_page(program, in, session, &e, parts);
    else if (status == CLI_FINE && invocation_has(in, "--json"))
        print_json(&e, stdout);
    else if (status == CLI_FINE)
        show(&e, stdout);
    if (status == CLI_FINE && !parts && !invocation_has(in, "--json"))
        session_faults(e.faults);
    frit_decisions_free(e.decisions);
    frit_inspection_free(e.inspection);
    return status;
}

/* Of a page the timeline is recorded, to a file of its own. */
static int open_session(struct session *session, const struct invocation *in,
                        struct page_parts *parts)
{
    frit_setting settings[] = {
        {"fusion", "compile", "wait"},
        {"fusion", "enabled", invocation_has(in, "--no-fuse") ? "no" : "yes"},
        {"frit", "timeline", parts->timeline}};
    int file;

    if (!invocation_has(in, "--html"))
        return session_open_waiting(session, in, !invocation_has(in, "--no-fuse"));
    if (invocation_has(in, "--json"))
        return fail_usage(in, "--html and --json are two forms of the same");
    strcpy(parts->timeline, "/tmp/frit-explain-XXXXXX");
    file = mkstemp(parts->timeline);
    if (file < 0) {
        parts->timeline[0] = '\0';
        return fail_command(in, "/tmp: no file for the timeline: %s", strerror(errno));
    }
    close(file);
    return session_open_with(session, in, settings, sizeof(settings) / sizeof(settings[0]));
}

static int run(const struct invocation *in)
{
    struct page_parts parts = {.text = NULL};
    struct session session = {0};
    struct program program = {0};
    int status = open_session(&session, in, &parts);

    if (status == CLI_FINE)
        status = program_begin(&program, in, in->args[0], program_shapes);
    if (status == CLI_FINE)
        status = session_device(&session, in);
    if (status == CLI_FINE)
        status = explain_on(&program, in, &session, *parts.timeline ? &parts : NULL);
    program_close(&program);
    session_close(&session); /* writes the timeline */
    if (status == CLI_FINE && *parts.timeline)
        status = write_page(in, &parts);
    if (*parts.timeline)
        unlink(parts.timeline);
    free(parts.text);
    free(parts.json);
    return status;
}

const struct command explain_command = {
    .name = "explain",
    .summary = "show which ops of a text program run together, and why",
    .args = "FILE",
    .details =
        "Inputs are zeros unless --in gives a value; unknown dims are 2.  For a block of ops that\n"
        "runs as one program it shows the fuser, the score (tensors and launches saved, times\n"
        "quality) and why the block did not grow: all (no ops were left), closed (its fusers\n"
        "accept no more), split (the next op needs a value that an op outside of the block\n"
        "computes from the block's), blocks (more than [fusion] max_blocks), short (the fuser\n"
        "covers only a part of the block), single (no fuser accepts the op).\n"
        "If a program could not run, it shows what ran instead, and why.  Waits for programs to\n"
        "be compiled.\n"
        "With --json: file, device, ops, programs (steps that launch one), launches,\n"
        "faults (programs that failed by a fault of the driver), runs {ops,\n"
        "bytes_read, bytes_stored, blocks {label, fuser, score, end, program, in_place, skipped,\n"
        "candidate (that ran, of several) and chosen (how), by_ops, decomposed,\n"
        "elsewhere (what ran instead), why, tried {candidate, class, state, best_ns, median_ns}\n"
        "(what the tuner knows), ops, reads, stores, bytes_read, bytes_stored}}.\n"
        "With --html: a page for a browser, in one file without others: the blocks with their\n"
        "times, a timeline, a search.  The program runs up to five times more for the times.",
    .options =
        (const struct option[]){
            {"--device", "D", "devices in order of preference; first usable wins", 'd', false},
            PROGRAM_IN_OPTION(""),
            {"--no-fuse", NULL, "run each op singly", 0, false},
            {"--html", "FILE", "write a page for a browser", 0, false},
            {"--json", NULL, "print JSON", 0, false},
            {0}},
    .examples = (const char *const[]){"explain tools/models/digits-mlp.frit",
                                      "explain digits.frit --device vulkan:0 --in x=images.npy",
                                      "explain digits.frit --html digits.html", NULL},
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
