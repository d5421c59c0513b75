/* SPDX-License-Identifier: Apache-2.0 */
/* A text program and the values of its inputs. */
#ifndef CLI_PROGRAM_H
#define CLI_PROGRAM_H

#include <frit/frit.h>

#include "command.h"
#include "session.h"

/* Whether a file is an archive of tensors, by its name. */
bool program_is_archive(const char *path);

/* Where the value of an input comes from. */
enum source_kind {
    SOURCE_NONE = 0,
    SOURCE_DEFAULT, /* the file or the elements that the program itself names */
    SOURCE_FILE,
    SOURCE_RANDOM,
    SOURCE_ZEROS
};

struct source {
    enum source_kind kind;
    const char *file; /* or, of random and zeros, dims such as "1,3,224,224"; NULL: none */
};

/* The option of every command that takes program_sources or program_shapes. */
#define PROGRAM_IN_OPTION(before)                                                              \
    {                                                                                          \
        "--in", "[NAME=]VALUE",                                                                \
            before "an input: FILE.npy or .npz, random, zeros, with dims random:2,8; without " \
                   "NAME the next one, *= others",                                             \
            'i', true                                                                          \
    }

struct program {
    frit_graph *graph;
    uint64_t n_inputs;
    uint64_t n_outputs; /* after program_bind */
    frit_port *inputs;  /* declared ports; program_bind sets their types */
    struct source *sources;
    frit_tensor **tensors; /* one per input; set by program_feed */
};

/* Parses the program, or of a folder the recording in it; error messages begin with
 * FILE:LINE:COLUMN.  program_close must be called in every case. */
frit_status program_open(struct program *program, const char *path, frit_err *err);
void program_close(struct program *program);

/* program_open, then `sources` (program_sources or program_shapes); prints errors. */
int program_begin(struct program *program, const struct invocation *in, const char *path,
                  int (*sources)(struct program *program, const struct invocation *in));

/* Formats a type, open dims as "?": "f32[?, 8]". */
void program_type(const frit_port *port, char *text, size_t capacity);

/* Infers dims from the inputs' types, as far as known; a failure also prints all problems of a
 * model, and which dims were assumed. */
frit_status program_bind(struct program *program, frit_err *err);

/* Sets sources from --in options, else from default files; CLI_MISUSED after a message, also if an
 * input has no source. */
int program_sources(struct program *program, const struct invocation *in);

/* As program_sources where values do not matter: inputs without --in are zeros. */
int program_shapes(struct program *program, const struct invocation *in);

/* Creates the input tensors on the device and binds the program to them; CLI_FAILED after a
 * message. */
int program_feed(struct program *program, const struct invocation *in,
                 const struct session *session);

/* Runs a program with input tensors and waits; CLI_FAILED after a message.  `outputs`: one per
 * output, to be released by the caller in every case. */
int program_run(const struct program *program, const struct invocation *in,
                const struct session *session, frit_tensor **outputs);

/* Releases the input tensors; program_feed may be called again. */
void program_drop(struct program *program);

/* The index of the output with this name; -1 after a message. */
int64_t program_output(const struct program *program, const struct invocation *in, const char *name,
                       size_t length);

#endif
