/* SPDX-License-Identifier: Apache-2.0 */
#include "load/probe_command.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "conf/conf.h"
#include "conf/env.h"
#include "load/find.h"
#include "load/probe_report.h"

enum { COMMAND_HEAD = 3 /* words before the files */ };

bool probe_program_find(char *path, size_t size)
{
    char folder[PATH_MAX];

    if (!find_own_folder(folder))
        return false;
    snprintf(path, size, "%s/frit/frit-probe", folder);
    return access(path, X_OK) == 0;
}

static size_t count_options(const struct conf *conf)
{
    size_t n = 0;

    for (uint32_t i = 0; i < conf_n_plugins(conf); i++)
        n += conf_plugin_at(conf, i)->n_options;
    return n;
}

/* malloc'd "PREFIX.TEXT". */
static char *dotted(const char *prefix, const char *text)
{
    size_t size = strlen(prefix) + strlen(text) + 2;
    char *out = malloc(size);

    if (out)
        snprintf(out, size, "%s.%s", prefix, text);
    return out;
}

/* Four words per option, from `at` on. */
static bool add_options(struct probe_command *command, char **at, const struct conf *conf)
{
    for (uint32_t i = 0; i < conf_n_plugins(conf); i++) {
        const struct conf_plugin *section = conf_plugin_at(conf, i);

        for (uint32_t k = 0; k < section->n_options; k++) {
            char *name = dotted("plugin", section->id);
            char *key = dotted("option", section->options[k].key);

            command->names[command->n_names++] = name;
            command->names[command->n_names++] = key;
            if (!name || !key)
                return false;
            *at++ = (char *)"--set";
            *at++ = name;
            *at++ = key;
            *at++ = (char *)section->options[k].value;
        }
    }
    return true;
}

static char **make_environment(void)
{
    const char *const *from = env_of_process();
    size_t n = 0;
    char **out;

    while (from[n])
        n++;
    out = calloc(n + 2, sizeof(*out));
    if (!out)
        return NULL;
    n = 0;
    out[n++] = (char *)"FRIT_CONFIG=/dev/null";
    for (; *from; from++)
        if (strncmp(*from, "FRIT_", 5) != 0)
            out[n++] = (char *)*from;
    return out;
}

/* It need not be a secret: a plugin that looks for it could do anything else, too. */
static void make_token(char token[17])
{
    uint64_t number = 0;

    if (getrandom(&number, sizeof(number), GRND_NONBLOCK) != sizeof(number))
        number = (uint64_t)getpid();
    snprintf(token, 17, "%016" PRIx64, number);
}

bool probe_command_make(struct probe_command *command, const char *program, const struct conf *conf,
                        const char *const *paths, uint32_t n)
{
    const size_t n_options = count_options(conf);

    *command = (struct probe_command){
        .argv = calloc(COMMAND_HEAD + n + 4 * n_options + 1, sizeof(*command->argv)),
        .names = calloc(2 * n_options + 1, sizeof(*command->names)),
        .environment = make_environment()};
    if (command->argv && command->names && command->environment) {
        snprintf(command->version, sizeof(command->version), "%d", PROBE_VERSION);
        make_token(command->token);
        command->argv[0] = (char *)program;
        command->argv[1] = command->version;
        command->argv[2] = command->token;
        for (uint32_t i = 0; i < n; i++)
            command->argv[COMMAND_HEAD + i] = (char *)paths[i];
        if (add_options(command, command->argv + COMMAND_HEAD + n, conf))
            return true;
    }
    probe_command_free(command);
    return false;
}

void probe_command_free(struct probe_command *command)
{
    for (size_t i = 0; command->names && i < command->n_names; i++)
        free(command->names[i]);
    free(command->names);
    free(command->argv);
    free(command->environment);
    *command = (struct probe_command){0};
}
