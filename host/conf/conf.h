/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration: defaults, system files, user file, environment and program, merged in this order, each
 * value with where it came from.  Immutable after conf_load.  Threads: any. */
#ifndef CONF_CONF_H
#define CONF_CONF_H

#include <stdbool.h>

#include <frit/frit.h>

/* Typed values of the rows of conf/options.def. */
struct conf_options {
#define CONF_OPTION(section, key, TYPE, field, default_text, low, high, choices, meaning) CONF_##TYPE field;
#define CONF_STR  const char *
#define CONF_I64  int64_t
#define CONF_BOOL bool
#include "conf/options.def"
#undef CONF_STR
#undef CONF_I64
#undef CONF_BOOL
};

/* One value with its origin. */
struct conf_value {
    const char *key;
    const char *value;
    const char *origin; /* "built in", "environment FRIT_DEVICE", "FILE:LINE", "program" */
    const char *base;   /* directory that relative paths in it start from; NULL: the working directory */
};

/* A [plugin.ID] section. */
struct conf_plugin {
    const char *id;
    const char *library; /* absolute where the section names one, else NULL */
    const char *origin;  /* of the section's first line */
    bool enabled;
    bool critical;
    int64_t priority;
    bool has_priority;
    uint32_t n_options;
    const struct conf_value *options; /* keys without the leading "option." */
};

struct conf;

/* `settings` beat everything else.  On failure the text begins with file:line (or names the variable) and
 * says what is allowed; nothing is half loaded. */
frit_status conf_load(const frit_setting *settings, uint64_t n_settings, struct conf **out, frit_err *err);
void conf_destroy(struct conf *conf);

const struct conf_options *conf_options(const struct conf *conf);
uint32_t conf_n_plugins(const struct conf *conf);
const struct conf_plugin *conf_plugin_at(const struct conf *conf, uint32_t index);
/* The section of an id, NULL if there is none. */
const struct conf_plugin *conf_plugin_find(const struct conf *conf, frit_str id);
/* Directories to search for plugins in order (absolute), from FRIT_PLUGIN_PATH or else [search] dirs; the built-in ones are
 * the loader's.  `origin` says where each came from. */
uint32_t conf_n_dirs(const struct conf *conf);
const struct conf_value *conf_dir_at(const struct conf *conf, uint32_t index);
/* Whether FRIT_PLUGIN_PATH replaces the built-in directories. */
bool conf_dirs_replace(const struct conf *conf);

/* Every effective value, sections in order; false beyond the last.  Strings live as long as `conf`. */
bool conf_at(const struct conf *conf, uint64_t index, frit_config_desc *out);

#endif
