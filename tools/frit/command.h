/* SPDX-License-Identifier: Apache-2.0 */
/* The command table, from which help, manual and completions are generated and command lines are
 * checked.  One thread. */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { CLI_FINE = 0, CLI_FAILED = 1, CLI_MISUSED = 2, CLI_LOST = 3 }; /* exit codes */

struct option {
    const char *name;  /* "--device"; NULL after the last */
    const char *value; /* the value's name in help; NULL: it has no value */
    const char *meaning;
    char letter; /* of the short form; 0: none */
    bool many;   /* may be given more than once */
};

struct invocation;

struct command {
    const char *name;
    const char *summary; /* one line, without a full stop */
    const char *args;    /* names of the arguments in help; "" for none */
    const char *details; /* paragraphs, printed as they are */
    const struct option *options;
    const char *const *examples; /* without the leading "frit "; NULL after the last */
    int min_args;
    int max_args;
    bool passes_on; /* what follows the first argument are arguments, too */
    int (*run)(const struct invocation *in);
};

extern const struct command devices_command, run_command, check_command, convert_command,
    explain_command, trace_command, replay_command, ops_command, bench_command, conform_command,
    new_plugin_command, doctor_command, tune_command, launch_command, completion_command,
    help_command;

/* ---- a parsed command line ---- */

struct given {
    const struct option *option;
    const char *value; /* NULL for options without value */
};

struct invocation {
    const struct command *command;
    const char **args;
    int n_args;
    struct given *given;
    int n_given;
};

#endif
