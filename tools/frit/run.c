/* SPDX-License-Identifier: Apache-2.0 */
/* `frit run`: runs a text program once or repeatedly, and reports results and costs. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <frit/inspect.h>

#include "invocation.h"
#include "json.h"
#include "program.h"
#include "session.h"
#include "summary.h"
#include "term.h"

/* Costs of the runs; counters are sums over all runs. */
struct cost {
    uint64_t runs;
    double first;   /* seconds of the first run */
    double seconds; /* median of all runs */
    frit_stats before, after;
};

struct result {
    const char *device;
    struct cost cost;
    frit_tensor **tensors; /* per output, of the last run */
    struct summary *summaries;
    const char **files;  /* per output: the file to save it to, or NULL */
    const char *archive; /* for all of them; or NULL */
};

static int parse_repeat(const struct invocation *in, uint64_t *runs)
{
    const char *text = invocation_value(in, "--repeat");
    unsigned long long n;
    char *end;

    *runs = 1;
    if (!text)
        return CLI_FINE;
    errno = 0;
    n = strtoull(text, &end, 10);
    if (*end || end == text || *text == '-' || errno || n == 0 || n > 10000000)
        return fail_usage(in, "--repeat %s: must be a number from 1 to 10000000", text);
    *runs = n;
    return CLI_FINE;
}

static int take_outputs(const struct program *program, const struct invocation *in,
                        struct result *result)
{
    for (int i = 0; i < in->n_given; i++) {
        const char *value = in->given[i].value;
        size_t length;
        int64_t k;

        if (strcmp(in->given[i].option->name, "--out") != 0)
            continue;
        length = strcspn(value, "=");
        if (!value[length] && program_is_archive(value)) {
            result->archive = value;
            continue;
        }
        if (!value[length] || !value[length + 1])
            return fail_usage(in, "'%s' is not NAME=FILE.npy or FILE.npz", value);
        k = program_output(program, in, value, length);
        if (k < 0)
            return CLI_MISUSED;
        if (result->files[k])
            return fail_usage(in, "output '%.*s' is given twice", (int)length, value);
        result->files[k] = value + length + 1;
    }
    return CLI_FINE;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void drop_outputs(const struct program *program, struct result *result)
{
    for (uint64_t i = 0; i < program->n_outputs; i++) {
        frit_release(result->tensors[i]);
        result->tensors[i] = NULL;
    }
}

/* Runs once and waits for completion. */
static int run_once(const struct program *program, const struct invocation *in,
                    const struct session *session, struct result *result)
{
    frit_err err = {.struct_size = sizeof(err)};
    frit_port port = {.struct_size = sizeof(port)};
    frit_status status;

    drop_outputs(program, result);
    if (frit_graph_run(program->graph, session->device, program->tensors, program->n_inputs,
                       result->tensors, program->n_outputs, &err))
        return fail_command(in, "%s", err.text);
    status = frit_sync(session->device, &err);
    for (uint64_t i = 0; i < program->n_outputs; i++) {
        frit_graph_output_at(program->graph, i, &port);
        if (frit_tensor_status(result->tensors[i]))
            return fail_command(in, "output %s: %s", port.name,
                                frit_tensor_error(result->tensors[i]));
    }
    return status ? fail_command(in, "%s", err.text) : CLI_FINE;
}

static int run_all(const struct program *program, const struct invocation *in,
                   const struct session *session, struct result *result)
{
    struct cost *cost = &result->cost;
    double *seconds = calloc(cost->runs, sizeof(*seconds));
    struct progress progress;
    int status = CLI_FINE;

    if (!seconds)
        return fail_command(in, "no memory");
    cost->before = cost->after = (frit_stats){.struct_size = sizeof(frit_stats)};
    frit_stats_get(session->device, &cost->before);
    progress_begin(&progress, NULL, cost->runs);
    for (uint64_t i = 0; i < cost->runs && status == CLI_FINE; i++) {
        double start = term_clock();

        status = run_once(program, in, session, result);
        seconds[i] = term_clock() - start;
        progress_step(&progress, i + 1);
    }
    progress_hide(&progress);
    cost->first = seconds[0];
    qsort(seconds, cost->runs, sizeof(*seconds), by_size);
    cost->seconds = seconds[cost->runs / 2];
    free(seconds);
    return status;
}

static frit_status save_archive(const struct program *program, const struct result *result,
                                frit_err *err)
{
    frit_named_tensor *named = calloc(program->n_outputs + 1, sizeof(*named));
    frit_port port = {.struct_size = sizeof(port)};
    frit_status status;

    for (uint64_t i = 0; named && i < program->n_outputs; i++) {
        frit_graph_output_at(program->graph, i, &port);
        named[i] = (frit_named_tensor){result->tensors[i], port.name};
    }
    status = frit_save_npz(named, named ? program->n_outputs : 0, result->archive, err);
    free(named);
    return status;
}

/* Reads and saves the outputs.  Failed tensors have their own error message, failures of files are
 * the host's. */
static int collect(const struct program *program, const struct invocation *in,
                   const struct session *session, struct result *result)
{
    frit_err err = {.struct_size = sizeof(err)};
    for (uint64_t i = 0; i < program->n_outputs; i++) {
        frit_tensor *tensor = result->tensors[i];

        if (summary_of(tensor, &result->summaries[i]) ||
            (result->files[i] && frit_save_npy(tensor, result->files[i], &err))) {
            const char *why = *err.text ? err.text : frit_tensor_error(tensor);

            return fail_command(in, "%s", why && *why ? why : "no memory for an output");
        }
    }
    if (result->archive && save_archive(program, result, &err))
        return fail_command(in, "%s", err.text);
    frit_stats_get(session->device, &result->cost.after);
    return CLI_FINE;
}

/* ---- output ---- */

static void show(const struct program *program, const struct result *result)
{
    const struct cost *cost = &result->cost;
    const frit_stats *before = &cost->before, *after = &cost->after;
    frit_port port = {.struct_size = sizeof(port)};
    char text[16], first[16];

    for (uint64_t i = 0; i < program->n_outputs; i++) {
        frit_graph_output_at(program->graph, i, &port);
        summary_print(&result->summaries[i], port.name, stdout);
        if (result->files[i])
            printf("%-12s saved to %s\n", "", result->files[i]);
    }
    if (result->archive)
        printf("%-12s saved to %s\n", "", result->archive);
    printf("%s: %s", result->device, term_seconds(cost->seconds, text));
    if (cost->runs > 1)
        printf(" (median of %" PRIu64 " runs, the first %s)", cost->runs,
               term_seconds(cost->first, first));
    printf(", %" PRIu64 " ops, %" PRIu64 " programs, %" PRIu64 " launches\n",
           after->ops - before->ops, after->programs - before->programs,
           after->launches - before->launches);
    session_faults(after->faults - before->faults);
}

/* All counters of the device since it was opened, by name. */
static void print_counters(struct json *json, frit_device *device)
{
    frit_counter counter = {.struct_size = sizeof(counter)};

    json_object(json, "counters");
    for (uint64_t i = 0; frit_counter_at(device, i, &counter) == FRIT_OK; i++)
        json_uint(json, counter.name, counter.value);
    json_close(json);
}

static void print_json(const struct program *program, const struct invocation *in,
                       const struct session *session, const struct result *result)
{
    const struct cost *cost = &result->cost;
    const frit_stats *before = &cost->before, *after = &cost->after;
    frit_port port = {.struct_size = sizeof(port)};
    struct json json;

    json_begin(&json, stdout);
    json_text(&json, "file", in->args[0]);
    json_text(&json, "device", result->device);
    json_uint(&json, "runs", cost->runs);
    json_uint(&json, "ops", after->ops - before->ops);
    json_uint(&json, "programs", after->programs - before->programs);
    json_uint(&json, "launches", after->launches - before->launches);
    json_uint(&json, "captured_launches", after->captured_launches - before->captured_launches);
    json_uint(&json, "explorations", after->explorations - before->explorations);
    json_uint(&json, "plan_hits", after->plan_hits - before->plan_hits);
    json_uint(&json, "plan_misses", after->plan_misses - before->plan_misses);
    json_uint(&json, "fallbacks_candidate",
              after->fallbacks_candidate - before->fallbacks_candidate);
    json_uint(&json, "fallbacks_ops", after->fallbacks_ops - before->fallbacks_ops);
    json_uint(&json, "fallbacks_decomposed",
              after->fallbacks_decomposed - before->fallbacks_decomposed);
    json_uint(&json, "fallbacks_device", after->fallbacks_device - before->fallbacks_device);
    json_uint(&json, "compiles", after->compiles - before->compiles);
    json_uint(&json, "faults", after->faults - before->faults);
    json_uint(&json, "driver_allocs", after->driver_allocs - before->driver_allocs);
    json_uint(&json, "bytes_moved",
              after->bytes_in - before->bytes_in + after->bytes_out - before->bytes_out);
    json_real(&json, "seconds", cost->seconds);
    json_real(&json, "first_seconds", cost->first);
    print_counters(&json, session->device);
    json_list(&json, "outputs");
    for (uint64_t i = 0; i < program->n_outputs; i++) {
        frit_graph_output_at(program->graph, i, &port);
        json_object(&json, NULL);
        json_text(&json, "name", port.name);
        summary_json(&result->summaries[i], &json);
        json_text(&json, "file", result->files[i]);
        json_close(&json);
    }
    json_close(&json);
    json_end(&json);
}

/* ---- the command ---- */

static int run_on(struct program *program, const struct invocation *in,
                  const struct session *session, struct result *result)
{
    int status = program_feed(program, in, session);

    if (status)
        return status;
    result->device = frit_device_name(session->device);
    result->tensors = calloc(program->n_outputs + 1, sizeof(frit_tensor *));
    result->summaries = calloc(program->n_outputs + 1, sizeof(*result->summaries));
    result->files = calloc(program->n_outputs + 1, sizeof(*result->files));
    if (!result->tensors || !result->summaries || !result->files)
        return fail_command(in, "no memory");
    status = take_outputs(program, in, result);
    if (status == CLI_FINE)
        status = run_all(program, in, session, result);
    if (status == CLI_FINE)
        status = collect(program, in, session, result);
    if (status == CLI_FINE && invocation_has(in, "--json"))
        print_json(program, in, session, result);
    else if (status == CLI_FINE)
        show(program, result);
    return status;
}

static int run_session(const struct invocation *in, struct result *result)
{
    struct program program = {0};
    struct session session;
    int status = session_open(&session, in);

    if (status == CLI_FINE)
        status = program_begin(&program, in, in->args[0], program_sources);
    if (status == CLI_FINE)
        status = session_device(&session, in);
    if (status == CLI_FINE)
        status = run_on(&program, in, &session, result);
    if (result->tensors)
        drop_outputs(&program, result);
    program_close(&program);
    session_close(&session);
    return status;
}

static int run(const struct invocation *in)
{
    struct result result = {0};
    int status = parse_repeat(in, &result.cost.runs);

    if (status == CLI_FINE)
        status = run_session(in, &result);
    free(result.tensors);
    free(result.summaries);
    free(result.files);
    return status;
}

const struct command run_command = {
    .name = "run",
    .summary = "run a text program or an ONNX model",
    .args = "FILE",
    .details =
        "Inputs have their default file, or the value of --in.  Random floats are in 0..1, random\n"
        "integers in 0..99; dims that no file determines are 2.\n"
        "Of an archive (.npz) an input takes the tensor of its name; --in FILE.npz without NAME "
        "gives\n"
        "all of them that it has, and FILE.npz:TENSOR is one of another name.\n"
        "A model runs with the dims of its inputs; what keeps it from running is listed by node.\n"
        "Files of inputs of packed types have their bytes, as u8, and random ones random bits.\n"
        "With --json: file, device, runs, ops, programs (made by the driver), launches,\n"
        "explorations, plan_hits, plan_misses, fallbacks_candidate, fallbacks_ops,\n"
        "fallbacks_decomposed, fallbacks_device (runs in place of a program), compiles,\n"
        "faults (programs that failed by a fault of the driver), captured_launches, driver_allocs, "
        "bytes_moved "
        "(between program and device), seconds (median of the runs),\n"
        "first_seconds, counters (all of the device, by name, since it was opened),\n"
        "outputs {name, dtype, dims, count, nan, infinite (number of\n"
        "infinite elements), min, max (without NaNs), mean (of finite elements), first, file}.\n"
        "Elements of integer dtypes are exact; NaN and infinities are \"nan\", \"inf\", \"-inf\";\n"
        "missing values are null.  Packed values do not include their scales.\n"
        "The other counts are sums over the runs.",
    .options =
        (const struct option[]){
            {"--device", "D", "devices in order of preference; first usable wins", 'd', false},
            PROGRAM_IN_OPTION(""),
            {"--out", "NAME=FILE", "save an output as FILE.npy; FILE.npz alone: all of them", 0,
             true},
            {"--repeat", "N", "run N times", 0, false},
            {"--no-fuse", NULL, "run each op singly", 0, false},
            {"--json", NULL, "print JSON", 0, false},
            {0}},
    .examples =
        (const char *const[]){"run tools/models/digits-mlp.frit",
                              "run digits.frit --device vulkan:0 --in x=images.npy --out y=y.npy",
                              "run model.onnx --in x=random:1,3,224,224",
                              "run digits.frit --in x=random --repeat 100 --json", NULL},
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
