/* SPDX-License-Identifier: Apache-2.0 */
/* A configuration that is being built: layers are added in order of precedence, every value is
 * checked, and the first layer that sets a value wins.  One thread at a time. */
#ifndef CONF_MERGE_H
#define CONF_MERGE_H

#include "base/map.h"
#include "conf/rule.h"

#define CONF_PATH_ORIGIN "environment FRIT_PLUGIN_PATH"

/* A value, and where it was last set, also without effect: setting it twice in one layer is an
 * error. */
struct conf_slot {
    struct conf_value value;
    const char *dir;
    uint32_t seen_layer;
    const char *seen_origin;
    struct conf_slot *next; /* options of a plugin */
};

struct conf_section {
    struct conf_plugin plugin;
    const char *name; /* "plugin.ID" */
    struct conf_slot key[RULE_N_PLUGIN_KEYS];
    struct conf_slot *options, **options_end;
    struct conf_section *next;
};

/* An unknown variable FRIT_*. */
struct conf_unknown {
    const char *name;
    const char *nearest; /* a similar known name, or NULL */
    struct conf_unknown *next;
};

struct conf_file {
    const char *path;
    struct conf_file *next;
};

struct conf_shown {
    const char *section;
    const struct conf_value *value;
};

struct conf {
    struct arena arena;
    struct conf_options options;
    struct conf_slot option[RULE_N_OPTIONS];
    struct conf_section *sections, **sections_end;
    struct conf_unknown *unknown_variables;
    uint32_t n_sections;
    uint32_t n_dirs;
    struct conf_value *dirs;
    bool dirs_replace;
    const char *plan_store, *tune_store, *artefacts;
    struct conf_file *files, **files_end; /* that were read */
    const struct conf_section **section;  /* the list as an array; set by conf_complete */
    uint64_t n_values;
    struct conf_shown *values; /* returned by conf_at */
    uint32_t layer;            /* number of the layer of the next item */
    struct map slots;          /* sections and plugin options by name; emptied by conf_complete */
};

/* Adds an item of layer conf->layer. */
frit_status conf_put(struct conf *conf, const struct conf_item *item, frit_err *err);
/* Adds the defaults and builds the arrays for queries. */
frit_status conf_complete(struct conf *conf, frit_err *err);

#endif
