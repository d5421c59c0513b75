/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the command line by the command table. */
#ifndef FRIT_INVOCATION_H
#define FRIT_INVOCATION_H

#include <stdbool.h>

struct command;
struct invocation;

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
/* Print "frit COMMAND: ..." on standard error.  Returns CLI_FAILED; or adds a hint at help and
 * returns CLI_MISUSED. */
int fail_command(const struct invocation *in, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
int fail_usage(const struct invocation *in, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
