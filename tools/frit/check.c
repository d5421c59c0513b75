/* SPDX-License-Identifier: Apache-2.0 */
/* `frit check`: parses text programs and models and checks every op, without running anything; no
 * device is needed, but for inputs from files. */
#include <inttypes.h>

#include "base/str.h"
#include "invocation.h"
#include "program.h"

static void add_port(struct str *list, const char *what, const frit_port *port, const char *more)
{
    char type[128];

    program_type(port, type, sizeof(type));
    str_addf(list, "  %-6s %-20s %s%s%s\n", what, port->name, type, more ? " = " : "",
             more ? more : "");
}

/* The inputs as they are declared; whether one has dims that it leaves open. */
static bool list_inputs(const struct program *program, struct str *list)
{
    bool open = false;

    for (uint64_t i = 0; i < program->n_inputs; i++) {
        const frit_port *port = &program->inputs[i];

        if (port->is_const)
            continue;
        add_port(list, "input", port, port->file);
        for (int64_t k = 0; k < port->dims.rank; k++)
            open = open || port->dims.dim[k] < 0;
    }
    return open;
}

/* The outputs, without dims where these follow from what is only assumed. */
static void list_outputs(const struct program *program, bool open, struct str *list)
{
    frit_port port = {.struct_size = sizeof(port)};

    for (uint64_t i = 0; frit_graph_output_at(program->graph, i, &port) == FRIT_OK; i++) {
        if (open)
            port.dims.rank = 0;
        add_port(list, "output", &port, NULL);
    }
}

/* With the values of --in on a device, or without any. */
static int bind(struct program *program, const struct invocation *in, const struct session *session)
{
    frit_err err = {.struct_size = sizeof(err)};

    if (session->device)
        return program_feed(program, in, session);
    if (!program_bind(program, &err))
        return CLI_FINE;
    fprintf(stderr, "%s\n", err.text);
    return CLI_FAILED;
}

static int check(const char *path, const struct invocation *in, const struct session *session)
{
    struct program program = {0};
    struct str list = {0};
    bool open;
    int status = program_begin(&program, in, path, program_shapes);

    if (status == CLI_FINE) {
        open = list_inputs(&program, &list) && !session->device;
        status = bind(&program, in, session);
        list_outputs(&program, open, &list);
    }
    if (status == CLI_FINE)
        printf("%s: ok, %" PRIu64 " ops, %" PRIu64 " inputs, %" PRIu64 " outputs\n%s", path,
               frit_graph_op_count(program.graph), program.n_inputs, program.n_outputs,
               list.text ? list.text : "");
    str_fini(&list);
    program_close(&program);
    return status;
}

static int run(const struct invocation *in)
{
    struct session session = {0};
    int status = CLI_FINE;

    if (!invocation_has(in, "--in"))
        session_load_ops();
    else if (in->n_args > 1)
        return fail_usage(in, "--in is for one file");
    else if ((status = session_open(&session, in)) == CLI_FINE)
        status = session_device(&session, in);
    for (int i = 0; i < in->n_args && (status == CLI_FINE || !session.host); i++) {
        int found = check(in->args[i], in, &session);

        status = found ? found : status;
    }
    session_close(&session);
    return status;
}

const struct command check_command = {
    .name = "check",
    .summary = "check text programs and ONNX models without running them",
    .args = "FILE...",
    .details = "Inputs and outputs are listed, or faults, as FILE:LINE:COLUMN: text or by node.  "
               "Dims that a\n"
               "program leaves open are those of --in, else 2.",
    .options = (const struct option[]){PROGRAM_IN_OPTION("dims of "), {0}},
    .examples = (const char *const[]){"check tools/models/digits-mlp.frit",
                                      "check model.onnx --in x=zeros:1,3,224,224", NULL},
    .min_args = 1,
    .max_args = 1 << 20,
    .run = run,
};
