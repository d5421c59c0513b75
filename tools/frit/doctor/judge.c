/* SPDX-License-Identifier: Apache-2.0 */
/* The reference's values are kept, so that any part of the program can start from right inputs. */
#include "doctor/judge.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "conform/conform.h"
#include "conform/find.h"
#include "element.h"
#include "invocation.h"
#include "program.h"
#include "session.h"

enum { REFERENCE_SECONDS = 600 }; /* it is slow, and no suspect */

/* ---- loading, in a child: the inputs are made by the reference ---- */

struct loading {
    const struct invocation *in;
    const char *against;
    int status; /* CLI_*: sent by the child */
    char *text; /* of the bound program */
    struct trial_value *inputs;
    uint64_t n_inputs;
};

static bool open_reference(const struct loading *loading, struct session *session)
{
    frit_err err = {.struct_size = sizeof(err)};

    if (session_open(session, loading->in))
        return false;
    if (!frit_device_open(session->host, loading->against, &session->device, &err))
        return true;
    fail_command(loading->in, "%s", err.text);
    return false;
}

static void send_program(const struct loading *loading, const struct program *program, FILE *to)
{
    char *text = frit_graph_print(program->graph), words[TRIAL_WORDS];
    const uint64_t length = text ? strlen(text) : 0;

    fwrite(&length, sizeof(length), 1, to);
    fwrite(text, 1, length, to);
    frit_free(text);
    fwrite(&program->n_inputs, sizeof(program->n_inputs), 1, to);
    for (uint64_t i = 0; i < program->n_inputs; i++) {
        struct trial_value value;

        if (!trial_value_read(program->tensors[i], &value, words)) {
            fail_command(loading->in, "input %s: %s", program->inputs[i].name, words);
            return;
        }
        trial_value_send(&value, to);
        trial_value_fini(&value);
    }
}

static void send_loaded(void *ctx, FILE *to)
{
    const struct loading *loading = ctx;
    struct invocation in = *loading->in;
    struct session session = {0};
    struct program program = {0};
    int status = open_reference(loading, &session) ? CLI_FINE : CLI_FAILED;

    if (status == CLI_FINE)
        status = program_begin(&program, &in, in.args[1], program_sources);
    if (status == CLI_FINE)
        status = program_feed(&program, &in, &session);
    fwrite(&status, sizeof(status), 1, to);
    if (status == CLI_FINE)
        send_program(loading, &program, to);
    program_close(&program);
    session_close(&session);
}

static void take_loaded(void *ctx, FILE *from)
{
    struct loading *loading = ctx;
    uint64_t length = 0, n = 0;

    if (fread(&loading->status, sizeof(loading->status), 1, from) != 1 || loading->status ||
        fread(&length, sizeof(length), 1, from) != 1)
        return;
    loading->text = calloc(length + 1, 1);
    if (!loading->text || fread(loading->text, 1, length, from) != length ||
        fread(&n, sizeof(n), 1, from) != 1)
        return;
    loading->inputs = calloc(n + 1, sizeof(*loading->inputs));
    while (loading->inputs && loading->n_inputs < n &&
           trial_value_take(&loading->inputs[loading->n_inputs], from))
        loading->n_inputs++;
    loading->n_inputs = loading->n_inputs == n ? n : 0;
}

/* The inputs become the first values. */
static int take_program(struct judge *judge, struct loading *loading)
{
    const struct invocation *in = loading->in;

    if (!loading->text || !loading->inputs || !slice_parse(&judge->program, loading->text))
        return fail_command(in, "%s: the program cannot be taken apart", in->args[1]);
    if (judge->program.n_ops == 0)
        return fail_command(in, "%s: the program has no ops", in->args[1]);
    judge->values = calloc(judge->program.n_values + 1u, sizeof(*judge->values));
    judge->types = calloc(judge->program.n_values + 1u, sizeof(*judge->types));
    if (!judge->values || !judge->types)
        return fail_command(in, "no memory");
    for (uint64_t i = 0; i < loading->n_inputs; i++) {
        judge->values[i] = loading->inputs[i];
        loading->inputs[i] = (struct trial_value){0};
        judge->types[i] = trial_value_type(&judge->values[i]);
        if (!judge->types[i])
            return fail_command(in, "no memory");
    }
    return CLI_FINE;
}

static int load(struct judge *judge, const struct invocation *in)
{
    struct loading loading = {.in = in, .against = judge->against, .status = CLI_FAILED};
    char reason[CONFORM_REASON];
    int ended = 0, status;

    if (!conform_fork(send_loaded, take_loaded, &loading, &ended))
        return fail_command(in, "%s", strerror(errno));
    status = loading.status;
    if (ended)
        status = fail_command(in, "%s: %s", judge->against, conform_ended(ended, reason));
    if (status == CLI_FINE)
        status = take_program(judge, &loading);
    for (uint64_t i = 0; loading.inputs && i < loading.n_inputs; i++)
        trial_value_fini(&loading.inputs[i]);
    free(loading.inputs);
    free(loading.text);
    return status;
}

/* ---- a run of a part of the program ---- */

struct part {
    uint32_t *outputs; /* values */
    const struct trial_value **inputs;
    struct str text;
    struct trial_request request;
};

static void part_fini(struct part *part)
{
    free(part->outputs);
    free(part->inputs);
    str_fini(&part->text);
}

static size_t all_results(const struct slice_program *program, uint32_t *out)
{
    size_t n = 0;

    for (uint32_t v = 0; v < program->n_values; v++)
        if (program->values[v].maker != SIZE_MAX)
            out[n++] = v;
    return n;
}

/* `whole`: every result of the region is an output.  False: no memory. */
static bool part_make(const struct judge *judge, const struct region *region, bool whole,
                      struct part *out)
{
    const struct slice_program *program = &judge->program;
    uint32_t *in = calloc(program->n_values + 1u, sizeof(*in));
    struct trial_request *request = &out->request;

    *out = (struct part){.outputs = calloc(program->n_values + 1u, sizeof(*out->outputs)),
                         .inputs = calloc(program->n_values + 1u, sizeof(*out->inputs))};
    if (in && out->outputs && out->inputs) {
        *request = (struct trial_request){.device = judge->device,
                                          .inputs = out->inputs,
                                          .repeat = judge->repeat,
                                          .seconds = judge->seconds};
        request->n_outputs =
            whole ? all_results(program, out->outputs)
                  : slice_outputs(program, region->first, region->last, out->outputs);
        request->n_inputs = slice_inputs(program, region->first, region->last, in);
        for (size_t i = 0; i < request->n_inputs; i++)
            out->inputs[i] = &judge->values[in[i]];
        slice_print(program, region->first, region->last, out->outputs, request->n_outputs,
                    (const char *const *)judge->types, &out->text);
        request->text = out->text.text;
    }
    free(in);
    return out->text.text && !out->text.failed;
}

/* ---- the reference ---- */

/* All results of the program are outputs of this run. */
static int run_reference(struct judge *judge, const struct invocation *in)
{
    static const frit_setting settings[] = {
        {"fusion", "enabled", "no"}, {"fusion", "store", "none"}, {"tune", "store", "none"}};
    const struct region all = {0, judge->program.n_ops - 1};
    struct trial trial = {.words = "no memory"};
    struct part part;
    int status = CLI_FINE;

    if (part_make(judge, &all, true, &part)) {
        part.request.device = judge->against;
        part.request.settings = settings;
        part.request.n_settings = sizeof(settings) / sizeof(settings[0]);
        part.request.repeat = 1;
        part.request.seconds = fmax(part.request.seconds, REFERENCE_SECONDS);
        trial_run(&part.request, &trial);
    }
    snprintf(judge->against_name, sizeof(judge->against_name), "%s", trial.device);
    if (!trial.ran)
        status = fail_command(in, "on %s: %s", judge->against, trial.words);
    for (size_t i = 0; i < trial.n_outputs && trial.ran; i++) {
        judge->values[part.outputs[i]] = trial.outputs[i];
        trial.outputs[i] = (struct trial_value){0};
        judge->types[part.outputs[i]] = trial_value_type(&judge->values[part.outputs[i]]);
        if (!judge->types[part.outputs[i]])
            status = fail_command(in, "no memory");
    }
    trial_fini(&trial);
    part_fini(&part);
    return status;
}

int judge_open(struct judge *judge, const struct invocation *in)
{
    int status = load(judge, in);

    for (uint32_t i = 0; i < judge->program.n_ops && status == CLI_FINE; i++)
        if (judge->program.ops[i].is_random)
            judge->repeat = 1; /* a second run draws other numbers */
    return status == CLI_FINE ? run_reference(judge, in) : status;
}

void judge_fini(struct judge *judge)
{
    for (uint32_t i = 0; i < judge->program.n_values; i++) {
        if (judge->values)
            trial_value_fini(&judge->values[i]);
        if (judge->types)
            free(judge->types[i]);
    }
    free(judge->values);
    free(judge->types);
    slice_fini(&judge->program);
}

/* ---- comparing ---- */

static uint64_t count_of(const struct trial_value *value)
{
    uint64_t count = 1;

    for (int64_t i = 0; i < value->dims.rank; i++)
        count *= (uint64_t)value->dims.dim[i];
    return count;
}

static double largest_of(const struct trial_value *value)
{
    const uint64_t count = count_of(value);
    double largest = 0;

    for (uint64_t i = 0; i < count; i++) {
        double x = fabs(element_value(value->dtype, value->data, i));

        largest = isfinite(x) && x > largest ? x : largest;
    }
    return largest;
}

/* Half of the digits of a float; other types are exact. */
static double tolerance_of(const struct judge *judge, uint32_t dtype)
{
    const frit_dtype_info info = frit_dtype_info_of(dtype);

    if (judge->tolerance >= 0)
        return judge->tolerance;
    return info.exponent ? exp2(-0.5 * info.fraction) : 0;
}

/* False with words if the value is not what the reference has. */
static bool compare(const struct judge *judge, uint32_t number, const struct trial_value *value,
                    struct verdict *out)
{
    const struct trial_value *right = &judge->values[number];
    struct difference d;
    double bound;

    if (value->dtype != right->dtype || value->bytes != right->bytes) {
        snprintf(out->words, sizeof(out->words), "%s: another type or size than %s",
                 judge->program.values[number].name, judge->types[number]);
        return false;
    }
    element_compare(value->dtype, value->data, right->data, count_of(right), &d);
    bound = tolerance_of(judge, value->dtype) * largest_of(right);
    if (d.differ == 0 || d.max_abs <= bound)
        return true;
    snprintf(out->words, sizeof(out->words),
             "%.100s %s: %" PRIu64 " of %" PRIu64 " elements differ, by at most %g (allowed: %g)",
             judge->program.values[number].name, judge->types[number], d.differ, d.count, d.max_abs,
             bound);
    return false;
}

static void compare_all(const struct judge *judge, const struct trial *trial,
                        const uint32_t *outputs, size_t n, struct verdict *out)
{
    out->agrees = trial->ran;
    snprintf(out->words, sizeof(out->words), "%s", trial->ran ? "" : trial->words);
    for (size_t i = 0; i < trial->n_outputs && out->agrees; i++) {
        out->agrees = compare(judge, outputs[i % n], &trial->outputs[i], out);
        if (!out->agrees && i >= n) {
            size_t used = strlen(out->words);

            snprintf(out->words + used, sizeof(out->words) - used, ", in run %zu", i / n + 1);
        }
    }
}

void judge_run(struct judge *judge, const struct region *region, const frit_setting *settings,
               size_t n_settings, struct verdict *out, struct trial *blocks)
{
    struct trial trial = {.words = "no memory"};
    struct part part;

    if (part_make(judge, region, false, &part)) {
        part.request.settings = settings;
        part.request.n_settings = n_settings;
        trial_run(&part.request, &trial);
    }
    judge->n_trials++;
    if (*trial.device)
        snprintf(judge->device_name, sizeof(judge->device_name), "%s", trial.device);
    compare_all(judge, &trial, part.outputs, part.request.n_outputs, out);
    if (blocks)
        *blocks = trial;
    else
        trial_fini(&trial);
    part_fini(&part);
}
