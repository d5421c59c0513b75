/* SPDX-License-Identifier: Apache-2.0 */
/* Help and the manual page, both generated from the command table. */
#include "help.h"

#include "command.h"
#include "invocation.h"
#include "main.h"

#include <ctype.h>
#include <frit/frit.h>

#include "term.h"

static const char about[] = "Frit runs tensor programs on the devices that plugins provide.";

static const struct {
    const char *name;
    const char *meaning;
} exits[] = {
    {"0", "success"},
    {"1", "failure; the reason is on standard error"},
    {"2", "wrong usage: unknown command, option or name, missing value"},
    {"3", "`conform`: the device was lost"},
};

static const struct {
    const char *name;
    const char *meaning;
} variables[] = {
    {"FRIT_DEVICE", "devices in order of preference, as [frit] device of the configuration"},
    {"FRIT_CONFIG", "a configuration file instead of the user's and the system's"},
    {"FRIT_PLUGIN_PATH", "directories with plugins instead of the built-in ones"},
    {"FRIT_LOG", "LEVEL[,TOPIC=LEVEL]...: what is logged, as [frit] log of the configuration"},
    {"FRIT_TRACE", "a folder for recordings of all ops, for `frit replay`"},
    {"FRIT_TIMELINE", "a file for a timeline of all work"},
    {"NO_COLOR", "not empty: no colours"},
};

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static void head(FILE *out, const char *text)
{
    fputc('\n', out);
    term_paint(out, PAINT_HEAD, 0, text);
    fputc('\n', out);
}

void help_all(FILE *out)
{
    const struct command *command;

    fprintf(out, "%s\n\nUsage: frit COMMAND [ARGUMENTS] [OPTIONS]\n", about);
    head(out, "Commands");
    for (size_t i = 0; (command = command_at(i)); i++)
        fprintf(out, "  %-10s %s\n", command->name, command->summary);
    head(out, "Environment");
    for (size_t i = 0; i < COUNT_OF(variables); i++)
        fprintf(out, "  %-18s %s\n", variables[i].name, variables[i].meaning);
    fprintf(out, "\nSee `frit help COMMAND` or `frit COMMAND --help` for details.\n");
}

/* "-v, --verbose", "--device D" */
static void option_text(const struct option *option, char *text, size_t capacity)
{
    char letter[8] = "";

    if (option->letter)
        snprintf(letter, sizeof(letter), "-%c, ", option->letter);
    snprintf(text, capacity, "%s%s%s%s", letter, option->name, option->value ? " " : "",
             option->value ? option->value : "");
}

static const char *many_text(const struct option *option)
{
    return option->many ? "; may be repeated" : "";
}

void help_of(FILE *out, const struct command *command)
{
    fprintf(out, "frit %s: %s.\n\nUsage: frit %s%s%s%s\n", command->name, command->summary,
            command->name, *command->args ? " " : "", command->args,
            command->options->name ? " [OPTIONS]" : "");
    if (*command->details)
        fprintf(out, "\n%s\n", command->details);
    if (command->options->name)
        head(out, "Options");
    for (const struct option *option = command->options; option->name; option++) {
        char text[64];

        option_text(option, text, sizeof(text));
        fprintf(out, "  %-24s %s%s\n", text, option->meaning, many_text(option));
    }
    head(out, "Examples");
    for (const char *const *example = command->examples; *example; example++)
        fprintf(out, "  frit %s\n", *example);
}

/* ---- manual page ---- */

/* Escapes text for roff: keeps hyphens, and lines that would be taken for requests. */
static void put_roff(FILE *out, const char *text)
{
    bool line_start = true;

    for (; *text; text++) {
        if (line_start && (*text == '.' || *text == '\''))
            fputs("\\&", out);
        if (*text == '-')
            fputs("\\-", out);
        else if (*text == '\\')
            fputs("\\e", out);
        else
            fputc(*text, out);
        line_start = *text == '\n';
    }
}

/* Prints `more` after the meaning. */
static void put_entry(FILE *out, const char *name, const char *meaning, const char *more)
{
    fputs(".TP\n\\fB", out);
    put_roff(out, name);
    fputs("\\fR\n", out);
    put_roff(out, meaning);
    fprintf(out, "%s\n", more);
}

static void manual_command(FILE *out, const struct command *command)
{
    fprintf(out, ".SS frit %s%s%s\n", command->name, *command->args ? " " : "", command->args);
    fputc(toupper((unsigned char)command->summary[0]), out);
    put_roff(out, command->summary + 1);
    fputs(".\n", out);
    if (*command->details) {
        fputs(".PP\n.nf\n", out);
        put_roff(out, command->details);
        fputs("\n.fi\n", out);
    }
    for (const struct option *option = command->options; option->name; option++) {
        char text[64];

        option_text(option, text, sizeof(text));
        put_entry(out, text, option->meaning, many_text(option));
    }
    fputs(".PP\nExamples:\n.nf\n", out);
    for (const char *const *example = command->examples; *example; example++) {
        fputs("    frit ", out);
        put_roff(out, *example);
        fputc('\n', out);
    }
    fputs(".fi\n", out);
}

void help_manual(FILE *out)
{
    const struct command *command;

    fputs(".\\\" SPDX-License-Identifier: Apache-2.0\n"
          ".\\\" Written by `frit help --man`.\n"
          ".TH FRIT 1 \"\" \"Frit " FRIT_VERSION "\" \"User Commands\"\n"
          ".SH NAME\nfrit \\- run and inspect tensor programs\n"
          ".SH SYNOPSIS\n\\fBfrit\\fR COMMAND [ARGUMENTS] [OPTIONS]\n.SH DESCRIPTION\n",
          out);
    put_roff(out, about);
    fputs("\n.SH COMMANDS\n", out);
    for (size_t i = 0; (command = command_at(i)); i++)
        manual_command(out, command);
    fputs(".SH EXIT STATUS\n", out);
    for (size_t i = 0; i < COUNT_OF(exits); i++)
        put_entry(out, exits[i].name, exits[i].meaning, "");
    fputs(".SH ENVIRONMENT\n", out);
    for (size_t i = 0; i < COUNT_OF(variables); i++)
        put_entry(out, variables[i].name, variables[i].meaning, "");
    fputs(".SH FILES\n", out);
    put_entry(out, "~/.config/frit/frit.ini", "configuration of the user", "");
    put_entry(out, "/etc/frit/frit.ini", "configuration of the system", "");
    put_entry(out, "/etc/frit/plugins.d/*.ini", "what installed plugins add to it", "");
    fputs(".SH SEE ALSO\n\\fBfrit.h\\fR(3)\n", out);
}

/* ---- the command ---- */

static int run(const struct invocation *in)
{
    const struct command *command;

    if (invocation_has(in, "--man")) {
        help_manual(stdout);
    } else if (in->n_args == 0) {
        help_all(stdout);
    } else {
        command = command_find(in->args[0]);
        if (!command)
            return CLI_MISUSED;
        help_of(stdout, command);
    }
    return CLI_FINE;
}

const struct command help_command = {
    .name = "help",
    .summary = "list the commands, or show the usage of one",
    .args = "[COMMAND]",
    .details = "",
    .options = (const struct option[]){{"--man", NULL, "the manual page as roff", 0, false}, {0}},
    .examples = (const char *const[]){"help run", NULL},
    .max_args = 1,
    .run = run,
};
