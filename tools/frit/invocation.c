/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the command line by the command table: options may precede or follow arguments, but not
 * `--`, as `--name value` or `--name=value`. */
#include "invocation.h"

#include "command.h"

#include <fnmatch.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "term.h"

int fail_command(const struct invocation *in, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    term_error(in->command->name, format, args);
    va_end(args);
    return CLI_FAILED;
}

int fail_usage(const struct invocation *in, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    term_error(in->command->name, format, args);
    va_end(args);
    fprintf(stderr, "Try `frit help %s`.\n", in->command->name);
    return CLI_MISUSED;
}

static const struct option help_option = {
    .name = "--help", .letter = 'h', .meaning = "show this text"};

static bool named(const struct option *option, const char *word, size_t length)
{
    if (length == 2 && word[0] == '-' && word[1] == option->letter)
        return true;
    return strlen(option->name) == length && memcmp(word, option->name, length) == 0;
}

static const struct option *option_find(const struct command *command, const char *word,
                                        size_t length)
{
    for (const struct option *option = command->options; option->name; option++)
        if (named(option, word, length))
            return option;
    return named(&help_option, word, length) ? &help_option : NULL;
}

static int unknown_option(const struct invocation *in, const char *word)
{
    const char *names[32] = {help_option.name};
    const char *nearest;
    size_t n = 1;

    for (const struct option *o = in->command->options; o->name && n < 32; o++)
        names[n++] = o->name;
    nearest = str_nearest(word, names, n);
    if (nearest)
        return fail_usage(in, "unknown option %s; did you mean %s?", word, nearest);
    return fail_usage(in, "unknown option %s", word);
}

/* Takes the option at argv[*i] and its value. */
static int take_option(struct invocation *in, int argc, char **argv, int *i)
{
    const char *word = argv[*i];
    size_t length = strcspn(word, "=");
    const struct option *option = option_find(in->command, word, length);
    const char *value = word[length] ? word + length + 1 : NULL;

    if (!option)
        return unknown_option(in, word);
    if (!option->value && value)
        return fail_usage(in, "%s takes no value", option->name);
    if (option->value && !value) {
        if (*i + 1 == argc)
            return fail_usage(in, "%s needs a value: %s %s", option->name, option->name,
                              option->value);
        value = argv[++*i];
    }
    if (!option->many && invocation_has(in, option->name))
        return fail_usage(in, "%s is given twice", option->name);
    in->given[in->n_given++] = (struct given){option, value};
    return CLI_FINE;
}

static int check_args(const struct invocation *in)
{
    const struct command *command = in->command;

    if (in->n_args < command->min_args)
        return fail_usage(in, "missing argument: frit %s %s", command->name, command->args);
    if (in->n_args > command->max_args)
        return fail_usage(in, "unexpected argument '%s': frit %s%s%s", in->args[command->max_args],
                          command->name, *command->args ? " " : "", command->args);
    return CLI_FINE;
}

int invocation_parse(struct invocation *in, const struct command *command, int argc, char **argv,
                     bool *helped)
{
    bool options = true;
    int status = CLI_FINE;

    *in = (struct invocation){.command = command};
    in->args = calloc((size_t)argc + 1, sizeof(*in->args));
    in->given = calloc((size_t)argc + 1, sizeof(*in->given));
    if (!in->args || !in->given)
        return fail_command(in, "no memory");
    for (int i = 0; i < argc && status == CLI_FINE; i++) {
        if (options && strcmp(argv[i], "--") == 0)
            options = false;
        else if (options && argv[i][0] == '-' && argv[i][1])
            status = take_option(in, argc, argv, &i);
        else
            in->args[in->n_args++] = argv[i];
        options = options && !(command->passes_on && in->n_args);
    }
    *helped = invocation_has(in, help_option.name);
    return status || *helped ? status : check_args(in);
}

void invocation_fini(struct invocation *in)
{
    free(in->args);
    free(in->given);
}

static const struct given *given_find(const struct invocation *in, const char *option)
{
    for (int i = 0; i < in->n_given; i++)
        if (strcmp(in->given[i].option->name, option) == 0)
            return &in->given[i];
    return NULL;
}

bool invocation_has(const struct invocation *in, const char *option)
{
    return given_find(in, option) != NULL;
}

const char *invocation_value(const struct invocation *in, const char *option)
{
    const struct given *given = given_find(in, option);

    return given ? given->value : NULL;
}

const char *invocation_next(const struct invocation *in, const char *option, int *at)
{
    while (*at < in->n_given) {
        const struct given *given = &in->given[(*at)++];

        if (strcmp(given->option->name, option) == 0)
            return given->value;
    }
    return NULL;
}

bool filter_fits(const char *word, const char *name)
{
    return strcmp(word, name) == 0 || fnmatch(word, name, 0) == 0;
}
