/* SPDX-License-Identifier: Apache-2.0 */
/* `frit convert`: an ONNX model as a text program with its constants beside it. */
#include <inttypes.h>

#include "invocation.h"
#include "program.h"

static int convert(struct program *program, const struct invocation *in,
                   const struct session *session)
{
    const char *folder = invocation_value(in, "--out");
    frit_err err = {.struct_size = sizeof(err)};
    int status = program_feed(program, in, session);

    if (status != CLI_FINE)
        return status;
    if (frit_graph_save(program->graph, folder, &err))
        return fail_command(in, "%s", err.text);
    printf("%s: %" PRIu64 " ops, %" PRIu64 " inputs, %" PRIu64 " outputs in %s\n", in->args[0],
           frit_graph_op_count(program->graph), program->n_inputs, program->n_outputs, folder);
    return CLI_FINE;
}

static int run(const struct invocation *in)
{
    struct session session;
    struct program program = {0};
    int status;

    if (!invocation_value(in, "--out"))
        return fail_usage(in, "--out FOLDER is missing");
    status = session_open(&session, in);
    if (status == CLI_FINE)
        status = program_begin(&program, in, in->args[0], program_shapes);
    if (status == CLI_FINE)
        status = session_device(&session, in);
    if (status == CLI_FINE)
        status = convert(&program, in, &session);
    program_close(&program);
    session_close(&session);
    return status;
}

const struct command convert_command = {
    .name = "convert",
    .summary = "write an ONNX model as a text program",
    .args = "FILE.onnx",
    .details =
        "The folder gets NAME.frit and a NumPy file for each constant of more than a few "
        "elements.\n"
        "The program has the dims of the inputs: those that the model declares, of --in, and\n"
        "2 where neither says one.",
    .options =
        (const struct option[]){
            {"--out", "FOLDER", "where to write; made if it is not there", 'o', false},
            PROGRAM_IN_OPTION("dims of "),
            {"--device", "D", "devices in order of preference; first usable wins", 'd', false},
            {0}},
    .examples = (const char *const[]){"convert model.onnx -o model --in x=zeros:1,3,224,224", NULL},
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
