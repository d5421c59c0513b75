/* SPDX-License-Identifier: Apache-2.0 */
/* `frit check`: parses text programs and checks every op, without running anything; no device is
 * needed. */
#include <inttypes.h>

#include "program.h"

static bool check(const char *path)
{
    frit_err err = {.struct_size = sizeof(err)};
    struct program program;
    bool valid = !program_open(&program, path, &err) && !program_bind(&program, &err);

    if (valid)
        printf("%s: ok, %" PRIu64 " ops, %" PRIu64 " inputs, %" PRIu64 " outputs\n", path,
               frit_graph_op_count(program.graph), program.n_inputs, program.n_outputs);
    else
        fprintf(stderr, "%s\n", err.text);
    program_close(&program);
    return valid;
}

static int run(const struct invocation *in)
{
    int status = CLI_FINE;

    session_load_ops();
    for (int i = 0; i < in->n_args; i++)
        if (!check(in->args[i]))
            status = CLI_FAILED;
    return status;
}

const struct command check_command = {
    .name = "check",
    .summary = "check text programs and ONNX models without running them",
    .args = "FILE...",
    .details = "Faults are reported as FILE:LINE:COLUMN: text.  Unknown dims are 2.",
    .options = (const struct option[]){{0}},
    .examples = (const char *const[]){"check tools/models/digits-mlp.frit", NULL},
    .min_args = 1,
    .max_args = 1 << 20,
    .run = run,
};
