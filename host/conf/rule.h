/* SPDX-License-Identifier: Apache-2.0 */
/* Rules: the allowed sections, keys and values, built from conf/options.def and
 * conf/plugin_keys.def.  Constant.  Thread-safe. */
#ifndef CONF_RULE_H
#define CONF_RULE_H

#include "base/arena.h"
#include "conf/conf.h"

enum rule_type {
    RULE_STR,
    RULE_SECRET,
    RULE_I64,
    RULE_BOOL,
    RULE_PROBE,
    RULE_LOG,
    RULE_DIRS, /* checked and stored as written; see conf_dir_at */
    RULE_PATH, /* stored absolute */
};

struct rule {
    const char *section; /* "plugin.ID" for the keys of plugin sections */
    const char *key;
    enum rule_type type;
    size_t offset; /* of the field in conf_options or conf_plugin */
    const char *default_text;
    int64_t low, high;
};

/* Numbers of the rules: RULE_search_dirs by field, RULE_PLUGIN_library by key. */
enum {
#define CONF_OPTION(section, key, TYPE, field, default_text, low, high, meaning) RULE_##field,
#include "conf/options.def"
    RULE_N_OPTIONS
};
enum {
#define CONF_PLUGIN_KEY(key, TYPE, default_text, low, high, meaning) RULE_PLUGIN_##key,
#include "conf/plugin_keys.def"
    RULE_N_PLUGIN_KEYS
};

extern const struct rule rule_options[RULE_N_OPTIONS];
extern const struct rule rule_plugin_keys[RULE_N_PLUGIN_KEYS];

/* A value to be set.  Strings are borrowed, except `dir`, which lives as long as the configuration.
 */
struct conf_item {
    const char *section;
    const char *key; /* NULL: the beginning of the section */
    const char *value;
    const char *origin;
    const char *dir; /* base of relative paths; NULL: they are rejected */
    uint32_t layer;  /* of the source (a file, the environment, the program); lower layers win */
};

/* The id in "plugin.ID"; NULL for other sections. */
const char *rule_plugin_id(const char *section);
/* Whether the section exists. */
frit_status rule_check_section(const struct conf_item *item, frit_err *err);
/* The rule of a key of an existing section; *out is NULL for option.NAME in a plugin section. */
frit_status rule_find(const struct conf_item *item, const struct rule **out, frit_err *err);
/* NAME of "option.NAME"; NULL for other keys. */
const char *rule_option_name(const char *key);
/* Checks the value and stores it in its field of `options` (a conf_options or conf_plugin; NULL:
 * only checks). */
frit_status rule_store(const struct rule *rule, const struct conf_item *item, struct arena *arena,
                       void *options, frit_err *err);

/* The environment variable that sets the option: FRIT_DEVICE, FRIT_STREAM_MAX_OPS, ... */
enum { RULE_ENV_NAME_BYTES = 64 };
void rule_env_name(const struct rule *rule, char name[RULE_ENV_NAME_BYTES]);

/* `path` if absolute, else `dir`/`path`; NULL if out of memory. */
const char *rule_absolute(struct arena *arena, const char *dir, frit_str path);
/* Returns the entry at *at of a colon-separated list and advances *at past it; false at the end. */
bool rule_next_dir(const char **at, frit_str *out);

#endif
