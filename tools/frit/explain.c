/* SPDX-License-Identifier: Apache-2.0 */
/* `frit explain`: runs a text program in one scope under the inspector, and shows which ops ran
 * together and why. */
#include <inttypes.h>
#include <stdlib.h>

#include <frit/inspect.h>

#include "invocation.h"
#include "json.h"
#include "program.h"
#include "session.h"
#include "term.h"

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

static void show_values(const char *title, const uint32_t *values, const char *const *types,
                        uint32_t n, uint64_t bytes)
{
    char text[16];

    if (n == 0)
        return;
    printf("     %s", title);
    for (uint32_t i = 0; i < n; i++)
        printf("%s %%%" PRIu32 " %s", i ? "," : "", values[i], types[i]);
    printf(" (%s)\n", term_bytes(bytes, text));
}

static void show_step(const frit_step_desc *step, uint64_t number, void *ctx)
{
    (void)ctx;
    printf("  %" PRIu64 ". %s", number + 1, step->label);
    if (*step->fuser)
        printf("  [%s, score %" PRIu32 ", ended: %s]", step->fuser, step->score, step->end);
    if (step->flags & FRIT_STEP_IN_PLACE)
        printf(", in place");
    if (step->flags & FRIT_STEP_SKIPPED)
        printf(", skipped");
    if (*step->candidate)
        printf(", candidate %s (%s)", step->candidate, step->chosen);
    if (step->flags & FRIT_STEP_BY_OPS)
        printf(", ran op by op");
    if (step->flags & FRIT_STEP_DECOMPOSED)
        printf(", ran as core ops");
    if (step->flags & FRIT_STEP_ELSEWHERE)
        printf(", ran on another device");
    if (step->flags & FRIT_STEP_VIEW)
        printf("  (view: nothing runs)");
    printf("\n");
    if (*step->why)
        printf("     because: %s\n", step->why);
    for (uint32_t i = 0; i < step->n_ops; i++)
        printf("       %s\n", step->op_texts[i]);
    if (!runs_program(step))
        return;
    show_values("reads ", step->in, step->in_types, step->n_in, step->bytes_in);
    show_values("stores", step->out, step->out_types, step->n_out, step->bytes_out);
}

static void show(const struct explained *e)
{
    frit_run_desc run = {.struct_size = sizeof(run)};
    char read[16], stored[16];

    printf("%s on %s: %" PRIu64 " ops, %" PRIu64 " programs, %" PRIu64 " launches\n", e->file,
           e->device, e->n_ops, e->programs, e->launches);
    for (uint64_t r = 0; !frit_inspection_run_at(e->inspection, r, &run); r++) {
        if (e->about.n_runs > 1)
            printf("run %" PRIu64 " of %" PRIu64 "\n", r + 1, e->about.n_runs);
        each_step(e, r, show_step, NULL);
        printf("  reads %s, stores %s\n", term_bytes(run.bytes_in, read),
               term_bytes(run.bytes_out, stored));
    }
    session_faults(e->faults);
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

static void json_step(const frit_step_desc *step, uint64_t number, void *ctx)
{
    struct json *json = ctx;

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

static void print_json(const struct explained *e)
{
    frit_run_desc run = {.struct_size = sizeof(run)};
    struct json json;

    json_begin(&json, stdout);
    json_text(&json, "file", e->file);
    json_text(&json, "device", e->device);
    json_uint(&json, "ops", e->n_ops);
    json_uint(&json, "programs", e->programs);
    json_uint(&json, "launches", e->launches);
    json_uint(&json, "faults", e->faults);
    json_list(&json, "runs");
    for (uint64_t r = 0; !frit_inspection_run_at(e->inspection, r, &run); r++) {
        json_object(&json, NULL);
        json_uint(&json, "ops", run.n_ops);
        json_uint(&json, "bytes_read", run.bytes_in);
        json_uint(&json, "bytes_stored", run.bytes_out);
        json_list(&json, "blocks");
        each_step(e, r, json_step, &json);
        json_close(&json);
        json_close(&json);
    }
    json_close(&json);
    json_end(&json);
}

/* ---- the command ---- */

static int explain_on(struct program *program, const struct invocation *in,
                      const struct session *session)
{
    struct explained e = {.file = in->args[0], .device = frit_device_name(session->device)};
    int status = program_feed(program, in, session);

    if (status == CLI_FINE)
        status = inspect(program, in, session, &e);
    if (status == CLI_FINE && invocation_has(in, "--json"))
        print_json(&e);
    else if (status == CLI_FINE)
        show(&e);
    frit_inspection_free(e.inspection);
    return status;
}

static int run(const struct invocation *in)
{
    struct session session;
    struct program program = {0};
    int status = session_open_waiting(&session, in, !invocation_has(in, "--no-fuse"));

    if (status == CLI_FINE)
        status = program_begin(&program, in, in->args[0], program_shapes);
    if (status == CLI_FINE)
        status = session_device(&session, in);
    if (status == CLI_FINE)
        status = explain_on(&program, in, &session);
    program_close(&program);
    session_close(&session);
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
        "elsewhere (what ran instead), why, ops, reads, stores,\n"
        "bytes_read, bytes_stored}}.",
    .options =
        (const struct option[]){
            {"--device", "D", "devices in order of preference; first usable wins", 'd', false},
            PROGRAM_IN_OPTION(""),
            {"--no-fuse", NULL, "run each op singly", 0, false},
            {"--json", NULL, "print JSON", 0, false},
            {0}},
    .examples =
        (const char *const[]){"explain tools/models/digits-mlp.frit",
                              "explain digits.frit --device vulkan:0 --in x=images.npy", NULL},
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
