/* SPDX-License-Identifier: Apache-2.0 */
#include "conf/rule.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/log.h"
#include "base/str.h"

enum { MAX_ID = 40, MAX_SECRET = 32 };

const struct rule rule_options[RULE_N_OPTIONS] = {
#define CONF_OPTION(section_, key_, TYPE, field, default_, low_, high_, meaning) \
    {.section = #section_,                                                       \
     .key = #key_,                                                               \
     .type = RULE_##TYPE,                                                        \
     .offset = offsetof(struct conf_options, field),                             \
     .default_text = (default_),                                                 \
     .low = (low_),                                                              \
     .high = (high_)},
#include "conf/options.def"
};

const struct rule rule_plugin_keys[RULE_N_PLUGIN_KEYS] = {
#define CONF_PLUGIN_KEY(key_, TYPE, default_, low_, high_, meaning) \
    {.section = "plugin.ID",                                        \
     .key = #key_,                                                  \
     .type = RULE_##TYPE,                                           \
     .offset = offsetof(struct conf_plugin, key_),                  \
     .default_text = (default_),                                    \
     .low = (low_),                                                 \
     .high = (high_)},
#include "conf/plugin_keys.def"
};

static const char plugin_prefix[] = "plugin.";
static const char option_prefix[] = "option.";

/* ---- sections ---- */

const char *rule_plugin_id(const char *section)
{
    size_t length = sizeof(plugin_prefix) - 1;

    return strncmp(section, plugin_prefix, length) == 0 ? section + length : NULL;
}

static bool is_id(const char *id)
{
    size_t length = strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789.-");

    return length > 0 && length <= MAX_ID && id[length] == '\0';
}

static frit_status unknown_section(const struct conf_item *item, frit_err *err)
{
    const char *names[RULE_N_OPTIONS];
    const char *nearest;
    size_t count = 0;

    fail(err, FRIT_INVALID, "%s: there is no section [%.60s]; allowed:", item->origin,
         item->section);
    for (size_t i = 0; i < RULE_N_OPTIONS; i++) {
        if (count && strcmp(names[count - 1], rule_options[i].section) == 0)
            continue;
        names[count++] = rule_options[i].section;
        fail_append(err, " [%s]", rule_options[i].section);
    }
    fail_append(err, " [plugin.ID]");
    nearest = str_nearest(item->section, names, count);
    if (nearest)
        fail_append(err, "; did you mean [%s]?", nearest);
    return FRIT_INVALID;
}

frit_status rule_check_section(const struct conf_item *item, frit_err *err)
{
    const char *id = rule_plugin_id(item->section);

    if (id)
        return is_id(id) ? FRIT_OK
                         : fail(err, FRIT_INVALID,
                                "%s: section [%.60s]: the id of a plugin consists of 1 to %d "
                                "characters a-z 0-9 . -",
                                item->origin, item->section, MAX_ID);
    for (size_t i = 0; i < RULE_N_OPTIONS; i++) {
        if (strcmp(rule_options[i].section, item->section) == 0)
            return FRIT_OK;
    }
    return unknown_section(item, err);
}

/* ---- keys ---- */

static bool rule_applies(const struct rule *rule, const char *section, bool is_plugin)
{
    return is_plugin || strcmp(rule->section, section) == 0;
}

static frit_status unknown_key(const struct conf_item *item, const struct rule *rules,
                               size_t n_rules, frit_err *err)
{
    bool is_plugin = rule_plugin_id(item->section) != NULL;
    const char *names[RULE_N_OPTIONS + RULE_N_PLUGIN_KEYS];
    const char *nearest;
    size_t count = 0;

    fail(err, FRIT_INVALID, "%s: [%s] has no key '%.60s'; allowed:", item->origin, item->section,
         item->key);
    for (size_t i = 0; i < n_rules; i++) {
        if (!rule_applies(&rules[i], item->section, is_plugin))
            continue;
        names[count++] = rules[i].key;
        fail_append(err, " %s", rules[i].key);
    }
    fail_append(err, is_plugin ? " option.NAME x-ANY" : " x-ANY");
    nearest = str_nearest(item->key, names, count);
    if (nearest)
        fail_append(err, "; did you mean '%s'?", nearest);
    return FRIT_INVALID;
}

const char *rule_option_name(const char *key)
{
    size_t length = sizeof(option_prefix) - 1;

    return strncmp(key, option_prefix, length) == 0 && key[length] ? key + length : NULL;
}

frit_status rule_find(const struct conf_item *item, const struct rule **out, frit_err *err)
{
    bool is_plugin = rule_plugin_id(item->section) != NULL;
    const struct rule *rules = is_plugin ? rule_plugin_keys : rule_options;
    size_t n_rules = is_plugin ? RULE_N_PLUGIN_KEYS : RULE_N_OPTIONS;

    *out = NULL;
    if (is_plugin && rule_option_name(item->key))
        return FRIT_OK;
    for (size_t i = 0; i < n_rules; i++) {
        if (!rule_applies(&rules[i], item->section, is_plugin) ||
            strcmp(rules[i].key, item->key) != 0)
            continue;
        *out = &rules[i];
        return FRIT_OK;
    }
    return unknown_key(item, rules, n_rules, err);
}

/* ---- values ---- */

static frit_status reject(const struct conf_item *item, frit_err *err, const char *allowed)
{
    return fail(err, FRIT_INVALID, "%s: [%s] %s: '%.60s' is not allowed; allowed: %s", item->origin,
                item->section, item->key, item->value, allowed);
}

static frit_status parse_i64(const struct rule *rule, const struct conf_item *item, int64_t *out,
                             frit_err *err)
{
    const char *digits = item->value + (item->value[0] == '-');
    char allowed[80];
    char *end;

    errno = 0;
    *out = strtoll(item->value, &end, 10);
    if (isdigit((unsigned char)*digits) && *end == '\0' && !errno && *out >= rule->low &&
        *out <= rule->high)
        return FRIT_OK;
    if (rule->low == rule->high)
        snprintf(allowed, sizeof(allowed), "%" PRId64, rule->low);
    else
        snprintf(allowed, sizeof(allowed), "a whole number from %" PRId64 " to %" PRId64, rule->low,
                 rule->high);
    return reject(item, err, allowed);
}

static frit_status parse_bool(const struct conf_item *item, bool *out, frit_err *err)
{
    *out = strcmp(item->value, "yes") == 0;
    return *out || strcmp(item->value, "no") == 0 ? FRIT_OK : reject(item, err, "yes no");
}

static frit_status check_probe(const struct conf_item *item, frit_err *err)
{
    return strcmp(item->value, "auto") == 0 || strcmp(item->value, "always") == 0 ||
                   strcmp(item->value, "never") == 0
               ? FRIT_OK
               : reject(item, err, "auto always never");
}

static frit_status check_log(const struct conf_item *item, frit_err *err)
{
    frit_status status = log_check(item->value, err);

    if (status)
        fail_context(err, "%s: [%s] %s", item->origin, item->section, item->key);
    return status;
}

static frit_status reject_relative(const struct conf_item *item, frit_str path, frit_err *err)
{
    return fail(err, FRIT_INVALID,
                "%s: [%s] %s: '%.*s' is not absolute; relative paths are only allowed in files",
                item->origin, item->section, item->key, path.len < 100 ? (int)path.len : 100,
                path.ptr);
}

static bool is_usable_path(const struct conf_item *item, frit_str path)
{
    return item->dir || path.ptr[0] == '/';
}

static frit_status check_dirs(const struct conf_item *item, frit_err *err)
{
    const char *at = item->value;
    frit_str dir;

    while (rule_next_dir(&at, &dir)) {
        if (!is_usable_path(item, dir))
            return reject_relative(item, dir, err);
    }
    return FRIT_OK;
}

static frit_status check_secret(const struct conf_item *item, frit_err *err)
{
    const size_t n = strlen(item->value);

    return n <= MAX_SECRET
               ? FRIT_OK
               : fail(err, FRIT_INVALID, "%s: [%s] %s: %zu bytes; it must have at most %d",
                      item->origin, item->section, item->key, n, MAX_SECRET);
}

/* Rejects an empty value, except for a list of directories that is empty by default. */
static frit_status check_empty(const struct rule *rule, const struct conf_item *item, frit_err *err)
{
    if (item->value[0] || (rule->type == RULE_DIRS && !rule->default_text[0]))
        return FRIT_OK;
    return fail(err, FRIT_INVALID, "%s: [%s] %s: the value is missing", item->origin, item->section,
                item->key);
}

static frit_status store_text(const char *text, const char **field, struct arena *arena,
                              frit_err *err)
{
    if (!field)
        return FRIT_OK;
    *field = arena_text(arena, text, strlen(text));
    return *field ? FRIT_OK : fail_memory(err, strlen(text) + 1);
}

static frit_status store_path(const struct conf_item *item, const char **field, struct arena *arena,
                              frit_err *err)
{
    frit_str path = str_of(item->value);

    if (!is_usable_path(item, path))
        return reject_relative(item, path, err);
    if (!field)
        return FRIT_OK;
    *field = rule_absolute(arena, item->dir, path);
    return *field ? FRIT_OK : fail_memory(err, path.len);
}

frit_status rule_store(const struct rule *rule, const struct conf_item *item, struct arena *arena,
                       void *options, frit_err *err)
{
    void *field = options ? (char *)options + rule->offset : NULL;
    int64_t number = 0;
    bool yes = false;

    TRY(check_empty(rule, item, err));
    switch (rule->type) {
    case RULE_I64:
        TRY(parse_i64(rule, item, &number, err));
        if (field)
            *(int64_t *)field = number;
        return FRIT_OK;
    case RULE_BOOL:
        TRY(parse_bool(item, &yes, err));
        if (field)
            *(bool *)field = yes;
        return FRIT_OK;
    case RULE_PATH:
        return store_path(item, field, arena, err);
    case RULE_LOG:
        TRY(check_log(item, err));
        break;
    case RULE_PROBE:
        TRY(check_probe(item, err));
        break;
    case RULE_DIRS:
        TRY(check_dirs(item, err));
        break;
    case RULE_SECRET:
        TRY(check_secret(item, err));
        break;
    case RULE_STR:
        break;
    }
    return store_text(item->value, field, arena, err);
}

/* ---- names and paths ---- */

void rule_env_name(const struct rule *rule, char name[RULE_ENV_NAME_BYTES])
{
    bool is_short = strcmp(rule->section, "frit") == 0;

    snprintf(name, RULE_ENV_NAME_BYTES, "FRIT_%s%s%s", is_short ? "" : rule->section,
             is_short ? "" : "_", rule->key);
    for (char *c = name; *c; c++)
        *c = (char)toupper((unsigned char)*c);
}

const char *rule_absolute(struct arena *arena, const char *dir, frit_str path)
{
    size_t head = path.ptr[0] == '/' ? 0 : strlen(dir) + 1;
    char *text = arena_alloc(arena, head + path.len + 1);

    if (!text)
        return NULL;
    if (head) {
        memcpy(text, dir, head - 1);
        text[head - 1] = '/';
    }
    memcpy(text + head, path.ptr, path.len);
    return text;
}

bool rule_next_dir(const char **at, frit_str *out)
{
    *at += strspn(*at, ":");
    *out = (frit_str){*at, strcspn(*at, ":")};
    *at += out->len;
    return out->len > 0;
}
