/* SPDX-License-Identifier: Apache-2.0 */
/* The command table, from which help, manual and completions are generated and command lines are
 * checked.  One thread. */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { CLI_FINE = 0, CLI_FAILED = 1, CLI_MISUSED = 2 }; /* exit codes */

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
    int (*run)(const struct invocation *in);
};

extern const struct command devices_command, run_command, check_command, explain_command,
    trace_command, replay_command, ops_command, bench_command, conform_command, new_plugin_command,
    doctor_command, help_command;

/* All commands in the order of help; NULL beyond the last. */
const struct command *command_at(size_t index);
const struct command *command_find(const char *name);

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

/* Parses the arguments after the command's name; CLI_MISUSED after a message.  `*helped` is set if
 * --help was given.  invocation_fini must be called in every case. */
int invocation_parse(struct invocation *in, const struct command *command, int argc, char **argv,
                     bool *helped);
void invocation_fini(struct invocation *in);

bool invocation_has(const struct invocation *in, const char *option);
/* NULL if not given. */
const char *invocation_value(const struct invocation *in, const char *option);
/* The values of an option that may be repeated, one per call; `*at` is initially 0.  NULL after the
 * last. */
const char *invocation_next(const struct invocation *in, const char *option, int *at);
/* Whether the word is the name or a shell pattern that matches it. */
bool filter_fits(const char *word, const char *name);

/* "frit run: ..." on standard error; returns CLI_FAILED, or CLI_MISUSED with a pointer to help. */
int failed(const struct invocation *in, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
int misused(const struct invocation *in, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- derived from the table ---- */

void help_all(FILE *out);
void help_of(FILE *out, const struct command *command);
void help_manual(FILE *out);
void help_completions(FILE *out);

#endif
