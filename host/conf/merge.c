/* SPDX-License-Identifier: Apache-2.0 */
/* Options have fixed slots; plugin sections and their options are found in a map, so that files are
 * read in linear time. */
#include "conf/merge.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/str.h"

static const char built_in[] = "built in";

static frit_status copy_text(struct conf *conf, const char *text, const char **out, frit_err *err)
{
    *out = arena_text(&conf->arena, text, strlen(text));
    return *out ? FRIT_OK : fail_memory(err, strlen(text) + 1);
}

/* ---- slots ---- */

/* Rejects a second value in one layer; *wins is set if the item is the first of all layers. */
static frit_status slot_claim(struct conf *conf, struct conf_slot *slot,
                              const struct conf_item *item, bool *wins, frit_err *err)
{
    *wins = !slot->value.value;
    if (slot->seen_origin && slot->seen_layer == item->layer)
        return fail(err, FRIT_INVALID, "%s: [%s] %s is given twice; first: %s", item->origin,
                    item->section, item->key, slot->seen_origin);
    slot->seen_layer = item->layer;
    return copy_text(conf, item->origin, &slot->seen_origin, err);
}

static frit_status slot_fill(struct conf *conf, struct conf_slot *slot, const char *key,
                             const struct conf_item *item, frit_err *err)
{
    slot->value.key = key;
    slot->value.origin = slot->seen_origin;
    slot->dir = item->dir;
    return copy_text(conf, item->value, &slot->value.value, err);
}

/* Sets an item with a rule; the typed field is in `options`. */
static frit_status slot_put(struct conf *conf, struct conf_slot *slot, const struct rule *rule,
                            const struct conf_item *item, void *options, frit_err *err)
{
    bool wins;

    TRY(slot_claim(conf, slot, item, &wins, err));
    TRY(rule_store(rule, item, &conf->arena, wins ? options : NULL, err));
    return wins ? slot_fill(conf, slot, rule->key, item, err) : FRIT_OK;
}

/* ---- plugin sections ---- */

static frit_status section_open(struct conf *conf, const struct conf_item *item,
                                struct conf_section **out, frit_err *err)
{
    struct conf_section *section = map_get(&conf->slots, item->section, strlen(item->section));

    *out = section;
    if (section)
        return FRIT_OK;
    section = arena_alloc(&conf->arena, sizeof(*section));
    if (!section)
        return fail_memory(err, sizeof(*section));
    section->options_end = &section->options;
    TRY(copy_text(conf, item->section, &section->name, err));
    TRY(copy_text(conf, item->origin, &section->plugin.origin, err));
    section->plugin.id = rule_plugin_id(section->name);
    if (!map_add(&conf->slots, section->name, strlen(section->name), section))
        return fail_memory(err, strlen(section->name));
    *conf->sections_end = section;
    conf->sections_end = &section->next;
    conf->n_sections++;
    *out = section;
    return FRIT_OK;
}

static frit_status option_slot(struct conf *conf, struct conf_section *section,
                               const struct conf_item *item, struct conf_slot **out, frit_err *err)
{
    struct str name = {0};
    frit_status status = FRIT_NO_HOST_MEMORY;
    struct conf_slot *slot = NULL;

    str_addf(&name, "%s]%s", item->section, item->key); /* section names contain no bracket */
    if (name.failed)
        goto out;
    slot = map_get(&conf->slots, name.text, name.length);
    if (!slot) {
        slot = arena_alloc(&conf->arena, sizeof(*slot));
        if (!slot || !map_add(&conf->slots, name.text, name.length, slot))
            goto out;
        *section->options_end = slot;
        section->options_end = &slot->next;
        section->plugin.n_options++;
    }
    status = FRIT_OK;
out:
    str_fini(&name);
    *out = slot;
    return status ? fail_memory(err, sizeof(*slot)) : FRIT_OK;
}

static frit_status put_plugin_option(struct conf *conf, struct conf_section *section,
                                     const struct conf_item *item, frit_err *err)
{
    struct conf_slot *slot;
    const char *key;
    bool wins;

    TRY(option_slot(conf, section, item, &slot, err));
    TRY(slot_claim(conf, slot, item, &wins, err));
    if (!wins)
        return FRIT_OK;
    TRY(copy_text(conf, item->key, &key, err));
    return slot_fill(conf, slot, key, item, err);
}

static frit_status put_plugin(struct conf *conf, const struct rule *rule,
                              const struct conf_item *item, frit_err *err)
{
    struct conf_section *section;

    TRY(section_open(conf, item, &section, err));
    if (!item->key)
        return FRIT_OK;
    if (!rule)
        return put_plugin_option(conf, section, item, err);
    return slot_put(conf, &section->key[rule - rule_plugin_keys], rule, item, &section->plugin,
                    err);
}

frit_status conf_put(struct conf *conf, const struct conf_item *item, frit_err *err)
{
    const struct rule *rule = NULL;

    TRY(rule_check_section(item, err));
    if (item->key && strncmp(item->key, "x-", 2) == 0)
        return FRIT_OK;
    if (item->key)
        TRY(rule_find(item, &rule, err));
    if (rule_plugin_id(item->section))
        return put_plugin(conf, rule, item, err);
    if (!rule)
        return FRIT_OK;
    return slot_put(conf, &conf->option[rule - rule_options], rule, item, &conf->options, err);
}

/* ---- completing ---- */

/* The default of an option that is not set. */
static frit_status put_default(struct conf *conf, struct conf_slot *slot, const struct rule *rule,
                               void *options, frit_err *err)
{
    struct conf_item item = {.section = rule->section,
                             .key = rule->key,
                             .value = rule->default_text,
                             .origin = built_in,
                             .layer = conf->layer};

    return slot->value.value ? FRIT_OK : slot_put(conf, slot, rule, &item, options, err);
}

/* Sets typed defaults of missing keys; their slots stay empty, so that only values that were set
 * are listed. */
static frit_status complete_section(struct conf *conf, struct conf_section *section, frit_err *err)
{
    struct conf_plugin *plugin = &section->plugin;
    struct conf_value *options = arena_array(&conf->arena, plugin->n_options, sizeof(*options));
    uint32_t count = 0;

    if (!options)
        return fail_memory(err, plugin->n_options * sizeof(*options));
    for (size_t i = 0; i < RULE_N_PLUGIN_KEYS; i++) {
        const struct rule *rule = &rule_plugin_keys[i];
        struct conf_slot unset = {0};

        if (!section->key[i].value.value && rule->default_text[0])
            TRY(put_default(conf, &unset, rule, plugin, err));
    }
    for (struct conf_slot *slot = section->options; slot; slot = slot->next) {
        options[count] = slot->value;
        options[count++].key = rule_option_name(slot->value.key);
    }
    plugin->options = options;
    return FRIT_OK;
}

static frit_status complete_sections(struct conf *conf, frit_err *err)
{
    uint32_t count = 0;

    conf->section = arena_array(&conf->arena, conf->n_sections, sizeof(*conf->section));
    if (!conf->section)
        return fail_memory(err, conf->n_sections * sizeof(*conf->section));
    for (struct conf_section *section = conf->sections; section; section = section->next) {
        const struct conf_slot *library = &section->key[RULE_PLUGIN_library];

        TRY(complete_section(conf, section, err));
        section->plugin.has_priority = section->key[RULE_PLUGIN_priority].value.value != NULL;
        if (library->value.value)
            section->plugin.origin = library->value.origin;
        conf->section[count++] = section;
    }
    return FRIT_OK;
}

static frit_status complete_dirs(struct conf *conf, frit_err *err)
{
    const struct conf_slot *slot = &conf->option[RULE_search_dirs];
    const char *at = slot->value.value;
    uint32_t count = 0;
    frit_str dir;

    while (rule_next_dir(&at, &dir))
        count++;
    conf->dirs = arena_array(&conf->arena, count, sizeof(*conf->dirs));
    if (!conf->dirs)
        return fail_memory(err, count * sizeof(*conf->dirs));
    at = slot->value.value;
    while (rule_next_dir(&at, &dir)) {
        struct conf_value *value = &conf->dirs[conf->n_dirs++];

        value->key = slot->value.key;
        value->origin = slot->value.origin;
        value->value = rule_absolute(&conf->arena, slot->dir, dir);
        if (!value->value)
            return fail_memory(err, dir.len);
    }
    conf->dirs_replace = strcmp(slot->value.origin, CONF_PATH_ORIGIN) == 0;
    return FRIT_OK;
}

/* What was set is used, but not shown. */
static void hide(struct conf_slot *slot, const struct rule *rule)
{
    if (strcmp(slot->value.value, rule->default_text) != 0)
        slot->value.value = "(not shown)";
}

static void show(struct conf *conf, const char *section, const struct conf_slot *slot)
{
    if (slot->value.value)
        conf->values[conf->n_values++] = (struct conf_shown){section, &slot->value};
}

static frit_status complete_values(struct conf *conf, frit_err *err)
{
    size_t capacity = RULE_N_OPTIONS;

    for (uint32_t i = 0; i < conf->n_sections; i++)
        capacity += RULE_N_PLUGIN_KEYS + conf->section[i]->plugin.n_options;
    conf->values = arena_array(&conf->arena, capacity, sizeof(*conf->values));
    if (!conf->values)
        return fail_memory(err, capacity * sizeof(*conf->values));
    for (size_t i = 0; i < RULE_N_OPTIONS; i++) {
        if (rule_options[i].type == RULE_SECRET)
            hide(&conf->option[i], &rule_options[i]);
        show(conf, rule_options[i].section, &conf->option[i]);
    }
    for (uint32_t i = 0; i < conf->n_sections; i++) {
        const struct conf_section *section = conf->section[i];

        for (size_t k = 0; k < RULE_N_PLUGIN_KEYS; k++)
            show(conf, section->name, &section->key[k]);
        for (const struct conf_slot *slot = section->options; slot; slot = slot->next)
            show(conf, section->name, slot);
    }
    return FRIT_OK;
}

frit_status conf_complete(struct conf *conf, frit_err *err)
{
    for (size_t i = 0; i < RULE_N_OPTIONS; i++)
        TRY(put_default(conf, &conf->option[i], &rule_options[i], &conf->options, err));
    TRY(complete_sections(conf, err));
    TRY(complete_dirs(conf, err));
    TRY(complete_values(conf, err));
    map_fini(&conf->slots, NULL);
    return FRIT_OK;
}
