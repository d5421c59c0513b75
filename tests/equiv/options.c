/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include <stdlib.h>
#include <string.h>

void options_set(struct options *options, const char *section, const char *key, const char *value)
{
    uint32_t at = 0;

    while (at < options->n_settings && (strcmp(options->settings[at].section, section) != 0 ||
                                        strcmp(options->settings[at].key, key) != 0))
        at++;
    if (at == MAX_SETTINGS)
        return;
    options->settings[at] = (frit_setting){section, key, value};
    options->n_settings = at == options->n_settings ? at + 1 : options->n_settings;
}

/* Of a plugin's options only the first part is the section's: "plugin.cpu.option.isa=avx2". */
static bool set_one(struct options *options, char *text)
{
    char *value = strchr(text, '='), *key;

    if (!value)
        return false;
    *value = '\0';
    key = strstr(text, ".option.");
    key = key ? key : strrchr(text, '.');
    if (!key)
        return false;
    *key = '\0';
    options_set(options, text, key + 1, value + 1);
    return true;
}

bool options_set_text(struct options *options, char *text)
{
    while (text) {
        char *comma = strchr(text, ',');

        if (comma)
            *comma++ = '\0';
        if (!set_one(options, text))
            return false;
        text = comma;
    }
    return true;
}

/* An option that stands alone. */
static bool parse_flag(struct options *options, const char *name)
{
    const struct {
        const char *name;
        bool *flag;
    } flags[] = {{"--print", &options->print},
                 {"--no-shrink", &options->no_shrink},
                 {"--large", &options->large}};

    for (size_t k = 0; k < sizeof(flags) / sizeof(flags[0]); k++)
        if (strcmp(name, flags[k].name) == 0)
            return *flags[k].flag = true;
    return false;
}

static bool parse_text(struct options *options, const char *name, char *value)
{
    if (strcmp(name, "--device") == 0)
        options->device = value;
    else if (strcmp(name, "--near") == 0)
        options->near = value;
    else if (strcmp(name, "--plugin") == 0)
        options->plugin = value;
    else if (strcmp(name, "--beside") == 0 && options->n_beside < MAX_SIDES - 1)
        options->beside[options->n_beside++] = value;
    else
        return strcmp(name, "--set") == 0 && options_set_text(options, value);
    return true;
}

bool options_parse(struct options *options, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i];

        if (parse_flag(options, name))
            continue;
        if (++i == argc)
            return false;
        if (strcmp(name, "--seed") == 0)
            options->seed = strtoull(argv[i], NULL, 10);
        else if (strcmp(name, "--count") == 0)
            options->count = strtoull(argv[i], NULL, 10);
        else if (strcmp(name, "--shapes") == 0)
            options->shapes = (uint32_t)strtoul(argv[i], NULL, 10);
        else if (!parse_text(options, name, argv[i]))
            return false;
    }
    return true;
}
