/* SPDX-License-Identifier: Apache-2.0 */
/* The command `frit`: finds the subcommand, parses the command line and runs it. */
#include "main.h"

#include <errno.h>
#include <frit/frit.h>
#include <string.h>

#include "base/str.h"
#include "command.h"
#include "help.h"
#include "invocation.h"

static const struct command *const commands[] = {
    &devices_command, &run_command,     &check_command,      &convert_command,
    &explain_command, &trace_command,   &replay_command,     &ops_command,
    &bench_command,   &conform_command, &new_plugin_command, &doctor_command,
    &tune_command,    &launch_command,  &completion_command, &help_command,
};
enum { N_COMMANDS = sizeof(commands) / sizeof(commands[0]) };

const struct command *command_at(size_t index)
{
    return index < N_COMMANDS ? commands[index] : NULL;
}

const struct command *command_find(const char *name)
{
    const char *names[N_COMMANDS];
    const char *nearest;

    for (size_t i = 0; i < N_COMMANDS; i++) {
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
        names[i] = commands[i]->name;
    }
    nearest = str_nearest(name, names, N_COMMANDS);
    fprintf(stderr, "frit: there is no command '%s'", name);
    if (nearest)
        fprintf(stderr, "; did you mean '%s'?", nearest);
    fputs("\nTry `frit help`.\n", stderr);
    return NULL;
}

static int run_command_line(int argc, char **argv)
{
    const struct command *command = command_find(argv[1]);
    struct invocation in;
    bool helped = false;
    int status;

    if (!command)
        return CLI_MISUSED;
    status = invocation_parse(&in, command, argc - 2, argv + 2, &helped);
    if (helped)
        help_of(stdout, command);
    else if (status == CLI_FINE)
        status = command->run(&in);
    invocation_fini(&in);
    return status;
}

int main(int argc, char **argv)
{
    int status = CLI_FINE;

    if (argc < 2) {
        help_all(stderr);
        return CLI_MISUSED;
    }
    if (strcmp(argv[1], "--version") == 0)
        printf("frit %s\n", frit_version());
    else if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        help_all(stdout);
    else
        status = run_command_line(argc, argv);
    if (fflush(stdout) || ferror(stdout)) {
        fprintf(stderr, "frit: cannot write the output: %s\n", strerror(errno));
        return CLI_FAILED;
    }
    return status;
}
