/* SPDX-License-Identifier: Apache-2.0 */
/* conf/frit.ini: every option of the configuration with its meaning and default, commented out. */
#include "gen.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

enum type { STR, I64, BOOL, LOG, DIRS, PATH, PROBE, SECRET };

struct option {
    const char *section;
    const char *key;
    enum type type;
    const char *text;
    int64_t low, high;
    const char *meaning;
};

static const struct option options[] = {
#define CONF_OPTION(section, key, TYPE, field, text, low, high, meaning) \
    {#section, #key, TYPE, text, low, high, meaning},
#include "conf/options.def"
};

static const struct option plugin_keys[] = {
#define CONF_PLUGIN_KEY(key, TYPE, text, low, high, meaning) \
    {"plugin", #key, TYPE, text, low, high, meaning},
#include "conf/plugin_keys.def"
};

static const char head[] =
    "; Every option of Frit with its default.  Take the ';' from a line to change it.\n"
    ";\n"
    "; Read from $XDG_CONFIG_HOME/frit/frit.ini (else ~/.config/frit/frit.ini), then "
    "/etc/frit/frit.ini,\n"
    "; then /etc/frit/plugins.d/*.ini from the last name to the first; the first file that sets an "
    "option\n"
    "; wins.  FRIT_CONFIG=FILE replaces all of them; variables of the environment beat files, and "
    "the\n"
    "; program beats both.  `frit doctor config` shows what holds, and from where.\n"
    ";\n"
    "; A line has at most 198 bytes; comments have lines of their own; keys that begin with x- are "
    "ignored.\n";

static const char plugin_head[] = "\n"
                                  "; One section per plugin, by its id (`frit devices -v` shows "
                                  "it).  option.NAME is an option of the\n"
                                  "; plugin's own.\n"
                                  ";[plugin.org.example.npu]\n";

static void put_variable(FILE *out, const struct option *option)
{
    fputs("; FRIT_", out);
    if (strcmp(option->section, "frit") != 0) {
        for (const char *c = option->section; *c; c++)
            fputc(toupper((unsigned char)*c), out);
        fputc('_', out);
    }
    for (const char *c = option->key; *c; c++)
        fputc(toupper((unsigned char)*c), out);
    fputc('\n', out);
}

static void put_option(FILE *out, const struct option *option)
{
    fprintf(out, "; %s\n", option->meaning);
    if (option->type == BOOL)
        fputs("; yes or no\n", out);
    if (option->type == I64 && option->low == option->high)
        fprintf(out, "; always %" PRId64 "\n", option->low);
    else if (option->type == I64)
        fprintf(out, "; %" PRId64 " to %" PRId64 "\n", option->low, option->high);
}

static void put_default(FILE *out, const struct option *option)
{
    fprintf(out, ";%s =%s%s\n", option->key, option->text[0] ? " " : "", option->text);
}

bool gen_frit_ini(FILE *out)
{
    const char *section = "";

    fputs(head, out);
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        if (strcmp(section, options[i].section) != 0)
            fprintf(out, "\n[%s]\n", options[i].section);
        else
            fputc('\n', out);
        section = options[i].section;
        put_option(out, &options[i]);
        put_variable(out, &options[i]);
        put_default(out, &options[i]);
    }
    fputs(plugin_head, out);
    for (size_t i = 0; i < sizeof(plugin_keys) / sizeof(plugin_keys[0]); i++) {
        fputc('\n', out);
        put_option(out, &plugin_keys[i]);
        put_default(out, &plugin_keys[i]);
    }
    return true;
}
