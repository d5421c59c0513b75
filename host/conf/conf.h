/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration: settings of the program, environment, user file, system files and defaults,
 * merged in this order of precedence, each value with its origin.  Immutable after conf_load.
 * Thread-safe. */
#ifndef CONF_CONF_H
#define CONF_CONF_H

#include <stdbool.h>

#include <frit/frit.h>

/* Typed values of the rows of conf/options.def. */
struct conf_options {
#define CONF_OPTION(section, key, TYPE, field, default_text, low, high, meaning) CONF_##TYPE field;
#define CONF_STR                                                                 const char *
#define CONF_SECRET                                                              const char *
#define CONF_LOG                                                                 const char *
#define CONF_DIRS                                                                const char *
#define CONF_PROBE                                                               const char *
#define CONF_I64                                                                 int64_t
#define CONF_BOOL                                                                bool
#include "conf/options.def"
#undef CONF_STR
#undef CONF_SECRET
#undef CONF_LOG
#undef CONF_DIRS
#undef CONF_PROBE
#undef CONF_I64
#undef CONF_BOOL
};

/* One value with its origin. */
struct conf_value {
    const char *key;
    const char *value;
    const char *origin; /* "built in", "environment FRIT_DEVICE", "FILE:LINE", "program" */
};

/* A [plugin.ID] section. */
struct conf_plugin {
    const char *id;
    const char *library; /* absolute path; NULL if the section names none */
    const char *origin;  /* of `library` if set, else of the section */
    bool enabled;
    bool critical;
    int64_t priority;
    bool has_priority;
    const char *probe; /* auto, always or never; NULL: as [search] probe says */
    uint32_t n_options;
    const struct conf_value *options; /* keys without the leading "option." */
};

struct conf;

/* `settings` have the highest precedence.  An error message begins with "FILE:LINE:", "FILE:",
 * "environment NAME:" or "program:" and lists the allowed values; *out is NULL then. */
FRIT_NODISCARD frit_status conf_load(const frit_setting *settings, uint64_t n_settings,
                                     struct conf **out, frit_err *err);
void conf_destroy(struct conf *conf);

/* Logs warnings: unknown variables FRIT_*.  Apart from conf_load, so that the log can be configured
 * first. */
void conf_warn(const struct conf *conf);

const struct conf_options *conf_options(const struct conf *conf);

/* Plugin sections, in order of precedence, then of their file. */
uint32_t conf_n_plugins(const struct conf *conf);
const struct conf_plugin *conf_plugin_at(const struct conf *conf, uint32_t index);
/* The section of a plugin id; NULL if there is none. */
const struct conf_plugin *conf_plugin_find(const struct conf *conf, frit_str id);

/* Directories to search for plugins, absolute, in order, from [search] dirs or FRIT_PLUGIN_PATH.
 * The loader adds the built-in ones. */
uint32_t conf_n_dirs(const struct conf *conf);
const struct conf_value *conf_dir_at(const struct conf *conf, uint32_t index);
/* Whether the directories come from FRIT_PLUGIN_PATH, which replaces the built-in ones. */
bool conf_dirs_replace(const struct conf *conf);

/* The files that were read, in order of precedence; NULL beyond the last. */
const char *conf_file_at(const struct conf *conf, uint32_t index);

/* The file of saved plans, absolute; NULL: none. */
const char *conf_plan_store(const struct conf *conf);
/* The file of the tuner's decisions, likewise. */
const char *conf_tune_store(const struct conf *conf);
/* The folder for files of plugins, absolute; NULL: none. */
const char *conf_artefacts(const struct conf *conf);

/* The effective values as they were written: all options in table order, then values set in plugin
 * sections.  False if there is no value `index`.  Strings live as long as `conf`. */
bool conf_at(const struct conf *conf, uint64_t index, frit_config_desc *out);

#endif
