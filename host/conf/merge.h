/* SPDX-License-Identifier: Apache-2.0 */
/* A configuration while it is put together: layers come in the order of precedence, every value is
 * checked, and the first layer that sets one wins.  Threads: one at a time. */
#ifndef CONF_MERGE_H
#define CONF_MERGE_H

#include "base/map.h"
#include "conf/rule.h"

#define CONF_PATH_ORIGIN "environment FRIT_PLUGIN_PATH"

/* A value that is set, and who set it last without winning: twice in one layer is an error. */
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

/* A variable FRIT_* that means nothing. */
struct conf_stranger {
    const char *name;
    const char *nearest; /* NULL if none is near */
    struct conf_stranger *next;
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
    struct conf_stranger *strangers;
    uint32_t n_sections;
    uint32_t n_dirs;
    struct conf_value *dirs;
    bool dirs_replace;
    const char *plan_store, *artefacts;
    const struct conf_section **section; /* the list as an array, once it is complete */
    uint64_t n_values;
    struct conf_shown *values; /* what conf_at shows */
    uint32_t layer;            /* of the next item */
    struct map slots;          /* sections and plugin options by name; empty once complete */
};

/* Takes one item of the layer that conf->layer numbers. */
frit_status conf_put(struct conf *conf, const struct conf_item *item, frit_err *err);
/* Adds the defaults and makes everything ready to be asked. */
frit_status conf_complete(struct conf *conf, frit_err *err);

#endif
