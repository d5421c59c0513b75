/* SPDX-License-Identifier: Apache-2.0 */
/* `frit trace`: runs a text program and records its ops for `frit replay`. */
#include <inttypes.h>
#include <stdlib.h>

#include <frit/inspect.h>

#include "invocation.h"
#include "program.h"
#include "session.h"

static int trace_on(struct program *program, const struct invocation *in,
                    const struct session *session, const char *folder)
{
    frit_err err = {.struct_size = sizeof(err)};
    frit_tensor **outputs;
    int status = program_feed(program, in, session);

    if (status)
        return status;
    outputs = calloc(program->n_outputs + 1, sizeof(frit_tensor *));
    if (!outputs)
        return fail_command(in, "no memory");
    if (frit_trace_start(session->device, folder, &err)) {
        status = fail_command(in, "%s", err.text);
    } else {
        status = program_run(program, in, session, outputs);
        if (frit_trace_stop(session->device, &err) && status == CLI_FINE)
            status = fail_command(in, "%s", err.text);
    }
    for (uint64_t i = 0; i < program->n_outputs; i++)
        frit_release(outputs[i]);
    free(outputs);
    if (status == CLI_FINE)
        printf("%s: %" PRIu64 " ops on %s recorded in %s\n", in->args[0],
               frit_graph_op_count(program->graph), frit_device_name(session->device), folder);
    return status;
}

static int run(const struct invocation *in)
{
    const char *folder = invocation_value(in, "--out");
    struct session session;
    struct program program = {0};
    int status;

    if (!folder)
        return fail_usage(in, "--out FOLDER is missing");
    status = session_open(&session, in);
    if (status == CLI_FINE)
        status = program_begin(&program, in, in->args[0], program_sources);
    if (status == CLI_FINE)
        status = session_device(&session, in);
    if (status == CLI_FINE)
        status = trace_on(&program, in, &session, folder);
    program_close(&program);
    session_close(&session);
    return status;
}

const struct command trace_command = {
    .name = "trace",
    .summary = "record a run of a text program",
    .args = "FILE",
    .details =
        "Writes trace.frit, a text program of all ops with their shapes, and the constants to\n"
        "the folder; `frit replay` runs it again.  To record any program that uses Frit, set\n"
        "FRIT_TRACE=FOLDER in its environment, or [frit] trace in the configuration: each\n"
        "device then has a subfolder.",
    .options =
        (const struct option[]){
            {"--out", "FOLDER", "folder to create; its parent must exist", 'o', false},
            {"--device", "D", "devices in order of preference; first usable wins", 'd', false},
            PROGRAM_IN_OPTION(""),
            {0}},
    .examples = (const char *const[]){"trace tools/models/digits-mlp.frit -o mlp-trace",
                                      "replay mlp-trace", NULL},
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
