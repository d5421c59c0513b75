/* SPDX-License-Identifier: Apache-2.0 */
/* A text program and what its inputs are given. */
#ifndef CLI_PROGRAM_H
#define CLI_PROGRAM_H

#include <frit/frit.h>

#include "command.h"
#include "session.h"

/* Where the value of an input comes from. */
enum source_kind { SOURCE_NONE = 0, SOURCE_FILE, SOURCE_RANDOM, SOURCE_ZEROS };

struct source {
    enum source_kind kind;
    const char *file;
};

struct program {
    frit_graph *graph;
    uint64_t n_inputs;
    uint64_t n_outputs; /* after program_bind */
    frit_port *inputs;  /* as declared; program_bind writes what they are bound to */
    struct source *sources;
    frit_tensor **tensors; /* one per input, after program_feed */
};

/* Reads the program; a failure's text begins with FILE:LINE:COLUMN.  program_close afterwards in
 * every case. */
frit_status program_open(struct program *program, const char *path, frit_err *err);
void program_close(struct program *program);

/* The same with the message on standard error, and program_sources or program_shapes. */
int program_begin(struct program *program, const struct invocation *in, const char *path,
                  int (*sources)(struct program *program, const struct invocation *in));

/* Fixes the dims as far as the inputs' types are known. */
frit_status program_bind(struct program *program, frit_err *err);

/* Takes the --in options over the default files; CLI_MISUSED after a message, also where an input
 * is left without value. */
int program_sources(struct program *program, const struct invocation *in);

/* The same where only shapes matter: inputs are zeros unless --in says something else. */
int program_shapes(struct program *program, const struct invocation *in);

/* Makes the input tensors on the device and binds the program to them; CLI_FAILED after a message.
 */
int program_feed(struct program *program, const struct invocation *in,
                 const struct session *session);

/* One run of a program that is fed, all of it done; CLI_FAILED after a message.  `outputs`: one per
 * output, the caller's also then. */
int program_run(const struct program *program, const struct invocation *in,
                const struct session *session, frit_tensor **outputs);

/* Ends the input tensors; program_feed may make them again. */
void program_drop(struct program *program);

/* The index of the output of a name, -1 after a message. */
int64_t program_output(const struct program *program, const struct invocation *in, const char *name,
                       size_t length);

#endif
