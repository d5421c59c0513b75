/* SPDX-License-Identifier: Apache-2.0 */
/* The inspector: after each plan has run, its description is copied to an arena, so that it does
 * not depend on the device.  Threads: streams that run concurrently take turns under its lock. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <frit/inspect.h>

#include "api/copy_sized.h"
#include "api/report.h"
#include "base/array.h"
#include "base/fail.h"
#include "device/device.h"
#include "device/watch.h"
#include "graph/text/text.h"
#include "load/registry.h"
#include "memory/memory.h"
#include "plan/program.h"
#include "record/stream.h"
#include "run/run.h"
#include "search/fuser.h"

struct seen_run {
    frit_run_desc desc;
    frit_step_desc *steps;
};

struct frit_inspection {
    struct watcher watcher; /* first */
    pthread_mutex_t lock;   /* of the rest, while it is on */
    struct arena arena;
    struct seen_run *runs;
    uint32_t n_runs, capacity;
    bool failed; /* a run found no memory */
    frit_inspection_desc about;
};

/* ---- copying ---- */

/* The step that is copied, and where from and to. */
struct step_copy {
    frit_inspection *to;
    const struct run *run;
    const struct plan_step *from;
    frit_step_desc *step;
};

static const char *keep_text(struct step_copy *c, const struct str *text)
{
    return text->failed ? NULL
                        : arena_text(&c->to->arena, text->text ? text->text : "", text->length);
}

static bool copy_ops(struct step_copy *c)
{
    uint32_t n = c->from->n_ops;
    uint32_t *numbers = arena_array(&c->to->arena, n, sizeof(*numbers));
    const char **names = arena_array(&c->to->arena, n, sizeof(char *));
    const char **texts = arena_array(&c->to->arena, n, sizeof(char *));

    if (!numbers || !names || !texts)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        const struct graph_op *op = &c->run->graph->ops[c->from->ops[i]];
        struct str text = {0};

        graph_print_op(c->run->graph, op, &text);
        numbers[i] = c->from->ops[i];
        names[i] = op_row(op->op)->name;
        texts[i] = keep_text(c, &text);
        str_fini(&text);
        if (!texts[i])
            return false;
    }
    c->step->ops = numbers;
    c->step->op_names = names;
    c->step->op_texts = texts;
    c->step->n_ops = n;
    return true;
}

/* Values of a step, without repeats. */
struct values {
    const uint32_t *numbers;
    const char *const *types;
    uint32_t count;
    uint64_t bytes;
};

static bool copy_values(struct step_copy *c, const uint32_t *from, uint32_t n, struct values *out)
{
    uint32_t *numbers = arena_array(&c->to->arena, (size_t)n + 1, sizeof(*numbers));
    const char **types = arena_array(&c->to->arena, (size_t)n + 1, sizeof(char *));
    char text[256];

    *out = (struct values){.numbers = numbers, .types = types};
    if (!numbers || !types)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        const struct op_type *type = &c->run->graph->values[from[i]].type;
        bool again = false;

        for (uint32_t k = 0; k < out->count && !again; k++)
            again = numbers[k] == from[i];
        if (again)
            continue;
        op_type_text(type, text, sizeof(text));
        numbers[out->count] = from[i];
        types[out->count] = arena_text(&c->to->arena, text, strlen(text));
        if (!types[out->count++])
            return false;
        out->bytes += frit_storage_bytes(type->dtype, op_elements(type));
    }
    return true;
}

static bool copy_fuser(struct step_copy *c)
{
    const struct fusers *fusers = c->run->device->fusers;
    struct str text = {0};

    if (c->from->program && c->from->program->fuser < fusers->count) {
        const struct fuser *fuser = &fusers->list[c->from->program->fuser];

        str_addf(&text, "%s/%s", fuser->plugin, fuser->name);
    }
    c->step->fuser = keep_text(c, &text);
    str_fini(&text);
    return c->step->fuser != NULL;
}

static bool is_view(const struct step_copy *c)
{
    const frit_op_info *row = op_row(c->run->graph->ops[c->from->ops[0]].op);

    return !c->from->program && row->cls == FRIT_CLASS_VIEW && row->level == FRIT_LEVEL_CORE;
}

static bool copy_note(struct step_copy *c, uint32_t number)
{
    const struct run_note *note = c->run->notes ? &c->run->notes[number] : &(struct run_note){0};

    c->step->flags = note->marks;
    c->step->why = arena_text(&c->to->arena, note->why, strlen(note->why));
    c->step->candidate = arena_text(&c->to->arena, note->candidate, strlen(note->candidate));
    c->step->chosen = note->chosen ? note->chosen : "";
    return c->step->why && c->step->candidate;
}

static bool copy_step(struct step_copy *c, uint32_t number)
{
    struct values in, out;

    *c->step = (frit_step_desc){.score = c->from->score, .end = plan_end_name(c->from->end)};
    c->step->label = arena_text(&c->to->arena, c->from->label, strlen(c->from->label));
    if (!c->step->label || !copy_fuser(c) || !copy_ops(c) ||
        !copy_values(c, c->from->in, c->from->n_in, &in) ||
        !copy_values(c, c->from->out, c->from->n_out, &out))
        return false;
    c->step->in = in.numbers;
    c->step->in_types = in.types;
    c->step->n_in = in.count;
    c->step->out = out.numbers;
    c->step->out_types = out.types;
    c->step->n_out = out.count;
    if (!copy_note(c, number))
        return false;
    if (is_view(c)) {
        c->step->flags |= FRIT_STEP_VIEW;
    } else if (!(c->step->flags & FRIT_STEP_SKIPPED)) {
        c->step->bytes_in = in.bytes;
        c->step->bytes_out = out.bytes;
    }
    return true;
}

_Static_assert((int)FRIT_STEP_IN_PLACE == (int)RUN_IN_PLACE, "one numbering");
_Static_assert((int)FRIT_STEP_SKIPPED == (int)RUN_SKIPPED, "one numbering");
_Static_assert((int)FRIT_STEP_BY_OPS == (int)RUN_BY_OPS, "one numbering");
_Static_assert((int)FRIT_STEP_CANDIDATE == (int)RUN_CANDIDATE, "one numbering");
_Static_assert((int)FRIT_STEP_DECOMPOSED == (int)RUN_DECOMPOSED, "one numbering");
_Static_assert((int)FRIT_STEP_ELSEWHERE == (int)RUN_ELSEWHERE, "one numbering");

static bool copy_run(frit_inspection *to, const struct run *run)
{
    const struct plan *plan = run->plan;
    struct seen_run *seen;

    if (!array_grow(&to->runs, &to->capacity, to->n_runs, 1, sizeof(*to->runs)))
        return false;
    seen = &to->runs[to->n_runs];
    *seen = (struct seen_run){.desc = {.stream = run->stream,
                                       .n_calls = plan->n_calls,
                                       .n_ops = plan->n_ops,
                                       .n_steps = plan->n_steps}};
    seen->steps = arena_array(&to->arena, plan->n_steps, sizeof(*seen->steps));
    for (uint32_t s = 0; s < plan->n_steps && seen->steps; s++) {
        struct step_copy copying = {to, run, &plan->steps[s], &seen->steps[s]};

        if (!copy_step(&copying, s))
            return false;
        seen->desc.bytes_in += seen->steps[s].bytes_in;
        seen->desc.bytes_out += seen->steps[s].bytes_out;
    }
    to->n_runs += seen->steps != NULL;
    return seen->steps != NULL;
}

static void saw_run(struct watcher *watcher, const struct run *run)
{
    frit_inspection *inspection = (frit_inspection *)watcher;

    pthread_mutex_lock(&inspection->lock);
    if (!copy_run(inspection, run))
        inspection->failed = true;
    pthread_mutex_unlock(&inspection->lock);
}

/* ---- start and stop ---- */

static void read_usage(frit_device *device, uint64_t *tensors, uint64_t *buffers, uint64_t *bytes)
{
    struct memory_stats memory;

    memory_stats(device->memory, &memory);
    *tensors = streams_tensors(device);
    *buffers = memory.buffers_now;
    *bytes = memory.bytes_now;
}

frit_status frit_inspect_start(frit_device *device, frit_err *err)
{
    HOLD_CANCEL;
    frit_inspection *inspection;

    if (process_is_barred())
        return report_barred(err, "inspect_start");
    if (!device)
        return report_null(err, "inspect_start", "the device");
    inspection = calloc(1, sizeof(*inspection));
    if (!inspection)
        return fail_memory(err, sizeof(*inspection));
    pthread_mutex_init(&inspection->lock, NULL);
    inspection->watcher.ran = saw_run;
    read_usage(device, &inspection->about.tensors_before, &inspection->about.buffers_before,
               &inspection->about.bytes_before);
    if (watch_add(&device->watch, WATCH_INSPECT, &inspection->watcher))
        return FRIT_OK;
    frit_inspection_free(inspection);
    return fail(err, FRIT_BUSY, "inspect_start: %s is being inspected; stop that first",
                device->entry->name);
}

frit_status frit_inspect_stop(frit_device *device, frit_inspection **out, frit_err *err)
{
    HOLD_CANCEL;
    frit_inspection *inspection;
    frit_status st = FRIT_OK;

    if (out)
        *out = NULL;
    if (process_is_barred())
        return report_barred(err, "inspect_stop");
    if (!device)
        return report_null(err, "inspect_stop", "the device");
    inspection = (frit_inspection *)watch_take(&device->watch, WATCH_INSPECT);
    if (!inspection)
        return fail(err, FRIT_INVALID, "inspect_stop: %s is not being inspected",
                    device->entry->name);
    read_usage(device, &inspection->about.tensors_after, &inspection->about.buffers_after,
               &inspection->about.bytes_after);
    inspection->about.n_runs = inspection->n_runs;
    if (inspection->failed)
        st = fail_memory(err, 0);
    if (out && !st)
        *out = inspection;
    else
        frit_inspection_free(inspection);
    return st;
}

void frit_inspection_free(frit_inspection *inspection)
{
    if (!inspection)
        return;
    arena_fini(&inspection->arena);
    free(inspection->runs);
    pthread_mutex_destroy(&inspection->lock);
    free(inspection);
}

/* ---- descriptions ---- */

frit_status frit_inspection_about(const frit_inspection *inspection, frit_inspection_desc *out)
{
    if (!inspection || !out)
        return FRIT_INVALID;
    return copy_sized(out, &inspection->about, sizeof(inspection->about));
}

frit_status frit_inspection_run_at(const frit_inspection *inspection, uint64_t run,
                                   frit_run_desc *out)
{
    if (!inspection || !out || run >= inspection->n_runs)
        return FRIT_INVALID;
    return copy_sized(out, &inspection->runs[run].desc, sizeof(inspection->runs[run].desc));
}

frit_status frit_inspection_step_at(const frit_inspection *inspection, uint64_t run, uint64_t step,
                                    frit_step_desc *out)
{
    if (!inspection || !out || run >= inspection->n_runs ||
        step >= inspection->runs[run].desc.n_steps)
        return FRIT_INVALID;
    return copy_sized(out, &inspection->runs[run].steps[step], sizeof(frit_step_desc));
}

static void print_values(const char *title, const uint32_t *values, const char *const *types,
                         uint32_t n, struct str *out)
{
    for (uint32_t i = 0; i < n; i++)
        str_addf(out, "%s %%%" PRIu32 " %s", i ? "," : title, values[i], types[i]);
}

static void print_step(const frit_step_desc *step, uint32_t number, struct str *out)
{
    static const struct {
        uint32_t flag;
        const char *text;
    } flags[] = {
        {FRIT_STEP_IN_PLACE, "in place"},
        {FRIT_STEP_SKIPPED, "skipped"},
        {FRIT_STEP_CANDIDATE, "other candidate"},
        {FRIT_STEP_BY_OPS, "ran op by op"},
        {FRIT_STEP_DECOMPOSED, "ran as core ops"},
        {FRIT_STEP_ELSEWHERE, "ran on another device"},
        {FRIT_STEP_VIEW, "view"},
    };

    str_addf(out, "  %" PRIu32 ": %s", number, step->label);
    if (*step->fuser)
        str_addf(out, " | %s, score %" PRIu32 ", %s", step->fuser, step->score, step->end);
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        if (step->flags & flags[i].flag)
            str_addf(out, " | %s", flags[i].text);
    }
    if (*step->why)
        str_addf(out, " (%s)", step->why);
    print_values(" | reads", step->in, step->in_types, step->n_in, out);
    print_values(" | stores", step->out, step->out_types, step->n_out, out);
    str_addf(out, "\n");
    for (uint32_t i = 0; i < step->n_ops; i++)
        str_addf(out, "     %s\n", step->op_texts[i]);
}

char *frit_inspection_text(const frit_inspection *inspection)
{
    struct str out = {0};

    if (!inspection)
        return NULL;
    for (uint32_t r = 0; r < inspection->n_runs; r++) {
        const struct seen_run *run = &inspection->runs[r];

        str_addf(&out,
                 "run %" PRIu32 ", stream %" PRIu32 ": %" PRIu32 " ops, %" PRIu32 " steps, %" PRIu64
                 " bytes read, %" PRIu64 " bytes stored\n",
                 r, run->desc.stream, run->desc.n_ops, run->desc.n_steps, run->desc.bytes_in,
                 run->desc.bytes_out);
        for (uint32_t s = 0; s < run->desc.n_steps; s++)
            print_step(&run->steps[s], s, &out);
    }
    str_addf(&out,
             "tensors %" PRIu64 " before, %" PRIu64 " after; buffers %" PRIu64 " before, %" PRIu64
             " after\n",
             inspection->about.tensors_before, inspection->about.tensors_after,
             inspection->about.buffers_before, inspection->about.buffers_after);
    if (out.failed)
        str_fini(&out);
    return out.text;
}
