/* SPDX-License-Identifier: Apache-2.0 */
/* `frit completion`: completions for shells, written from the command table: names of commands,
 * their options with what they mean, and files for the rest. */
#include <string.h>

#include "command.h"
#include "invocation.h"
#include "main.h"

static const char about[] = "completions of frit for %s; written by `frit completion %s`\n";

/* A text inside of single quotes, which `quote` stands for in it, without what means something
 * there. */
static void put_quoted(FILE *out, const char *text, const char *quote, const char *unwanted)
{
    for (; *text; text++)
        if (*text == '\'')
            fputs(quote, out);
        else if (!strchr(unwanted, *text))
            fputc(*text, out);
}

static void put_zsh(FILE *out, const char *text)
{
    put_quoted(out, text, "'\\''", "[]:\\");
}

static void put_fish(FILE *out, const char *text)
{
    put_quoted(out, text, "\\'", "\\");
}

/* Whether the command's arguments are names of commands. */
static bool takes_commands(const struct command *command)
{
    return strcmp(command->args, "[COMMAND]") == 0;
}

/* Whether its one argument is one of the words in its usage, "bash|zsh". */
static bool takes_words(const struct command *command)
{
    return command == &completion_command;
}

static void put_words(FILE *out, const char *list)
{
    for (; *list; list++)
        fputc(*list == '|' ? ' ' : *list, out);
}

static void put_commands(FILE *out)
{
    const struct command *command;

    for (size_t i = 0; (command = command_at(i)); i++)
        fprintf(out, "%s%s", i ? " " : "", command->name);
}

/* ---- bash ---- */

static void bash_command(FILE *out, const struct command *command)
{
    fprintf(out, "    %s)\n        case $before in\n", command->name);
    for (const struct option *option = command->options; option->name; option++) {
        if (!option->value)
            continue;
        fprintf(out, "        %s", option->name);
        if (option->letter)
            fprintf(out, "|-%c", option->letter);
        fputs(") return ;; # a file\n", out);
    }
    fputs("        esac\n        words=\"--help", out);
    for (const struct option *option = command->options; option->name; option++)
        fprintf(out, " %s", option->name);
    fputs("\"\n        ", out);
    if (takes_commands(command) || takes_words(command)) {
        fputs("[[ $word == -* ]] || words=\"", out);
        if (takes_commands(command))
            put_commands(out);
        else
            put_words(out, command->args);
        fputc('"', out);
    } else {
        fputs("[[ $word == -* ]] || return # a file", out);
    }
    fputs("\n        ;;\n", out);
}

static void bash(FILE *out)
{
    const struct command *command;

    fputs("# ", out);
    fprintf(out, about, "bash", "bash");
    fputs("_frit()\n{\n"
          "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} words=\n"
          "    COMPREPLY=()\n"
          "    if [ \"$COMP_CWORD\" -le 1 ]; then\n        words=\"--help --version ",
          out);
    put_commands(out);
    fputs("\"\n    else\n    case ${COMP_WORDS[1]} in\n", out);
    for (size_t i = 0; (command = command_at(i)); i++)
        bash_command(out, command);
    fputs("    esac\n    fi\n"
          "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n"
          "}\n"
          "complete -o default -F _frit frit\n",
          out);
}

/* ---- zsh ---- */

/* '*'{-d,--device}'[meaning]:D:_files' */
static void zsh_option(FILE *out, const struct option *option)
{
    fputs(" \\\n            ", out);
    if (option->many)
        fputs("'*'", out);
    else if (option->letter)
        fprintf(out, "'(-%c %s)'", option->letter, option->name);
    if (option->letter)
        fprintf(out, "{-%c,%s}", option->letter, option->name);
    else
        fputs(option->name, out);
    fputs("'[", out);
    put_zsh(out, option->meaning);
    fputc(']', out);
    if (option->value) {
        fputc(':', out);
        put_zsh(out, option->value);
        fputs(":_files", out);
    }
    fputc('\'', out);
}

static void zsh(FILE *out)
{
    const struct command *command;

    fputs("#compdef frit\n# ", out);
    fprintf(out, about, "zsh", "zsh");
    fputs("_frit()\n{\n    local context state line\n    local -a commands\n    commands=(\n", out);
    for (size_t i = 0; (command = command_at(i)); i++) {
        fprintf(out, "        '%s:", command->name);
        put_zsh(out, command->summary);
        fputs("'\n", out);
    }
    fputs(
        "    )\n"
        "    _arguments -C '(- *)--help[list the commands]' '(- *)--version[show the version]' \\\n"
        "        '1:command:->command' '*::argument:->argument'\n"
        "    case $state in\n"
        "    command) _describe -t commands command commands ;;\n"
        "    argument)\n        case $words[1] in\n",
        out);
    for (size_t i = 0; (command = command_at(i)); i++) {
        fprintf(out, "        %s)\n            _arguments -s '(- *)'{-h,--help}'[show the usage]'",
                command->name);
        for (const struct option *option = command->options; option->name; option++)
            zsh_option(out, option);
        if (takes_commands(command)) {
            fputs(" \\\n            '1:command:(", out);
            put_commands(out);
            fputs(")' ;;\n", out);
        } else if (takes_words(command)) {
            fputs(" \\\n            '1:shell:(", out);
            put_words(out, command->args);
            fputs(")' ;;\n", out);
        } else {
            fputs(*command->args ? " \\\n            '*:file:_files' ;;\n" : " ;;\n", out);
        }
    }
    fputs("        esac ;;\n    esac\n}\n_frit \"$@\"\n", out);
}

/* ---- fish ---- */

static void fish_option(FILE *out, const struct command *command, const struct option *option)
{
    fprintf(out, "complete -c frit -n '__fish_seen_subcommand_from %s' -l %s", command->name,
            option->name + 2);
    if (option->letter)
        fprintf(out, " -s %c", option->letter);
    fputs(option->value ? " -r -d '" : " -d '", out);
    put_fish(out, option->meaning);
    fputs("'\n", out);
}

static void fish(FILE *out)
{
    const struct command *command;

    fputs("# ", out);
    fprintf(out, about, "fish", "fish");
    fputs("complete -c frit -n __fish_use_subcommand -f\n"
          "complete -c frit -n __fish_use_subcommand -l help -d 'list the commands'\n"
          "complete -c frit -n __fish_use_subcommand -l version -d 'show the version'\n",
          out);
    for (size_t i = 0; (command = command_at(i)); i++) {
        fprintf(out, "complete -c frit -n __fish_use_subcommand -a %s -d '", command->name);
        put_fish(out, command->summary);
        fprintf(out,
                "'\ncomplete -c frit -n '__fish_seen_subcommand_from %s' -l help -s h -d "
                "'show the usage'\n",
                command->name);
        for (const struct option *option = command->options; option->name; option++)
            fish_option(out, command, option);
        if (!takes_commands(command) && !takes_words(command))
            continue;
        fprintf(out, "complete -c frit -n '__fish_seen_subcommand_from %s' -f -a '", command->name);
        if (takes_commands(command))
            put_commands(out);
        else
            put_words(out, command->args);
        fputs("'\n", out);
    }
}

/* ---- the command ---- */

static int run(const struct invocation *in)
{
    static const struct {
        const char *name;
        void (*write)(FILE *out);
    } shells[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};

    for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++) {
        if (strcmp(in->args[0], shells[i].name) == 0) {
            shells[i].write(stdout);
            return CLI_FINE;
        }
    }
    return fail_usage(in, "there are completions for bash, zsh and fish, not for '%s'",
                      in->args[0]);
}

const struct command completion_command = {
    .name = "completion",
    .summary = "write completions of the command for a shell",
    .args = "bash|zsh|fish",
    .details =
        "They are installed where the shells look for them; otherwise:\n"
        "bash: in ~/.bashrc, eval \"$(frit completion bash)\";\n"
        "zsh: as _frit in a folder of $fpath; fish: in ~/.config/fish/completions/frit.fish.",
    .options = (const struct option[]){{0}},
    .examples = (const char *const[]){"completion bash > ~/.frit-completion",
                                      "completion zsh > ~/.zfunc/_frit", NULL},
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
