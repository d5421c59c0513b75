/* SPDX-License-Identifier: Apache-2.0 */
/* `frit replay`: runs a recording twice, fused and op by op or on two devices, and reports how the
 * results differ. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "element.h"
#include "invocation.h"
#include "json.h"
#include "program.h"
#include "session.h"

/* An output of one run. */
struct outcome {
    uint32_t dtype;
    frit_dims dims;
    uint64_t bytes;
    void *data;
};

/* One of the two runs. */
struct replay {
    const char *requested; /* requested devices; NULL: as configured */
    bool fuse;
    char device[64]; /* name of the device used */
    struct outcome *outputs;
};

/* ---- running ---- */

/* Reads an output; a failed tensor has its own error message. */
static int fetch(const struct invocation *in, frit_tensor *tensor, struct outcome *out)
{
    out->dtype = frit_tensor_dtype(tensor);
    out->dims = frit_tensor_dims(tensor);
    out->bytes = frit_tensor_bytes(tensor);
    out->data = malloc(out->bytes ? out->bytes : 1);
    if (!out->data)
        return fail_command(in, "no memory");
    return frit_read(tensor, out->data, out->bytes, NULL)
               ? fail_command(in, "%s", frit_tensor_error(tensor))
               : CLI_FINE;
}

static int run_program(const struct invocation *in, struct program *program,
                       const struct session *session, struct replay *r)
{
    frit_err err = {.struct_size = sizeof(err)};
    frit_tensor **tensors;
    int status = program_feed(program, in, session);

    if (status)
        return status;
    tensors = calloc(program->n_outputs + 1, sizeof(frit_tensor *));
    r->outputs = calloc(program->n_outputs + 1, sizeof(*r->outputs));
    if (!tensors || !r->outputs) {
        free(tensors);
        return fail_command(in, "no memory");
    }
    if (frit_graph_run(program->graph, session->device, program->tensors, program->n_inputs,
                       tensors, program->n_outputs, &err))
        status = fail_command(in, "%s", err.text);
    for (uint64_t i = 0; i < program->n_outputs && status == CLI_FINE; i++)
        status = fetch(in, tensors[i], &r->outputs[i]);
    for (uint64_t i = 0; i < program->n_outputs; i++)
        frit_release(tensors[i]);
    free(tensors);
    return status;
}

/* Runs with a host of its own, since fusion is configured per host.  The tensors are released, the
 * values are kept. */
static int replay_once(const struct invocation *in, struct program *program, struct replay *r)
{
    frit_err err = {.struct_size = sizeof(err)};
    struct session session;
    int status = session_open_waiting(&session, in, r->fuse);

    if (status == CLI_FINE && frit_device_open(session.host, r->requested, &session.device, &err))
        status = fail_command(in, "%s", err.text);
    if (status == CLI_FINE) {
        snprintf(r->device, sizeof(r->device), "%s", frit_device_name(session.device));
        status = run_program(in, program, &session, r);
    }
    program_drop(program);
    session_close(&session);
    return status;
}

static void replay_fini(struct replay *r, uint64_t n_outputs)
{
    for (uint64_t i = 0; i < n_outputs && r->outputs; i++)
        free(r->outputs[i].data);
    free(r->outputs);
}

/* ---- comparing ---- */

/* The comparison; both runs have the outputs of `program`. */
struct report {
    const struct program *program;
    const struct replay *a, *b;
    double tolerance;
    uint64_t n_beyond; /* outputs that differ by more than the tolerance */
};

static uint64_t count_of(const struct outcome *outcome)
{
    uint64_t count = 1;

    for (int64_t i = 0; i < outcome->dims.rank; i++)
        count *= (uint64_t)outcome->dims.dim[i];
    return count;
}

static void compare(struct report *report, uint64_t i, frit_port *port, struct difference *out)
{
    const struct outcome *a = &report->a->outputs[i], *b = &report->b->outputs[i];

    port->struct_size = sizeof(*port);
    frit_graph_output_at(report->program->graph, i, port);
    element_compare(a->dtype, a->data, b->data, count_of(a), out);
    report->n_beyond += out->max_abs > report->tolerance;
}

static const char *how(const struct replay *r)
{
    return r->fuse ? "fused" : "op by op";
}

static void show(struct report *report)
{
    struct difference d;
    frit_port port;

    printf("%s %s against %s %s\n", report->a->device, how(report->a), report->b->device,
           how(report->b));
    for (uint64_t i = 0; i < report->program->n_outputs; i++) {
        compare(report, i, &port, &d);
        printf("%-12s %s, %" PRIu64 " elements: ", port.name, frit_dtype_name(port.dtype), d.count);
        if (d.differ == 0)
            printf("equal\n");
        else
            printf("%" PRIu64 " differ, by at most %g (%" PRIu64 " ulp)\n", d.differ, d.max_abs,
                   d.max_ulp);
    }
    if (report->program->n_outputs == 0)
        printf("the recording has no outputs\n");
}

static void print_json(const struct invocation *in, struct report *report)
{
    struct difference d;
    struct json json;
    frit_port port;

    json_begin(&json, stdout);
    json_text(&json, "file", in->args[0]);
    json_text(&json, "device", report->a->device);
    json_bool(&json, "fused", report->a->fuse);
    json_text(&json, "against", report->b->device);
    json_bool(&json, "against_fused", report->b->fuse);
    json_real(&json, "tolerance", report->tolerance);
    json_list(&json, "outputs");
    for (uint64_t i = 0; i < report->program->n_outputs; i++) {
        compare(report, i, &port, &d);
        json_object(&json, NULL);
        json_text(&json, "name", port.name);
        json_text(&json, "dtype", frit_dtype_name(port.dtype));
        json_uint(&json, "count", d.count);
        json_uint(&json, "differ", d.differ);
        json_real(&json, "max_abs", d.max_abs);
        json_uint(&json, "max_ulp", d.max_ulp);
        json_close(&json);
    }
    json_close(&json);
    json_uint(&json, "beyond", report->n_beyond);
    json_end(&json);
}

/* ---- the command ---- */

static int parse_tolerance(const struct invocation *in, double *tolerance)
{
    const char *text = invocation_value(in, "--tolerance");
    char *end;

    *tolerance = 0;
    if (!text)
        return CLI_FINE;
    *tolerance = strtod(text, &end);
    if (*end || end == text || !(*tolerance >= 0))
        return fail_usage(in, "--tolerance %s: must be a number >= 0", text);
    return CLI_FINE;
}

static int run(const struct invocation *in)
{
    const char *device = invocation_value(in, "--device"),
               *other = invocation_value(in, "--against");
    struct replay a = {.requested = device, .fuse = !invocation_has(in, "--no-fuse")};
    struct replay b = {.requested = other ? other : device, .fuse = other && a.fuse};
    struct program program = {0};
    struct report report = {.program = &program, .a = &a, .b = &b};
    int status = parse_tolerance(in, &report.tolerance);

    session_load_ops();
    if (status == CLI_FINE)
        status = program_begin(&program, in, in->args[0], program_sources);
    if (status == CLI_FINE)
        status = replay_once(in, &program, &a);
    if (status == CLI_FINE)
        status = replay_once(in, &program, &b);
    if (status == CLI_FINE && invocation_has(in, "--json"))
        print_json(in, &report);
    else if (status == CLI_FINE)
        show(&report);
    if (status == CLI_FINE && report.n_beyond)
        status = CLI_FAILED;
    replay_fini(&a, program.n_outputs);
    replay_fini(&b, program.n_outputs);
    program_close(&program);
    return status;
}

const struct command replay_command = {
    .name = "replay",
    .summary = "run a recording again and compare",
    .args = "FOLDER",
    .details =
        "Runs what `frit trace` recorded (or any text program whose inputs have files) twice: as\n"
        "it would run once its programs are compiled, and op by op; with --against on two\n"
        "devices.  Reports for each output how many elements differ and by how much, in value\n"
        "and in units in the last place (ulp); exits with 1 if one differs by more than\n"
        "--tolerance.  Random ops produce the same numbers in both runs.\n"
        "With --json: file, device, fused, against, against_fused, tolerance, outputs {name,\n"
        "dtype, count, differ, max_abs, max_ulp}, beyond (outputs that differ by more).",
    .options =
        (const struct option[]){
            {"--device", "D", "devices in order of preference; first usable wins", 'd', false},
            {"--against", "D", "compare with this device", 0, false},
            {"--no-fuse", NULL, "run each op singly in both runs", 0, false},
            {"--tolerance", "T", "largest allowed difference (0)", 0, false},
            PROGRAM_IN_OPTION(""),
            {"--json", NULL, "print JSON", 0, false},
            {0}},
    .examples = (const char *const[]){"replay mlp-trace",
                                      "replay mlp-trace --device vulkan --against reference "
                                      "--tolerance 1e-5",
                                      NULL},
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
