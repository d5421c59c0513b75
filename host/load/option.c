/* SPDX-License-Identifier: Apache-2.0 */
/* Options of plugins: the schema that a plugin declares is checked first (a fault in it is the
 * plugin's, bad-table), then every key of the configuration against it (bad-option, with where the
 * value came from and what is allowed). */
#include "load/option.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/str.h"
#include "conf/conf.h"
#include "load/load.h"

enum { MAX_OPTIONS = 256, MAX_NAME = 40, MAX_TEXT = 4096 };

const char *option_type_name(uint32_t type)
{
    static const char *const names[] = {[FRIT_OPTION_STR] = "text",
                                        [FRIT_OPTION_I64] = "a whole number",
                                        [FRIT_OPTION_F64] = "a number",
                                        [FRIT_OPTION_BOOL] = "yes or no"};

    return names[type];
}

static const frit_option *schema_at(const frit_plugin *root, uint32_t index)
{
    return (const frit_option *)(const void *)((const char *)root->options +
                                               (size_t)index * root->option_stride);
}

/* ---- values ---- */

static bool parse_i64(const char *text, int64_t *out)
{
    char *end;

    if (!isdigit((unsigned char)text[0]) && text[0] != '-')
        return false;
    errno = 0;
    *out = strtoll(text, &end, 10);
    return errno == 0 && end != text && *end == '\0';
}

/* In the "C" locale, whatever the program has set. */
static bool parse_f64(const char *text, double *out)
{
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    char *end;

    if (!plain)
        return false;
    *out = strtod_l(text, &end, plain);
    freelocale(plain);
    return end != text && *end == '\0' && !isspace((unsigned char)text[0]) && isfinite(*out);
}

static bool parse_bool(const char *text, int64_t *out)
{
    *out = strcmp(text, "yes") == 0;
    return *out || strcmp(text, "no") == 0;
}

static bool is_choice(frit_str choices, const char *text)
{
    size_t length = strlen(text);

    for (uint64_t i = 0; i < choices.len;) {
        const char *word = choices.ptr + i;
        const char *blank = memchr(word, ' ', (size_t)(choices.len - i));
        size_t n = blank ? (size_t)(blank - word) : (size_t)(choices.len - i);

        if (n == length && memcmp(word, text, n) == 0)
            return true;
        i += n + 1;
    }
    return choices.len == 0;
}

/* Whether `text` is a value of the option; fills `out`. */
static bool option_parse(const frit_option *schema, const char *text, struct option *out)
{
    bool bounded = schema->min != 0 || schema->max != 0;

    out->type = schema->type;
    out->text = text;
    switch (schema->type) {
    case FRIT_OPTION_STR:
        return is_choice(schema->choices, text);
    case FRIT_OPTION_I64:
        return parse_i64(text, &out->i64) &&
               (!bounded || (out->i64 >= schema->min && out->i64 <= schema->max));
    case FRIT_OPTION_F64:
        return parse_f64(text, &out->f64);
    default:
        return parse_bool(text, &out->i64);
    }
}

/* What option_parse takes, in words. */
static const char *option_wants(const frit_option *schema, char *text, size_t size)
{
    if (schema->type == FRIT_OPTION_I64 && (schema->min != 0 || schema->max != 0))
        snprintf(text, size, "a whole number from %" PRId64 " to %" PRId64, schema->min,
                 schema->max);
    else if (schema->type == FRIT_OPTION_STR && schema->choices.len)
        snprintf(text, size, "one of: %.*s", (int)schema->choices.len, schema->choices.ptr);
    else
        snprintf(text, size, "%s", option_type_name(schema->type));
    return text;
}

/* ---- the schema ---- */

static bool text_is_sane(frit_str text)
{
    return text.len <= MAX_TEXT && (text.ptr || text.len == 0);
}

static bool name_is_valid(frit_str name)
{
    if (!name.ptr || name.len == 0 || name.len > MAX_NAME)
        return false;
    for (uint64_t i = 0; i < name.len; i++) {
        bool letter = name.ptr[i] >= 'a' && name.ptr[i] <= 'z';
        bool other = (name.ptr[i] >= '0' && name.ptr[i] <= '9') || name.ptr[i] == '_';

        if (!letter && !(other && i > 0))
            return false;
    }
    return true;
}

/* Checks one declared option and gives it its default. */
static frit_status take_schema(struct arena *arena, struct plugin *plugin, uint32_t index,
                               struct option *out)
{
    const frit_option *schema = schema_at(plugin->root, index);
    const char *text;

    if (!FRIT_HAS(schema, frit_option, choices) || schema->type < FRIT_OPTION_STR ||
        schema->type > FRIT_OPTION_BOOL || !name_is_valid(schema->name) ||
        !text_is_sane(schema->default_value) || !text_is_sane(schema->choices))
        return plugin_refuse(plugin, FRIT_REASON_BAD_TABLE,
                             "option %" PRIu32 " of the plugin's schema is malformed", index);
    out->name = arena_text(arena, schema->name.ptr, (size_t)schema->name.len);
    text = arena_text(arena, schema->default_value.ptr, (size_t)schema->default_value.len);
    if (!out->name || !text)
        return FRIT_NO_HOST_MEMORY;
    if (!option_parse(schema, text, out))
        return plugin_refuse(plugin, FRIT_REASON_BAD_TABLE,
                             "option '%s' of the plugin's schema: its own default '%s' is wrong",
                             out->name, text);
    return FRIT_OK;
}

static bool is_twice(const struct option *options, uint32_t index)
{
    for (uint32_t i = 0; i < index; i++)
        if (strcmp(options[i].name, options[index].name) == 0)
            return true;
    return false;
}

static frit_status check_array(struct plugin *plugin)
{
    const frit_plugin *root = plugin->root;
    bool fits = root->option_stride >= sizeof(frit_option) &&
                root->option_stride % _Alignof(frit_option) == 0;

    if (root->n_options == 0 || (root->n_options <= MAX_OPTIONS && root->options && fits))
        return FRIT_OK;
    return plugin_refuse(plugin, FRIT_REASON_BAD_TABLE,
                         "the plugin's schema of %" PRIu32 " options at %" PRIu32
                         " bytes is malformed",
                         root->n_options, root->option_stride);
}

/* ---- merging ---- */

static frit_status unknown_option(struct plugin *plugin, const struct conf_value *value,
                                  const struct option *options)
{
    const char *names[MAX_OPTIONS];
    const char *nearest;
    char hint[64] = "";
    char list[256] = "";
    size_t used = 0;

    for (uint32_t i = 0; i < plugin->root->n_options; i++) {
        names[i] = options[i].name;
        if (used < sizeof(list))
            used +=
                (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", i ? ", " : "", names[i]);
    }
    nearest = str_nearest(value->key, names, plugin->root->n_options);
    if (nearest)
        snprintf(hint, sizeof(hint), ", did you mean '%s'?", nearest);
    return plugin_refuse(plugin, FRIT_REASON_BAD_OPTION,
                         "%s: plugin '%s' has no option '%s'%s; it has: %s", value->origin,
                         plugin->id, value->key, hint, list[0] ? list : "none");
}

static frit_status merge_value(struct arena *arena, struct plugin *plugin,
                               const struct conf_value *value, struct option *options)
{
    char wants[300];
    const char *text;

    for (uint32_t i = 0; i < plugin->root->n_options; i++) {
        if (strcmp(options[i].name, value->key) != 0)
            continue;
        text = arena_text(arena, value->value, strlen(value->value));
        if (!text)
            return FRIT_NO_HOST_MEMORY;
        if (option_parse(schema_at(plugin->root, i), text, &options[i]))
            return FRIT_OK;
        return plugin_refuse(plugin, FRIT_REASON_BAD_OPTION, "%s: option.%s = %s: wanted is %s",
                             value->origin, value->key, text,
                             option_wants(schema_at(plugin->root, i), wants, sizeof(wants)));
    }
    return unknown_option(plugin, value, options);
}

frit_status options_merge(struct arena *arena, struct plugin *plugin,
                          const struct conf_plugin *section, const struct option **out)
{
    struct option *options;

    TRY(check_array(plugin));
    options = arena_array(arena, (size_t)plugin->root->n_options + 1, sizeof(*options));
    if (!options)
        return FRIT_NO_HOST_MEMORY;
    for (uint32_t i = 0; i < plugin->root->n_options; i++) {
        TRY(take_schema(arena, plugin, i, &options[i]));
        if (is_twice(options, i))
            return plugin_refuse(plugin, FRIT_REASON_BAD_TABLE,
                                 "the plugin's schema has two options '%s'", options[i].name);
    }
    for (uint32_t i = 0; section && i < section->n_options; i++)
        TRY(merge_value(arena, plugin, &section->options[i], options));
    *out = options;
    return FRIT_OK;
}
